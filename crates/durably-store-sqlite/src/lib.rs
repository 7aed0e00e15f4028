//! The store in an SQLite file: nothing to install, durable (log mode WAL, synchronous FULL), and
//! usable by several processes of one host at the same time.
//!
//! - One thread writes and one reads for people; each owns its connection (`desk`). Every command
//!   that changes something is one transaction, which has the write lock from its beginning.
//! - What a command does is what the memory store does; the files are named alike.
//! - SQL stands in files under `sql/`, the schema under `migrations/`.
//! - A process's lock file proves its death at once (`lock`, decision 5).
//!
//! Deliberately absent: a pool, since SQLite has one writer; a way to the database file that is not
//! SQLite's, since closing the file anywhere else drops SQLite's locks.

mod claim;
mod commit;
mod deliver;
mod desk;
mod eager;
mod error;
mod examine;
mod field;
mod find;
mod lead;
mod life;
mod load;
mod lock;
mod migrate;
mod open;
mod run;
mod sql;
mod step;
mod sweep;
mod task;
mod tx;
mod url;
mod wait;

use desk::{Reader, Thread, Writer};
use durably_kernel::{CommitId, Event, RunId, Seq, Timestamp, WorkerId};
use durably_store::check::Patient;
use durably_store::{
    Answer, AskAnswer, Beat, BeatAnswer, ClaimCall, Claimed, Clock, CommitAnswer, DeadLetterRow,
    Delivered, Delivery, Examined, HandBack, Hints, HistoryPage, InboxEntry, LeadCall, LeaderRow,
    Led, LoadCall, Loaded, Registration, RunCommit, RunQuery, RunView, Store, StoreError,
    SweepCall, Swept, TaskRow, WorkerRow,
};
use error::Trouble;
use lock::Locks;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tx::Tx;

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the time comes from.
    pub clock: Clock,
    /// How long a command waits for other processes that have the database; afterwards the store
    /// is not available.
    pub busy_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options { clock: Clock::default(), busy_max: Duration::from_secs(10) }
    }
}

/// A store in an SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    clock: Clock,
    hints: Hints,
    reader: Thread<Reader>,
    writer: Thread<Writer>,
}

impl SqliteStore {
    /// Opens the store at `sqlite:path`, `sqlite://path` or a plain path; a file that is not there
    /// is created, and its schema is brought up to date. Blocks for as long as that takes.
    pub fn open(url_or_path: &str, clock: Clock) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_with(url_or_path, Options { clock, ..Options::default() })
    }

    /// Opens the store with settings of choice.
    pub fn open_with(url_or_path: &str, options: Options) -> Result<SqliteStore, StoreError> {
        let path = url::path_of(url_or_path)?;
        let conn = open::open_writer(&path, options.clock.host_now(), options.busy_max)?;
        SqliteStore::start(path, conn, options)
    }

    /// Opens a store that is there, to look at it: nothing is created, migrated or changed, and
    /// whatever tries to is refused. Goes through the whole file.
    pub fn open_to_look(url_or_path: &str, clock: Clock) -> Result<Patient, StoreError> {
        let options = Options { clock, ..Options::default() };
        let path = url::path_of(url_or_path)?;
        let (conn, wrong) = open::open_looker(&path, options.busy_max)?;
        let store = Arc::new(SqliteStore::start(path, conn, options)?);
        Ok(Patient { store, wrong })
    }

    fn start(path: PathBuf, conn: Connection, options: Options) -> Result<SqliteStore, StoreError> {
        let Options { clock, busy_max } = options;
        // However the file was named, all processes meet at one folder of lock files.
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        let store = path.display().to_string();
        let reader = Reader { conn: open::open_reader(&path, busy_max)?, store: store.clone() };
        let hints = Hints::default();
        let writer = Writer {
            conn,
            locks: Locks::beside(&path),
            clock: clock.clone(),
            hints: hints.clone(),
            store: store.clone(),
            others: false,
            wrote: false,
        };
        let no_thread = |error: std::io::Error| StoreError::Open {
            store: store.clone(),
            problem: format!("no thread can be started: {error}"),
        };
        let reader = Thread::start("durably-read", reader).map_err(no_thread)?;
        let writer = Thread::start("durably-write", writer).map_err(no_thread)?;
        Ok(SqliteStore { path, clock, hints, reader, writer })
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A command that changes something.
    fn write<T: Send + 'static>(
        &self,
        operation: &'static str,
        act: impl FnOnce(&mut Tx<'_>) -> Result<T, Trouble> + Send + 'static,
    ) -> Answer<'_, T> {
        self.writer.send(operation, move |desk| desk.transact(operation, act))
    }

    /// A question of a worker; it sees all that was answered before.
    fn ask_writer<T: Send + 'static>(
        &self,
        operation: &'static str,
        act: impl FnOnce(&mut Tx<'_>) -> Result<T, Trouble> + Send + 'static,
    ) -> Answer<'_, T> {
        self.writer.send(operation, move |desk| desk.look(operation, act))
    }

    /// A read for people.
    fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        act: impl FnOnce(&Connection) -> Result<T, Trouble> + Send + 'static,
    ) -> Answer<'_, T> {
        self.reader.send(operation, move |desk| desk.look(operation, act))
    }
}

