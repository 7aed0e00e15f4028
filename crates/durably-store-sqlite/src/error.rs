//! What SQLite says, and what that means for the caller. The only place that looks at SQLite's
//! result codes; texts are never looked at.

use durably_kernel::{EventFormatError, FactFormatError, RunId};
use durably_store::StoreError;
use rusqlite::ffi;

/// What stopped a command.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// SQLite, or the reading of one of its values.
    Sqlite(rusqlite::Error),
    /// A stored value that is none of ours.
    Damaged(String),
    /// Something that is an answer to the caller as it is.
    Store(StoreError),
}

/// What SQLite was doing when it failed.
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
    pub(crate) store: &'a str,
    pub(crate) operation: &'static str,
    pub(crate) phase: Phase,
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Trouble::Sqlite(error)
    }
}

impl From<FactFormatError> for Trouble {
    fn from(error: FactFormatError) -> Self {
        Trouble::Damaged(error.to_string())
    }
}

impl Trouble {
    /// The same with the table and the run in which a damaged value was found.
    pub(crate) fn within(self, table: &str, run: RunId) -> Trouble {
        match self {
            Trouble::Damaged(problem) => {
                Trouble::Damaged(format!("table {table}, run {run}: {problem}"))
            }
            Trouble::Sqlite(error) if is_unreadable(&error) => {
                Trouble::Damaged(format!("table {table}, run {run}: {error}"))
            }
            Trouble::Sqlite(_) | Trouble::Store(_) => self,
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

    /// Whether somebody else has the lock that was wanted.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Trouble::Sqlite(error) if is_busy(error))
    }

    /// What the caller hears.
    pub(crate) fn into_error(self, context: Context<'_>) -> StoreError {
        let operation = context.operation;
        match self {
            Trouble::Store(error) => error,
            Trouble::Damaged(problem) => StoreError::Corrupt { operation, problem },
            Trouble::Sqlite(error) => of_sqlite(&error, context),
        }
    }
}

/// Whether somebody else has the lock that was wanted.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    codes(error)
        .is_some_and(|(primary, _)| matches!(primary, ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED))
}

/// Whether a value was there but could not be read as what it must be.
fn is_unreadable(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::InvalidColumnType(..)
    )
}

/// Primary and extended result code.
fn codes(error: &rusqlite::Error) -> Option<(i32, i32)> {
    match error {
        rusqlite::Error::SqliteFailure(error, _) => Some(error.extended_code),
        rusqlite::Error::SqlInputError { error, .. } => Some(error.extended_code),
        // The enum may grow; what is not listed is no answer of SQLite.
        _ => None,
    }
    .map(|extended| (extended & 0xff, extended))
}

fn of_sqlite(error: &rusqlite::Error, context: Context<'_>) -> StoreError {
    let operation = context.operation;
    let problem = error.to_string();
    let Some((primary, extended)) = codes(error) else {
        return match is_unreadable(error) {
            true => StoreError::Corrupt { operation, problem },
            false => StoreError::Refused { operation, problem },
        };
    };
    let problem = format!("{problem} (SQLite result code {extended})");
    match primary {
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => unavailable(operation, problem),
        ffi::SQLITE_NOTADB => {
            let problem = format!("{} is no SQLite database: {problem}", context.store);
            StoreError::Corrupt { operation, problem }
        }
        ffi::SQLITE_CORRUPT => StoreError::Corrupt { operation, problem },
        ffi::SQLITE_FULL => StoreError::Full { operation, problem },
        ffi::SQLITE_READONLY => read_only(context, extended, problem),
        ffi::SQLITE_PERM | ffi::SQLITE_AUTH => open(context, problem),
        ffi::SQLITE_CANTOPEN => match context.phase {
            Phase::Open => open(context, problem),
            Phase::Statement | Phase::Commit => unavailable(operation, problem),
        },
        ffi::SQLITE_IOERR => io(context, extended, problem),
        ffi::SQLITE_NOMEM | ffi::SQLITE_INTERRUPT | ffi::SQLITE_PROTOCOL => {
            unavailable(operation, problem)
        }
        // Errors in statements, constraints, values that are too big: the same command will fail
        // again.
        _ => match context.phase {
            Phase::Open => open(context, problem),
            Phase::Statement | Phase::Commit => StoreError::Refused { operation, problem },
        },
    }
}

