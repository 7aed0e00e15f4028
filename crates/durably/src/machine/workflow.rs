//! The trait behind a state machine.

use crate::error::Result;
use crate::machine::{Action, Actions};
use crate::names::{ActivityRef, Data, SignalRef, WorkflowRef};
use durably_kernel::{Failure, Payload, RunId, Timestamp};

/// A workflow as a state machine: it hears what happened and says what to do. Deterministic: the
/// same calls in the same order give the same actions, so that it can be rebuilt after a crash.
pub trait Workflow: Send + Sized + 'static {
    /// The name under which it is registered.
    const TYPE: &'static str;
    /// The version of its code. A run stays with the version of its first turn.
    const VERSION: u32 = 1;
    /// What it gets.
    type Input: Data;
    /// What it gives.
    type Output: Data;
    /// The typed name.
    const REF: WorkflowRef<Self::Input, Self::Output> = WorkflowRef::new(Self::TYPE);

    /// A machine that has heard nothing yet.
    fn new(input: Self::Input) -> Self;

    /// Called before every other handler, with the time and randomness of the event.
    fn on_turn(&mut self, _turn: &TurnInfo) {}

    /// The run begins.
    fn on_start(&mut self) -> Actions<Self>;

    /// An activity succeeded.
    fn on_activity_completed(&mut self, _id: &str, _result: &Output) -> Actions<Self> {
        Ok(vec![])
    }

    /// An activity failed for good; by default that fails the run.
    fn on_activity_failed(&mut self, _id: &str, failure: &Failure) -> Actions<Self> {
        Ok(vec![Action::fail(failure.clone())])
    }

    /// A timer fired.
    fn on_timer_fired(&mut self, _id: &str) -> Actions<Self> {
        Ok(vec![])
    }

    /// A signal arrived.
    fn on_signal(&mut self, _signal: &Signal) -> Actions<Self> {
        Ok(vec![])
    }

    /// Somebody asks the run to end; by default everything open is given up and it ends as
    /// cancelled.
    fn on_cancel(&mut self, reason: &str) -> Actions<Self> {
        Ok(vec![Action::cancelled(reason)])
    }
}

/// What a handler may know beside its event: recorded, so the same at every replay.
#[derive(Clone, Debug)]
pub struct TurnInfo {
    pub(crate) run: RunId,
    pub(crate) now: Timestamp,
    pub(crate) random: u64,
}

impl TurnInfo {
    /// The run.
    pub fn run_id(&self) -> RunId {
        self.run
    }

    /// When the event was recorded.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// A random number of this event.
    pub fn random(&self) -> u64 {
        self.random
    }
}

/// What an activity gave.
#[derive(Clone, Debug)]
pub struct Output {
    pub(crate) activity_type: String,
    pub(crate) payload: Payload,
}

impl Output {
    /// The value, if it is that activity's; an error if it is and does not fit its type.
    pub fn of<I, O: Data>(&self, activity: ActivityRef<I, O>) -> Result<Option<O>> {
        match self.activity_type == activity.name() {
            true => Ok(Some(self.payload.decode()?)),
            false => Ok(None),
        }
    }

    /// The value as a type of choice.
    pub fn decode<T: Data>(&self) -> Result<T> {
        Ok(self.payload.decode()?)
    }

    /// The activity's type.
    pub fn activity_type(&self) -> &str {
        &self.activity_type
    }
}

/// A message from outside.
#[derive(Clone, Debug)]
pub struct Signal {
    pub(crate) signal: durably_kernel::Signal,
}

impl Signal {
    /// The signal's name.
    pub fn name(&self) -> &str {
        &self.signal.signal_type
    }

    /// Its id; the same id is delivered once.
    pub fn id(&self) -> &str {
        &self.signal.id
    }

    /// When the store accepted it.
    pub fn sent_at(&self) -> Timestamp {
        self.signal.sent_at
    }

    /// What it says, if it is of that name; an error if it is and does not fit its type.
    pub fn of<T: Data>(&self, signal: SignalRef<T>) -> Result<Option<T>> {
        match self.name() == signal.name() {
            true => Ok(Some(self.signal.payload.decode()?)),
            false => Ok(None),
        }
    }
}
