//! `ctx.activity`: work that any process may do.

use super::core::{Asked, Core, OpId};
use super::step::decoded;
use crate::names::Data;
use crate::options::{activity_options, defaults};
use durably_kernel::{ActivityOptions, Failure, FailureKind, Payload};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// An activity that a durable function asks for; a future of its result.
#[must_use = "an activity is asked for when it is awaited"]
#[derive(Debug)]
pub struct ActivityCall<O> {
    core: Arc<Core>,
    name: &'static str,
    input: Option<Result<Payload, Failure>>,
    options: Arc<ActivityOptions>,
    id: Option<OpId>,
    output: PhantomData<fn() -> O>,
}

impl<O> ActivityCall<O> {
    pub(super) fn new<I: Data>(core: Arc<Core>, name: &'static str, input: &I) -> ActivityCall<O> {
        let input = Payload::of(input).map_err(|error| {
            Failure::new(FailureKind::InvalidInput, error.to_string()).code(error.code().as_str())
        });
        let (input, options) = (Some(input), defaults());
        ActivityCall { core, name, input, options, id: None, output: PhantomData }
    }

    fn options_mut(&mut self) -> &mut ActivityOptions {
        Arc::make_mut(&mut self.options)
    }
}
activity_options!([O] ActivityCall<O>);

impl<O: Data> Future for ActivityCall<O> {
    type Output = Result<O, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.id.is_none() {
            let input = match self.input.take() {
                Some(Ok(input)) => input,
                Some(Err(failure)) => return Poll::Ready(Err(failure)),
                None => return Poll::Pending,
            };
            let id = self.core.schedule(Asked {
                name: self.name.into(),
                activity_type: self.name.into(),
                input,
                options: self.options.clone(),
                inline: false,
            });
            self.id = Some(OpId::Activity(id));
        }
        let Some(id) = self.id.clone() else { return Poll::Pending };
        match self.core.outcome(&id, cx.waker()) {
            Some(result) => Poll::Ready(decoded(&id, result)),
            None => Poll::Pending,
        }
    }
}

impl<O> Drop for ActivityCall<O> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.core.give_up(id);
        }
    }
}
