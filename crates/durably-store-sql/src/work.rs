//! One command at work: the rows that it may touch, locked and loaded, then changed by the rules
//! that all stores share, then written.
//!
//! Locks are taken in one order everywhere: the process's own row, runs by id, tasks by run and
//! place. What relies on a lock is read in a later statement than the one that takes it. A task that
//! is not ready changes under its run's lock only, and the run is stamped (`kept`).

use crate::error::Trouble;
use crate::field::Columns;
use crate::kept::{Kept, holds};
use crate::record::{read_entry, read_history, read_stamped_run, read_task, read_worker};
use crate::session::{Began, Call, Param, Session};
use crate::text::Sql;
use crate::write::{Rest, Table, begins_plainly, goes_on, waits_first};
use durably_kernel::{Place, RunId, RunStatus, TaskState, Timestamp, WorkerId};
use durably_store::rows::{At, Mark, Row, RunRecord, State, UNREAD_MAX, WorkerRecord};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Which of a run's places are known, with or without a task.
#[derive(Debug)]
pub(crate) enum Known {
    All,
    Some(BTreeSet<Place>),
}

impl Known {
    pub(crate) fn knows(&self, place: Place) -> bool {
        match self {
            Known::All => true,
            Known::Some(places) => places.contains(&place),
        }
    }

    fn add(&mut self, place: Place) {
        if let Known::Some(places) = self {
            places.insert(place);
        }
    }

    /// No more is known about a place; nor about all, then, but about these others.
    pub(crate) fn forget(&mut self, place: Place, others: impl Iterator<Item = Place>) {
        match self {
            Known::All => *self = Known::Some(others.collect()),
            Known::Some(places) => drop(places.remove(&place)),
        }
    }
}

/// How a run was when it was loaded.
#[derive(Debug)]
struct Before {
    stamp: i64,
    known: Known,
    inbox_last: u64,
    rest: Rest,
    rows: BTreeMap<Place, Box<Row>>,
}

impl Before {
    fn of(record: &RunRecord, stamp: i64, known: Known) -> Before {
        let rows = record.rows.values().map(|row| (row.place, Box::new(row.clone()))).collect();
        let (inbox_last, rest) = (record.inbox_last, Rest::of(record));
        Before { stamp, known, inbox_last, rest, rows }
    }
}

/// So many rows can become ready in a microsecond and keep their order.
const ORDERS: i64 = 1024;

/// One command at work.
pub(crate) struct Work<'s, S: Session> {
    pub(crate) session: &'s mut S,
    pub(crate) now: Timestamp,
    /// The database's time when the transaction began.
    micros: i64,
    pub(crate) state: State,
    /// Statements to send with the changes.
    pub(crate) also: Vec<Call>,
    /// The trace contexts of the runs' commits.
    pub(crate) traces: BTreeMap<RunId, String>,
    /// The answers to the command's first questions.
    opened: Vec<(Sql, Vec<S::Row>)>,
    /// What the runs that change are stamped with.
    stamp: i64,
    remembers: bool,
    before: BTreeMap<RunId, Before>,
}

