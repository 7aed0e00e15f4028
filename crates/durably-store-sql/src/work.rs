//! One command at work: the rows that it may touch, locked and loaded, then changed by the rules
//! that all stores share, then written.
//!
//! Locks are taken in one order everywhere: the process's own row, runs by id, tasks by run and
//! place. What relies on a lock is read in a later statement than the one that takes it.

use crate::error::Trouble;
use crate::field::Columns;
use crate::record::{read_entry, read_history, read_run, read_task, read_worker};
use crate::session::{Began, Call, Param, Session};
use crate::text::Sql;
use crate::write::Table;
use durably_kernel::{Place, RunId, RunStatus, Timestamp, WorkerId};
use durably_store::rows::{At, Mark, RunRecord, State, UNREAD_MAX, WorkerRecord};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// How a run was when it was loaded.
#[derive(Debug)]
struct Before {
    inbox_last: u64,
    places: BTreeSet<Place>,
}

/// One command at work.
pub(crate) struct Work<'s, S: Session> {
    pub(crate) session: &'s mut S,
    pub(crate) now: Timestamp,
    pub(crate) state: State,
    /// Statements to send with the changes.
    pub(crate) also: Vec<Call>,
    /// The trace contexts of the runs' commits.
    pub(crate) traces: BTreeMap<RunId, String>,
    before: BTreeMap<RunId, Before>,
}

impl<'s, S: Session> Work<'s, S> {
    pub(crate) fn new(session: &'s mut S, began: Began) -> Work<'s, S> {
        // So many rows can become ready in a microsecond and keep their order.
        const READY_MAX: i64 = 1024;
        let order = began.micros.saturating_mul(READY_MAX);
        let mut state = State::default();
        state.order = u64::try_from(order).unwrap_or(0);
        let (also, traces, before) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Work { session, now: began.now, state, also, traces, before }
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
            self.add_run(read_run(row)?);
        }
        Ok(())
    }

    fn add_run(&mut self, record: RunRecord) {
        let run = record.new.identity.id;
        if let Entry::Vacant(unknown) = self.before.entry(run) {
            unknown.insert(Before { inbox_last: record.inbox_last, places: BTreeSet::new() });
            self.state.insert_run(record);
        }
    }

    /// Takes up tasks that were read, of runs that were taken up.
    pub(crate) fn add_tasks(&mut self, rows: Vec<S::Row>) -> Result<(), Trouble> {
        for row in rows {
            let (run, task) = read_task(row)?;
            self.add_task(run, task)?;
        }
        Ok(())
    }

    pub(crate) fn add_task(
        &mut self,
        run: RunId,
        task: durably_store::rows::Row,
    ) -> Result<(), Trouble> {
        let Some(before) = self.before.get_mut(&run) else {
            let problem = format!("table durable_tasks: there is no run {run}");
            return Err(Trouble::Damaged(problem));
        };
        if before.places.insert(task.place) {
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

    /// Reads runs without locks.
    pub(crate) async fn read_runs(&mut self, runs: BTreeSet<RunId>) -> Result<(), Trouble> {
        if runs.is_empty() {
            return Ok(());
        }
        let rows = self.ask(Sql::RunsRead, vec![ids(runs)]).await?;
        self.add_runs(rows)
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
            let places = record.rows.values().map(|row| row.place).collect();
            let before = Before { inbox_last: record.inbox_last, places };
            self.before.insert(record.new.identity.id, before);
        }
        let rows: Vec<At> = state.places().collect();
        rows.into_iter().for_each(|at| state.mark(at, Mark::Same));
        Ok(())
    }

    fn changes(&mut self) -> Result<Vec<Call>, Trouble> {
        let (mut new_runs, mut runs) = (Table::default(), Table::default());
        let (mut puts, mut changes) = (Table::default(), Table::default());
        let (mut deletes, mut entries) = (Table::default(), Table::default());
        for (run, record) in self.state.runs.iter() {
            let before = self.before.get(run);
            let trace = self.traces.get(run).map(String::as_str);
            match before {
                None => new_runs.new_run(record, trace)?,
                Some(_) if record.changed => runs.run(record)?,
                Some(_) => {}
            }
            for row in record.rows.values() {
                match row.mark {
                    Mark::Same => {}
                    Mark::Changed => changes.task_change(*run, row)?,
                    Mark::New => puts.task(record, row, trace)?,
                }
            }
            let gone = before.into_iter().flat_map(|before| &before.places);
            for place in gone.filter(|place| record.rows.get(**place).is_none()) {
                deletes.at(*run, *place);
            }
            let known = before.map_or(0, |before| before.inbox_last);
            for (number, entry) in record.inbox.range(known + 1..) {
                entries.entry(*run, *number, entry, self.now)?;
            }
        }
        let mut letters = Table::default();
        for letter in &self.state.dead_letters {
            letters.letter(letter)?;
        }
        let calls = [
            new_runs.call(Sql::RunsInsert),
            runs.call(Sql::RunsSave),
            deletes.call(Sql::TasksDelete),
            puts.call(Sql::TasksPut),
            changes.call(Sql::TasksSave),
            entries.call(Sql::InboxInsert),
            letters.call(Sql::LettersInsert),
        ];
        Ok(calls.into_iter().flatten().chain(std::mem::take(&mut self.also)).collect())
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
