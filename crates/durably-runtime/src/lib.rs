//! The runtime: what turns a store and registered code into an engine.
//!
//! One step's way through it: `client` starts a run → `worker` claims the turn → the run's
//! `mailbox` wakes its task (`actor`), which decides the `turn` and has it committed (`settle`,
//! `committer`) → `worker` claims the activity → `execute` runs it → the run's task decides the
//! next turn. `load` rebuilds run and program from the history. `life` keeps the process alive in
//! the store's eyes, `sweeper` fires what is due and takes back what is lost.
//!
//! Time, randomness and spawning come from an [`Environment`]; nothing here uses the async
//! runtime's clock. Whatever is held in memory (programs, claims in hand) may be lost at any
//! moment without harm.

mod actor;
mod cache;
mod client;
mod clock;
mod committer;
mod engine;
mod environment;
mod error;
mod execute;
mod hands;
mod host;
mod life;
mod load;
mod mailbox;
mod persist;
mod settings;
mod settle;
mod shared;
mod sweeper;
mod token;
mod turn;
mod worker;

pub use client::{Caller, Outcome, StartRequest, Started};
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
