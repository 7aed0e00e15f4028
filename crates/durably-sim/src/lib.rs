//! The simulator: attacks the shipped engine until something breaks, and says how to repeat it.
//!
//! One thread, virtual time, and a seed that decides everything: who is polled next, what goes
//! wrong with the store, when processes crash, stand still or are stopped, what the workflows do.
//! Several engines, with the shipped worker, committer, sweeper, mailboxes and cache, work on one
//! memory store, each at the end of a bad line of its own. After every command that changed
//! something the invariants of the store are checked; at the end the ledger of what activities
//! really did is held against the histories, and the histories against what the plans of the
//! workflows come to. Then everything heals, and all runs must end in bounded time.
//!
//! A [`Scenario`] is data that comes from its seed; [`simulate`] plays it, [`shrink`] makes one
//! that fails smaller, [`campaign`] plays many.
//!
//! Deliberately absent: other stores (the contract suite compares them with the memory store), and
//! real processes (the tests of `durably` kill those).

mod campaign;
mod dice;
mod environment;
mod executor;
mod ledger;
mod model;
mod operator;
mod outside;
mod plan;
mod program;
mod scenario;
mod shrink;
mod store;
mod tally;
mod trace;
mod verdict;
mod watch;
mod world;

pub use campaign::{Campaign, campaign, corpus, quiet_planned_panics};
pub use executor::Order;
pub use outside::Strike;
pub use plan::{Plan, Shot, Stage, Style, Work};
pub use program::Hosts;
pub use scenario::{Deed, EngineSpec, Known, RunSpec, Scenario};
pub use shrink::{Shrunk, shrink, shrink_by};
pub use store::{Blow, Faults, Kind, Outage, Rates};
pub use tally::{SEEDS_FOR_ALL, Tally};
pub use trace::Keep;
pub use world::{MENDED_WITHIN, Report, simulate};
