//! Where calls that go to no engine come together: their starts share transactions, as those of an
//! engine do.

use crate::clock::StoreClock;
use crate::committer::{Commit, Commits};
use crate::environment::Environment;
use crate::persist::A_WHILE;
use durably_kernel::{Timestamp, WorkerId};
use durably_store::Store;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// What callers of a store without an engine share.
pub(crate) struct Desk {
    environment: Arc<dyn Environment>,
    store: Arc<dyn Store>,
    commits: Commits,
    clock: StoreClock,
    /// When the store's time was last heard.
    heard: Mutex<Option<Duration>>,
}

impl Desk {
    pub(crate) fn new(environment: Arc<dyn Environment>, store: Arc<dyn Store>) -> Desk {
        let commits = Commits::new(store.batches());
        let (clock, heard) = (StoreClock::default(), Mutex::default());
        Desk { environment, store, commits, clock, heard }
    }

    pub(crate) fn hear(&self, now: Timestamp) {
        let at = self.environment.monotonic();
        self.clock.hear(now, at);
        *self.heard.lock() = Some(at);
    }

    /// The store's time, if it was heard lately.
    pub(crate) fn now(&self) -> Option<Timestamp> {
        const LATELY: Duration = Duration::from_secs(60);
        let heard = (*self.heard.lock())?;
        let since = self.environment.monotonic().saturating_sub(heard);
        (since < LATELY).then(|| self.clock.now(self.environment.as_ref()))
    }
}

impl Commit for Desk {
    fn environment(&self) -> &Arc<dyn Environment> {
        &self.environment
    }

    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn commits(&self) -> &Commits {
        &self.commits
    }

    fn who(&self) -> Option<WorkerId> {
        None
    }

    fn patience(&self) -> Duration {
        A_WHILE
    }

    fn has_ended(&self) -> bool {
        false
    }
}
