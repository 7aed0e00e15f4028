//! What was made on a server, and is to be removed from it.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

/// Schemas or databases, by their names.
pub(super) struct Made {
    /// All names begin so.
    name: String,
    made: AtomicU32,
    there: Mutex<BTreeSet<String>>,
}

impl Made {
    pub(super) fn new() -> Made {
        let name = format!("durably_bench_{:08x}", rand::random::<u32>());
        Made { name, made: AtomicU32::new(0), there: Mutex::default() }
    }

    /// How all names begin, for people.
    pub(super) fn names(&self) -> String {
        format!("{}_…", self.name)
    }

    /// A name for the next one.
    pub(super) fn next(&self) -> String {
        let name = format!("{}_{}", self.name, self.made.fetch_add(1, Ordering::Relaxed));
        self.there.lock().insert(name.clone());
        name
    }

    /// Those that are still there.
    pub(super) fn left(&self) -> Vec<String> {
        self.there.lock().iter().cloned().collect()
    }

    /// Removes one in a thread with a runtime of its own: this is called where something is
    /// dropped. What cannot be removed is named.
    pub(super) fn remove(
        &self,
        name: &str,
        removal: impl Future<Output = anyhow::Result<()>> + Send,
    ) {
        let removed = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(removal)
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        match removed {
            Ok(()) => drop(self.there.lock().remove(name)),
            Err(error) => tracing::warn!("{name} could not be dropped: {error:#}"),
        }
    }
}
