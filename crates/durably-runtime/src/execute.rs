//! Executes one attempt of an activity.

use crate::hands::InHand;
use crate::host::{ActivityContext, ActivityHost, panic_text};
use crate::mailbox::{Finished, Message};
use crate::shared::Shared;
use crate::token::CancelReason;
use crate::worker::hand_back;
use durably_kernel::{
    Claim, Code, Fact, Failure, FailureKind, Payload, Run, Tenant, TimeoutKind, WorkflowType,
    check_payload,
};
use durably_store::{ClaimedActivity, HandBack, Returned, RunView};
use futures_util::FutureExt;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tracing::Instrument;

/// What an attempt knows of its run.
#[derive(Clone, Debug)]
pub(crate) struct OfRun {
    pub(crate) tenant: Tenant,
    pub(crate) workflow_type: WorkflowType,
    pub(crate) version: Option<u32>,
}

impl OfRun {
    pub(crate) fn of(run: &Run) -> OfRun {
        let (tenant, workflow_type) = (run.identity.tenant.clone(), run.workflow_type.clone());
        OfRun { tenant, workflow_type, version: run.version }
    }

    /// As the run was at the claim.
    pub(crate) fn at_claim(run: RunView) -> OfRun {
        let (tenant, workflow_type) = (run.identity.tenant, run.workflow_type);
        OfRun { tenant, workflow_type, version: run.version }
    }
}

/// An activity that is ours to execute; its claim is in hand.
pub(crate) struct Granted {
    pub(crate) claim: Claim,
    pub(crate) of: OfRun,
    pub(crate) activity: Box<ClaimedActivity>,
    pub(crate) in_hand: InHand,
}

/// How far an activity is that was to begin.
pub(crate) enum Begun {
    /// It was begun before, or is not ours to begin.
    Not,
    /// It runs in a task of its own.
    UnderWay,
    /// It is done already.
    Done(Box<Finished>),
}

/// Executes a claimed activity, if its code is here: in a task of its own, or, if it may, in the
/// caller's as far as it gets without waiting. Most work that is quick saves a task in this way.
pub(crate) fn begin(shared: &Arc<Shared>, granted: Granted, may_be_here: bool) -> Begun {
    let Granted { claim, of, activity, in_hand } = granted;
    let Some(host) = shared.registry.activity(&activity.activity_type) else {
        hand_back(shared, HandBack { claim, how: Returned::Unstarted });
        return Begun::Not;
    };
    shared.hands.begin_executing();
    let execution = Execution { shared: shared.clone(), claim, of, activity, host, in_hand };
    let span = tracing::info_span!(
        "durable.activity.execute",
        durable.workflow.id = %claim.run,
        durable.activity.id = %execution.activity.id,
        durable.activity.type = %execution.activity.activity_type,
        durable.activity.attempt = execution.activity.attempt.number,
    );
    let mut work = Box::pin(execution.go().instrument(span));
    if may_be_here {
        match work.as_mut().now_or_never() {
            Some(Some(finished)) => return Begun::Done(Box::new(finished)),
            Some(None) => return Begun::Not,
            None => {}
        }
    }
    let shared = shared.clone();
    shared.environment.clone().spawn(Box::pin(async move {
        match work.await {
            Some(finished) => {
                shared.mailboxes.post(&shared, claim.run, Message::Outcome(Box::new(finished)));
            }
            None => shared.mailboxes.tell(claim.run, Message::Returned),
        }
    }));
    Begun::UnderWay
}

struct Execution {
    shared: Arc<Shared>,
    claim: Claim,
    of: OfRun,
    activity: Box<ClaimedActivity>,
    host: Arc<dyn ActivityHost>,
    in_hand: InHand,
}

/// How an attempt ended.
enum Ended {
    Result(Result<Payload, Failure>),
    TimedOut,
}

