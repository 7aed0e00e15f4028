//! One transaction, as the commands see it: its time, the hints to give once it is committed, and
//! what several commands do to rows.

use crate::error::Trouble;
use crate::field::{Fields, limit, stored};
use crate::lock::Locks;
use crate::run::Run;
use crate::sql;
use crate::step::Steps;
use crate::task::Task;
use durably_kernel::{
    ClaimNumber, Fact, Place, RunId, Seq, TaskKind, TaskMove, TaskState, Timestamp,
};
use durably_store::{Gathered, Hint, InboxEntry};
use rusqlite::{Connection, Row, params};

/// So many unread inbox entries are handed out at a time.
pub(crate) const UNREAD_MAX: usize = durably_store::rows::UNREAD_MAX;

/// One transaction.
pub(crate) struct Tx<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) locks: &'a Locks,
    pub(crate) now: Timestamp,
    pub(crate) steps: Steps<'a>,
    /// The events of the commit under way as they are stored.
    pub(crate) events: String,
    hints: Gathered,
    /// The last order number given, once it was looked up.
    order: Option<u64>,
}

impl<'a> Tx<'a> {
    pub(crate) fn new(
        conn: &'a Connection,
        locks: &'a Locks,
        now: Timestamp,
    ) -> Result<Tx<'a>, Trouble> {
        let (steps, hints) = (Steps::prepare(conn)?, Gathered::default());
        Ok(Tx { conn, locks, now, steps, events: String::new(), hints, order: None })
    }

    /// Writes what is written once per transaction; gives the hints for afterwards.
    pub(crate) fn finish(self) -> Result<Gathered, Trouble> {
        if let Some(order) = self.order {
            self.conn.prepare_cached(sql::ORDER_SAVE)?.execute(params![stored(order)])?;
        }
        Ok(self.hints)
    }

    /// A hint to give after the commit; the same one is given once.
    pub(crate) fn hint(&mut self, hint: Hint) {
        self.hints.note(hint);
    }

    /// A fresh order number.
    pub(crate) fn next_order(&mut self) -> Result<u64, Trouble> {
        let last = match self.order {
            Some(last) => last,
            None => {
                let mut statement = self.conn.prepare_cached(sql::ORDER_LOAD)?;
                let last: i64 = statement.query_row([], |row| row.get(0))?;
                u64::try_from(last).unwrap_or(0)
            }
        };
        self.order = Some(last + 1);
        Ok(last + 1)
    }

    /// Becoming ready always takes a fresh order number.
    pub(crate) fn make_ready(&mut self, task: &mut Task) -> Result<(), Trouble> {
        match task.state {
            TaskState::Claimed => task.go(TaskMove::Return)?,
            TaskState::Waiting | TaskState::Gated => task.go(TaskMove::ComeDue)?,
            TaskState::Ready => {}
            TaskState::Cancelling => {
                return Err(task.damaged("a cancelling row was to become ready"));
            }
        }
        task.order = self.next_order()?;
        task.due = None;
        task.owner = None;
        self.hint(Hint::Ready);
        Ok(())
    }

    /// A turn row that is not there yet, waiting for whatever the caller makes of it. The run's
    /// counter is raised; the caller saves it.
    pub(crate) fn new_turn_row(run: &mut Run) -> Task {
        run.turn_counter += 1;
        Task {
            run: run.id(),
            place: Place::TURN,
            kind: TaskKind::Turn,
            name: run.workflow_type.to_string(),
            target: String::new(),
            watched: None,
            version: run.version.unwrap_or(0),
            queue: run.identity.queue.clone(),
            tenant: run.identity.tenant.clone(),
            priority: run.identity.priority,
            fresh: run.started_at.is_none(),
            seq: Seq(run.turn_counter),
            number: ClaimNumber(0),
            state: TaskState::Waiting,
            order: 0,
            due: None,
            owner: None,
            attempt: 0,
            deaths: 0,
            losses: Vec::new(),
            options: None,
            details: None,
            input: None,
        }
    }

    /// The turn row of a run is there afterwards; a fact that wakes makes a waiting one ready. The
    /// caller saves the run.
    pub(crate) fn ensure_turn(&mut self, run: &mut Run, wakes: bool) -> Result<(), Trouble> {
        match Task::load(self.conn, run.id(), Place::TURN)? {
            None => {
                let mut task = Tx::new_turn_row(run);
                self.make_ready(&mut task)?;
                task.insert_turn(self.conn, None)
            }
            Some(mut task)
                if wakes && matches!(task.state, TaskState::Waiting | TaskState::Gated) =>
            {
                self.make_ready(&mut task)?;
                task.save(self.conn)
            }
            Some(_) => Ok(()),
        }
    }

    /// The first of a run's unread inbox entries.
    pub(crate) fn unread(&self, run: &Run) -> Result<Vec<InboxEntry>, Trouble> {
        if !run.has_unread() {
            return Ok(Vec::new());
        }
        let id = run.id();
        let mut statement = self.conn.prepare_cached(sql::INBOX_UNREAD)?;
        let bound = params![id.0.as_bytes(), stored(run.inbox_used), limit(UNREAD_MAX)];
        let mut rows = statement.query(bound)?;
        let mut entries = Vec::new();
        while let Some(row) = rows.next()? {
            entries.push(read_entry(id, row)?);
        }
        Ok(entries)
    }

    /// One entry of a run's inbox.
    pub(crate) fn entry(&self, run: RunId, number: u64) -> Result<Option<InboxEntry>, Trouble> {
        let mut statement = self.conn.prepare_cached(sql::INBOX_ENTRY)?;
        let mut rows = statement.query(params![run.0.as_bytes(), stored(number)])?;
        rows.next()?.map(|row| read_entry(run, row)).transpose()
    }
}

fn read_entry(run: RunId, row: &Row<'_>) -> Result<InboxEntry, Trouble> {
    let read = || -> Result<InboxEntry, Trouble> {
        let mut fields = Fields::of(row);
        let (number, id) = (fields.count()?, fields.take()?);
        let fact = Fact::from_json(&fields.take::<String>()?)?;
        Ok(InboxEntry { number, id, fact })
    };
    read().map_err(|trouble| trouble.within("durable_inbox", run))
}
