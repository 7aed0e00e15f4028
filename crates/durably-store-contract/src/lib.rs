//! The suite that every store passes.
//!
//! A store joins with one line in its `tests/contract.rs`, after it has said how it is opened
//! ([`Fixture`]):
//!
//! ```text
//! durably_store_contract::suite!(MemoryFixture);
//! ```
//!
//! That makes a named test of every case, and of the random comparison with the memory store. Each
//! case begins with an empty store on a clock that only the case moves, so that they run in
//! parallel, in one process or in many. A file here is a topic, and a case says by its name what
//! holds.
//!
//! What the port leaves open is left open here as well: cases look at answers and at the reads for
//! people. The random comparison is stricter, and takes the memory store as it is.

mod fixture;
mod list;
mod sample;
mod snapshot;
mod world;

mod ask;
mod cancel;
mod claim;
mod commit;
mod concurrency;
mod dead_letter;
mod eager;
mod fence;
mod find;
mod hand_back;
mod heartbeat;
mod held;
mod inbox;
mod key;
mod lead;
mod lease;
mod load;
mod look_up;
mod park;
mod payload;
mod priority;
mod random;
mod start;
mod step;
mod tenant;
mod timeout;
mod timer;

pub use fixture::Fixture;
#[doc(hidden)]
pub use list::cases;
pub use snapshot::Snapshot;
