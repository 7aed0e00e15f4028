//! Real database servers for tests and benchmarks.
//!
//! - [`postgres`] and [`mysql`] give the URL of a server that all tests share, and [`Database`] a
//!   schema or database in it that one test has for itself.
//! - [`Server`] is a server of one's own, to be stopped, killed and started again; one of PostgreSQL
//!   may be the standby of another.
//! - [`Galera`] is a cluster of MariaDB nodes.
//! - [`Pooler`] is PgBouncer in transaction mode, in front of a server.
//! - [`Proxy`] stands between a client and a server and breaks their connections.
//!
//! Servers are private and thrown away: they run in temporary folders, on free ports of the
//! loopback, not as root, with durability on. Each is watched by a small shell script
//! (`supervise.sh`) that stops it and removes its folder when nobody uses it any more, also if its
//! users were killed. Calls that concern servers block; they
//! need no async runtime, and may be made within one.
//!
//! Deliberately absent: skipping. Where a server cannot be had there is an error that says what to
//! install, and the test fails.
#![allow(clippy::disallowed_methods, reason = "nothing here runs in a simulation")]

mod database;
mod error;
mod galera;
mod pooler;
mod programs;
mod proxy;
mod server;
mod shared;
mod supervisor;

pub use database::{Database, ask, execute};
pub use error::TestbedError;
pub use galera::Galera;
pub use pooler::Pooler;
pub use proxy::{Direction, Proxy, Sprung};
pub use server::{Server, ServerOptions};
pub use shared::{mysql, postgres, stop_unused};

/// The two families of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PostgreSQL.
    Postgres,
    /// MariaDB or MySQL. A private server is MariaDB.
    Mysql,
}

impl Kind {
    /// What people call it.
    fn name(self) -> &'static str {
        match self {
            Kind::Postgres => "PostgreSQL",
            Kind::Mysql => "MariaDB",
        }
    }

    /// What URLs, folders and the supervisor call it.
    fn scheme(self) -> &'static str {
        match self {
            Kind::Postgres => "postgres",
            Kind::Mysql => "mysql",
        }
    }
}