impl Store for SqliteStore {
    fn kind(&self) -> &'static str {
        "sqlite"
    }

    fn hints(&self) -> &Hints {
        &self.hints
    }

    fn now(&self) -> Answer<'_, Timestamp> {
        Box::pin(std::future::ready(Ok(self.clock.host_now())))
    }

    fn register(&self, registration: Registration) -> Answer<'_, Timestamp> {
        self.writer.send("register", move |desk| desk.register(&registration))
    }

    fn drain(&self, who: WorkerId) -> Answer<'_, ()> {
        self.write("drain", move |tx| tx.drain(&who))
    }

    fn leave(&self, who: WorkerId) -> Answer<'_, ()> {
        self.writer.send("leave", move |desk| desk.leave(&who))
    }

    fn commit(
        &self,
        who: Option<WorkerId>,
        batch: Arc<Vec<RunCommit>>,
    ) -> Answer<'_, Vec<CommitAnswer>> {
        // Written here: the thread that all wait for has enough to do.
        let events: Vec<String> =
            batch.iter().map(|commit| Event::list_to_json(&commit.events)).collect();
        self.write("commit", move |tx| {
            let who = who.map(|who| tx.committer(who, &batch)).transpose()?;
            let commits = batch.iter().zip(events);
            commits
                .map(|(commit, events)| {
                    tx.events = events;
                    tx.commit(who.as_ref(), commit)
                })
                .collect()
        })
    }

    fn look_up(&self, run: RunId, commit: CommitId) -> Answer<'_, bool> {
        self.ask_writer("look up", move |tx| tx.look_up(run, commit))
    }

    fn claim(&self, call: ClaimCall) -> Answer<'_, Claimed> {
        self.write("claim", move |tx| tx.claim(&call))
    }

    fn load(&self, call: LoadCall) -> Answer<'_, Option<Loaded>> {
        self.ask_writer("load", move |tx| tx.load(&call))
    }

    fn deliver(&self, batch: Vec<Delivery>) -> Answer<'_, Vec<Delivered>> {
        self.write("deliver", move |tx| {
            batch.into_iter().map(|delivery| tx.deliver(delivery)).collect()
        })
    }

    fn hand_back(&self, who: WorkerId, batch: Vec<HandBack>) -> Answer<'_, ()> {
        self.write("hand back", move |tx| {
            batch.into_iter().try_for_each(|back| tx.hand_back(&who, back))
        })
    }

    fn beat(&self, beat: Beat) -> Answer<'_, BeatAnswer> {
        self.writer.send("beat", move |desk| desk.beat(&beat))
    }

    fn ask(&self, who: WorkerId) -> Answer<'_, AskAnswer> {
        self.ask_writer("ask", move |tx| tx.ask(&who))
    }

    fn sweep(&self, call: SweepCall) -> Answer<'_, Swept> {
        self.writer.send("sweep", move |desk| desk.sweep(&call))
    }

    fn lead(&self, call: LeadCall) -> Answer<'_, Led> {
        self.write("lead", move |tx| tx.lead(&call))
    }

    fn run(&self, run: RunId) -> Answer<'_, Option<RunView>> {
        self.read("run", move |conn| find::run(conn, run))
    }

    fn runs(&self, query: RunQuery) -> Answer<'_, Vec<RunView>> {
        self.read("runs", move |conn| find::runs(conn, &query))
    }

    fn history(&self, run: RunId, after: Seq, most: usize) -> Answer<'_, HistoryPage> {
        self.read("history", move |conn| find::history(conn, run, after, most))
    }

    fn tasks(&self, run: RunId) -> Answer<'_, Vec<TaskRow>> {
        self.read("tasks", move |conn| find::tasks(conn, run))
    }

    fn inbox(&self, run: RunId, after: u64, most: usize) -> Answer<'_, Vec<InboxEntry>> {
        self.read("inbox", move |conn| examine::inbox(conn, run, after, most))
    }

    fn dead_letters(&self, run: Option<RunId>, most: usize) -> Answer<'_, Vec<DeadLetterRow>> {
        self.read("dead letters", move |conn| find::dead_letters(conn, run, most))
    }

    fn workers(&self) -> Answer<'_, Vec<WorkerRow>> {
        self.read("workers", find::workers)
    }

    fn leader(&self) -> Answer<'_, LeaderRow> {
        self.read("leader", lead::load)
    }

    fn examine(&self, from: RunId, most: usize) -> Answer<'_, Vec<Examined>> {
        self.read("examine", move |conn| examine::examine(conn, from, most))
    }
}
