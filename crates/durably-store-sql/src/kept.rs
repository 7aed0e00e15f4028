//! What a process knows of the runs that it holds, so that it need not read again what it wrote.
//!
//! A run's row has a stamp, a random number that every change of the run gives it anew. So do
//! changes of its tasks, with one exception: a ready task is claimed without a look at its run.
//! Whoever locks a run and finds the stamp that it remembers knows all that it knew then, except
//! about ready tasks; those are not remembered.

use crate::work::Known;
use durably_kernel::{RunId, TaskState, WorkerId};
use durably_store::rows::RunRecord;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// A run as it was left.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) record: Box<RunRecord>,
    pub(crate) stamp: i64,
    /// The places that are known, with or without a task.
    pub(crate) known: Known,
}

impl Kept {
    /// A run that its holder goes on with.
    pub(crate) fn of(mut record: Box<RunRecord>, stamp: i64, mut known: Known) -> Kept {
        record.forget_read();
        let ready = record.rows.remove_all(|row| row.state == TaskState::Ready);
        for row in ready {
            known.forget(row.place, record.rows.values().map(|row| row.place));
        }
        Kept { record, stamp, known }
    }
}

/// Whether a process goes on with a run: it has its turn, or a task of it.
pub(crate) fn holds(who: &WorkerId, record: &RunRecord) -> bool {
    record.rows.values().any(|row| {
        row.state == TaskState::Claimed && row.owner.as_ref().is_some_and(|o| o.who == *who)
    })
}

/// The runs that processes of this store hold. Those that were not asked for in a while are
/// forgotten.
#[derive(Debug, Default)]
pub(crate) struct Keeper(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: BTreeMap<RunId, Kept>,
    /// What was not asked for since these were the young ones.
    old: BTreeMap<RunId, Kept>,
}

/// So many runs are remembered, and up to as many again.
const RUNS_MAX: usize = 4_000;

impl Keeper {
    /// Takes out what is known of runs.
    pub(crate) fn take(&self, runs: impl Iterator<Item = RunId>) -> BTreeMap<RunId, Kept> {
        let mut kept = self.0.lock();
        let take = |run| {
            let known = kept.young.remove(&run).or_else(|| kept.old.remove(&run))?;
            Some((run, known))
        };
        runs.filter_map(take).collect()
    }

    /// Remembers runs.
    pub(crate) fn put(&self, runs: Vec<Kept>) {
        let mut kept = self.0.lock();
        for run in runs {
            kept.young.insert(run.record.new.identity.id, run);
        }
        if kept.young.len() > RUNS_MAX {
            kept.old = std::mem::take(&mut kept.young);
        }
    }
}
