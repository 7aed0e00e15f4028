//! Hints that something may have changed. They are never needed for correctness: who misses one
//! finds out by polling.

use durably_kernel::RunId;
use tokio::sync::broadcast;

/// What may have changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hint {
    /// A task may have become ready.
    Ready,
    /// Something waits for a time that may be earlier than all others.
    Due,
    /// The run has new inbox entries.
    Inbox(RunId),
    /// The run has changed or ended.
    Changed(RunId),
    /// A claim may have been taken back or cancelled.
    Claims,
}

/// Where a store says that something may have changed.
#[derive(Clone, Debug)]
pub struct Hints(broadcast::Sender<Hint>);

/// Hears the hints of a store.
#[derive(Debug)]
pub struct Listener(broadcast::Receiver<Hint>);

impl Default for Hints {
    fn default() -> Self {
        Hints(broadcast::channel(Self::BUFFERED_MAX).0)
    }
}

impl Hints {
    /// A listener that falls behind by more than this looks at everything again.
    const BUFFERED_MAX: usize = 4096;

    /// Gives a hint to whoever listens.
    pub fn give(&self, hint: Hint) {
        // Nobody listening is fine: hints are only hints.
        let _ = self.0.send(hint);
    }

    /// Listens from now on.
    pub fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }
}

impl Listener {
    /// The next hint; none where some were missed, so that anything may have changed. Pends for
    /// ever once the store is gone.
    pub async fn next(&mut self) -> Option<Hint> {
        match self.0.recv().await {
            Ok(hint) => Some(hint),
            Err(broadcast::error::RecvError::Lagged(_)) => None,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}
