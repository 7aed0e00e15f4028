//! Connections: how they are opened, and what is asserted about them before anything is promised.

use crate::error::{Context, Phase, Trouble};
use crate::migrate::{check_current, migrate};
use crate::wait::Waits;
use durably_kernel::Timestamp;
use durably_store::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// SQLite up to 3.51.2 can corrupt a database when it resets its log.
const VERSION_MIN: i32 = 3_051_003;
/// More than there are statements: each is prepared once per connection.
const STATEMENTS_MAX: usize = 128;

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// The one that writes.
    Writer,
    /// Reads for people.
    Reader,
}

/// Opens the database, makes it safe and brings its schema up to date.
pub(crate) fn open_writer(
    path: &Path,
    now: Timestamp,
    busy_max: Duration,
) -> Result<Connection, StoreError> {
    let store = path.display().to_string();
    let context = Context { store: &store, operation: "open", phase: Phase::Open };
    check_version(&store)?;
    let mut wait = Waits::new(busy_max);
    let conn = loop {
        // Some of what happens at the beginning answers busy without asking the busy handler.
        match prepare(path, now, busy_max, &store) {
            Err(trouble) if trouble.is_busy() && wait.pause() => {}
            Err(trouble) => return Err(trouble.into_error(context)),
            Ok(conn) => break conn,
        }
    };
    check_settings(&conn, &store).map_err(|trouble| trouble.into_error(context))?;
    Ok(conn)
}

/// Opens a second connection to a database that is open.
pub(crate) fn open_reader(path: &Path, busy_max: Duration) -> Result<Connection, StoreError> {
    let store = path.display().to_string();
    let context = Context { store: &store, operation: "open", phase: Phase::Open };
    connect(path, Role::Reader, busy_max).map_err(|trouble| trouble.into_error(context))
}

/// Opens a database that is there, to look at it; says what is wrong with it as a whole.
pub(crate) fn open_looker(
    path: &Path,
    busy_max: Duration,
) -> Result<(Connection, Vec<StoreError>), StoreError> {
    let store = path.display().to_string();
    let context = Context { store: &store, operation: "open", phase: Phase::Open };
    if !path.exists() {
        let problem = "there is no such file; check the name".to_owned();
        return Err(StoreError::Open { store, problem });
    }
    let look = || -> Result<(Connection, Vec<StoreError>), Trouble> {
        let conn = connect(path, Role::Reader, busy_max)?;
        check_current(&conn, &store)?;
        let mut wrong = damage(&conn)?;
        match check_settings(&conn, &store) {
            Ok(()) => {}
            Err(Trouble::Store(error)) => wrong.push(error),
            Err(trouble) => return Err(trouble),
        }
        Ok((conn, wrong))
    };
    look().map_err(|trouble| trouble.into_error(context))
}

/// What SQLite finds in its own file, the first of it.
fn damage(conn: &Connection) -> Result<Vec<StoreError>, Trouble> {
    const MOST: i64 = 20;
    let mut wrong = Vec::new();
    conn.pragma(None, "integrity_check", MOST, |row| {
        let problem: String = row.get(0)?;
        if problem != "ok" {
            wrong.push(StoreError::Corrupt { operation: "integrity check", problem });
        }
        Ok(())
    })?;
    Ok(wrong)
}

fn prepare(
    path: &Path,
    now: Timestamp,
    busy_max: Duration,
    store: &str,
) -> Result<Connection, Trouble> {
    let conn = connect(path, Role::Writer, busy_max)?;
    if conn.is_readonly("main")? {
        let problem = "it cannot be written; check the rights of the file".to_owned();
        return Err(Trouble::Store(StoreError::Open { store: store.to_owned(), problem }));
    }
    // Set once in the life of a database: whoever changes it needs it alone.
    let mode: String = conn.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if !mode.eq_ignore_ascii_case("wal") {
        conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    }
    conn.execute_batch("begin immediate")?;
    migrate(&conn, now)?;
    conn.execute_batch("commit")?;
    Ok(conn)
}

fn connect(path: &Path, role: Role, busy_max: Duration) -> Result<Connection, Trouble> {
    // No URI: the path is absolute and is taken as it is. No mutex: a connection stays in its
    // thread.
    let flags = match role {
        Role::Writer => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        Role::Reader => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let mut conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    let mut wait = Waits::new(busy_max);
    conn.busy_handler(Some(move |times: i32| {
        if times == 0 {
            wait.begin();
        }
        wait.pause()
    }))?;
    // Plans do not depend on what is bound: otherwise SQLite prepares statements anew for it.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "temp_store", "memory")?;
    // Kilobytes; the one that writes touches every run.
    let cache = if role == Role::Writer { -65_536 } else { -16_384 };
    conn.pragma_update(None, "cache_size", cache)?;
    conn.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
    // The thread that writes looks after the log itself, between commands.
    conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    if role == Role::Reader {
        conn.pragma_update(None, "query_only", true)?;
    }
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(conn)
}

fn check_version(store: &str) -> Result<(), StoreError> {
    match rusqlite::version_number() >= VERSION_MIN {
        true => Ok(()),
        false => Err(StoreError::Unsafe {
            store: store.to_owned(),
            setting: "the version of SQLite",
            wanted: "3.51.3 or newer",
            found: rusqlite::version().to_owned(),
        }),
    }
}

/// Whether the connection keeps what it acknowledges, read back from it.
fn check_settings(conn: &Connection, store: &str) -> Result<(), Trouble> {
    let mode: String = conn.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    require(store, "journal_mode", "wal", mode.to_ascii_lowercase())?;
    let level: i64 = conn.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    let level = match level {
        2 => "full".to_owned(),
        other => other.to_string(),
    };
    require(store, "synchronous", "full", level)
}

fn require(
    store: &str,
    setting: &'static str,
    wanted: &'static str,
    found: String,
) -> Result<(), Trouble> {
    match found == wanted {
        true => Ok(()),
        false => {
            let store = store.to_owned();
            Err(Trouble::Store(StoreError::Unsafe { store, setting, wanted, found }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_lose_commits_are_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.db");
        let conn = open_writer(&path, Timestamp(0), Duration::ZERO).expect("opens");
        check_settings(&conn, "a.db").expect("is safe");
        conn.pragma_update(None, "synchronous", "normal").expect("sets it");
        let Err(Trouble::Store(error)) = check_settings(&conn, "a.db") else {
            panic!("synchronous=normal was accepted");
        };
        assert!(error.to_string().contains("synchronous is 1, it must be full"), "{error}");
        conn.pragma_update(None, "synchronous", "full").expect("sets it");
        conn.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(())).expect("sets it");
        let Err(Trouble::Store(error)) = check_settings(&conn, "a.db") else {
            panic!("journal_mode=delete was accepted");
        };
        assert!(error.to_string().contains("journal_mode is delete"), "{error}");
    }
}
