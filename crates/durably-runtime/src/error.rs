//! What can go wrong with an engine or a call to it.

use crate::coder::CodecError;
use durably_kernel::{Broken, Code, Invalid, PayloadError, RunId, RunStatus};
use durably_store::StoreError;
use std::time::Duration;

/// What can go wrong with an engine or a call to it.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The input is not acceptable.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A value could not be written or read as JSON.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// A value could not be coded or decoded.
    #[error("{what}: {source}")]
    Codec {
        /// Which value.
        what: String,
        /// Why.
        source: CodecError,
    },
    /// A run's history is damaged.
    #[error("the history of run {run} is damaged: {source}")]
    Damaged {
        /// The run.
        run: RunId,
        /// How.
        source: Broken,
    },
    /// The settings make no sense.
    #[error("the engine's settings are not usable: {problem}")]
    Settings {
        /// What is wrong.
        problem: String,
    },
    /// Definitions do not fit together.
    #[error("the engine's definitions do not fit together:\n{}", .problems.join("\n"))]
    Definitions {
        /// All problems, one a line.
        problems: Vec<String>,
    },
    /// There is no such run.
    #[error("there is no run {run}")]
    RunUnknown {
        /// The run.
        run: RunId,
    },
    /// The run has ended.
    #[error("run {run} has ended ({status}); it takes no more signals")]
    RunEnded {
        /// The run.
        run: RunId,
        /// How.
        status: RunStatus,
    },
    /// The same key or id was used for something else.
    #[error("{what} is taken by run {run}, which has another workflow or input")]
    KeyTaken {
        /// The key or id.
        what: String,
        /// The run.
        run: RunId,
    },
    /// One of many starts is not acceptable.
    #[error("start {index} of the bulk (counted from 0): {source}; none was started")]
    InBulk {
        /// Which.
        index: usize,
        /// Why.
        source: Box<RuntimeError>,
    },
    /// A wait took too long.
    #[error("run {run} did not end within {waited:?}; it goes on, wait again")]
    WaitTimedOut {
        /// The run.
        run: RunId,
        /// How long.
        waited: Duration,
    },
}

impl RuntimeError {
    /// The stable code of the error.
    pub fn code(&self) -> Code {
        match self {
            RuntimeError::Store(error) => error.code(),
            RuntimeError::Invalid(error) => error.code(),
            RuntimeError::Payload(error) => error.code(),
            RuntimeError::Codec { source, .. } => source.code(),
            RuntimeError::Damaged { .. } => Code::INVARIANT,
            RuntimeError::Settings { .. } => Code::SETTINGS,
            RuntimeError::Definitions { .. } => Code::DEFINITIONS,
            RuntimeError::RunUnknown { .. } => Code::RUN_UNKNOWN,
            RuntimeError::RunEnded { .. } => Code::RUN_ENDED,
            RuntimeError::InBulk { source, .. } => source.code(),
            RuntimeError::KeyTaken { .. } => Code::KEY_TAKEN,
            RuntimeError::WaitTimedOut { .. } => Code::WAIT_TIMED_OUT,
        }
    }
}
