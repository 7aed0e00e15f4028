//! The store's time as last heard, carried on by our own monotonic clock. It is written into
//! events for people and for workflow code; nothing is decided by it.

use crate::environment::Environment;
use durably_kernel::Timestamp;
use parking_lot::Mutex;
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct StoreClock(Mutex<Heard>);

#[derive(Debug, Default)]
struct Heard {
    store: Timestamp,
    at: Duration,
    last: Timestamp,
}

impl StoreClock {
    /// The store's time, heard at a moment of our own clock.
    pub(crate) fn hear(&self, now: Timestamp, at: Duration) {
        let mut heard = self.0.lock();
        heard.store = now;
        heard.at = at;
    }

    /// Never goes back, so that the events of a process are in order.
    pub(crate) fn now(&self, environment: &dyn Environment) -> Timestamp {
        let mut heard = self.0.lock();
        let since = environment.monotonic().saturating_sub(heard.at);
        heard.last =
            heard.last.max(heard.store.after(Duration::from_millis(since.as_millis() as u64)));
        heard.last
    }
}
