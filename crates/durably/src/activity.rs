//! Activities: work with side effects, outside of the deterministic code.

use crate::error::{Error, Result};
use crate::names::{ActivityRef, Data};
use durably_kernel::{Code, Failure, FailureKind, Payload};
use durably_runtime::{ActivityContext, ActivityHost};
use futures_util::future::BoxFuture;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

/// A unit of work with side effects; may fail, is retried. Each attempt runs at most once.
pub trait Activity: Send + Sync + 'static {
    /// The name under which it is registered.
    const TYPE: &'static str;
    /// What it gets.
    type Input: Data;
    /// What it gives.
    type Output: Data;
    /// The typed name.
    const REF: ActivityRef<Self::Input, Self::Output> = ActivityRef::new(Self::TYPE);

    /// Executes one attempt. Implementations write `async fn`.
    fn execute(
        &self,
        ctx: &ActivityContext,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output>> + Send;
}

/// An activity made from a type.
pub(crate) struct TypedActivity<A>(pub(crate) Arc<A>);

impl<A: Activity> ActivityHost for TypedActivity<A> {
    fn execute(
        &self,
        context: ActivityContext,
        input: Payload,
    ) -> BoxFuture<'static, Result<Payload, Failure>> {
        let activity = self.0.clone();
        Box::pin(async move {
            let input = decode(&input)?;
            encode(activity.execute(&context, input).await)
        })
    }
}

/// An activity made from a closure.
pub(crate) struct ClosureActivity<F, I, O> {
    pub(crate) call: F,
    pub(crate) types: PhantomData<fn(I) -> O>,
}

impl<F, Fut, I, O> ActivityHost for ClosureActivity<F, I, O>
where
    F: FnOnce(ActivityContext, I) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<O>> + Send + 'static,
    I: Data,
    O: Data,
{
    fn execute(
        &self,
        context: ActivityContext,
        input: Payload,
    ) -> BoxFuture<'static, Result<Payload, Failure>> {
        let call = self.call.clone();
        Box::pin(async move {
            let input = decode(&input)?;
            encode(call(context, input).await)
        })
    }
}

fn decode<I: Data>(input: &Payload) -> Result<I, Failure> {
    input.decode().map_err(|error| {
        Failure::new(FailureKind::InvalidInput, format!("activity input: {error}"))
            .code(Code::DECODE.as_str())
    })
}

/// What is recorded of a result.
pub(crate) fn encode<O: Data>(result: Result<O, Error>) -> Result<Payload, Failure> {
    let output = result.map_err(Failure::from)?;
    Payload::of(&output).map_err(|error| {
        Failure::new(FailureKind::Permanent, error.to_string()).code(error.code().as_str())
    })
}
