//! How long to wait while another process has the database.
//!
//! SQLite has no queue of those who want to write, so waits are short and differ from each other:
//! nobody is behind the others for long. They block a thread of ours, never one of an executor.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Waits for one lock, bounded in all.
#[derive(Debug)]
pub(crate) struct Waits {
    most: Duration,
    waited: Duration,
    state: u64,
}

impl Waits {
    pub(crate) fn new(most: Duration) -> Waits {
        static ONE_MORE: AtomicU64 = AtomicU64::new(1);
        let mine = ONE_MORE.fetch_add(1, Ordering::Relaxed);
        let state =
            (u64::from(std::process::id()) << 32 | mine).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Waits { most, waited: Duration::ZERO, state: state | 1 }
    }

    /// Another lock is waited for from now on.
    pub(crate) fn begin(&mut self) {
        self.waited = Duration::ZERO;
    }

    /// Waits a moment; false if that was enough.
    pub(crate) fn pause(&mut self) -> bool {
        if self.waited >= self.most {
            return false;
        }
        let moment = self.next();
        self.waited += moment;
        sleep(moment);
        true
    }

    /// A fifth of a millisecond to a millisecond at first, a few milliseconds later.
    fn next(&mut self) -> Duration {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let most_micros = match self.waited < Duration::from_millis(100) {
            true => 1_000,
            false => 4_000,
        };
        Duration::from_micros(200 + self.state % (most_micros - 200))
    }
}

#[allow(clippy::disallowed_methods, reason = "it blocks a thread of the store's own")]
pub(crate) fn sleep(moment: Duration) {
    std::thread::sleep(moment);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_short_and_end() {
        let mut waits = Waits::new(Duration::from_millis(2));
        let mut times = 0;
        while waits.pause() {
            times += 1;
        }
        assert!((2..=10).contains(&times), "{times} waits");
        assert!(!waits.pause());
        waits.begin();
        assert!(waits.pause());
        assert!(!Waits::new(Duration::ZERO).pause());
    }
}