impl Execution {
    /// Its outcome, or none if it went back to the queue.
    async fn go(self) -> Option<Finished> {
        let ended = self.attempt().await;
        self.shared.hands.end_executing();
        let token = &self.in_hand.token;
        if token.reason() == Some(CancelReason::Stopping) && !matches!(ended, Ended::Result(Ok(_)))
        {
            // A graceful stop is no failure: the attempt goes back to the queue.
            hand_back(&self.shared, HandBack { claim: self.claim, how: Returned::Stopped });
            return None;
        }
        let fact = self.fact(ended);
        Some(Finished { claim: self.claim, fact, of: self.of })
    }

    async fn attempt(&self) -> Ended {
        let token = &self.in_hand.token;
        let coder = self.shared.registry.coder().clone();
        let context = ActivityContext {
            run: self.claim.run,
            tenant: self.of.tenant.clone(),
            id: self.activity.id.clone(),
            activity_type: self.activity.activity_type.clone(),
            attempt: self.activity.attempt.clone(),
            attempts_max: self.activity.options.retry_policy().attempts,
            details: self.activity.details.clone(),
            token: token.clone(),
            pulse: self.in_hand.pulse.clone(),
            coder,
        };
        let input = self.activity.input.clone();
        // The call itself is users' code too, so it happens inside of what is caught.
        let work = AssertUnwindSafe(plainly(self.host.clone(), context, input)).catch_unwind();
        let mut work = pin!(work);
        let result = |result: std::thread::Result<_>| {
            Ended::Result(result.unwrap_or_else(|panic| Err(panicked(&*panic))))
        };
        // What is done at once needs no timer.
        if let Poll::Ready(done) = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
            return result(done);
        }
        let deadline = self.activity.options.longest_attempt();
        tokio::select! {
            biased;
            done = work => result(done),
            () = self.shared.environment.sleep(deadline) => {
                token.cancel(CancelReason::TimedOut);
                Ended::TimedOut
            }
        }
    }

    fn fact(&self, ended: Ended) -> Fact {
        let activity_id = self.activity.id.clone();
        let (seq, attempt) = (self.claim.seq, self.activity.attempt.clone());
        let losses = self.activity.losses.clone();
        let details = self.in_hand.pulse.last();
        let result = match ended {
            Ended::TimedOut => {
                return Fact::ActivityTimedOut {
                    activity_id,
                    seq,
                    timeout: TimeoutKind::StartToClose,
                    attempt: Some(attempt),
                    details,
                    losses,
                };
            }
            Ended::Result(result) => result.and_then(|result| checked("activity output", result)),
        };
        match result {
            Ok(result) => Fact::ActivityCompleted { activity_id, seq, attempt, result, losses },
            Err(error) => {
                Fact::ActivityFailed { activity_id, seq, attempt, error, details, losses }
            }
        }
    }
}

/// Executes an attempt with plain values: what it gets is decoded, what it gives is coded.
async fn plainly(
    host: Arc<dyn ActivityHost>,
    mut context: ActivityContext,
    input: Payload,
) -> Result<Payload, Failure> {
    let coder = context.coder.clone();
    let decoded = |what, stored| coder.decode(stored).map_err(|error| error.failure(what));
    let input = decoded("activity input", input)?;
    if let Some(details) = context.details.take() {
        context.details = Some(decoded("heartbeat details", details)?);
    }
    coder.encode_outcome("activity output", host.execute(context, input).await)
}

/// A result that the store takes, or the failure that it is none.
pub(crate) fn checked(what: &'static str, result: Payload) -> Result<Payload, Failure> {
    check_payload(what, &result).map(|()| result).map_err(|invalid| {
        Failure::new(FailureKind::Permanent, invalid.to_string()).code(invalid.code().as_str())
    })
}

/// What is recorded when an activity or a step panicked.
pub fn panicked(panic: &(dyn std::any::Any + Send)) -> Failure {
    Failure::new(FailureKind::Panicked, panic_text(panic)).code(Code::ACTIVITY_PANICKED.as_str())
}
