//! What the memory store holds.

use super::index::{Index, Rows};
use super::row::{Mark, Owner, Row};
use super::runs::Runs;
use crate::answer::{InboxEntry, Parked, RunView};
use crate::command::NewRun;
use crate::find::{DeadLetterRow, LeaderRow, WorkerRow};
use crate::hint::{Gathered, Hint};
use durably_kernel::{
    ClaimNumber, CommitId, Event, Fact, LastError, Place, RunId, RunStatus, Seq, TaskKind,
    TaskMove, TaskState, Tenant, Timestamp, Waits, WorkerId,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Rows, and what is kept beside them to find them.
#[derive(Debug, Default)]
pub struct State {
    /// Runs.
    pub runs: Runs,
    pub(crate) index: Index,
    /// Runs by tenant and idempotency key.
    pub keys: BTreeMap<(Tenant, String), RunId>,
    /// Processes.
    pub workers: BTreeMap<WorkerId, WorkerRecord>,
    /// Who leads.
    pub leader: LeaderRow,
    /// Work that was given up.
    pub dead_letters: Vec<DeadLetterRow>,
    /// The last order number given.
    pub order: u64,
    /// What to hint at once the command is done.
    pub hints: Gathered,
}

/// A process.
#[derive(Debug)]
pub struct WorkerRecord {
    /// What is known of it.
    pub row: WorkerRow,
    /// Tells which of two began later.
    pub birth: usize,
}

/// One commit's events.
#[derive(Debug)]
pub struct HistoryRow {
    /// The number of its first event.
    pub first: Seq,
    /// The commit.
    pub commit: CommitId,
    /// What was recorded.
    pub events: Vec<Event>,
    /// When.
    pub at: Timestamp,
}

/// What reached a run from outside.
#[derive(Debug)]
pub struct Entry {
    /// Unique within the run.
    pub id: String,
    /// The fact.
    pub fact: Fact,
}

/// A run, and what belongs to it.
#[derive(Debug)]
pub struct RunRecord {
    /// How it began.
    pub new: NewRun,
    /// Its version: asked for, or pinned.
    pub version: Option<u32>,
    /// The last event.
    pub head: Seq,
    /// Where it stands.
    pub status: RunStatus,
    /// Why it cannot go on, if it cannot.
    pub parked: Option<Parked>,
    /// What it waits for from outside.
    pub waits: Waits,
    /// Retries so far.
    pub retries: u32,
    /// The last error.
    pub last_error: Option<Box<LastError>>,
    /// Entries by number; at least those that the command may read.
    pub inbox: BTreeMap<u64, Entry>,
    /// The last inbox number given.
    pub inbox_last: u64,
    /// The number of each entry.
    pub inbox_ids: BTreeMap<String, u64>,
    /// The last inbox number used up.
    pub inbox_used: u64,
    /// Counts turn rows.
    pub turn_counter: u64,
    /// What was committed; at least what the command may read.
    pub history: Vec<HistoryRow>,
    /// Its live tasks; at least those that the command may touch.
    pub rows: Rows,
    /// Whether its own row has to be written.
    pub changed: bool,
    /// When it was started.
    pub created_at: Timestamp,
    /// When its first turn was committed.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl RunRecord {
    /// A run that begins.
    pub fn new(new: NewRun, now: Timestamp) -> RunRecord {
        RunRecord {
            version: new.version,
            new,
            head: Seq(0),
            status: RunStatus::Pending,
            parked: None,
            waits: Waits::Any,
            retries: 0,
            last_error: None,
            inbox: BTreeMap::new(),
            inbox_last: 0,
            inbox_ids: BTreeMap::new(),
            inbox_used: 0,
            turn_counter: 0,
            history: Vec::new(),
            rows: Rows::default(),
            changed: true,
            created_at: now,
            started_at: None,
            ended_at: None,
        }
    }

    /// Forgets what was read or written about it but its own row and its tasks; those are taken to
    /// be written.
    pub fn forget_read(&mut self) {
        self.inbox.clear();
        self.inbox_ids.clear();
        self.history.clear();
        self.changed = false;
        self.rows.mark_all(Mark::Same);
    }

    pub(crate) fn unread(&self, most: usize) -> Vec<InboxEntry> {
        self.entries(self.inbox_used, most)
    }

    /// The entries after a number, at most so many, of those that are there.
    pub(crate) fn entries(&self, after: u64, most: usize) -> Vec<InboxEntry> {
        let entries = self.inbox.range(after.saturating_add(1)..).take(most);
        entries
            .map(|(&number, entry)| InboxEntry {
                number,
                id: entry.id.clone(),
                fact: entry.fact.clone(),
            })
            .collect()
    }

    /// A turn row that is not there yet, waiting for whatever the caller makes of it.
    pub(crate) fn turn_row(&mut self) -> Box<Row> {
        self.turn_counter += 1;
        self.changed = true;
        Box::new(Row {
            place: Place::TURN,
            kind: TaskKind::Turn,
            name: self.new.workflow_type.clone().into(),
            target: Arc::default(),
            watched: None,
            seq: Seq(self.turn_counter),
            number: ClaimNumber(0),
            state: TaskState::Waiting,
            order: 0,
            due: None,
            queue: self.new.identity.queue.clone(),
            priority: self.new.identity.priority,
            version: self.version.unwrap_or(0),
            fresh: self.started_at.is_none(),
            attempt: 0,
            deaths: 0,
            losses: Vec::new(),
            input: None,
            options: None,
            details: None,
            owner: None,
            mark: Mark::New,
        })
    }

    /// As people and turns see it.
    pub fn view(&self) -> RunView {
        RunView {
            identity: self.new.identity.clone(),
            workflow_type: self.new.workflow_type.clone(),
            version: self.version,
            idempotency_key: self.new.check.key.clone(),
            attributes: self.new.attributes.clone(),
            head: self.head,
            status: self.status,
            parked: self.parked.clone(),
            waits: self.waits.clone(),
            retries: self.retries,
            last_error: self.last_error.clone(),
            inbox_last: self.inbox_last,
            inbox_used: self.inbox_used,
            created_at: self.created_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
        }
    }
}

impl State {
    /// A run that is about to change.
    pub(crate) fn record_mut(&mut self, run: RunId) -> &mut RunRecord {
        let record = self.runs.get_mut(&run).expect("the caller has found it");
        record.changed = true;
        record
    }

    /// Becoming ready always takes a fresh order number.
    pub(crate) fn make_ready(&mut self, row: &mut Row) {
        match row.state {
            TaskState::Claimed => row.go(TaskMove::Return),
            TaskState::Waiting | TaskState::Gated => row.go(TaskMove::ComeDue),
            TaskState::Ready => {}
            TaskState::Cancelling => unreachable!("a cancelling row never becomes ready"),
        }
        self.order += 1;
        row.order = self.order;
        row.due = None;
        row.owner = None;
        self.hints.note(Hint::Ready);
    }

    /// The same of a row that is there.
    pub(crate) fn make_ready_at(&mut self, run: RunId, place: Place) {
        if let Some(mut row) = self.take_out(run, place) {
            self.make_ready(&mut row);
            self.put_in(run, row);
        }
    }

    /// Ready now, or after the delay.
    pub(crate) fn schedule(&mut self, row: &mut Row, delay: Option<Duration>, now: Timestamp) {
        let claimable = matches!(row.kind, TaskKind::Turn | TaskKind::Activity);
        match delay {
            None | Some(Duration::ZERO) if claimable => {
                self.make_ready(row);
            }
            delay => {
                row.due = Some(now.after(delay.unwrap_or_default()));
                self.hints.note(Hint::Due);
            }
        }
    }

    /// The turn row of a run is there afterwards; a fact that wakes makes a waiting one ready.
    pub(crate) fn ensure_turn(&mut self, run: RunId, wakes: bool) {
        let Some(record) = self.runs.get_mut(&run) else {
            return;
        };
        match record.rows.get(Place::TURN) {
            None => {
                let mut row = record.turn_row();
                self.make_ready(&mut row);
                self.put_in(run, row);
            }
            Some(row) if wakes && matches!(row.state, TaskState::Waiting | TaskState::Gated) => {
                self.make_ready_at(run, Place::TURN);
            }
            Some(_) => {}
        }
    }

    pub(crate) fn is_alive(&self, who: &WorkerId) -> bool {
        self.workers.get(who).is_some_and(|worker| worker.row.status.holds_claims())
    }

    pub(crate) fn owner(who: &WorkerId, now: Timestamp, deadline: Duration) -> Owner {
        Owner {
            who: who.clone(),
            call: None,
            claimed_at: now,
            deadline: now.after(deadline),
            heartbeat: None,
            heartbeat_by: None,
            unnamed: 0,
        }
    }
}
