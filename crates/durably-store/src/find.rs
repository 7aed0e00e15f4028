//! Reads for people.

use crate::command::{Claimable, Term};
use durably_kernel::{
    ActivityId, Attempt, DeadLetterKind, Event, Failure, Loss, Payload, Place, Queue, RunId,
    RunStatus, Seq, TaskKind, TaskState, Tenant, Timestamp, WorkerId, WorkflowType,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Which runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunQuery {
    /// Of a tenant.
    pub tenant: Option<Tenant>,
    /// Of a workflow.
    pub workflow_type: Option<WorkflowType>,
    /// In one of these statuses; empty is any.
    pub statuses: Vec<RunStatus>,
    /// Started with this key.
    pub idempotency_key: Option<String>,
    /// Older than this run: the cursor.
    pub before: Option<RunId>,
    /// At most so many.
    pub most: usize,
}

impl Default for RunQuery {
    fn default() -> Self {
        RunQuery {
            tenant: None,
            workflow_type: None,
            statuses: Vec::new(),
            idempotency_key: None,
            before: None,
            most: 100,
        }
    }
}

/// One event of a history.
#[derive(Clone, PartialEq, Debug)]
pub struct EventRow {
    /// Its number.
    pub seq: Seq,
    /// The event.
    pub event: Event,
    /// When its commit was made.
    pub committed_at: Timestamp,
}

/// A page of a history.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HistoryPage {
    /// In order.
    pub events: Vec<EventRow>,
    /// Whether there are more.
    pub more: bool,
}

/// A live row of the queue.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskRow {
    /// Where.
    pub place: Place,
    /// What it stands for.
    pub kind: TaskKind,
    /// The type behind it; the kind of a time-out.
    pub name: String,
    /// The activity's or timer's id.
    pub target: String,
    /// Where it stands.
    pub state: TaskState,
    /// Where it waits.
    pub queue: Queue,
    /// Higher first.
    pub priority: i32,
    /// The event that scheduled or re-queued it.
    pub seq: Seq,
    /// Its claim number.
    pub number: u64,
    /// When it is due, if it waits.
    pub due_at: Option<Timestamp>,
    /// The attempt under way, if it is claimed.
    pub attempt: Option<Attempt>,
    /// Attempts begun.
    pub attempts: u32,
    /// Losses noted and not recorded yet.
    pub losses: Vec<Loss>,
    /// What the attempt said last.
    pub details: Option<Payload>,
}

/// Work that was given up.
#[derive(Clone, PartialEq, Debug)]
pub struct DeadLetterRow {
    /// Grows with time.
    pub id: i64,
    /// The run.
    pub run: RunId,
    /// Where it comes from.
    pub kind: DeadLetterKind,
    /// The activity's id, or the id of the inbox entry.
    pub activity_id: ActivityId,
    /// The activity's type, or the type of the fact.
    pub activity_type: String,
    /// What it got, or the fact.
    pub input: Payload,
    /// Attempts begun.
    pub attempts: u32,
    /// Every error, oldest first.
    pub errors: Vec<Failure>,
    /// When.
    pub dead_at: Timestamp,
}

/// Where a process stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerStatus {
    /// Claims and executes.
    Active,
    /// Claims no more, finishes what it has.
    Draining,
    /// Ended gracefully.
    Stopped,
    /// Declared dead.
    Stale,
}

impl WorkerStatus {
    /// The name used in JSON and in the store.
    pub fn name(self) -> &'static str {
        match self {
            WorkerStatus::Active => "active",
            WorkerStatus::Draining => "draining",
            WorkerStatus::Stopped => "stopped",
            WorkerStatus::Stale => "stale",
        }
    }

    /// Reads a stored name.
    pub fn from_name(name: &str) -> Option<WorkerStatus> {
        [WorkerStatus::Active, WorkerStatus::Draining, WorkerStatus::Stopped, WorkerStatus::Stale]
            .into_iter()
            .find(|status| status.name() == name)
    }

    /// Whether its claims stand.
    pub fn holds_claims(self) -> bool {
        match self {
            WorkerStatus::Active | WorkerStatus::Draining => true,
            WorkerStatus::Stopped | WorkerStatus::Stale => false,
        }
    }
}

/// A process.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkerRow {
    /// Its incarnation.
    pub who: WorkerId,
    /// A name for processes of one kind.
    pub group: String,
    /// Where it stands.
    pub status: WorkerStatus,
    /// Its slots.
    pub capacity: u32,
    /// Slots in use at the last beat.
    pub load: u32,
    /// The queues it serves.
    pub queues: Vec<Queue>,
    /// What it can execute.
    pub can: Vec<Claimable>,
    /// Its host's name.
    pub host: String,
    /// The program's version.
    pub version: String,
    /// When it began.
    pub started_at: Timestamp,
    /// Its last beat.
    pub beat_at: Timestamp,
    /// The number of its last beat.
    pub beats: u64,
}

/// Who leads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeaderRow {
    /// Who led last; none before the first, and after one that left.
    pub who: Option<WorkerId>,
    /// Grows whenever somebody begins to lead.
    pub term: Term,
    /// When its lease was renewed.
    pub renewed_at: Timestamp,
    /// For how long.
    pub lease: Duration,
}

impl LeaderRow {
    /// How long nobody else can lead; zero if its time is over.
    pub fn left(&self, now: Timestamp) -> Duration {
        let until = self.renewed_at.after(self.lease);
        // A renewal in the future is one before the clock was set back. A little is left to those
        // whose transaction has read the clock and then waited for the row.
        let in_the_future = self.renewed_at > now.after(self.lease);
        if self.who.is_none() || in_the_future { Duration::ZERO } else { until.since(now) }
    }

    /// How long somebody else than this process leads.
    pub fn left_of_another(&self, who: &WorkerId, now: Timestamp) -> Option<Duration> {
        let left = self.left(now);
        (!left.is_zero() && self.who.as_ref() != Some(who)).then_some(left)
    }
}

/// How much the tables hold under one id: what other reads do not show, since they look for runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Examined {
    /// The id.
    pub run: RunId,
    /// Whether there is a run of that id.
    pub known: bool,
    /// Commits in the history.
    pub commits: u64,
    /// Events in the history, as its rows count them.
    pub events: u64,
    /// Live tasks.
    pub tasks: u64,
    /// Of them, those of another tenant than the run's.
    pub foreign_tasks: u64,
    /// Inbox entries.
    pub entries: u64,
    /// The highest number of an inbox entry.
    pub last_entry: u64,
    /// Dead letters.
    pub letters: u64,
    /// Other runs of the same tenant and idempotency key.
    pub same_key: u64,
}
