//! How many activities this process executes and may begin: counted without a lock, since every
//! step asks several times.

use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// Those under way, and those kept for what may begin.
    taken: AtomicUsize,
    executing: AtomicUsize,
}

impl Slots {
    /// Keeps as many as are free, at most so many.
    pub(crate) fn keep(&self, wanted: usize, slots: usize) -> usize {
        if wanted == 0 {
            return 0;
        }
        let free = |taken: usize| wanted.min(slots.saturating_sub(taken));
        let taking = |taken: usize| Some(taken + free(taken));
        match self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taking) {
            Ok(taken) | Err(taken) => free(taken),
        }
    }

    /// Takes so many even where none is free: what they are for is ours already.
    pub(crate) fn take(&self, count: usize) {
        self.taken.fetch_add(count, Ordering::SeqCst);
    }

    pub(crate) fn release(&self, count: usize) {
        if count > 0 {
            let less = |taken: usize| Some(taken.saturating_sub(count));
            let _ = self.taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        }
    }

    pub(crate) fn begin(&self) {
        self.take(1);
        self.executing.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.executing.fetch_sub(1, Ordering::SeqCst);
        self.release(1);
    }

    pub(crate) fn executing(&self) -> usize {
        self.executing.load(Ordering::SeqCst)
    }
}
