//! The workflow's code, as the kernel sees it: state machine, DAG or durable function.

use crate::action::Action;
use crate::code::Code;
use crate::event::Event;
use crate::id::Seq;
use crate::run::Run;

/// What a program is told beside the event.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// The run, with the event folded in.
    pub run: &'a Run,
    /// The event's sequence number.
    pub seq: Seq,
}

/// What a run waits for from outside.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Waits {
    /// Any signal: a state machine hears all.
    #[default]
    Any,
    /// Signals of these names, or none.
    Signals(Vec<String>),
}

/// Workflow code that could not take an event: the turn is dropped and the run parked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// It panicked.
    #[error("workflow code panicked: {message}")]
    Panicked {
        /// What it said.
        message: String,
    },
    /// It awaited something that is not durable.
    #[error("{message}")]
    ForeignAwait {
        /// What was seen.
        message: String,
    },
    /// What it hears or asks for cannot be decoded or coded.
    #[error("{message}")]
    Codec {
        /// Whether the codec failed or is the wrong one.
        code: Code,
        /// What happened to which payload.
        message: String,
    },
}

impl Fault {
    /// The stable code of the fault.
    pub fn code(&self) -> Code {
        match self {
            Fault::Panicked { .. } => Code::WORKFLOW_PANICKED,
            Fault::ForeignAwait { .. } => Code::FOREIGN_AWAIT,
            Fault::Codec { code, .. } => *code,
        }
    }
}

/// A workflow's code in the middle of a run. Deterministic: the same events, heard in the same
/// order, give the same actions, always.
pub trait Program {
    /// Hears one event and says what to do. Every event is heard at most once.
    fn react(&mut self, heard: Heard<'_>, event: &Event) -> Result<Vec<Action>, Fault>;

    /// What it waits for from outside.
    fn waits(&self) -> Waits {
        Waits::Any
    }
}
