//! The facts and decisions that make up a run's history.
//!
//! Events are versioned JSON, `{"type": …, "data": …}`; an optional `"v"` names the format that
//! introduced the variant and is absent for format 1. Unknown fields are ignored; an unknown
//! variant is an error that names the format needed. A released variant never changes its
//! meaning: `tests/histories/events/` holds one golden file for each.
//!
//! No start of an attempt is stored: a claim writes no event. Outcomes carry the attempt's
//! number, worker and start; the trail expands them.

use crate::failure::Failure;
use crate::id::{ActivityId, ActivityType, Place, RunId, Seq, TimerId, WorkerId, WorkflowType};
use crate::options::ActivityOptions;
use crate::payload::Payload;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// The newest event format that this build reads and writes.
pub const FORMAT: u32 = 1;

/// One execution of an activity, or the beginning of one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// The process incarnation that executed it.
    pub worker: WorkerId,
    /// When it was claimed.
    pub started_at: Timestamp,
}

/// A message from outside to a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Signal {
    /// Unique: the same id is delivered once.
    pub id: String,
    /// The signal's name.
    pub signal_type: String,
    /// What it says.
    pub payload: Payload,
    /// When the store accepted it.
    pub sent_at: Timestamp,
}

/// Which time-out passed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutKind {
    /// No worker began in time.
    ScheduleToStart,
    /// The attempt took too long.
    StartToClose,
    /// The attempt was silent for too long.
    Heartbeat,
    /// All attempts together took too long.
    ScheduleToClose,
    /// The whole run took too long.
    Run,
}

impl TimeoutKind {
    /// The name used in JSON, in the store and in messages.
    pub fn name(self) -> &'static str {
        match self {
            TimeoutKind::ScheduleToStart => "schedule_to_start",
            TimeoutKind::StartToClose => "start_to_close",
            TimeoutKind::Heartbeat => "heartbeat",
            TimeoutKind::ScheduleToClose => "schedule_to_close",
            TimeoutKind::Run => "run",
        }
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

/// One fact in a run's history, or one decision of its code. What only failures have is boxed: they
/// are rare, and every event takes as much room as the largest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
#[allow(missing_docs, reason = "the fields are the stored format; their names say what they are")]
pub enum Event {
    /// The run exists. Always event 1.
    WorkflowStarted {
        workflow_type: WorkflowType,
        input: Payload,
        /// Where the run's random numbers come from.
        seed: u64,
        /// The run's own time-out; its row is place 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        at: Timestamp,
    },
    /// The first turn: from now on the run stays with this version of its code.
    VersionPinned { version: u32, at: Timestamp },
    /// The run's code returned a result.
    WorkflowCompleted { result: Payload },
    /// The run's code gave up, or the run's time-out passed.
    WorkflowFailed { error: Box<Failure> },
    /// The run ended because it was asked to.
    WorkflowCancelled { reason: String },
    /// An operator ended the run at once; no code ran.
    WorkflowTerminated { reason: String, at: Timestamp },
    /// Somebody asked the run to end.
    WorkflowCancelRequested { reason: String, at: Timestamp },
    /// Somebody asked the run to end after what is under way.
    WorkflowShutdownRequested { at: Timestamp },
    /// The run's own time-out passed.
    WorkflowTimedOut { at: Timestamp },
    /// What came after event `to` no longer counts.
    WorkflowReset { to: Seq, reason: String, at: Timestamp },