impl<'s, S: Session> Work<'s, S> {
    pub(crate) fn new(
        session: &'s mut S,
        began: Began,
        opened: Vec<(Sql, Vec<S::Row>)>,
    ) -> Work<'s, S> {
        let order = began.micros.saturating_mul(ORDERS);
        let mut state = State::default();
        state.order = u64::try_from(order).unwrap_or(0);
        let (also, traces, before) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let (now, stamp) = (began.now, rand::Rng::random(&mut rand::rng()));
        Work {
            session,
            now,
            micros: began.micros,
            state,
            also,
            traces,
            opened,
            stamp,
            remembers: true,
            before,
        }
    }

    /// The order number of what became ready so long before this transaction.
    pub(crate) fn order_before(&self, time: Duration) -> i64 {
        let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        self.micros.saturating_sub(micros).saturating_mul(ORDERS)
    }

    /// The rows that one of the command's first questions was answered with; none if it was not
    /// asked.
    pub(crate) fn opened(&mut self, sql: Sql) -> Vec<S::Row> {
        let answer = self.opened.iter_mut().find(|(asked, _)| *asked == sql);
        answer.map(|(_, rows)| std::mem::take(rows)).unwrap_or_default()
    }

    /// One question.
    pub(crate) async fn ask(
        &mut self,
        sql: Sql,
        params: Vec<Param>,
    ) -> Result<Vec<S::Row>, Trouble> {
        let answers = self.session.ask(vec![Call { sql, params }]).await?;
        Ok(answers.into_iter().next().unwrap_or_default())
    }

    /// Takes up runs that were read.
    pub(crate) fn add_runs(&mut self, rows: Vec<S::Row>) -> Result<(), Trouble> {
        for row in rows {
            let (record, stamp) = read_stamped_run(row)?;
            let known = Known::Some(BTreeSet::new());
            self.add_kept(Kept { record: Box::new(record), stamp, known });
        }
        Ok(())
    }

    /// Takes up a run as it is known.
    pub(crate) fn add_kept(&mut self, kept: Kept) {
        let Kept { record, stamp, known } = kept;
        if let Entry::Vacant(unknown) = self.before.entry(record.new.identity.id) {
            unknown.insert(Before::of(&record, stamp, known));
            self.state.insert_run(record);
        }
    }

    /// Which places of a run are known.
    pub(crate) fn known(&self, run: RunId) -> Option<&Known> {
        self.before.get(&run).map(|before| &before.known)
    }

    /// All tasks at these places were taken up, if there are any.
    pub(crate) fn looked_at(&mut self, places: impl IntoIterator<Item = At>) {
        for (run, place) in places {
            if let Some(before) = self.before.get_mut(&run) {
                before.known.add(place);
            }
        }
    }

    /// All tasks of these runs were taken up.
    pub(crate) fn looked_at_all(&mut self, runs: impl IntoIterator<Item = RunId>) {
        for run in runs {
            if let Some(before) = self.before.get_mut(&run) {
                before.known = Known::All;
            }
        }
    }

    /// What was read is not to be remembered: tasks that are not ready were read without a lock on
    /// their run, and before it.
    pub(crate) fn remember_nothing(&mut self) {
        self.remembers = false;
    }

    /// The runs that a process holds, as they are once the transaction has ended.
    pub(crate) fn kept(&mut self, who: &WorkerId) -> Vec<Kept> {
        if !self.remembers {
            return Vec::new();
        }
        let records = self.state.take_runs().into_iter();
        let kept = |record: Box<RunRecord>| match self.before.remove(&record.new.identity.id) {
            Some(before) => Kept::of(record, before.stamp, before.known),
            None => Kept::of(record, self.stamp, Known::All),
        };
        records.filter(|record| holds(who, record)).map(kept).collect()
    }

    /// Takes up tasks that were read, of runs that were taken up.
    pub(crate) fn add_tasks(&mut self, rows: Vec<S::Row>) -> Result<(), Trouble> {
        for row in rows {
            let (run, task) = read_task(row)?;
            self.add_task(run, task)?;
        }
        Ok(())
    }

    pub(crate) fn add_task(&mut self, run: RunId, task: Row) -> Result<(), Trouble> {
        let Some(before) = self.before.get_mut(&run) else {
            let problem = format!("table durable_tasks: there is no run {run}");
            return Err(Trouble::Damaged(problem));
        };
        if let Entry::Vacant(unknown) = before.rows.entry(task.place) {
            before.known.add(task.place);
            unknown.insert(Box::new(task.clone()));
            self.state.insert_row(run, task);
        }
        Ok(())
    }

    /// Takes up inbox entries that were read.
    pub(crate) fn add_entries(&mut self, rows: Vec<S::Row>) -> Result<(), Trouble> {
        for row in rows {
            let (run, number, entry) = read_entry(row)?;
            if let Some(record) = self.state.runs.get_mut(&run) {
                record.inbox_ids.insert(entry.id.clone(), number);
                record.inbox.insert(number, entry);
            }
        }
        Ok(())
    }

    /// Takes up the numbers of inbox entries that were found by their ids.
    pub(crate) fn add_found(&mut self, rows: Vec<S::Row>) -> Result<(), Trouble> {
        for mut row in rows {
            let run = RunId(row.uuid("run")?);
            let (id, number) = (row.words("id")?, row.number("number")?);
            if let Some(record) = self.state.runs.get_mut(&run) {
                record.inbox_ids.insert(id, number);
            }
        }
        Ok(())
    }

    /// Takes up processes that were read.
    pub(crate) fn add_workers(&mut self, rows: Vec<S::Row>) -> Result<(), Trouble> {
        for row in rows {
            let row = read_worker(row)?;
            self.state.workers.insert(row.who.clone(), WorkerRecord { row, birth: 0 });
        }
        Ok(())
    }

    /// Locks a process's row and takes it up.
    pub(crate) async fn lock_worker(&mut self, who: &WorkerId) -> Result<(), Trouble> {
        let rows = self.ask(Sql::WorkerLock, vec![worker(who)]).await?;
        self.add_workers(rows)
    }

    /// Reads runs, without locking them, that were not taken up yet.
    pub(crate) async fn read_runs(
        &mut self,
        runs: impl IntoIterator<Item = RunId>,
    ) -> Result<(), Trouble> {
        self.take_up_runs(Sql::RunsRead, runs).await
    }

    /// Locks runs and takes them up.
    pub(crate) async fn lock_runs(
        &mut self,
        runs: impl IntoIterator<Item = RunId>,
    ) -> Result<(), Trouble> {
        self.take_up_runs(Sql::RunsLock, runs).await
    }

    async fn take_up_runs(
        &mut self,
        sql: Sql,
        runs: impl IntoIterator<Item = RunId>,
    ) -> Result<(), Trouble> {
        let unknown = |run: &RunId| !self.before.contains_key(run);
        let runs: BTreeSet<RunId> = runs.into_iter().filter(unknown).collect();
        if runs.is_empty() {
            return Ok(());
        }
        let rows = self.ask(sql, vec![ids(runs)]).await?;
        self.add_runs(rows)
    }

    /// Locks the tasks at places and takes them up; their runs are locked.
    pub(crate) async fn lock_tasks(
        &mut self,
        places: impl IntoIterator<Item = At>,
    ) -> Result<(), Trouble> {
        let Some(call) = at(Sql::TasksLock, places) else { return Ok(()) };
        let rows = self.ask(call.sql, call.params).await?;
        self.add_tasks(rows)
    }

    /// What turns of these runs need: unread inbox entries, and event 1 where none was taken yet.
    pub(crate) async fn read_for_turns(
        &mut self,
        runs: impl Iterator<Item = RunId>,
    ) -> Result<(), Trouble> {
        let (unread, pending) = self.for_turns(&runs.collect());
        if let Some(call) = unread {
            let rows = self.ask(call.sql, call.params).await?;
            self.add_entries(rows)?;
        }
        if pending.is_empty() {
            return Ok(());
        }
        for row in self.ask(Sql::HistoryFirst, vec![ids(pending)]).await? {
            let (run, first) = read_history(row)?;
            if let Some(record) = self.state.runs.get_mut(&run) {
                record.history = vec![first];
            }
        }
        Ok(())
    }

    /// The question for unread entries, and the runs that have taken no turn yet.
    fn for_turns(&self, runs: &BTreeSet<RunId>) -> (Option<Call>, Vec<RunId>) {
        let records = || runs.iter().filter_map(|run| self.state.runs.get(run));
        let unread = unread(records().map(|record| (record, (record.inbox_used, UNREAD_MAX))));
        let pending = records().filter(|record| record.status == RunStatus::Pending);
        (unread, pending.map(|record| record.new.identity.id).collect())
    }

    /// Writes what has changed, and ends the transaction.
    pub(crate) async fn finish(&mut self) -> Result<(), Trouble> {
        let calls = self.changes()?;
        self.session.finish(calls).await
    }

    /// Writes what has changed within the transaction, so that later statements see it.
    pub(crate) async fn write(&mut self) -> Result<(), Trouble> {
        let calls = self.changes()?;
        self.session.ask(calls).await?;
        let state = &mut self.state;
        state.dead_letters.clear();
        for record in state.runs.records_mut() {
            record.changed = false;
            let (stamp, known) = match self.before.remove(&record.new.identity.id) {
                Some(before) => (before.stamp, before.known),
                None => (self.stamp, Known::All),
            };
            self.before.insert(record.new.identity.id, Before::of(record, stamp, known));
        }
        let rows: Vec<At> = state.places().collect();
        rows.into_iter().for_each(|at| state.mark(at, Mark::Same));
        Ok(())
    }

    fn changes(&mut self) -> Result<Vec<Call>, Trouble> {
        let mut tables = Tables::default();
        for (run, record) in self.state.runs.iter() {
            let trace = self.traces.get(run).map(String::as_str);
            let known = match self.before.get_mut(run) {
                None => {
                    tables.new_run(record, trace)?;
                    0
                }
                Some(before) => {
                    if tables.run(record, before, trace)? {
                        before.stamp = self.stamp;
                    }
                    before.inbox_last
                }
            };
            for (number, entry) in record.inbox.range(known + 1..) {
                tables.entries.entry(*run, *number, entry, self.now)?;
            }
        }
        for letter in &self.state.dead_letters {
            tables.letters.letter(letter)?;
        }
        Ok(tables.calls(self.stamp).chain(std::mem::take(&mut self.also)).collect())
    }
}

