//! A plain model of a run's task rows: what a store would hold after the decisions so far.

use durably_kernel::{Phase, Place, Run, Seq, TaskChange, TaskKind, TaskPut};
use std::collections::{BTreeMap, BTreeSet};

/// What is compared of a row.
type Row = (TaskKind, String, Seq);

/// The rows of one run, turn row aside.
#[derive(Clone, Default, Debug)]
pub(crate) struct Rows {
    rows: BTreeMap<Place, Row>,
    /// Places of tasks that were cancelled: a worker may still be busy there.
    cancelled: BTreeSet<Place>,
    /// Rows that came due or whose outcome was delivered: gone before the run decided about it.
    swept: BTreeSet<Place>,
    /// The run has a time-out of its own.
    timeout: bool,
}

impl Rows {
    /// Exactly the rows that a run wants after a reset; its own time-out goes on.
    pub(crate) fn after_reset(&self, run: &Run) -> Rows {
        let timeout = self.timeout.then(|| (RUN_TIMEOUT, run_timeout()));
        Rows {
            rows: wanted(run).into_iter().chain(timeout).collect(),
            timeout: self.timeout,
            ..Rows::default()
        }
    }

    /// Makes the changes of one decision.
    pub(crate) fn apply(&mut self, tasks: &BTreeMap<Place, TaskChange>) {
        for (place, change) in tasks {
            match change {
                TaskChange::Put(put) => {
                    assert_eq!(put.place, *place);
                    assert!(
                        !self.cancelled.contains(place),
                        "the place of a cancelled task is given out again: {put:?}"
                    );
                    self.swept.remove(place);
                    self.timeout |= row(put) == run_timeout();
                    self.rows.insert(*place, row(put));
                }
                TaskChange::Delete(deleted) => {
                    assert_eq!(deleted, place);
                    self.swept.remove(place);
                    self.rows.remove(place);
                }
                TaskChange::Cancel(cancelled) => {
                    assert_eq!(cancelled, place);
                    self.swept.remove(place);
                    self.rows.remove(place);
                    self.cancelled.insert(*place);
                }
            }
        }
    }

    /// A row comes due, or its outcome is delivered: the store removes it by itself.
    pub(crate) fn sweep(&mut self, place: Place) {
        if self.rows.remove(&place).is_some() {
            self.swept.insert(place);
        }
    }

    /// The rows are those that the run wants, apart from those that were swept.
    pub(crate) fn check(&self, run: &Run) {
        let mut wanted = wanted(run);
        if self.timeout {
            assert_eq!(wanted.insert(RUN_TIMEOUT, run_timeout()), None);
            assert!(run.free_places().next() > Some(RUN_TIMEOUT));
        }
        wanted.retain(|place, _| !self.swept.contains(place));
        assert_eq!(self.rows, wanted, "rows in the store and wanted rows");
    }

    /// The places in use.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.rows.keys().copied().collect()
    }
}

fn row(put: &TaskPut) -> Row {
    let is_run_timeout = put.kind == TaskKind::Timeout && put.target.is_empty();
    let what = if is_run_timeout { &put.name } else { &put.target };
    (put.kind, what.to_string(), put.seq)
}

/// The place of a run's own time-out.
const RUN_TIMEOUT: Place = Place(1);

fn run_timeout() -> Row {
    (TaskKind::Timeout, "run".to_owned(), Seq(1))
}

/// What the run's state asks for, its own time-out aside: that is none of its open work.
fn wanted(run: &Run) -> BTreeMap<Place, Row> {
    let mut rows = BTreeMap::new();
    let mut want = |place: Place, row: Row| assert_eq!(rows.insert(place, row), None, "{place}");
    for (id, activity) in &run.activities {
        let id = id.to_string();
        match activity.phase {
            Phase::Queued => {
                let place = activity.place.expect("a queued activity has a row");
                want(place, (TaskKind::Activity, id.clone(), activity.queued));
            }
            Phase::Backoff(place, since) => {
                assert_eq!(since, activity.queued);
                want(place, (TaskKind::Retry, id.clone(), since));
            }
            Phase::UnderWay(_) => {}
        }
        for place in [activity.start_place, activity.close_place].into_iter().flatten() {
            want(place, (TaskKind::Timeout, id.clone(), activity.scheduled));
        }
    }
    for (id, timer) in &run.timers {
        want(timer.place, (TaskKind::Timer, id.to_string(), timer.started));
    }
    rows
}
