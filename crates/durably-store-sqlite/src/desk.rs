//! Threads that own connections. Commands come over a channel and are answered over another; a
//! caller that goes away does not interrupt a transaction.
//!
//! One thread writes: each command is one transaction that has the write lock from its beginning.
//! Another reads for people. Both end, and close their connections, when the store is dropped.

use crate::error::{Context, Phase, Trouble};
use crate::lock::Locks;
use crate::tx::Tx;
use crate::wait::sleep;
use durably_store::{Answer, Clock, Gathered, Hints, StoreError};
use rusqlite::Connection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Commands that wait for a thread; more of them wait in their callers.
const QUEUED_MAX: usize = 1024;

/// So many pages wait in the log while nothing else does: 16 MB.
const LOG_IDLE_MAX: i64 = 4_000;
/// And so many while commands wait: 64 MB.
const LOG_BUSY_MAX: i64 = 16_000;

type Work<D> = Box<dyn FnOnce(&mut D) + Send>;

/// A thread and the way to it.
#[derive(Debug)]
pub(crate) struct Thread<D> {
    queue: Option<mpsc::Sender<Work<D>>>,
    handle: Option<JoinHandle<()>>,
}

impl<D: Desk + Send + 'static> Thread<D> {
    pub(crate) fn start(name: &str, mut desk: D) -> std::io::Result<Thread<D>> {
        let (queue, mut commands) = mpsc::channel::<Work<D>>(QUEUED_MAX);
        let handle = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Some(work) = commands.blocking_recv() {
                work(&mut desk);
                desk.between(!commands.is_empty());
            }
        })?;
        Ok(Thread { queue: Some(queue), handle: Some(handle) })
    }

    /// Has a piece of work done; dropped before it is sent, nothing happens, dropped afterwards,
    /// all of it.
    pub(crate) fn send<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut D) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'_, T> {
        Box::pin(async move {
            let ended = || StoreError::Refused {
                operation,
                problem: "the thread of the store has ended".to_owned(),
            };
            let (reply, answer) = oneshot::channel();
            let work: Work<D> = Box::new(move |desk| {
                // Nobody waits any more: the work is done all the same.
                let _ = reply.send(work(desk));
            });
            let queue = self.queue.as_ref().ok_or_else(ended)?;
            queue.send(work).await.map_err(|_| ended())?;
            answer.await.map_err(|_| ended())?
        })
    }
}

impl<D> Drop for Thread<D> {
    fn drop(&mut self) {
        // Without a sender the thread does what is queued and ends. A panic of it was answered.
        self.queue = None;
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

/// What a thread works at.
pub(crate) trait Desk {
    /// Called after a command was answered; `busy` if another one waits.
    fn between(&mut self, _busy: bool) {}
}

/// The desk of the thread that writes.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) conn: Connection,
    pub(crate) locks: Locks,
    pub(crate) clock: Clock,
    pub(crate) hints: Hints,
    pub(crate) store: String,
    /// Whether processes are registered that are not in this store.
    pub(crate) others: bool,
    /// Whether the log may have grown since it was looked at.
    pub(crate) wrote: bool,
}

impl Desk for Writer {
    fn between(&mut self, busy: bool) {
        if self.wrote {
            self.wrote = busy;
            self.shorten_log(if busy { LOG_BUSY_MAX } else { LOG_IDLE_MAX });
        }
        // SQLite has no queue of those who want to write: without a pause a busy process would
        // keep all others out.
        if busy && self.others {
            sleep(Duration::from_millis(1));
        }
    }
}

impl Writer {
    /// Moves the log into the database once so many pages wait in it: after an answer instead of
    /// within a commit, as SQLite would by itself. A failure is met again by the next command.
    fn shorten_log(&mut self, most: i64) {
        if self.log_pages("noop").is_ok_and(|pages| pages > most) {
            let _ = self.log_pages("passive");
        }
    }

    /// How many pages of the log are not in the database yet, after a checkpoint of that kind.
    fn log_pages(&self, kind: &str) -> rusqlite::Result<i64> {
        self.conn.query_row(&["pragma wal_checkpoint(", kind, ")"].concat(), [], |row| {
            Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?)
        })
    }

