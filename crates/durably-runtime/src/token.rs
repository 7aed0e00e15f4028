//! How running work learns that it is no longer wanted, and why.

use std::fmt;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

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
pub struct CancelToken {
    token: CancellationToken,
    reason: Arc<OnceLock<CancelReason>>,
}

impl CancelToken {
    /// Whether it is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Ends when it is no longer wanted.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// Why, once it is.
    pub fn reason(&self) -> Option<CancelReason> {
        self.reason.get().copied()
    }

    pub(crate) fn cancel(&self, reason: CancelReason) {
        // The first reason stays.
        let _ = self.reason.set(reason);
        self.token.cancel();
    }
}
