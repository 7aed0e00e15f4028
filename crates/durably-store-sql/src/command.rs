//! What a store is asked to do, each as one transaction.

use crate::error::Trouble;
use crate::session::{Call, Session};
use crate::work::Work;
use durably_kernel::WorkerId;
use std::future::Future;

/// A command. It may be done more than once over: whoever repeats it has taken back what it did
/// before.
pub(crate) trait Command: Send + Sync + 'static {
    /// What it is called in errors.
    const NAME: &'static str;

    type Answer: Send + 'static;

    /// What it asks first; asked as the transaction begins, in the same trip.
    fn opening(&self) -> Vec<Call> {
        Vec::new()
    }

    /// The process that goes on with the runs that it holds afterwards.
    fn holder(&self) -> Option<&WorkerId> {
        None
    }

    /// Loads, changes. What has changed is written by the caller, who ends the transaction.
    fn act<S: Session>(
        &self,
        work: &mut Work<'_, S>,
    ) -> impl Future<Output = Result<Self::Answer, Trouble>> + Send;
}

/// A question that one statement after the other answers, outside of a transaction.
pub(crate) trait Question: Send + Sync + 'static {
    /// What it is called in errors.
    const NAME: &'static str;

    type Answer: Send + 'static;

    fn ask<S: Session>(
        &self,
        session: &mut S,
    ) -> impl Future<Output = Result<Self::Answer, Trouble>> + Send;
}
