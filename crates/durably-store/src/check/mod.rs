//! What must hold of every run, whatever happened: the invariants, under their numbers. The contract
//! suite and the simulator ask them of every store after each command, and `doctor` of a store in
//! use.
//!
//! - [`stored`]: the rows make sense by themselves. Holds whoever committed.
//! - [`told`]: the rows are those that the events tell of. Holds of runs that the kernel decided.
//! - [`Doctor`]: walks a whole store, run by run, and says what does not hold.
//!
//! Checks are pure: they get what was read of a run ([`RunShot`]) and add what they find.

mod doctor;
mod finding;
mod history;
mod rows;
mod shot;
mod work;

pub use doctor::{Doctor, Seen};
pub use finding::{Finding, Weight};
pub use shot::{RunShot, UNREAD_MAX};

use crate::error::StoreError;
use crate::port::Store;
use durably_kernel::{Run, Timestamp};
use std::fmt;
use std::sync::Arc;

/// A store that was opened to be looked at: nothing of it was made, migrated or changed, and
/// settings that the engine refuses are only told.
pub struct Patient {
    /// The store.
    pub store: Arc<dyn Store>,
    /// What is wrong with it as a whole: its settings, its file.
    pub wrong: Vec<StoreError>,
}

/// Times that go back: of a run whose rows were changed, or of a clock that was set back.
pub(crate) const TIMES: &str = "times";

/// An invariant that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Its number.
    pub invariant: &'static str,
    /// What is the matter.
    pub problem: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.problem)
    }
}

/// What does not hold.
pub type Found = Vec<Broken>;

/// Adds to what was found, unless it holds.
fn hold<T: Into<String>>(
    found: &mut Found,
    holds: bool,
    invariant: &'static str,
    problem: impl FnOnce() -> T,
) {
    if !holds {
        found.push(Broken { invariant, problem: problem().into() });
    }
}

/// The rows make sense by themselves.
pub fn stored(shot: &RunShot, found: &mut Found) {
    history::numbered(shot, found);
    rows::sound(shot, found);
    rows::inbox(shot, found);
    history::signals(shot, found);
}

/// The rows are those that the events tell of; `run` is the fold of them.
pub fn told(shot: &RunShot, run: &Run, now: Timestamp, found: &mut Found) {
    history::ended(shot, found);
    history::timers(shot, now, found);
    history::outcomes(shot, found);
    work::folded(shot, run, found);
}

/// The same, where the fold is not known yet.
pub fn told_of(shot: &RunShot, now: Timestamp, found: &mut Found) {
    match shot.fold() {
        Ok(run) => told(shot, &run, now, found),
        Err(broken) => {
            let broken =
                Broken { invariant: "I4", problem: format!("the history does not fold: {broken}") };
            found.push(broken);
            history::ended(shot, found);
            history::outcomes(shot, found);
        }
    }
}
