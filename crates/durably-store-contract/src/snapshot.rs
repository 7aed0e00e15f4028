//! All that the reads show of a store, to be compared with another moment or another store.

use durably_kernel::RunId;
use durably_store::check::RunShot;
use durably_store::{DeadLetterRow, LeaderRow, RunQuery, Store, WorkerRow};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// All that the reads show of a store.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// Every run.
    pub runs: BTreeMap<RunId, RunShot>,
    /// Every dead letter, newest first.
    pub dead_letters: Vec<DeadLetterRow>,
    /// Every process, newest first.
    pub workers: Vec<WorkerRow>,
    /// Who leads.
    pub leader: LeaderRow,
}

/// So many rows a read gets at a time.
const PAGE: usize = 1000;

impl Snapshot {
    /// Reads everything.
    pub async fn of(store: &dyn Store) -> Snapshot {
        let mut runs = BTreeMap::new();
        let mut query = RunQuery { most: PAGE, ..RunQuery::default() };
        loop {
            let page = store.runs(query.clone()).await.expect("runs");
            let Some(last) = page.last() else { break };
            query.before = Some(last.identity.id);
            for view in page {
                let run = view.identity.id;
                runs.insert(run, RunShot::of(store, view).await.expect("a run"));
            }
        }
        Snapshot {
            runs,
            dead_letters: store.dead_letters(None, usize::MAX >> 1).await.expect("dead letters"),
            workers: store.workers().await.expect("workers"),
            leader: store.leader().await.expect("who leads"),
        }
    }

    /// What differs, for people; empty where nothing does.
    pub fn difference(&self, other: &Snapshot) -> Vec<String> {
        let mut found = Vec::new();
        for run in self.runs.keys().chain(other.runs.keys()) {
            match (self.runs.get(run), other.runs.get(run)) {
                (Some(one), Some(two)) => differ_in_run(one, two, &mut found),
                (one, two) => {
                    found.push(format!("run {run}: {} or {}", one.is_some(), two.is_some()));
                }
            }
        }
        differ("dead letters", &self.dead_letters, &other.dead_letters, &mut found);
        differ("workers", &self.workers, &other.workers, &mut found);
        differ("who leads", &self.leader, &other.leader, &mut found);
        found.dedup();
        found
    }
}

fn differ_in_run(one: &RunShot, two: &RunShot, found: &mut Vec<String>) {
    let run = one.view.identity.id;
    differ(&format!("run {run}"), &one.view, &two.view, found);
    differ(&format!("history of {run}"), &one.history, &two.history, found);
    differ(&format!("tasks of {run}"), &one.tasks, &two.tasks, found);
    differ(&format!("inbox of {run}"), &one.unread, &two.unread, found);
}

fn differ<T: PartialEq + Debug>(what: &str, one: &T, two: &T, found: &mut Vec<String>) {
    if one != two {
        found.push(format!("{what}:\n  one {one:?}\n  two {two:?}"));
    }
}

/// Nothing changed.
#[track_caller]
pub(crate) fn assert_same(before: &Snapshot, after: &Snapshot) {
    let found = before.difference(after);
    assert!(found.is_empty(), "this was to stay as it was:\n{}", found.join("\n"));
}
