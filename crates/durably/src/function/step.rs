//! `ctx.step`: an activity written in place, polled inside of the function's own task.

use super::core::{Asked, Attempt as Turn, Core, OpId};
use crate::activity::encode;
use crate::error::Result;
use crate::names::Data;
use crate::options::{activity_options, defaults};
use durably_kernel::{ActivityOptions, Code, Failure, FailureKind, Payload};
use durably_runtime::panicked;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

type Attempt<'a> = BoxFuture<'a, std::result::Result<Payload, Failure>>;

/// A step of a durable function; a future of its result.
#[must_use = "a step is asked for when it is awaited"]
pub struct Step<'a, T> {
    core: Arc<Core>,
    name: Arc<str>,
    options: Arc<ActivityOptions>,
    id: Option<OpId>,
    /// Makes an attempt.
    make: Box<dyn FnMut() -> Attempt<'a> + Send + 'a>,
    attempt: Option<Attempt<'a>>,
    output: std::marker::PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Step<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a, T> Step<'a, T> {
    pub(super) fn new<F, Fut>(core: Arc<Core>, name: Arc<str>, work: F) -> Step<'a, T>
    where
        T: Data,
        F: FnOnce() -> Fut + Clone + Send + 'a,
        Fut: Future<Output = Result<T>> + Send + 'a,
    {
        let make = Box::new(move || -> Attempt<'a> {
            let work = work.clone();
            // The call itself is users' code too, so it happens inside of what is caught.
            let attempt = AssertUnwindSafe(async move { encode(work().await) }).catch_unwind();
            Box::pin(attempt.map(|done| done.unwrap_or_else(|panic| Err(panicked(&*panic)))))
        });
        let (options, output) = (defaults(), std::marker::PhantomData);
        Step { core, name, options, id: None, make, attempt: None, output }
    }

    fn options_mut(&mut self) -> &mut ActivityOptions {
        Arc::make_mut(&mut self.options)
    }
}
activity_options!(['a, T] Step<'a, T>);

impl<T: Data> Future for Step<'_, T> {
    type Output = std::result::Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.id.is_none() {
            let id = self.core.schedule(Asked {
                name: self.name.clone(),
                activity_type: self.name.clone(),
                input: Payload::null(),
                options: self.options.clone(),
                inline: true,
            });
            self.id = Some(OpId::Activity(id));
        }
        let Some(id) = self.id.clone() else { return Poll::Pending };
        if let Some(result) = self.core.outcome(&id, cx.waker()) {
            self.attempt = None;
            return Poll::Ready(decoded(&id, result));
        }
        let seq = match self.core.attempt(&id) {
            Turn::Begins(seq) => {
                self.attempt = Some((self.make)());
                seq
            }
            Turn::UnderWay(seq) => seq,
            Turn::NotNow => return Poll::Pending,
            Turn::None => {
                self.attempt = None;
                return Poll::Pending;
            }
        };
        let polled = self.attempt.as_mut().map(|attempt| attempt.as_mut().poll(cx));
        if let Some(Poll::Ready(result)) = polled {
            self.attempt = None;
            self.core.report(&id, seq, result);
        }
        Poll::Pending
    }
}

impl<T> Drop for Step<'_, T> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.core.give_up(id);
        }
    }
}

/// A recorded result as the type that the code asks for.
pub(super) fn decoded<T: Data>(
    id: &OpId,
    result: std::result::Result<Payload, Failure>,
) -> std::result::Result<T, Failure> {
    result?.decode().map_err(|error| {
        let origin = match id {
            OpId::Activity(id) => id.as_str(),
            OpId::Timer(id) => id.as_str(),
        };
        Failure::new(FailureKind::InvalidInput, format!("recorded result: {error}"))
            .code(Code::DECODE.as_str())
            .from_origin(origin)
    })
}
