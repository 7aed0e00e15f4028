//! How running work learns that it is no longer wanted, and why.

use std::fmt;
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// Why work is no longer wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CancelReason {
    /// Its run was cancelled, ended or gave it up.
    RunCancelled,
    /// Somebody else may be doing it by now: results are ignored.
    ClaimLost,
    /// It took too long.
    TimedOut,
    /// The process stops.
    Stopping,
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CancelReason::RunCancelled => "the run no longer wants it",
            CancelReason::ClaimLost => "the claim was lost",
            CancelReason::TimedOut => "it took too long",
            CancelReason::Stopping => "the process stops",
        })
    }
}

/// Tells running work that it is no longer wanted.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    reason: OnceLock<CancelReason>,
    cancelled: Notify,
}

impl CancelToken {
    /// Whether it is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        self.0.reason.get().is_some()
    }

    /// Ends when it is no longer wanted.
    pub async fn cancelled(&self) {
        let cancelled = self.0.cancelled.notified();
        // The wait began before the look: a cancellation in between is not missed.
        if !self.is_cancelled() {
            cancelled.await;
        }
    }

    /// Why, once it is.
    pub fn reason(&self) -> Option<CancelReason> {
        self.0.reason.get().copied()
    }

    pub(crate) fn cancel(&self, reason: CancelReason) {
        // The first reason stays.
        if self.0.reason.set(reason).is_ok() {
            self.0.cancelled.notify_waiters();
        }
    }
}
