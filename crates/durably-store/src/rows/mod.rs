//! The rows, and what every command does to them: the rules of a store, said once. They know no
//! clock, no lock and no I/O.
//!
//! The memory store has all rows in one [`State`]. A store on a database server puts those rows into
//! one that a command may touch, locked, and writes what has changed: a row is marked
//! ([`Mark`]) as it changes.

mod claim;
mod commit;
mod deliver;
mod eager;
mod index;
mod lead;
mod life;
mod read;
mod row;
mod runs;
mod state;
mod sweep;

pub use index::{At, Rows};
pub use row::{Mark, Owner, Row};
pub use runs::Runs;
pub use state::{Entry, HistoryRow, RunRecord, State, WorkerRecord};

/// So many unread inbox entries are handed out at a time.
pub const UNREAD_MAX: usize = 100;
