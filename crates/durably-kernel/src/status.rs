//! The legal moves of statuses: one `match` for runs, one for tasks. Every other pair is an error.

use crate::event::Event;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a run stands. Paused and diverged are flags beside it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// No turn yet.
    Pending,
    /// Under way.
    Running,
    /// Ended with a result.
    Completed,
    /// Ended with an error.
    Failed,
    /// Ended because it was asked to.
    Cancelled,
    /// Ended by an operator, at once.
    Terminated,
    /// Went on as a new run.
    Continued,
}

impl RunStatus {
    /// All of them.
    pub const ALL: [RunStatus; 7] = [
        RunStatus::Pending,
        RunStatus::Running,
        RunStatus::Completed,
        RunStatus::Failed,
        RunStatus::Cancelled,
        RunStatus::Terminated,
        RunStatus::Continued,
    ];

    /// The name used in JSON and in the store.
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Pending => "pending",
            RunStatus::Running => "running",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Terminated => "terminated",
            RunStatus::Continued => "continued",
        }
    }

    /// Reads a stored name.
    pub fn from_name(name: &str) -> Option<RunStatus> {
        RunStatus::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether nothing can happen to the run any more.
    pub fn has_ended(self) -> bool {
        match self {
            RunStatus::Pending | RunStatus::Running => false,
            RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Cancelled
            | RunStatus::Terminated
            | RunStatus::Continued => true,
        }
    }

    /// The status after an event; an ended run takes no event but a reset.
    pub fn after(self, event: &Event) -> Result<RunStatus, IllegalMove> {
        use RunStatus::{Cancelled, Completed, Failed, Pending, Running, Terminated};
        let next = match (self, event) {
            (_, Event::WorkflowReset { .. }) => Some(Running),
            (status, _) if status.has_ended() => None,
            // A start is the first event; the fold creates the run with it.
            (_, Event::WorkflowStarted { .. }) => None,
            (Pending, Event::VersionPinned { .. }) => Some(Running),
            (Running, Event::VersionPinned { .. }) => None,
            (_, Event::WorkflowTerminated { .. }) => Some(Terminated),
            // A run that is given up before its first turn ends without its code.
            (
                Pending,
                Event::WorkflowCancelRequested { .. }
                | Event::WorkflowShutdownRequested { .. }
                | Event::WorkflowTimedOut { .. },
            ) => Some(Pending),
            (Pending, Event::WorkflowCancelled { .. }) => Some(Cancelled),
            (Pending, Event::WorkflowFailed { .. }) => Some(Failed),
            (Pending, _) => None,
            (Running, Event::WorkflowCompleted { .. }) => Some(Completed),
            (Running, Event::WorkflowFailed { .. }) => Some(Failed),
            (Running, Event::WorkflowCancelled { .. }) => Some(Cancelled),
            (Running, _) => Some(Running),
            _ => None,
        };
        next.ok_or(IllegalMove { from: self.name(), by: event.name() })
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a live task's row stands. Done tasks have no row: history has them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// For a time to come.
    Waiting,
    /// For a permit.
    Gated,
    /// For a worker.
    Ready,
    /// In a worker's hands.
    Claimed,
    /// In a worker's hands, no longer wanted.
    Cancelling,
}

/// What may happen to a task's row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskMove {
    /// Its time has come, or a cancel wants its run's code to run.
    ComeDue,
    /// A worker takes it.
    Claim,
    /// It goes back to the queue.
    Return,
    /// Its claim is used up by a commit or a delivery; the row may be put anew.
    UseUp,
    /// It is no longer wanted.
    Cancel,
    /// Its worker confirms that it let go, or can no longer do so.
    Confirm,
    /// The holder lets the turn row wait for a time.
    Park,
}

impl TaskState {
    /// The name used in JSON and in the store.
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Waiting => "waiting",
            TaskState::Gated => "gated",
            TaskState::Ready => "ready",
            TaskState::Claimed => "claimed",
            TaskState::Cancelling => "cancelling",
        }
    }

    /// Reads a stored name.
    pub fn from_name(name: &str) -> Option<TaskState> {
        [
            TaskState::Waiting,
            TaskState::Gated,
            TaskState::Ready,
            TaskState::Claimed,
            TaskState::Cancelling,
        ]
        .into_iter()
        .find(|state| state.name() == name)
    }

    /// The state after a move, or none where the row goes.
    pub fn after(self, step: TaskMove) -> Result<Option<TaskState>, IllegalMove> {
        use TaskState::{Cancelling, Claimed, Gated, Ready, Waiting};
        match (self, step) {
            (Waiting | Gated, TaskMove::ComeDue) => Ok(Some(Ready)),
            (Ready, TaskMove::Claim) => Ok(Some(Claimed)),
            (Claimed, TaskMove::Return) => Ok(Some(Ready)),
            (Claimed, TaskMove::Park) => Ok(Some(Waiting)),
            (Claimed, TaskMove::UseUp) => Ok(None),
            (Claimed, TaskMove::Cancel) => Ok(Some(Cancelling)),
            (Cancelling, TaskMove::Cancel) => Ok(Some(Cancelling)),
            (Waiting | Gated | Ready, TaskMove::Cancel) => Ok(None),
            (Cancelling, TaskMove::Confirm) => Ok(None),
            (from, by) => Err(IllegalMove { from: from.name(), by: by.name() }),
        }
    }
}

impl TaskMove {
    fn name(self) -> &'static str {
        match self {
            TaskMove::ComeDue => "come due",
            TaskMove::Claim => "claim",
            TaskMove::Return => "return",
            TaskMove::UseUp => "use up",
            TaskMove::Cancel => "cancel",
            TaskMove::Confirm => "confirm",
            TaskMove::Park => "park",
        }
    }
}

/// A move that is not in the table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{by} is not a legal move from {from}")]
pub struct IllegalMove {
    /// The status before.
    pub from: &'static str,
    /// What was tried.
    pub by: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Payload, Seq, Timestamp};

    #[test]
    fn an_ended_run_takes_nothing_but_a_reset() {
        let done = Event::WorkflowCompleted { result: Payload::null() };
        let reset = Event::WorkflowReset { to: Seq(1), reason: String::new(), at: Timestamp(0) };
        for status in RunStatus::ALL.into_iter().filter(|s| s.has_ended()) {
            assert!(status.after(&done).is_err());
            assert_eq!(status.after(&reset), Ok(RunStatus::Running));
        }
        assert_eq!(RunStatus::Running.after(&done), Ok(RunStatus::Completed));
        assert!(RunStatus::Pending.after(&done).is_err());
    }

    #[test]
    fn only_a_ready_row_is_claimed_and_only_a_claimed_one_used_up() {
        for state in
            [TaskState::Waiting, TaskState::Gated, TaskState::Claimed, TaskState::Cancelling]
        {
            assert!(state.after(TaskMove::Claim).is_err());
        }
        assert!(TaskState::Cancelling.after(TaskMove::UseUp).is_err());
        assert_eq!(TaskState::Claimed.after(TaskMove::Cancel), Ok(Some(TaskState::Cancelling)));
        assert_eq!(TaskState::Ready.after(TaskMove::Cancel), Ok(None));
    }

    #[test]
    fn names_are_read_back() {
        for status in RunStatus::ALL {
            assert_eq!(RunStatus::from_name(status.name()), Some(status));
        }
        assert_eq!(TaskState::from_name("ready"), Some(TaskState::Ready));
        assert_eq!(TaskState::from_name("job"), None);
    }
}