    /// Work was asked for.
    ActivityScheduled {
        activity_id: ActivityId,
        activity_type: ActivityType,
        input: Payload,
        #[serde(default)]
        options: Arc<ActivityOptions>,
        /// Runs in the workflow's own task, under the turn row's claim: it has no task row.
        #[serde(default, skip_serializing_if = "is_false")]
        inline: bool,
        /// The task's row.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<Place>,
        /// The row of its schedule-to-start time-out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start_place: Option<Place>,
        /// The row of its schedule-to-close time-out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        close_place: Option<Place>,
    },
    /// The work is done.
    ActivityCompleted { activity_id: ActivityId, result: Payload, attempt: Attempt, at: Timestamp },
    /// An attempt failed.
    ActivityFailed {
        activity_id: ActivityId,
        error: Box<Failure>,
        will_retry: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_in_ms: Option<u64>,
        /// The row of the backoff, where an inline step waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<Place>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<Box<Attempt>>,
        /// What the attempt last said in a heartbeat, for the next one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Payload>,
        /// Its attempts are used up: it left a dead letter.
        #[serde(default, skip_serializing_if = "is_false")]
        dead: bool,
        at: Timestamp,
    },
    /// A time-out passed.
    ActivityTimedOut {
        activity_id: ActivityId,
        timeout_type: TimeoutKind,
        will_retry: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_in_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<Place>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<Box<Attempt>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Payload>,
        #[serde(default, skip_serializing_if = "is_false")]
        dead: bool,
        at: Timestamp,
    },
    /// The work is no longer wanted.
    ActivityCancelled { activity_id: ActivityId, reason: String },
    /// An attempt whose worker died or stopped.
    ActivityLost {
        activity_id: ActivityId,
        attempt: Attempt,
        /// The worker died; a graceful stop does not count.
        died: bool,
        at: Timestamp,
    },
    /// The backoff of an inline step is over.
    ActivityRetryDue { activity_id: ActivityId, at: Timestamp },

    /// A timer runs.
    TimerStarted { timer_id: TimerId, duration_ms: u64, place: Place },
    /// A timer's time has come.
    TimerFired { timer_id: TimerId, at: Timestamp },
    /// A timer is no longer wanted.
    TimerCancelled { timer_id: TimerId },

    /// A signal arrived.
    SignalReceived { signal: Signal, at: Timestamp },

    /// A child was started.
    ChildWorkflowStarted { workflow_id: RunId, workflow_type: WorkflowType },
    /// A child completed.
    ChildWorkflowCompleted { workflow_id: RunId, result: Payload, at: Timestamp },
    /// A child failed.
    ChildWorkflowFailed { workflow_id: RunId, error: Box<Failure>, at: Timestamp },
}

/// Whom an event concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// A fact that the run's code hears of.
    Heard,
    /// A fact that only the kernel takes note of.
    Noted,
    /// A decision, of the code or of the kernel.
    Decided,
}

/// Stored text that is no event of ours.
#[derive(Debug, thiserror::Error)]
pub enum EventFormatError {
    /// Written by a newer version.
    #[error(
        "event type {name:?} needs event format {needed}, this program reads up to {FORMAT}: use a newer durably"
    )]
    Newer {
        /// The event's type.
        name: String,
        /// The format that it needs.
        needed: u32,
    },
    /// Not readable at all.
    #[error("stored event is not readable: {source}")]
    Unreadable {
        /// What serde said.
        source: serde_json::Error,
    },
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type")]
    name: String,
    #[serde(default)]
    v: Option<u32>,
}

