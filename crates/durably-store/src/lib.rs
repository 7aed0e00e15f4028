//! The store port: what the runtime asks of a database, in coarse commands and in terms of the
//! domain, and the memory adapter, which is plain and is the model that others are compared with.
//!
//! Committed, conflict, fenced and held are answers, not errors. Errors ([`StoreError`]) have a
//! class: callers branch on that and never on a variant.
//!
//! Do not implement [`Store`] outside this workspace yet: the trait grows with the engine.

mod answer;
pub mod check;
mod clock;
mod command;
mod eager;
mod error;
mod find;
mod hint;
pub mod memory;
mod port;
pub mod rows;

pub use answer::{
    AskAnswer, BeatAnswer, Claimed, ClaimedActivity, ClaimedTask, ClaimedWork, CommitAnswer,
    Committed, Delivered, InboxEntry, Led, Loaded, Parked, RunView, Swept,
};
pub use clock::{Clock, ManualClock};
pub use command::{
    Base, Beat, CallId, ClaimCall, Claimable, Delivery, HandBack, Heartbeat, Held, KeyCheck,
    LeadCall, LoadCall, NewRun, Registration, Returned, RunCommit, SweepCall, Term, TurnAfter,
    Want, kept_deadline,
};
pub use eager::{Committer, Foremost};
pub use error::{Class, StoreError};
pub use find::{
    DeadLetterRow, EventRow, Examined, HistoryPage, LeaderRow, RunQuery, TaskRow, WorkerRow,
    WorkerStatus,
};
pub use hint::{Gathered, Heard, Hint, Hints, Listener, Watch};
pub use port::{Answer, Store};
