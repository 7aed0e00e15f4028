//! Workflows as ordinary async functions.
//!
//! The function is polled by the runtime. Every operation of [`Ctx`] is known by an id; what it
//! asks for becomes an event, and it resolves when the event of its outcome is heard. After a
//! crash the function is polled again from its beginning, and hears the recorded events one at a
//! time: operations that were recorded resolve at once, with what was recorded.

mod call;
mod core;
mod ctx;
mod program;
mod signal;
mod sleep;
mod step;

pub use call::ActivityCall;
pub use ctx::Ctx;
pub use signal::{SignalOrTimeout, SignalWait};
pub use sleep::Sleep;
pub use step::Step;

pub(crate) use core::mixed;
pub(crate) use program::FunctionHost;