impl Event {
    /// The event's type as stored.
    pub fn name(&self) -> &'static str {
        match self {
            Event::WorkflowStarted { .. } => "WorkflowStarted",
            Event::VersionPinned { .. } => "VersionPinned",
            Event::WorkflowCompleted { .. } => "WorkflowCompleted",
            Event::WorkflowFailed { .. } => "WorkflowFailed",
            Event::WorkflowCancelled { .. } => "WorkflowCancelled",
            Event::WorkflowTerminated { .. } => "WorkflowTerminated",
            Event::WorkflowCancelRequested { .. } => "WorkflowCancelRequested",
            Event::WorkflowShutdownRequested { .. } => "WorkflowShutdownRequested",
            Event::WorkflowTimedOut { .. } => "WorkflowTimedOut",
            Event::WorkflowReset { .. } => "WorkflowReset",
            Event::ActivityScheduled { .. } => "ActivityScheduled",
            Event::ActivityCompleted { .. } => "ActivityCompleted",
            Event::ActivityFailed { .. } => "ActivityFailed",
            Event::ActivityTimedOut { .. } => "ActivityTimedOut",
            Event::ActivityCancelled { .. } => "ActivityCancelled",
            Event::ActivityLost { .. } => "ActivityLost",
            Event::ActivityRetryDue { .. } => "ActivityRetryDue",
            Event::TimerStarted { .. } => "TimerStarted",
            Event::TimerFired { .. } => "TimerFired",
            Event::TimerCancelled { .. } => "TimerCancelled",
            Event::SignalReceived { .. } => "SignalReceived",
            Event::ChildWorkflowStarted { .. } => "ChildWorkflowStarted",
            Event::ChildWorkflowCompleted { .. } => "ChildWorkflowCompleted",
            Event::ChildWorkflowFailed { .. } => "ChildWorkflowFailed",
        }
    }

    /// Whom the event concerns.
    pub fn reach(&self) -> Reach {
        match self {
            Event::VersionPinned { .. }
            | Event::ActivityCompleted { .. }
            | Event::ActivityFailed { will_retry: false, .. }
            | Event::ActivityTimedOut { will_retry: false, .. }
            | Event::TimerFired { .. }
            | Event::SignalReceived { .. }
            | Event::WorkflowCancelRequested { .. }
            | Event::ChildWorkflowCompleted { .. }
            | Event::ChildWorkflowFailed { .. } => Reach::Heard,
            Event::WorkflowStarted { .. }
            | Event::WorkflowTerminated { .. }
            | Event::WorkflowShutdownRequested { .. }
            | Event::WorkflowTimedOut { .. }
            | Event::WorkflowReset { .. }
            | Event::ActivityFailed { will_retry: true, .. }
            | Event::ActivityTimedOut { will_retry: true, .. }
            | Event::ActivityLost { .. }
            | Event::ActivityRetryDue { .. } => Reach::Noted,
            Event::WorkflowCompleted { .. }
            | Event::WorkflowFailed { .. }
            | Event::WorkflowCancelled { .. }
            | Event::ActivityScheduled { .. }
            | Event::ActivityCancelled { .. }
            | Event::TimerStarted { .. }
            | Event::TimerCancelled { .. }
            | Event::ChildWorkflowStarted { .. } => Reach::Decided,
        }
    }

    /// When the fact was recorded; decisions have the time of the fact before them.
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Event::WorkflowStarted { at, .. }
            | Event::VersionPinned { at, .. }
            | Event::WorkflowTerminated { at, .. }
            | Event::WorkflowCancelRequested { at, .. }
            | Event::WorkflowShutdownRequested { at }
            | Event::WorkflowTimedOut { at }
            | Event::WorkflowReset { at, .. }
            | Event::ActivityCompleted { at, .. }
            | Event::ActivityFailed { at, .. }
            | Event::ActivityTimedOut { at, .. }
            | Event::ActivityLost { at, .. }
            | Event::ActivityRetryDue { at, .. }
            | Event::TimerFired { at, .. }
            | Event::SignalReceived { at, .. }
            | Event::ChildWorkflowCompleted { at, .. }
            | Event::ChildWorkflowFailed { at, .. } => Some(*at),
            Event::WorkflowCompleted { .. }
            | Event::WorkflowFailed { .. }
            | Event::WorkflowCancelled { .. }
            | Event::ActivityScheduled { .. }
            | Event::ActivityCancelled { .. }
            | Event::TimerStarted { .. }
            | Event::TimerCancelled { .. }
            | Event::ChildWorkflowStarted { .. } => None,
        }
    }

    /// The value that the run's code hears of with the event.
    pub fn heard_payload(&self) -> Option<&Payload> {
        match self {
            Event::ActivityCompleted { result, .. }
            | Event::ChildWorkflowCompleted { result, .. } => Some(result),
            Event::ActivityFailed { error, .. } | Event::ChildWorkflowFailed { error, .. } => {
                error.details.as_ref()
            }
            Event::SignalReceived { signal, .. } => Some(&signal.payload),
            Event::WorkflowStarted { .. }
            | Event::VersionPinned { .. }
            | Event::WorkflowCompleted { .. }
            | Event::WorkflowFailed { .. }
            | Event::WorkflowCancelled { .. }
            | Event::WorkflowTerminated { .. }
            | Event::WorkflowCancelRequested { .. }
            | Event::WorkflowShutdownRequested { .. }
            | Event::WorkflowTimedOut { .. }
            | Event::WorkflowReset { .. }
            | Event::ActivityScheduled { .. }
            | Event::ActivityTimedOut { .. }
            | Event::ActivityCancelled { .. }
            | Event::ActivityLost { .. }
            | Event::ActivityRetryDue { .. }
            | Event::TimerStarted { .. }
            | Event::TimerFired { .. }
            | Event::TimerCancelled { .. }
            | Event::ChildWorkflowStarted { .. } => None,
        }
    }

    /// All values of users that the event carries, the one that code hears first. Reasons and
    /// messages are for people and are none.
    pub fn payloads_mut(&mut self) -> impl Iterator<Item = &mut Payload> {
        let [one, two] = match self {
            Event::WorkflowStarted { input, .. } | Event::ActivityScheduled { input, .. } => {
                [Some(input), None]
            }
            Event::WorkflowCompleted { result }
            | Event::ActivityCompleted { result, .. }
            | Event::ChildWorkflowCompleted { result, .. } => [Some(result), None],
            Event::WorkflowFailed { error } | Event::ChildWorkflowFailed { error, .. } => {
                [error.details.as_mut(), None]
            }
            Event::ActivityFailed { error, details, .. } => {
                [error.details.as_mut(), details.as_mut()]
            }
            Event::ActivityTimedOut { details, .. } => [details.as_mut(), None],
            Event::SignalReceived { signal, .. } => [Some(&mut signal.payload), None],
            Event::VersionPinned { .. }
            | Event::WorkflowCancelled { .. }
            | Event::WorkflowTerminated { .. }
            | Event::WorkflowCancelRequested { .. }
            | Event::WorkflowShutdownRequested { .. }
            | Event::WorkflowTimedOut { .. }
            | Event::WorkflowReset { .. }
            | Event::ActivityCancelled { .. }
            | Event::ActivityLost { .. }
            | Event::ActivityRetryDue { .. }
            | Event::TimerStarted { .. }
            | Event::TimerFired { .. }
            | Event::TimerCancelled { .. }
            | Event::ChildWorkflowStarted { .. } => [None, None],
        };
        one.into_iter().chain(two)
    }

    /// What replay compares: the event's type, the id in it and the type behind the id.
    pub fn signature(&self) -> (&'static str, Option<Cow<'_, str>>, Option<&str>) {
        let (id, kind) = match self {
            Event::ActivityScheduled { activity_id, activity_type, .. } => {
                (Some(activity_id.as_str().into()), Some(activity_type.as_str()))
            }
            Event::ActivityCancelled { activity_id, .. } => {
                (Some(activity_id.as_str().into()), None)
            }
            Event::TimerStarted { timer_id, .. } | Event::TimerCancelled { timer_id } => {
                (Some(timer_id.as_str().into()), None)
            }
            Event::ChildWorkflowStarted { workflow_id, workflow_type } => {
                (Some(workflow_id.to_string().into()), Some(workflow_type.as_str()))
            }
            _ => (None, None),
        };
        (self.name(), id, kind)
    }

    /// Reads one stored event.
    pub fn from_json(text: &str) -> Result<Event, EventFormatError> {
        serde_json::from_str(text).map_err(|source| match serde_json::from_str(text) {
            Ok(Envelope { name, v: Some(needed) }) if needed > FORMAT => {
                EventFormatError::Newer { name, needed }
            }
            _ => EventFormatError::Unreadable { source },
        })
    }

    /// Reads the events of one history row, a JSON array.
    pub fn list_from_json(text: &str) -> Result<Vec<Event>, EventFormatError> {
        serde_json::from_str::<Vec<Event>>(text).or_else(|source| {
            let parts: Vec<Payload> =
                serde_json::from_str(text).map_err(|_| EventFormatError::Unreadable { source })?;
            parts.iter().map(|part| Event::from_json(part.text())).collect()
        })
    }

    /// Writes events as one history row stores them.
    pub fn list_to_json(events: &[Event]) -> String {
        serde_json::to_string(events).expect("events have string keys and finite numbers only")
    }
}
