//! Workflows as state machines.

mod action;
mod program;
mod workflow;

pub use action::{Action, Actions, ActivityAction};
pub use workflow::{Output, Signal, TurnInfo, Workflow};

pub(crate) use program::MachineHost;
