//! A durable function behind the kernel's trait.

use super::core::{Core, OpId};
use super::ctx::Ctx;
use crate::activity::encode;
use crate::error::{Error, Result};
use crate::names::Data;
use durably_kernel::{
    Action, ActivityId, Code, Event, Failure, FailureKind, Fault, Heard, Payload, Program, RunId,
    Waits, timeout_failure,
};
use durably_runtime::{HostedProgram, InlineStep, StepOutcome, WorkflowHost, panic_text};
use futures_util::future::BoxFuture;
use futures_util::task::AtomicWaker;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A function that wants more polls than this for one event never comes to rest.
const POLLS_MAX: usize = 10_000;

/// Makes programs of a durable function.
pub(crate) struct FunctionHost<F, I, O> {
    function: Arc<F>,
    types: PhantomData<fn(I) -> O>,
}

impl<F, I, O> FunctionHost<F, I, O> {
    pub(crate) fn new(function: F) -> FunctionHost<F, I, O> {
        FunctionHost { function: Arc::new(function), types: PhantomData }
    }
}

type Ended = std::result::Result<Payload, Failure>;

impl<F, Fut, I, O> WorkflowHost for FunctionHost<F, I, O>
where
    F: Fn(Ctx, I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O>> + Send + 'static,
    I: Data,
    O: Data,
{
    fn create(&self, run: RunId, input: &Payload, seed: u64) -> Box<dyn HostedProgram> {
        let core = Arc::new(Core::new(run, seed));
        let (ctx, input) = (Ctx { core: core.clone() }, input.clone());
        let function = self.function.clone();
        let future: BoxFuture<'static, Ended> = Box::pin(async move {
            let input: I = input.decode().map_err(|error| {
                let error = Error::invalid_input(format!("workflow input: {error}"));
                Failure::from(error.code(Code::DECODE.as_str()))
            })?;
            encode(function(ctx, input).await)
        });
        let alarm = Arc::new(Alarm { rung: AtomicBool::new(true), task: AtomicWaker::new() });
        Box::new(FunctionProgram { core, future: Some(future), alarm })
    }
}

/// Wakes whoever drives the function. One and the same for all polls, so that a step's future
/// that was polled in a turn is not forgotten between turns.
struct Alarm {
    rung: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        self.task.wake();
    }
}

struct FunctionProgram {
    core: Arc<Core>,
    future: Option<BoxFuture<'static, Ended>>,
    alarm: Arc<Alarm>,
}

impl FunctionProgram {
    /// Polls the function once.
    fn poll(&mut self) -> std::result::Result<Poll<Ended>, Fault> {
        let Some(future) = &mut self.future else { return Ok(Poll::Pending) };
        self.alarm.rung.store(false, Ordering::SeqCst);
        let waker = Waker::from(self.alarm.clone());
        let mut cx = Context::from_waker(&waker);
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx)));
        let polled = polled.map_err(|panic| Fault::Panicked { message: panic_text(&*panic) })?;
        if polled.is_ready() {
            self.future = None;
        }
        Ok(polled)
    }

    /// Polls until nothing in the function wants another poll: combinators may yield before they
    /// have polled everything that was woken, and how often must not matter.
    fn poll_until_settled(&mut self) -> std::result::Result<Poll<Ended>, Fault> {
        for _ in 0..POLLS_MAX {
            let polled = self.poll()?;
            if polled.is_ready() || !self.alarm.rung.load(Ordering::SeqCst) {
                return Ok(polled);
            }
        }
        Err(foreign("something in it wakes itself without end"))
    }

    /// Wakes of attempts that came between turns must not decide the order in which the next event
    /// wakes others.
    fn settle_wakes(&mut self) -> std::result::Result<(), Fault> {
        if !self.alarm.rung.load(Ordering::SeqCst) {
            return Ok(());
        }
        match self.poll_until_settled()? {
            Poll::Pending if !self.core.has_actions() => Ok(()),
            _ => Err(foreign("it went on without an event that let it")),
        }
    }

    /// Takes an event in; false if nothing in the function can have changed by it.
    fn hear(&mut self, event: &Event) -> bool {
        match event {
            Event::VersionPinned { .. } => true,
            Event::ActivityCompleted { activity_id, result, .. } => {
                self.core.resolve(&OpId::Activity(activity_id.clone()), Ok(result.clone()))
            }
            Event::ActivityFailed { activity_id, error, .. } => {
                self.failed(activity_id, Failure::clone(error))
            }
            Event::ActivityTimedOut { activity_id, timeout_type, .. } => {
                self.failed(activity_id, timeout_failure(*timeout_type))
            }
            Event::TimerFired { timer_id, .. } => {
                self.core.resolve(&OpId::Timer(timer_id.clone()), Ok(Payload::null()))
            }
            Event::SignalReceived { signal, .. } => {
                self.core.hear_signal(signal.clone());
                true
            }
            Event::WorkflowCancelRequested { reason, .. } => {
                self.core.cancel_all(reason);
                true
            }
            _ => false,
        }
    }

    fn failed(&mut self, id: &ActivityId, failure: Failure) -> bool {
        let failure = failure.from_origin(id.as_str());
        self.core.resolve(&OpId::Activity(id.clone()), Err(failure))
    }
}

