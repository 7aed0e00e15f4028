//! What must always hold of a run. Checked after every event, in release builds too: the checks
//! are cheap, and a run that breaks one is parked rather than made worse.

use crate::run::{Phase, Run};
use crate::status::RunStatus;

/// An invariant did not hold: a defect of ours or a damaged history.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Broken {
    /// What did not hold.
    pub message: String,
}

impl Broken {
    /// Names what did not hold.
    pub fn new(message: impl Into<String>) -> Broken {
        Broken { message: message.into() }
    }
}

impl Run {
    /// Checks what can be checked at a cost that does not grow with the run.
    pub(crate) fn check(&self) -> Result<(), Broken> {
        let broken = |what: &str| Err(Broken::new(format!("run {}: {what}", self.identity.id)));
        if self.version.is_none() && self.status == RunStatus::Running {
            return broken("runs without a pinned version");
        }
        if self.status.has_ended() && self.status != RunStatus::Terminated {
            if !self.activities.is_empty() {
                return broken("ended with open activities");
            }
            if !self.timers.is_empty() {
                return broken("ended with open timers");
            }
        }
        if cfg!(debug_assertions) {
            self.check_all()?;
        }
        Ok(())
    }

    /// Checks every open activity; for tests and for debug builds.
    pub fn check_all(&self) -> Result<(), Broken> {
        for (id, activity) in &self.activities {
            let queued = activity.phase == Phase::Queued;
            if queued != activity.place.is_some() {
                return Err(Broken::new(format!("activity {id}: phase and place do not fit")));
            }
            if activity.queued < activity.scheduled || activity.queued > self.head {
                return Err(Broken::new(format!("activity {id}: queued by no event of the run")));
            }
            if activity.failures > activity.attempt {
                return Err(Broken::new(format!("activity {id}: more failures than attempts")));
            }
        }
        Ok(())
    }
}