/// What has changed, by the statement that writes it.
#[derive(Default)]
struct Tables {
    begun_runs: Table,
    first_turns: Table,
    new_runs: Table,
    new_tasks: Table,
    runs: Table,
    heads: Table,
    ends: Table,
    deletes: Table,
    puts: Table,
    steps: Table,
    changes: Table,
    entries: Table,
    letters: Table,
}

impl Tables {
    fn new_run(&mut self, record: &RunRecord, trace: Option<&str>) -> Result<(), Trouble> {
        match begins_plainly(record) {
            true => self.begun_runs.begun_run(record, trace),
            false => self.new_runs.new_run(record, trace)?,
        }
        for row in record.rows.values() {
            match waits_first(row) {
                true => self.first_turns.first_turn(record, row, trace),
                false => self.new_tasks.task(record, row, trace)?,
            }
        }
        Ok(())
    }

    /// Whether the run itself is written, and stamped.
    fn run(
        &mut self,
        record: &RunRecord,
        before: &Before,
        trace: Option<&str>,
    ) -> Result<bool, Trouble> {
        let run = record.new.identity.id;
        let mut stamped = record.changed;
        for row in record.rows.values().filter(|row| row.mark != Mark::Same) {
            let old = before.rows.get(&row.place);
            stamped |= old.is_none_or(|old| old.state != TaskState::Ready);
            match (row.mark, old) {
                (Mark::New, Some(old)) if goes_on(old, row) => self.steps.step(run, row, trace),
                (Mark::New, _) => self.puts.task(record, row, trace)?,
                _ => self.changes.task_change(run, row)?,
            }
        }
        for (place, old) in &before.rows {
            if record.rows.get(*place).is_none() {
                stamped |= old.state != TaskState::Ready;
                self.deletes.at(run, *place);
            }
        }
        let rest = Rest::of(record);
        match before.rest == rest {
            _ if !stamped => {}
            true => self.heads.head(record),
            false if before.rest.only_ends(&rest) => self.ends.end(record),
            false => self.runs.run(record)?,
        }
        Ok(stamped)
    }

