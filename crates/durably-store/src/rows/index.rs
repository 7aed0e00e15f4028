//! Which rows stand where, kept beside the runs so that no command has to look at all of them. A
//! row is taken out, changed and put in again, and only here: so the two cannot differ.

use super::row::{Mark, Row};
use super::state::{RunRecord, State};
use durably_kernel::{Place, Queue, RunId, TaskKind, TaskState, Tenant, Timestamp, WorkerId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The rows of a run, by place. Most runs have one or two: a map would take more room than they.
#[derive(Debug, Default)]
#[allow(clippy::vec_box, reason = "rows are large, and are taken out and put in all the time")]
pub struct Rows(Vec<Box<Row>>);

impl Rows {
    /// Where the row is, or would be.
    fn find(&self, place: Place) -> Result<usize, usize> {
        self.0.binary_search_by_key(&place, |row| row.place)
    }

    /// The one at a place.
    pub fn get(&self, place: Place) -> Option<&Row> {
        self.find(place).ok().map(|at| &*self.0[at])
    }

    fn get_mut(&mut self, place: Place) -> Option<&mut Box<Row>> {
        self.find(place).ok().map(|at| &mut self.0[at])
    }

    fn remove(&mut self, place: Place) -> Option<Box<Row>> {
        self.find(place).ok().map(|at| self.0.remove(at))
    }

    fn insert(&mut self, row: Box<Row>) {
        let free = self.find(row.place).expect_err("a row is taken out before another comes");
        self.0.insert(free, row);
    }

    /// Takes out those that a condition holds for. Only of a run that is in no [`State`].
    pub fn remove_all(&mut self, is_it: impl Fn(&Row) -> bool) -> Vec<Box<Row>> {
        self.0.extract_if(.., |row| is_it(row)).collect()
    }

    pub(crate) fn mark_all(&mut self, mark: Mark) {
        self.0.iter_mut().for_each(|row| row.mark = mark);
    }

    /// By place.
    pub fn values(&self) -> impl Iterator<Item = &Row> {
        self.0.iter().map(|row| &**row)
    }
}

/// What has to fit before a row can be claimed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    kind: TaskKind,
    name: String,
    version: u32,
    queue: Queue,
}

impl Key {
    pub(crate) fn new(kind: TaskKind, name: &str, version: u32, queue: &Queue) -> Key {
        Key { kind, name: name.to_owned(), version, queue: queue.clone() }
    }
}

/// Priority, then started before new.
pub(crate) type Level = (Reverse<i32>, bool);

/// Where a row is.
pub type At = (RunId, Place);

/// Ready rows: by tenant, by order.
pub(crate) type Lanes = BTreeMap<Tenant, BTreeSet<(u64, At)>>;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Index {
    ready: BTreeMap<Key, BTreeMap<Level, Lanes>>,
    /// Waiting rows by the time at which they are due.
    due: BTreeSet<(Timestamp, At)>,
    owned: BTreeMap<WorkerId, BTreeSet<At>>,
    /// Rows in somebody's hands by the time from which on they took too long.
    late: BTreeSet<(Timestamp, At)>,
}

impl Index {
    fn note(&mut self, run: RunId, tenant: &Tenant, row: &Row) {
        let at = (run, row.place);
        if row.state == TaskState::Ready {
            let levels = self.ready.entry(row.key()).or_default();
            let lanes = levels.entry(row.level()).or_default();
            lanes.entry(tenant.clone()).or_default().insert((row.order, at));
        }
        if let (TaskState::Waiting, Some(due)) = (row.state, row.due) {
            self.due.insert((due, at));
        }
        if let Some(owner) = &row.owner {
            match self.owned.get_mut(&owner.who) {
                Some(rows) => rows.insert(at),
                None => self.owned.entry(owner.who.clone()).or_default().insert(at),
            };
        }
        self.late.extend(row.late_at().map(|late| (late, at)));
    }

    fn forget(&mut self, run: RunId, tenant: &Tenant, row: &Row) {
        let at = (run, row.place);
        if row.state == TaskState::Ready {
            let (key, level) = (row.key(), row.level());
            let levels = self.ready.get_mut(&key).expect("noted before");
            let lanes = levels.get_mut(&level).expect("noted before");
            let lane = lanes.get_mut(tenant).expect("noted before");
            lane.remove(&(row.order, at));
            if lane.is_empty() {
                lanes.remove(tenant);
            }
            if lanes.is_empty() {
                levels.remove(&level);
            }
            if levels.is_empty() {
                self.ready.remove(&key);
            }
        }
        if let (TaskState::Waiting, Some(due)) = (row.state, row.due) {
            self.due.remove(&(due, at));
        }
        if let Some(owner) = &row.owner {
            let rows = self.owned.get_mut(&owner.who).expect("noted before");
            rows.remove(&at);
            if rows.is_empty() {
                self.owned.remove(&owner.who);
            }
        }
        if let Some(late) = row.late_at() {
            self.late.remove(&(late, at));
        }
    }

    /// A row in somebody's hands stays there, perhaps for longer.
    fn move_late(&mut self, at: At, from: Option<Timestamp>, to: Option<Timestamp>) {
        if from != to {
            from.map(|from| self.late.remove(&(from, at)));
            self.late.extend(to.map(|to| (to, at)));
        }
    }

    /// The highest level of a key, and the tenants that have it.
    pub(crate) fn top(&self, key: &Key) -> Option<(Level, &Lanes)> {
        self.ready.get(key)?.first_key_value().map(|(level, lanes)| (*level, lanes))
    }

    /// The tenants that have a level of a key.
    pub(crate) fn lanes(&self, key: &Key, level: Level) -> Option<&Lanes> {
        self.ready.get(key)?.get(&level)
    }

