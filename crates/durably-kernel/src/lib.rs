//! The pure heart of durably: what a run is, what may happen to it, and what follows.
//!
//! Nothing here knows a clock, randomness, I/O or async. Time and random numbers come in as
//! values ([`Moment`]) and are recorded with the events they caused. A run is the fold of its
//! events ([`Run`]); a turn offers facts to it and to the workflow's program, and yields one
//! [`Decision`]: the events to append and the tasks to insert, change or delete.
//!
//! Deliberately absent: storage, claims' life, retries of store calls, threads. The store port
//! lives in `durably-store`, the machinery in `durably-runtime`.

mod action;
mod admit;
mod code;
mod decide;
mod effect;
mod event;
mod fact;
mod failure;
mod id;
mod invariant;
mod options;
mod payload;
mod program;
mod replay;
mod retry;
mod run;
mod status;
mod task;
mod time;
mod trail;
mod turn;
mod validate;

pub use action::Action;
pub use admit::timeout_failure;
pub use code::Code;
pub use event::{Attempt, Event, EventFormatError, FORMAT, Reach, Signal, TimeoutKind};
pub use fact::{Fact, FactFormatError, Loss, LossCause};
pub use failure::{Failure, FailureKind};
pub use id::{
    ActivityId, ActivityType, Claim, ClaimNumber, CommitId, Place, Queue, RunId, Seq, Tenant,
    TimerId, WorkerId, WorkflowType,
};
pub use invariant::Broken;
pub use options::ActivityOptions;
pub use payload::{Payload, PayloadError};
pub use program::{Fault, Heard, Program, Waits};
pub use replay::{Divergence, ReplayError, replay};
pub use retry::{NotAgain, Retry, RetryError, Tried, Verdict};
pub use run::{Activity, LastError, Phase, Run, RunIdentity, Timer, effective};
pub use status::{IllegalMove, RunStatus, TaskMove, TaskState};
pub use task::{DeadLetter, DeadLetterKind, Summary, TaskChange, TaskKind, TaskPut};
pub use time::{Timestamp, millis, option_millis, to_millis};
pub use trail::{LiveTask, TaskTrail, TrailEntry, TrailStep, trail};
pub use turn::{Decision, Moment, Offered, Start, Turn, TurnError, terminate};
pub use validate::{Invalid, check_delay, check_name, check_payload, limit};