    fn calls(self, stamp: i64) -> impl Iterator<Item = Call> {
        let calls = [
            self.begun_runs.call_with(Sql::RunsBegin, stamp),
            self.first_turns.call(Sql::TasksBegin),
            self.new_runs.call_with(Sql::RunsInsert, stamp),
            self.runs.call_with(Sql::RunsSave, stamp),
            self.heads.call_with(Sql::RunsHead, stamp),
            self.ends.call_with(Sql::RunsEnd, stamp),
            self.new_tasks.call(Sql::TasksInsert),
            self.deletes.call(Sql::TasksDelete),
            self.puts.call(Sql::TasksPut),
            self.steps.call(Sql::TasksStep),
            self.changes.call(Sql::TasksSave),
            self.entries.call(Sql::InboxInsert),
            self.letters.call(Sql::LettersInsert),
        ];
        calls.into_iter().flatten()
    }
}

/// The question for unread entries: of each run those after a number, at most so many.
pub(crate) fn unread<'a>(
    runs: impl Iterator<Item = (&'a RunRecord, (u64, usize))>,
) -> Option<Call> {
    let mut table = Table::default();
    for (record, (after, most)) in runs {
        if record.inbox_last > after {
            table.unread(record.new.identity.id, after, most);
        }
    }
    table.call(Sql::InboxUnread)
}

pub(crate) fn worker(who: &WorkerId) -> Param {
    Param::Text(Some(who.to_string()))
}

pub(crate) fn ids(runs: impl IntoIterator<Item = RunId>) -> Param {
    Param::Ids(runs.into_iter().map(|run| Some(run.0)).collect())
}

/// The question for tasks at places.
pub(crate) fn at(sql: Sql, places: impl IntoIterator<Item = At>) -> Option<Call> {
    let mut table = Table::default();
    places.into_iter().for_each(|(run, place)| table.at(run, place));
    table.call(sql)
}
