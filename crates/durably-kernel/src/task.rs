//! What a decision asks of the queue, and what people see of a run.

use crate::event::TimeoutKind;
use crate::failure::Failure;
use crate::id::{ActivityId, Place, Queue, Seq};
use crate::options::ActivityOptions;
use crate::payload::Payload;
use crate::program::Waits;
use crate::run::LastError;
use crate::status::RunStatus;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// What a task's row stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// The run's code wants to run; place 0.
    Turn,
    /// An activity wants to be executed.
    Activity,
    /// A timer; when due it becomes an inbox entry.
    Timer,
    /// The backoff of an inline step; when due it becomes an inbox entry.
    Retry,
    /// A time-out that can pass while nothing is claimed; when due it becomes an inbox entry.
    Timeout,
}

impl TaskKind {
    /// All of them.
    pub const ALL: [TaskKind; 5] =
        [TaskKind::Turn, TaskKind::Activity, TaskKind::Timer, TaskKind::Retry, TaskKind::Timeout];

    /// The name used in JSON and in the store.
    pub fn name(self) -> &'static str {
        match self {
            TaskKind::Turn => "turn",
            TaskKind::Activity => "activity",
            TaskKind::Timer => "timer",
            TaskKind::Retry => "retry",
            TaskKind::Timeout => "timeout",
        }
    }

    /// Reads a stored name.
    pub fn from_name(name: &str) -> Option<TaskKind> {
        TaskKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A row to insert at its place, or to write over the row that is there.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskPut {
    /// Where.
    pub place: Place,
    /// What it stands for.
    pub kind: TaskKind,
    /// The activity's type; for a time-out its kind; otherwise empty.
    pub name: Arc<str>,
    /// The activity's or timer's id; empty for the run's own time-out.
    pub target: Arc<str>,
    /// For a time-out: the row of the activity it watches.
    pub watched: Option<Place>,
    /// The event that scheduled or re-queued it.
    pub seq: Seq,
    /// Not before this long from now; at once if none.
    pub delay: Option<Duration>,
    /// Where it waits for a worker.
    pub queue: Queue,
    /// Higher first.
    pub priority: i32,
    /// Attempts begun so far.
    pub attempt: u32,
    /// Of them, lost by deaths of workers.
    pub deaths: u32,
    /// What an activity gets.
    pub input: Option<Payload>,
    /// How an activity is executed.
    pub options: Option<Arc<ActivityOptions>>,
    /// What its last attempt said in a heartbeat.
    pub details: Option<Payload>,
}

impl TaskPut {
    /// Which time-out a row of kind [`TaskKind::Timeout`] stands for.
    pub fn timeout_kind(name: &str) -> Option<TimeoutKind> {
        [TimeoutKind::ScheduleToStart, TimeoutKind::ScheduleToClose, TimeoutKind::Run]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// A change to a run's task rows.
#[derive(Clone, PartialEq, Debug)]
pub enum TaskChange {
    /// Insert, or write over what is there.
    Put(Box<TaskPut>),
    /// Remove, whatever its state; nothing if it is gone.
    Delete(Place),
    /// No longer wanted: a claimed row becomes cancelling, another goes.
    Cancel(Place),
}

/// Where a dead letter comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadLetterKind {
    /// An activity that used up its attempts or its workers.
    Activity,
    /// An inbox entry that a run did not read before it ended.
    Unread,
}

impl DeadLetterKind {
    /// The name used in JSON and in the store.
    pub fn name(self) -> &'static str {
        match self {
            DeadLetterKind::Activity => "activity",
            DeadLetterKind::Unread => "unread",
        }
    }
}

/// Work that is given up, kept for people.
#[derive(Clone, PartialEq, Debug)]
pub struct DeadLetter {
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
}

/// What people see of a run without reading its history.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// Where it stands.
    pub status: RunStatus,
    /// The version of its code, once pinned.
    pub version: Option<u32>,
    /// What it waits for from outside.
    pub waits: Waits,
    /// Retries so far.
    pub retries: u32,
    /// The last error and its time.
    pub last_error: Option<Box<LastError>>,
}
