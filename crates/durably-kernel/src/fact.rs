//! What reaches a run: outcomes of its activities, timers, signals, requests.
//!
//! A fact becomes an event when it is admitted; a late or repeated one becomes nothing. Facts
//! that wait in a run's inbox are stored as JSON, `{"type": …, "data": …}`.

use crate::event::{Attempt, Signal, TimeoutKind};
use crate::failure::Failure;
use crate::id::{ActivityId, Seq, TimerId};
use crate::payload::Payload;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Why an attempt has no outcome of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossCause {
    /// The process died, or was declared dead: it counts.
    Died,
    /// The process stopped gracefully: it does not count.
    Stopped,
}

/// An attempt that was lost, as noted on its task's row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Loss {
    /// The attempt.
    pub attempt: Attempt,
    /// When its claim was taken back.
    pub lost_at: Timestamp,
    /// Why.
    pub cause: LossCause,
}

/// What reaches a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
#[allow(missing_docs, reason = "the fields are the stored format; their names say what they are")]
pub enum Fact {
    /// The first turn, with the version of the code that takes it.
    Begin { version: u32 },
    /// An attempt succeeded.
    ActivityCompleted {
        activity_id: ActivityId,
        /// Of the event that began the attempt (inline) or queued the task.
        seq: Seq,
        attempt: Attempt,
        result: Payload,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        losses: Vec<Loss>,
    },
    /// An attempt failed.
    ActivityFailed {
        activity_id: ActivityId,
        seq: Seq,
        attempt: Attempt,
        error: Failure,
        /// What the attempt last said in a heartbeat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Payload>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        losses: Vec<Loss>,
    },
    /// A time-out of an activity passed.
    ActivityTimedOut {
        activity_id: ActivityId,
        seq: Seq,
        timeout: TimeoutKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<Attempt>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Payload>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        losses: Vec<Loss>,
    },
    /// Workers died over an activity as often as its options allow.
    ActivityLost { activity_id: ActivityId, seq: Seq, losses: Vec<Loss> },
    /// The holder of an inline step is gone; the next holder says so.
    InlineLost { activity_id: ActivityId, seq: Seq, loss: Loss },
    /// The backoff of an inline step is over.
    RetryDue { activity_id: ActivityId, seq: Seq },
    /// A timer is due.
    TimerFired { timer_id: TimerId, seq: Seq },
    /// A signal.
    Signal(Signal),
    /// Somebody wants the run to end.
    CancelRequested { reason: String },
    /// Somebody wants the run to end after what is under way.
    ShutdownRequested {},
    /// The run's own time-out passed.
    RunTimedOut {},
}

/// Stored text that is no fact of ours.
#[derive(Debug, thiserror::Error)]
#[error("stored inbox entry is not readable: {0}")]
pub struct FactFormatError(#[from] serde_json::Error);

impl Fact {
    /// The fact's type as stored.
    pub fn name(&self) -> &'static str {
        match self {
            Fact::Begin { .. } => "Begin",
            Fact::ActivityCompleted { .. } => "ActivityCompleted",
            Fact::ActivityFailed { .. } => "ActivityFailed",
            Fact::ActivityTimedOut { .. } => "ActivityTimedOut",
            Fact::ActivityLost { .. } => "ActivityLost",
            Fact::InlineLost { .. } => "InlineLost",
            Fact::RetryDue { .. } => "RetryDue",
            Fact::TimerFired { .. } => "TimerFired",
            Fact::Signal(_) => "Signal",
            Fact::CancelRequested { .. } => "CancelRequested",
            Fact::ShutdownRequested {} => "ShutdownRequested",
            Fact::RunTimedOut {} => "RunTimedOut",
        }
    }

    /// Whether it makes a waiting or gated turn row ready.
    pub fn wakes(&self) -> bool {
        matches!(self, Fact::CancelRequested { .. })
    }

    /// Writes the fact as the inbox stores it.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("facts have string keys and finite numbers only")
    }

    /// Reads a stored fact.
    pub fn from_json(text: &str) -> Result<Fact, FactFormatError> {
        Ok(serde_json::from_str(text)?)
    }
}
