//! Durable execution for Rust programs on the database they already have.
//!
//! A program that uses durably can be killed at any moment and goes on where it was: no step that
//! was recorded runs again, and nothing waits in memory that the database does not know.
//!
//! ```no_run
//! use durably::prelude::*;
//!
//! const HELLO: WorkflowRef<String, String> = WorkflowRef::new("hello");
//!
//! async fn hello(ctx: Ctx, name: String) -> Result<String> {
//!     let greeting = ctx.step("greet", async || Ok(format!("Hello, {name}!"))).await?;
//!     ctx.sleep(Duration::from_secs(5)).await?;
//!     Ok(greeting)
//! }
//!
//! # async fn example() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::builder().function(HELLO, hello).start("sqlite:hello.db").await?;
//! let greeting = engine.run(HELLO, &"world".into()).idempotency_key("first").await?;
//! # Ok(()) }
//! ```
//!
//! Three ideas carry the API: typed names ([`WorkflowRef`], [`ActivityRef`], [`SignalRef`]) that
//! both ends of a call share; two error types, [`Error`] for what your code returns and
//! [`Failure`] for what was recorded; and steps that are activities written in place.

mod activity;
mod builder;
mod canonical;
mod changes;
mod client;
mod codec;
mod error;
mod function;
mod handle;
mod machine;
mod names;
mod open;
mod options;

pub use activity::Activity;
pub use builder::{Engine, EngineBuilder};
pub use changes::{Change, Changes};
pub use client::{Client, RunCall, Start};
pub use codec::Codec;
pub use durably_kernel::{
    Attempt, Code, DeadLetterKind, Event, Failure, FailureKind, LastError, Retry, RunId, RunStatus,
    Seq, TaskKind, TaskState, TaskTrail, Timestamp, TrailEntry, TrailStep, Waits,
};
pub use durably_runtime::{ActivityContext, CancelReason, CancelToken};
pub use durably_store::{
    DeadLetterRow, EventRow, HistoryPage, Parked, RunQuery, RunView, TaskRow, WorkerRow,
    WorkerStatus,
};
pub use error::{ClientError, Error, Result, ResultExt, RunError};
pub use function::{ActivityCall, Ctx, SignalOrTimeout, SignalWait, Sleep, Step};
pub use handle::Handle;
pub use machine::{Action, Actions, ActivityAction, Output, Signal, TurnInfo, Workflow};
pub use names::{ActivityRef, Data, SignalRef, WorkflowRef};

/// Opens a store to look at it, for `durably doctor`.
#[doc(hidden)]
pub async fn open_to_look(
    url: &str,
) -> std::result::Result<durably_store::check::Patient, ClientError> {
    Ok(open::open_to_look(url).await?)
}

/// What most programs need.
pub mod prelude {
    pub use crate::{
        Action, Actions, Activity, ActivityContext, ActivityRef, Client, Codec, Ctx, Engine, Error,
        Failure, Handle, Output, Result, ResultExt, Retry, Signal, SignalRef, Workflow,
        WorkflowRef, actions,
    };
    pub use std::time::Duration;
}

/// The guide's code is compiled by the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide.md")]
struct Guide;