fn io(context: Context<'_>, extended: i32, problem: String) -> StoreError {
    let operation = context.operation;
    match (extended, context.phase) {
        // The file could not grow by the page that all processes share.
        (ffi::SQLITE_IOERR_SHMSIZE, Phase::Open | Phase::Statement) => {
            StoreError::Full { operation, problem }
        }
        (_, Phase::Open) => open(context, problem),
        (_, Phase::Statement) => unavailable(operation, problem),
        (_, Phase::Commit) => StoreError::Ambiguous { operation, problem },
    }
}

fn read_only(context: Context<'_>, extended: i32, problem: String) -> StoreError {
    let operation = context.operation;
    match extended {
        // Another file may be there by now; what this process has open is not the store any more.
        ffi::SQLITE_READONLY_DBMOVED => StoreError::Refused {
            operation,
            problem: format!(
                "{} was moved or removed while it was open; restart the program: {problem}",
                context.store
            ),
        },
        // Another process recovers the log, or the last one has just closed it.
        ffi::SQLITE_READONLY_RECOVERY => unavailable(operation, problem),
        _ => open(
            context,
            format!("it cannot be written; check the rights of file and folder: {problem}"),
        ),
    }
}

fn open(context: Context<'_>, problem: String) -> StoreError {
    StoreError::Open { store: context.store.to_owned(), problem }
}

fn unavailable(operation: &'static str, problem: String) -> StoreError {
    StoreError::Unavailable { operation, problem, retry_after: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durably_store::Class;

    fn error(extended_code: i32, phase: Phase) -> StoreError {
        let failure = ffi::Error::new(extended_code);
        let trouble = Trouble::Sqlite(rusqlite::Error::SqliteFailure(failure, None));
        trouble.into_error(Context { store: "a.db", operation: "commit", phase })
    }

    #[test]
    fn codes_decide_what_an_error_means() {
        let transient = Class::Transient { retry_after: None };
        for (code, phase, class) in [
            (ffi::SQLITE_BUSY, Phase::Statement, transient),
            (ffi::SQLITE_BUSY_SNAPSHOT, Phase::Statement, transient),
            (ffi::SQLITE_LOCKED_SHAREDCACHE, Phase::Statement, transient),
            (ffi::SQLITE_IOERR_READ, Phase::Statement, transient),
            (ffi::SQLITE_IOERR_FSYNC, Phase::Commit, Class::Ambiguous),
            (ffi::SQLITE_IOERR_WRITE, Phase::Commit, Class::Ambiguous),
            (ffi::SQLITE_BUSY, Phase::Commit, transient),
            (ffi::SQLITE_CORRUPT, Phase::Commit, Class::Corrupt),
            (ffi::SQLITE_NOTADB, Phase::Open, Class::Corrupt),
            (ffi::SQLITE_READONLY, Phase::Statement, Class::Permanent),
            (ffi::SQLITE_READONLY_DBMOVED, Phase::Statement, Class::Permanent),
            (ffi::SQLITE_CANTOPEN, Phase::Open, Class::Permanent),
            (ffi::SQLITE_CANTOPEN, Phase::Statement, transient),
            (ffi::SQLITE_CONSTRAINT_CHECK, Phase::Statement, Class::Permanent),
            (ffi::SQLITE_TOOBIG, Phase::Statement, Class::Permanent),
        ] {
            let error = error(code, phase);
            assert_eq!(error.class(), class, "{code} in {phase:?}: {error}");
        }
    }

    #[test]
    fn a_full_disk_is_full_in_every_phase() {
        for phase in [Phase::Open, Phase::Statement, Phase::Commit] {
            let error = error(ffi::SQLITE_FULL, phase);
            assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
        }
    }

    #[test]
    fn damage_names_table_and_run() {
        let run = RunId::from_parts(1, [0; 10]);
        let trouble = Trouble::Damaged("status is \"odd\"".into()).within("durable_runs", run);
        let context = Context { store: "a.db", operation: "load", phase: Phase::Statement };
        let text = trouble.into_error(context).to_string();
        assert!(text.contains("durable_runs") && text.contains(&run.to_string()), "{text}");
    }
}
