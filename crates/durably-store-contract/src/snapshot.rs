//! All that the reads show of a store, to be compared with another moment or another store.

use durably_kernel::{RunId, Seq};
use durably_store::{
    DeadLetterRow, EventRow, InboxEntry, LoadCall, RunQuery, RunView, Store, TaskRow, WorkerRow,
};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// What the reads show of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunShot {
    /// Its row.
    pub view: RunView,
    /// Its history.
    pub history: Vec<EventRow>,
    /// Its live rows.
    pub tasks: Vec<TaskRow>,
    /// Its unread inbox entries, a bounded number.
    pub unread: Vec<InboxEntry>,
}

/// All that the reads show of a store.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// Every run.
    pub runs: BTreeMap<RunId, RunShot>,
    /// Every dead letter, newest first.
    pub dead_letters: Vec<DeadLetterRow>,
    /// Every process, newest first.
    pub workers: Vec<WorkerRow>,
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
                runs.insert(view.identity.id, RunShot::of(store, view).await);
            }
        }
        Snapshot {
            runs,
            dead_letters: store.dead_letters(None, usize::MAX >> 1).await.expect("dead letters"),
            workers: store.workers().await.expect("workers"),
        }
    }

    /// What differs, for people; empty where nothing does.
    pub fn difference(&self, other: &Snapshot) -> Vec<String> {
        let mut found = Vec::new();
        for run in self.runs.keys().chain(other.runs.keys()) {
            match (self.runs.get(run), other.runs.get(run)) {
                (Some(one), Some(two)) => one.difference(two, &mut found),
                (one, two) => {
                    found.push(format!("run {run}: {} or {}", one.is_some(), two.is_some()));
                }
            }
        }
        differ("dead letters", &self.dead_letters, &other.dead_letters, &mut found);
        differ("workers", &self.workers, &other.workers, &mut found);
        found.dedup();
        found
    }
}

impl RunShot {
    async fn of(store: &dyn Store, view: RunView) -> RunShot {
        let run = view.identity.id;
        let mut history: Vec<EventRow> = Vec::new();
        loop {
            let after = history.last().map_or(Seq(0), |row| row.seq);
            let page = store.history(run, after, PAGE).await.expect("history");
            history.extend(page.events);
            if !page.more {
                break;
            }
        }
        let call = LoadCall { run, after: view.head, claims: vec![], who: None, events_max: 1 };
        let loaded = store.load(call).await.expect("load").expect("it was listed");
        let tasks = store.tasks(run).await.expect("tasks");
        RunShot { view, history, tasks, unread: loaded.unread }
    }

    fn difference(&self, other: &RunShot, found: &mut Vec<String>) {
        let run = self.view.identity.id;
        differ(&format!("run {run}"), &self.view, &other.view, found);
        differ(&format!("history of {run}"), &self.history, &other.history, found);
        differ(&format!("tasks of {run}"), &self.tasks, &other.tasks, found);
        differ(&format!("inbox of {run}"), &self.unread, &other.unread, found);
    }
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
