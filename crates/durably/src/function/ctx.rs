//! What a durable function does its durable things with.

use super::call::ActivityCall;
use super::core::Core;
use super::signal::SignalWait;
use super::sleep::Sleep;
use super::step::Step;
use crate::error::Result;
use crate::names::{ActivityRef, Data, SignalRef};
use durably_kernel::{RunId, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// A durable function's context. Cheap to clone.
///
/// Everything that the function awaits must come from here: an await of something else cannot be
/// repeated after a crash.
#[derive(Clone, Debug)]
pub struct Ctx {
    pub(super) core: Arc<Core>,
}

impl Ctx {
    /// The run.
    pub fn run_id(&self) -> RunId {
        self.core.run
    }

    /// The time of the last event: the same at every replay.
    pub fn now(&self) -> Timestamp {
        self.core.now()
    }

    /// A random number: the same at every replay.
    pub fn random(&self) -> u64 {
        self.core.draw()
    }

    /// A random id: the same at every replay.
    pub fn uuid(&self) -> uuid::Uuid {
        let (high, low) = (self.core.draw(), self.core.draw());
        uuid::Builder::from_random_bytes(((u128::from(high) << 64) | u128::from(low)).to_be_bytes())
            .into_uuid()
    }

    /// An activity written in place: it runs in this process, its result is recorded, and after a
    /// crash it does not run again. The closure may borrow; it is cloned for each attempt.
    pub fn step<'a, T, F, Fut>(&self, name: impl Into<String>, work: F) -> Step<'a, T>
    where
        T: Data,
        F: FnOnce() -> Fut + Clone + Send + 'a,
        Fut: Future<Output = Result<T>> + Send + 'a,
    {
        Step::new(self.core.clone(), name.into().into(), work)
    }

    /// Has an activity executed, here or in another process.
    pub fn activity<I: Data, O: Data>(
        &self,
        activity: ActivityRef<I, O>,
        input: &I,
    ) -> ActivityCall<O> {
        ActivityCall::new(self.core.clone(), activity.name(), input)
    }

    /// Sleeps; the process may end meanwhile.
    pub fn sleep(&self, delay: Duration) -> Sleep {
        Sleep::new(self.core.clone(), delay)
    }

    /// Waits for a signal; one that has arrived before is taken at once.
    pub fn signal<T: Data>(&self, signal: SignalRef<T>) -> SignalWait<T> {
        SignalWait::new(self.core.clone(), signal.name())
    }
}