    /// Waiting rows that are due, oldest first.
    pub(crate) fn due(&self, now: Timestamp) -> impl Iterator<Item = At> {
        self.due.iter().take_while(move |(due, _)| *due <= now).map(|(_, at)| *at)
    }

    /// Rows that took too long, by run and place.
    pub(crate) fn late(&self, now: Timestamp) -> BTreeSet<At> {
        self.late.iter().take_while(|(late, _)| *late <= now).map(|(_, at)| *at).collect()
    }

    /// The rows of a process, by run and place.
    pub(crate) fn rows_of(&self, who: &WorkerId) -> impl Iterator<Item = At> {
        self.owned.get(who).into_iter().flatten().copied()
    }

    /// Everybody who has rows.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (&WorkerId, &BTreeSet<At>)> {
        self.owned.iter()
    }

    /// When the next row is due or late.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let due = self.due.first().map(|(due, _)| *due);
        due.into_iter().chain(self.late.first().map(|(late, _)| *late)).min()
    }
}

impl State {
    /// Takes a row out, to be changed and put in again, or to go.
    pub(crate) fn take_out(&mut self, run: RunId, place: Place) -> Option<Box<Row>> {
        let record = self.runs.get_mut(&run)?;
        let row = record.rows.remove(place)?;
        self.index.forget(run, &record.new.identity.tenant, &row);
        Some(row)
    }

    /// Puts a row in where there is none.
    pub(crate) fn put_in(&mut self, run: RunId, mut row: Box<Row>) {
        let record = self.runs.get_mut(&run).expect("rows belong to a run");
        if row.mark == Mark::Same {
            row.mark = Mark::Changed;
        }
        self.index.note(run, &record.new.identity.tenant, &row);
        record.rows.insert(row);
    }

    /// Puts a run in that was read elsewhere, with the rows that it has.
    pub fn insert_run(&mut self, record: Box<RunRecord>) {
        let identity = &record.new.identity;
        if let Some(key) = &record.new.check.key {
            self.keys.insert((identity.tenant.clone(), key.clone()), identity.id);
        }
        for row in record.rows.values() {
            self.index.note(identity.id, &identity.tenant, row);
        }
        self.runs.insert(identity.id, record);
    }

    /// Takes all runs out, by nobody's order, with their rows.
    pub fn take_runs(&mut self) -> Vec<Box<RunRecord>> {
        self.index = Index::default();
        self.keys.clear();
        std::mem::take(&mut self.runs).into_records()
    }

    /// Puts a row in as it was read elsewhere; its run is there.
    pub fn insert_row(&mut self, run: RunId, row: Row) {
        let (at, mark) = ((run, row.place), row.mark);
        self.put_in(run, Box::new(row));
        self.mark(at, mark);
    }

    /// Says what has to be written of a row.
    pub fn mark(&mut self, (run, place): At, mark: Mark) {
        let record = self.runs.get_mut(&run);
        if let Some(row) = record.and_then(|record| record.rows.get_mut(place)) {
            row.mark = mark;
        }
    }

    /// Every place that has a row.
    pub fn places(&self) -> impl Iterator<Item = At> {
        let rows = self.runs.iter().map(|(run, record)| (*run, record.rows.values()));
        rows.flat_map(|(run, rows)| rows.map(move |row| (run, row.place)))
    }

    /// Puts a row in, over the one that is there. What does not change in the index is left alone:
    /// a worker that goes from step to step keeps its rows.
    pub(crate) fn put_over(&mut self, run: RunId, row: Box<Row>) {
        let record = self.runs.get_mut(&run).expect("rows belong to a run");
        let tenant = &record.new.identity.tenant;
        match record.rows.get_mut(row.place) {
            Some(there) if there.stands_alike(&row) => {
                self.index.move_late((run, row.place), there.late_at(), row.late_at());
                *there = row;
            }
            Some(there) => {
                self.index.forget(run, tenant, there);
                self.index.note(run, tenant, &row);
                *there = row;
            }
            None => self.put_in(run, row),
        }
    }

    /// The row at a place.
    pub fn row(&self, run: RunId, place: Place) -> Option<&Row> {
        self.runs.get(&run)?.rows.get(place)
    }

    /// Whether the index says just what the rows say. Looks only while there are few runs.
    pub(crate) fn is_whole(&self) -> bool {
        const LOOKS_MAX: usize = 100;
        let mut index = Index::default();
        for (run, record) in self.runs.iter().filter(|_| self.runs.len() <= LOOKS_MAX) {
            for row in record.rows.values() {
                index.note(*run, &record.new.identity.tenant, row);
            }
        }
        self.runs.len() > LOOKS_MAX || index == self.index
    }
}

impl Row {
    fn key(&self) -> Key {
        Key::new(self.kind, &self.name, self.version, &self.queue)
    }

    fn level(&self) -> Level {
        (Reverse(self.priority), self.fresh)
    }

    /// Whether the index has both at the same places, but for the time from which on they are late:
    /// both in the hands of the same process.
    fn stands_alike(&self, other: &Row) -> bool {
        self.state == TaskState::Claimed
            && other.state == TaskState::Claimed
            && other.owner.as_ref().is_some_and(|owner| self.is_owned_by(&owner.who))
    }

    /// From when on whoever has it took too long, or was silent for too long.
    fn late_at(&self) -> Option<Timestamp> {
        let owner = self.owner.as_ref()?;
        let silent = owner.heartbeat_by.filter(|_| self.state == TaskState::Claimed);
        silent.into_iter().chain([owner.deadline]).min()
    }
}
