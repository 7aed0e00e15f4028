//! Short words for what these tests do all the time.
#![allow(dead_code, reason = "each file of tests uses a part of it")]

use durably_kernel::{
    ActivityOptions, CommitId, Event, Payload, Place, Queue, RunId, RunIdentity, RunStatus, Seq,
    Signal, Summary, TaskChange, TaskKind, TaskPut, Tenant, Timestamp, Waits, WorkerId,
};
use durably_store::{
    Base, CallId, ClaimCall, Claimable, Claimed, ClaimedTask, Clock, CommitAnswer, KeyCheck,
    ManualClock, NewRun, Registration, RunCommit, Store, SweepCall, TurnAfter, Want,
};
use durably_store_sqlite::SqliteStore;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) const START: Timestamp = Timestamp(1_700_000_000_000);

/// A folder of its own with a path for a database in it.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store.db");
    (folder, path)
}

pub(crate) fn clock() -> ManualClock {
    ManualClock::at(START)
}

pub(crate) fn open(path: &Path) -> SqliteStore {
    open_at(path, &clock())
}

pub(crate) fn open_at(path: &Path, clock: &ManualClock) -> SqliteStore {
    let path = path.to_str().expect("a plain path");
    SqliteStore::open(path, Clock::Manual(clock.clone())).expect("the store opens")
}

/// Waits for a future; the store's threads do the work.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

pub(crate) fn run_id(number: u64) -> RunId {
    let mut random = [0; 10];
    random[..8].copy_from_slice(&number.to_be_bytes());
    RunId::from_parts(START.0 as u64, random)
}

pub(crate) fn commit_id(number: u64) -> CommitId {
    CommitId(Uuid::from_u64_pair(1, number))
}

/// The commit that starts a run under way, with one ready activity at place 1.
pub(crate) fn start(number: u64) -> RunCommit {
    let run = run_id(number);
    let new = NewRun {
        identity: RunIdentity {
            id: run,
            tenant: Tenant::default(),
            queue: Queue::default(),
            priority: 0,
        },
        workflow_type: "order".into(),
        version: None,
        check: KeyCheck { key: Some(format!("key-{number}")), input_hash: "hash".to_owned() },
        attributes: None,
    };
    let started = Event::WorkflowStarted {
        workflow_type: "order".into(),
        input: Payload::of(&number).expect("a number"),
        seed: u64::MAX,
        timeout_ms: None,
        at: START,
    };
    RunCommit {
        events: vec![started, Event::VersionPinned { version: 1, at: START }],
        summary: Some(running()),
        tasks: BTreeMap::from([(Place(1), TaskChange::Put(Box::new(activity(Seq(2)))))]),
        turn: TurnAfter::Release,
        trace: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        ..RunCommit::empty(commit_id(number), run, Base::New(Box::new(new)))
    }
}

pub(crate) fn activity(seq: Seq) -> TaskPut {
    TaskPut {
        place: Place(1),
        kind: TaskKind::Activity,
        name: "charge".into(),
        target: "a".into(),
        watched: None,
        seq,
        delay: None,
        queue: Queue::default(),
        priority: 0,
        attempt: 0,
        deaths: 0,
        input: Some(Payload::of("in").expect("a text")),
        options: Some(Arc::new(ActivityOptions::default())),
        details: None,
    }
}

pub(crate) fn running() -> Summary {
    Summary {
        status: RunStatus::Running,
        version: Some(1),
        waits: Waits::Any,
        retries: 0,
        last_error: None,
    }
}

pub(crate) fn signal(id: &str) -> durably_kernel::Fact {
    durably_kernel::Fact::Signal(Signal {
        id: id.to_owned(),
        signal_type: "paid".to_owned(),
        payload: Payload::of(&[1, 2]).expect("numbers"),
        sent_at: Timestamp(0),
    })
}

pub(crate) fn registration(who: &str, host: &str) -> Registration {
    Registration {
        who: who.into(),
        group: "default".to_owned(),
        queues: vec![Queue::default()],
        can: vec![Claimable::Activity { activity_type: "charge".into() }],
        capacity: 10,
        host: host.to_owned(),
        version: "1.0.0".to_owned(),
    }
}

pub(crate) async fn register(store: &SqliteStore, who: &str, host: &str) -> WorkerId {
    store.register(registration(who, host)).await.expect("registers");
    who.into()
}

pub(crate) async fn commit(store: &SqliteStore, commit: RunCommit) -> CommitAnswer {
    let mut answers = store.commit(None, vec![commit].into()).await.expect("commits");
    answers.remove(0)
}

pub(crate) async fn claim(store: &SqliteStore, who: &WorkerId, call: u64) -> Vec<ClaimedTask> {
    let call = ClaimCall {
        id: CallId(Uuid::from_u64_pair(2, call)),
        who: who.clone(),
        queues: vec![Queue::default()],
        wants: vec![Want {
            any: vec![Claimable::Activity { activity_type: "charge".into() }],
            most: 100,
        }],
        cursor: None,
        turn_deadline: Duration::from_secs(70),
    };
    match store.claim(call).await.expect("claims") {
        Claimed::Tasks { tasks, .. } => tasks,
        Claimed::Refused => panic!("{who} is active"),
    }
}

/// A sweep by a process that may not declare anybody dead by time.
pub(crate) fn sweep_of(who: &WorkerId) -> SweepCall {
    SweepCall {
        who: Some(who.clone()),
        most: 100,
        stale_after: Duration::from_secs(60),
        may_declare: false,
    }
}

/// This very program, to run one test of it as a process of its own; what the test reads from
/// `SCENE` tells it that it is the child.
pub(crate) fn child(test: &str, scene: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env("SCENE", scene).stdin(Stdio::null());
    command
}

/// Runs one test of this program as a child that sees the folder through a mount of its own, in a
/// namespace of its own; `mount` is a line of shell in which `$1` is the folder.
pub(crate) fn passes_in_mount(mount: &str, test: &str, folder: &Path) {
    let script = format!("({mount}) || exit 77; exec \"$2\" --exact \"$3\" --nocapture");
    let program = std::env::current_exe().expect("the path of this program");
    let status = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", &script, "sh"])
        .args([folder.as_os_str(), program.as_os_str(), test.as_ref()])
        .env("SCENE", folder.join("store.db"))
        .status();
    let status = status.expect("`unshare` of util-linux can be run");
    // 1 is `unshare` itself, 77 the mount; a test that fails ends with 101.
    assert!(
        !matches!(status.code(), Some(1 | 77)),
        "{test} needs the right to mount: run as root, or allow user namespaces"
    );
    assert!(status.success(), "the child of {test} failed");
}

/// Where the child works, if this process is one.
pub(crate) fn scene() -> Option<PathBuf> {
    std::env::var_os("SCENE").map(PathBuf::from)
}

/// The database as people see it with a shell.
pub(crate) fn shell(path: &Path) -> rusqlite::Connection {
    let conn = rusqlite::Connection::open(path).expect("opens");
    conn.busy_timeout(Duration::from_secs(10)).expect("sets a time-out");
    conn
}

/// What SQLite itself says about the file.
pub(crate) fn integrity(path: &Path) -> String {
    shell(path).query_row("pragma integrity_check", [], |row| row.get(0)).expect("checks")
}
