//! Time that decides anything is the store's.

use durably_kernel::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where a store takes its time from.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The database's own clock; for memory and SQLite the host's.
    #[default]
    Database,
    /// A clock that only tests move; it is passed to every statement.
    Manual(ManualClock),
}

impl Clock {
    /// The time where the database has no clock of its own.
    pub fn host_now(&self) -> Timestamp {
        match self {
            Clock::Manual(manual) => manual.now(),
            Clock::Database => {
                #[allow(clippy::disallowed_methods, reason = "this is the store's clock")]
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
        }
    }
}

/// A clock that stands still until it is moved.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that begins at a time.
    pub fn at(start: Timestamp) -> ManualClock {
        ManualClock(Arc::new(AtomicI64::new(start.0)))
    }

    /// What it shows.
    pub fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        let to = self.now().after(by);
        self.0.store(to.0, Ordering::SeqCst);
    }

    /// Sets it, also back.
    pub fn set(&self, to: Timestamp) {
        self.0.store(to.0, Ordering::SeqCst);
    }
}
