//! How a store is opened for a case, and how a case is run.

use crate::world::World;
use durably_store::{Clock, ManualClock, Store};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// A store under test. It lives as long as its case, so that it can take its files with it.
pub trait Fixture: Send + Sync + 'static {
    /// A fresh and empty store on that clock.
    fn fresh(clock: Clock) -> BoxFuture<'static, Self>
    where
        Self: Sized;

    /// A handle on it: another one at each call, as another process would have it, where the store
    /// can be opened twice.
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>>;

    /// So many seeds of random commands are always tried; fewer where each command is a trip to a
    /// server.
    fn seeds(&self) -> u64 {
        40
    }
}

/// Threads that a case's tasks run on.
const THREADS: usize = 4;

/// Runs one case on a fresh store.
pub(crate) fn run<F: Fixture>(case: impl AsyncFnOnce(World)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .expect("a runtime for the case");
    runtime.block_on(async {
        let clock = ManualClock::at(World::START);
        let fixture = F::fresh(Clock::Manual(clock.clone())).await;
        case(World::new(Box::new(fixture), fresh::<F>, clock).await).await;
    });
}

/// Another fresh and empty store, for whoever does not know its type.
pub(crate) type Fresh = fn(Clock) -> BoxFuture<'static, Box<dyn Fixture>>;

fn fresh<F: Fixture>(clock: Clock) -> BoxFuture<'static, Box<dyn Fixture>> {
    Box::pin(async { Box::new(F::fresh(clock).await) as Box<dyn Fixture> })
}
