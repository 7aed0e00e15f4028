//! What can go wrong with a server for tests.

use std::fmt::{self, Debug, Formatter};
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no server, or no database in it.
///
/// `Debug` is the sentence for people, with its sources: this is what a failed `expect` of a test
/// shows.
#[derive(Error)]
pub enum TestbedError {
    /// A program is not installed.
    #[error(
        "{server} is not installed: no {program} in {searched}; run ./scripts/test, which installs \
         it, or install the package {package} yourself, or set {variable} to the URL of a server \
         on which tests may make databases"
    )]
    Missing {
        /// The server that needs it.
        server: &'static str,
        /// What was looked for.
        program: &'static str,
        /// Where.
        searched: String,
        /// The package that has it.
        package: &'static str,
        /// The variable that names a server to use instead.
        variable: &'static str,
    },
    /// PgBouncer is not installed.
    #[error(
        "PgBouncer is not installed: run ./scripts/test, which installs it, or install the package \
         pgbouncer yourself"
    )]
    NoPooler,
    /// Galera is not installed.
    #[error(
        "{program} is not installed: run ./scripts/cluster-test galera, which installs it, or install \
         the packages galera-4 and rsync yourself"
    )]
    NoGalera {
        /// What was looked for.
        program: &'static str,
    },
    /// A node of a cluster does not take part in it.
    #[error(
        "node {node} is not a synced part of its cluster after {seconds} s: {state}; the end of its \
         log:\n{log}"
    )]
    NotSynced {
        /// Its name.
        node: String,
        /// How long it was waited for.
        seconds: u64,
        /// What it says.
        state: String,
        /// What it wrote last.
        log: String,
    },
    /// Servers refuse to run as root, and there is nobody else to run as.
    #[error(
        "{server} refuses to run as root, and there is no user {user} to run it as: install the \
         package {package}, which makes one, or test as another user"
    )]
    NoUser {
        /// The server.
        server: &'static str,
        /// The user that its package makes.
        user: &'static str,
        /// That package.
        package: &'static str,
    },
    /// A folder for a server belongs to somebody else.
    #[error("{} belongs to another user: remove it, or set TMPDIR to a folder of your own", .0.display())]
    ForeignFolder(PathBuf),
    /// The operating system refused.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was tried.
        doing: String,
        /// What it said.
        source: std::io::Error,
    },
    /// The server did not start.
    #[error("{server} did not start; the end of its log:\n{log}")]
    NotStarted {
        /// The server.
        server: &'static str,
        /// What it wrote last.
        log: String,
    },
    /// The script that watches the server is gone, and the server with it.
    #[error("the supervisor of {server} is gone: somebody killed it, and it took the server along")]
    SupervisorGone {
        /// The server.
        server: &'static str,
    },
    /// Text that is no URL of a server.
    #[error("'{url}' is not the URL of a server: {problem}")]
    BadUrl {
        /// What was given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// PostgreSQL refused something.
    #[error("cannot {doing}: {source}")]
    Postgres {
        /// What was tried.
        doing: String,
        /// What it said.
        source: tokio_postgres::Error,
    },
    /// MySQL or MariaDB refused something.
    #[error("cannot {doing}: {source}")]
    Mysql {
        /// What was tried.
        doing: String,
        /// What it said.
        source: mysql_async::Error,
    },
}

impl TestbedError {
    /// Turns an error of the operating system into one that says what was tried.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> TestbedError {
        move |source| TestbedError::Io { doing: doing.into(), source }
    }
}

impl Debug for TestbedError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut cause = std::error::Error::source(self).and_then(std::error::Error::source);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
