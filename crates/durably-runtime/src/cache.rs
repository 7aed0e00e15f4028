//! Programs that may be needed again, so that a step costs the same at event 10 and at event
//! 10,000. Only an optimisation: anything may be dropped at any moment.

use crate::host::HostedProgram;
use durably_kernel::{Run, RunId};
use std::collections::BTreeMap;

/// A run and its program, both at the same head.
pub(crate) struct View {
    pub(crate) run: Run,
    pub(crate) program: Box<dyn HostedProgram>,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("run", &self.run).finish_non_exhaustive()
    }
}

struct Cached {
    view: View,
    used: u64,
    bytes: usize,
}

/// Views, the least recently used out first.
pub(crate) struct Cache {
    views: BTreeMap<RunId, Cached>,
    by_use: BTreeMap<u64, RunId>,
    uses: u64,
    bytes: usize,
    bytes_max: usize,
}

impl Cache {
    pub(crate) fn new(bytes_max: usize) -> Cache {
        Cache { views: BTreeMap::new(), by_use: BTreeMap::new(), uses: 0, bytes: 0, bytes_max }
    }

    pub(crate) fn take(&mut self, run: RunId) -> Option<View> {
        let cached = self.views.remove(&run)?;
        self.by_use.remove(&cached.used);
        self.bytes -= cached.bytes;
        Some(cached.view)
    }

    pub(crate) fn put(&mut self, view: View) {
        let run = view.run.id();
        // A cached view never goes back.
        if self.views.get(&run).is_some_and(|cached| cached.view.run.head > view.run.head) {
            return;
        }
        self.take(run);
        self.uses += 1;
        let bytes = size(&view);
        self.bytes += bytes;
        self.by_use.insert(self.uses, run);
        self.views.insert(run, Cached { view, used: self.uses, bytes });
        while self.bytes > self.bytes_max {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            if let Some(cached) = self.views.remove(&oldest) {
                self.bytes -= cached.bytes;
            }
        }
    }
}

/// Roughly: what a run holds per event is a few words and its open inputs.
fn size(view: &View) -> usize {
    let inputs: usize = view.run.activities.values().map(|a| a.input.text().len()).sum();
    2048 + view.run.head.0 as usize * 64 + inputs + view.program.size()
}
