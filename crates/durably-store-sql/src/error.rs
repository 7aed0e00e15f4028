//! What a server says, and what that means for the caller. Each dialect translates its codes into a
//! [`Kind`]; texts are never looked at.

use durably_kernel::{EventFormatError, FactFormatError, RunId};
use durably_store::StoreError;

/// What kind of trouble a server or its connection makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Deadlock or serialization failure: the transaction was taken back and may be repeated.
    Repeat,
    /// Others have what was wanted, for too long: a lock, or all connections.
    Busy,
    /// The server is out of reach, starting, stopping, or only to be read.
    Away,
    /// The server accepts no further connection; those that there are go on.
    Crowded,
    /// The connection ended while an answer was awaited.
    Cut,
    /// No room left.
    Full,
    /// The server cannot be used as it is: no such database, no rights, too old.
    Unfit,
    /// A value is there that cannot be read as what it must be.
    Unreadable,
    /// Anything else: the same command will fail again.
    Refused,
}

/// What stopped a command.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The server, its connection, or the reading of one of its values.
    Server {
        kind: Kind,
        /// What it said, with its code.
        problem: String,
    },
    /// A stored value that is none of ours.
    Damaged(String),
    /// Something that is an answer to the caller as it is.
    Store(StoreError),
}

/// What was under way when trouble came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// The store is being opened.
    Open,
    /// Anything that is undone by a failure.
    Statement,
    /// The end of a transaction: it may have been reached or not.
    Commit,
}

/// Who asked for what: an error names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// The store, without secrets.
    pub(crate) store: &'a str,
    pub(crate) operation: &'static str,
    pub(crate) phase: Phase,
}

impl From<FactFormatError> for Trouble {
    fn from(error: FactFormatError) -> Self {
        Trouble::Damaged(error.to_string())
    }
}

impl Trouble {
    pub(crate) fn server(kind: Kind, problem: impl Into<String>) -> Trouble {
        Trouble::Server { kind, problem: problem.into() }
    }

    /// The same with the table and the run in which a damaged value was found.
    pub(crate) fn within(self, table: &str, run: RunId) -> Trouble {
        match self {
            Trouble::Damaged(problem) | Trouble::Server { kind: Kind::Unreadable, problem } => {
                Trouble::Damaged(format!("table {table}, run {run}: {problem}"))
            }
            Trouble::Server { .. } | Trouble::Store(_) => self,
        }
    }

    /// The trouble with events that cannot be read.
    pub(crate) fn of_events(error: EventFormatError, run: RunId) -> Trouble {
        match error {
            EventFormatError::Newer { name, needed } => {
                Trouble::Store(StoreError::EventNewer { name, needed })
            }
            EventFormatError::Unreadable { source } => {
                Trouble::Damaged(source.to_string()).within("durable_history", run)
            }
        }
    }

    /// Whether the transaction may be repeated as it is: nothing of it was done.
    pub(crate) fn repeats(&self) -> bool {
        matches!(self, Trouble::Server { kind: Kind::Repeat, .. })
    }

    /// What the caller hears.
    pub(crate) fn into_error(self, context: Context<'_>) -> StoreError {
        let operation = context.operation;
        let (kind, problem) = match self {
            Trouble::Store(error) => return error,
            Trouble::Damaged(problem) => return StoreError::Corrupt { operation, problem },
            Trouble::Server { kind, problem } => (kind, problem),
        };
        let unavailable =
            |problem| StoreError::Unavailable { operation, problem, retry_after: None };
        match (kind, context.phase) {
            (Kind::Repeat | Kind::Busy | Kind::Away | Kind::Crowded, _) => unavailable(problem),
            (Kind::Cut, Phase::Commit) => StoreError::Ambiguous { operation, problem },
            (Kind::Cut, Phase::Open | Phase::Statement) => unavailable(problem),
            (Kind::Full, _) => StoreError::Full { operation, problem },
            (Kind::Unreadable, _) => StoreError::Corrupt { operation, problem },
            (Kind::Unfit, _) | (Kind::Refused, Phase::Open) => {
                StoreError::Open { store: context.store.to_owned(), problem }
            }
            (Kind::Refused, Phase::Statement | Phase::Commit) => {
                StoreError::Refused { operation, problem }
            }
        }
    }
}