    /// A command that changes something: one transaction. Hints go out after it.
    pub(crate) fn transact<T>(
        &mut self,
        operation: &'static str,
        act: impl FnOnce(&mut Tx<'_>) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        self.wrote = true;
        let done = self.attempt(operation, "begin immediate", act)?;
        if let Err(error) = self.conn.execute_batch("commit") {
            roll_back(&self.conn);
            let trouble = Trouble::Sqlite(error);
            return Err(trouble.into_error(self.context(operation, Phase::Commit)));
        }
        let (value, hints) = done;
        self.hints.give_all(&hints);
        Ok(value)
    }

    /// A command that only reads; sees all that was written before, and keeps nobody out.
    pub(crate) fn look<T>(
        &mut self,
        operation: &'static str,
        act: impl FnOnce(&mut Tx<'_>) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        let done = self.attempt(operation, "begin", act);
        roll_back(&self.conn);
        done.map(|(value, _)| value)
    }

    fn attempt<T>(
        &mut self,
        operation: &'static str,
        begin: &str,
        act: impl FnOnce(&mut Tx<'_>) -> Result<T, Trouble>,
    ) -> Result<(T, Gathered), StoreError> {
        let context = self.context(operation, Phase::Statement);
        // A rollback that failed before is tried again.
        roll_back(&self.conn);
        let begun = self.conn.execute_batch(begin);
        begun.map_err(|error| Trouble::Sqlite(error).into_error(context))?;
        let now = self.clock.host_now();
        let done = guard(operation, || {
            let mut tx = Tx::new(&self.conn, &self.locks, now)?;
            let value = act(&mut tx)?;
            Ok((value, tx.finish()?))
        });
        done.map_err(|trouble| {
            roll_back(&self.conn);
            trouble.into_error(context)
        })
    }

    fn context(&self, operation: &'static str, phase: Phase) -> Context<'_> {
        Context { store: &self.store, operation, phase }
    }
}

/// The desk of the thread that reads for people.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) conn: Connection,
    pub(crate) store: String,
}

impl Desk for Reader {}

impl Reader {
    /// A read in one snapshot.
    pub(crate) fn look<T>(
        &mut self,
        operation: &'static str,
        act: impl FnOnce(&Connection) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        let context = Context { store: &self.store, operation, phase: Phase::Statement };
        let done = guard(operation, || {
            self.conn.execute_batch("begin")?;
            act(&self.conn)
        });
        roll_back(&self.conn);
        done.map_err(|trouble| trouble.into_error(context))
    }
}

/// A defect of ours ends the command, not the thread that all others need.
fn guard<T>(
    operation: &'static str,
    act: impl FnOnce() -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        let problem = "the SQLite adapter panicked; please report it".to_owned();
        Err(Trouble::Store(StoreError::Refused { operation, problem }))
    })
}

/// Ends the transaction if there is one. A failure is met again by the next command.
fn roll_back(conn: &Connection) {
    if !conn.is_autocommit() {
        let _ = conn.execute_batch("rollback");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::open_writer;
    use durably_kernel::Timestamp;

    fn writer() -> (tempfile::TempDir, Writer) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.db");
        let conn = open_writer(&path, Timestamp(0), Duration::ZERO).expect("opens");
        let writer = Writer {
            conn,
            locks: Locks::beside(&path),
            clock: Clock::default(),
            hints: Hints::default(),
            store: "a.db".to_owned(),
            others: false,
            wrote: false,
        };
        (folder, writer)
    }

    fn entries(writer: &mut Writer) -> i64 {
        let count = "select count(*) from durable_inbox";
        writer
            .look("test", |tx| Ok(tx.conn.query_row(count, [], |row| row.get(0))?))
            .expect("reads")
    }

    fn insert(tx: &mut Tx<'_>, len: usize) -> Result<(), Trouble> {
        let insert = "insert into durable_inbox values (x'00', 1, 'a', 'Signal', 0, ?1)";
        tx.conn.execute(insert, ["x".repeat(len)])?;
        Ok(())
    }

    #[test]
    fn a_full_database_is_full_until_it_has_room() {
        let (_folder, mut writer) = writer();
        let pages: i64 =
            writer.conn.pragma_query_value(None, "page_count", |row| row.get(0)).expect("counts");
        let bound = |writer: &Writer, most: i64| {
            writer
                .conn
                .pragma_update_and_check(None, "max_page_count", most, |_| Ok(()))
                .expect("sets it");
        };
        bound(&writer, pages + 2);
        for _ in 0..3 {
            let error = writer.transact("test", |tx| insert(tx, 1_000_000)).expect_err("is full");
            assert!(matches!(error, StoreError::Full { operation: "test", .. }), "{error:?}");
            assert_eq!(entries(&mut writer), 0);
        }
        bound(&writer, pages + 1000);
        writer.transact("test", |tx| insert(tx, 1_000_000)).expect("has room");
        assert_eq!(entries(&mut writer), 1);
    }

    #[test]
    fn a_command_that_fails_or_panics_leaves_nothing_behind() {
        let (_folder, mut writer) = writer();
        let failed: Result<(), _> = writer.transact("test", |tx| {
            insert(tx, 1)?;
            Err(Trouble::Damaged("odd".to_owned()))
        });
        assert!(matches!(failed, Err(StoreError::Corrupt { .. })), "{failed:?}");
        let panicked: Result<(), _> = writer.transact("test", |tx| {
            insert(tx, 1)?;
            panic!("a defect");
        });
        assert!(matches!(panicked, Err(StoreError::Refused { .. })), "{panicked:?}");
        assert_eq!(entries(&mut writer), 0);
        writer.transact("test", |tx| insert(tx, 1)).expect("goes on");
        assert_eq!(entries(&mut writer), 1);
    }

    #[test]
    fn the_log_is_shortened_between_commands() {
        let (_folder, mut writer) = writer();
        let pages = |writer: &Writer| writer.log_pages("noop").expect("counts");
        let grow = |writer: &mut Writer, pages: i64| {
            let clear = "delete from durable_inbox";
            writer.transact("test", |tx| Ok(tx.conn.execute_batch(clear)?)).expect("clears");
            let len = usize::try_from(pages * 4_000).expect("a length");
            writer.transact("test", |tx| insert(tx, len)).expect("writes");
        };
        grow(&mut writer, 1_500);
        writer.between(false);
        assert!(pages(&writer) > 1_000, "SQLite itself leaves it alone");
        grow(&mut writer, 3_500);
        writer.between(true);
        assert!(pages(&writer) > LOG_IDLE_MAX, "other commands come first");
        writer.look("test", |_| Ok(())).expect("looks");
        writer.between(false);
        assert_eq!(pages(&writer), 0);
        grow(&mut writer, 17_000);
        writer.between(true);
        assert_eq!(pages(&writer), 0);
    }

    #[test]
    fn a_look_changes_nothing() {
        let (_folder, mut writer) = writer();
        writer.look("test", |tx| insert(tx, 1)).expect("is allowed to try");
        assert_eq!(entries(&mut writer), 0);
    }
}
