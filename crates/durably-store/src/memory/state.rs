//! What the memory store holds.

use super::index::{Index, Rows};
use super::row::{Owner, Row};
use super::runs::Runs;
use crate::answer::{InboxEntry, Parked, RunView};
use crate::command::NewRun;
use crate::find::{DeadLetterRow, WorkerRow};
use crate::hint::{Gathered, Hint};
use durably_kernel::{
    ClaimNumber, CommitId, Event, Fact, LastError, Place, RunId, RunStatus, Seq, TaskKind,
    TaskMove, TaskState, Tenant, Timestamp, Waits, WorkerId,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) runs: Runs,
    pub(super) index: Index,
    /// Runs by tenant and idempotency key.
    pub(super) keys: BTreeMap<(Tenant, String), RunId>,
    pub(super) workers: BTreeMap<WorkerId, WorkerRecord>,
    pub(super) dead_letters: Vec<DeadLetterRow>,
    pub(super) order: u64,
    pub(super) hints: Gathered,
}

#[derive(Debug)]
pub(super) struct WorkerRecord {
    pub(super) row: WorkerRow,
    /// Tells which of two began later.
    pub(super) birth: usize,
}

/// One commit's events.
#[derive(Debug)]
pub(super) struct HistoryRow {
    pub(super) first: Seq,
    pub(super) commit: CommitId,
    pub(super) events: Vec<Event>,
    pub(super) at: Timestamp,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) fact: Fact,
}

#[derive(Debug)]
pub(super) struct RunRecord {
    pub(super) new: NewRun,
    pub(super) version: Option<u32>,
    pub(super) head: Seq,
    pub(super) status: RunStatus,
    pub(super) parked: Option<Parked>,
    pub(super) waits: Waits,
    pub(super) retries: u32,
    pub(super) last_error: Option<Box<LastError>>,
    pub(super) inbox: Vec<Entry>,
    /// The number of each entry.
    pub(super) inbox_ids: BTreeMap<String, u64>,
    pub(super) inbox_used: u64,
    pub(super) turn_counter: u64,
    pub(super) history: Vec<HistoryRow>,
    pub(super) rows: Rows,
    pub(super) created_at: Timestamp,
    pub(super) started_at: Option<Timestamp>,
    pub(super) ended_at: Option<Timestamp>,
}

impl RunRecord {
    pub(super) fn new(new: NewRun, now: Timestamp) -> RunRecord {
        RunRecord {
            version: new.version,
            new,
            head: Seq(0),
            status: RunStatus::Pending,
            parked: None,
            waits: Waits::Any,
            retries: 0,
            last_error: None,
            inbox: Vec::new(),
            inbox_ids: BTreeMap::new(),
            inbox_used: 0,
            turn_counter: 0,
            history: Vec::new(),
            rows: Rows::default(),
            created_at: now,
            started_at: None,
            ended_at: None,
        }
    }

    pub(super) fn inbox_last(&self) -> u64 {
        self.inbox.len() as u64
    }

    pub(super) fn unread(&self, most: usize) -> Vec<InboxEntry> {
        let used = self.inbox_used;
        let unread = self.inbox.iter().enumerate().skip(used as usize).take(most);
        unread
            .map(|(index, entry)| InboxEntry {
                number: index as u64 + 1,
                id: entry.id.clone(),
                fact: entry.fact.clone(),
            })
            .collect()
    }

    /// A turn row that is not there yet, waiting for whatever the caller makes of it.
    pub(super) fn turn_row(&mut self) -> Box<Row> {
        self.turn_counter += 1;
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
        })
    }

    pub(super) fn view(&self) -> RunView {
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
            inbox_last: self.inbox_last(),
            inbox_used: self.inbox_used,
            created_at: self.created_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
        }
    }
}

impl State {
    /// Becoming ready always takes a fresh order number.
    pub(super) fn make_ready(&mut self, row: &mut Row) {
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
    pub(super) fn make_ready_at(&mut self, run: RunId, place: Place) {
        if let Some(mut row) = self.take_out(run, place) {
            self.make_ready(&mut row);
            self.put_in(run, row);
        }
    }

    /// Ready now, or after the delay.
    pub(super) fn schedule(&mut self, row: &mut Row, delay: Option<Duration>, now: Timestamp) {
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
    pub(super) fn ensure_turn(&mut self, run: RunId, wakes: bool) {
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

    pub(super) fn is_alive(&self, who: &WorkerId) -> bool {
        self.workers.get(who).is_some_and(|worker| worker.row.status.holds_claims())
    }

    pub(super) fn owner(who: &WorkerId, now: Timestamp, deadline: Duration) -> Owner {
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