impl Program for FunctionProgram {
    fn react(
        &mut self,
        heard: Heard<'_>,
        event: &Event,
    ) -> std::result::Result<Vec<Action>, Fault> {
        if !matches!(event, Event::VersionPinned { .. }) {
            self.settle_wakes()?;
        }
        self.core.set_now(heard.run.now);
        if !self.hear(event) {
            return Ok(vec![]);
        }
        let polled = self.poll_until_settled()?;
        let mut actions = self.core.take_actions();
        match polled {
            Poll::Pending if self.core.waits_for_nothing() => {
                return Err(foreign("it awaits something, but nothing of its context"));
            }
            Poll::Pending => {}
            Poll::Ready(Ok(output)) => actions.push(Action::Complete { output }),
            Poll::Ready(Err(error)) => actions.push(match &heard.run.cancel_requested {
                Some(reason) if error.kind == FailureKind::Cancelled => {
                    Action::Cancelled { reason: reason.clone() }
                }
                _ => Action::Fail { error },
            }),
        }
        Ok(actions)
    }

    fn waits(&self) -> Waits {
        Waits::Signals(self.core.awaited_signals())
    }
}

impl HostedProgram for FunctionProgram {
    fn begin(&mut self, step: InlineStep) {
        self.core.begin(step.id, step.seq);
        self.alarm.rung.store(true, Ordering::SeqCst);
    }

    fn give_up(&mut self, id: &ActivityId) {
        self.core.stop(id);
    }

    fn poll_steps(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<std::result::Result<StepOutcome, Fault>> {
        self.alarm.task.register(cx.waker());
        if let Some(outcome) = self.core.take_outcome() {
            return Poll::Ready(Ok(outcome));
        }
        self.core.wake_missed();
        if !self.alarm.rung.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        self.core.drive(true);
        let polled = self.poll();
        self.core.drive(false);
        match polled {
            Err(fault) => return Poll::Ready(Err(fault)),
            Ok(Poll::Ready(_)) => {
                return Poll::Ready(Err(foreign("it ended without an event that let it go on")));
            }
            Ok(Poll::Pending) => {}
        }
        if self.core.has_actions() {
            return Poll::Ready(Err(foreign("it went on without an event that let it")));
        }
        match self.core.take_outcome() {
            Some(outcome) => Poll::Ready(Ok(outcome)),
            None => Poll::Pending,
        }
    }

    fn size(&self) -> usize {
        self.core.size() + self.future.as_ref().map_or(0, |future| size_of_val(&**future))
    }
}

fn foreign(what: &str) -> Fault {
    let advice = "await only what comes from the context; put everything else into a step";
    Fault::ForeignAwait { message: format!("the function is not deterministic: {what}; {advice}") }
}
