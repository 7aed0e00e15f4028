//! The runtime: what turns a store and registered code into an engine.
//!
//! One step's way through it: `start` decides a run's first turn and has it committed (`committer`)
//! → `eager` begins what the store granted, `worker` claims what waits → `execute` runs it → the
//! run's `mailbox` wakes its task (`actor`), which decides the next `turn` and has it committed
//! (`settle`). `load` rebuilds run and program from the history. `life` keeps the process alive in
//! the store's eyes, `sweeper` fires what is due and takes back what is lost.
//!
//! `coder` and `coded` stand between users' code and the payloads that the rest carries, `changes`
//! follows a run.
//!
//! Time, randomness and spawning come from an [`Environment`]; nothing here uses the async
//! runtime's clock. Whatever is held in memory (programs, claims in hand) may be lost at any
//! moment without harm.

mod actor;
mod base64;
mod cache;
mod changes;
mod client;
mod clock;
mod coded;
mod coder;
mod committer;
mod desk;
mod eager;
mod engine;
mod environment;
mod error;
mod execute;
mod hands;
mod host;
mod leader;
mod life;
mod load;
mod mailbox;
mod persist;
mod settings;
mod settle;
mod shared;
mod slots;
mod start;
mod sweeper;
mod token;
mod turn;
mod vital;
mod worker;

pub use changes::Changes;
pub use client::{Caller, Outcome, StartRequest, Started, is_request};
pub use coder::{CodecError, CodecHost, Coder};
pub use engine::Engine;
pub use environment::{Environment, RealEnvironment};
pub use error::RuntimeError;
pub use execute::panicked;
pub use host::{
    ActivityContext, ActivityHost, HostedProgram, InlineStep, Registry, StepOutcome, WorkflowHost,
    panic_text,
};
pub use settings::Settings;
pub use token::{CancelReason, CancelToken};
