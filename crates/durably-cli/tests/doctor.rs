//! `durably doctor`: stores that real workflows have used are clean, also while they do; damaged in
//! many ways, each is named with its run.

mod damage;

use damage::{DAMAGES, Damage, Like, NOTES, let_in};
use durably::prelude::*;
use durably::{Event, RunId};
use durably_testbed::Database;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn doctor(store: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_durably"));
    command.args(["doctor", "--store", store]).args(more).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What doctor says line by line, and its exit code.
fn told(store: &str) -> (Vec<Value>, i32) {
    let output = doctor(store, &["--json"]);
    let code = output.status.code().expect("it ends by itself");
    assert_ne!(code, 2, "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    (lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect(), code)
}

#[track_caller]
fn assert_clean(store: &str) {
    let (lines, code) = told(store);
    let wrong: Vec<_> = lines.iter().filter(|line| line["kind"] == "wrong").collect();
    assert!(wrong.is_empty() && code == 0, "{wrong:#?}");
}

/// A store that can be damaged.
enum Ground {
    File { url: String, path: PathBuf, _folder: tempfile::TempDir },
    Server(Database),
}

impl Ground {
    fn sqlite() -> Ground {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        Ground::File { url: format!("sqlite:{}", path.display()), path, _folder: folder }
    }

    fn url(&self) -> &str {
        match self {
            Ground::File { url, .. } => url,
            Ground::Server(database) => database.url(),
        }
    }

    fn scheme(&self) -> &str {
        self.url().split_once(':').expect("a URL").0
    }

    fn execute(&self, statements: &[String]) {
        match self {
            Ground::File { path, .. } => {
                let conn = rusqlite::Connection::open(path).unwrap();
                for statement in statements {
                    conn.execute_batch(statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
                }
            }
            Ground::Server(database) => {
                let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
                database.execute(&statements).unwrap();
            }
        }
    }

    /// The run's id in SQL.
    fn id(&self, run: RunId) -> String {
        match self.scheme() {
            "sqlite" | "mysql" => ["x'", &run.0.simple().to_string(), "'"].concat(),
            _ => ["'", &run.to_string(), "'::uuid"].concat(),
        }
    }

    fn damage(&self, damages: &[Damage], runs: &BTreeMap<&str, RunId>) {
        let mut statements: Vec<String> =
            let_in(self.scheme()).iter().map(ToString::to_string).collect();
        for damage in damages {
            let id = self.id(runs[damage.key]);
            statements.extend(damage.sql.iter().map(|sql| sql.replace("{run}", &id)));
        }
        self.execute(&statements);
    }
}

const ELSEWHERE: ActivityRef<u32, u32> = ActivityRef::new("elsewhere");
const BROKEN: ActivityRef<u32, u32> = ActivityRef::new("broken");
const GO: SignalRef<u32> = SignalRef::new("go");
const FLOW: WorkflowRef<String, u32> = WorkflowRef::new("flow");
const NOBODY: WorkflowRef<String, u32> = WorkflowRef::new("nobody hosts this");

async fn flow(ctx: Ctx, like: String) -> Result<u32> {
    let first = ctx.step("first", async || Ok(1)).await?;
    match like.as_str() {
        "Queued" => Ok(ctx.activity(ELSEWHERE, &first).await?),
        "Failed" => Ok(ctx.activity(BROKEN, &first).retry(Retry::never()).await?),
        "Asleep" => {
            ctx.sleep(Duration::from_secs(86_400)).await?;
            Ok(first)
        }
        "Listening" | "Unread" => Ok(ctx.signal(GO).await?),
        _ => Ok(ctx.step("second", async || Ok(2)).await?),
    }
}

/// Whether the run has come to where it waits.
fn is_there(like: Like, event: &Event) -> bool {
    match like {
        Like::Done | Like::Failed => {
            matches!(event, Event::WorkflowCompleted { .. } | Event::WorkflowFailed { .. })
        }
        Like::Queued => {
            matches!(event, Event::ActivityScheduled { activity_id, .. } if activity_id.as_str() == "elsewhere")
        }
        Like::Asleep => matches!(event, Event::TimerStarted { .. }),
        Like::Listening | Like::Unread => matches!(event, Event::ActivityCompleted { .. }),
        Like::Pending => matches!(event, Event::WorkflowStarted { .. }),
    }
}

/// A store with a run for each of these, and a few that nobody damages; nobody works on it.
async fn populated(url: &str, damages: &[Damage]) -> BTreeMap<&'static str, RunId> {
    let broken =
        async |_: ActivityContext, _: u32| -> Result<u32> { Err(Error::retryable("it is broken")) };
    let engine = Engine::builder().function(FLOW, flow).activity_fn(BROKEN, broken);
    let engine = engine.start(url).await.unwrap();
    let client = engine.client();
    let others = [
        ("not damaged: 1", Like::Done),
        ("not damaged: 2", Like::Unread),
        ("not damaged: 3", Like::Listening),
        ("not damaged: 4", Like::Failed),
        ("not damaged: 5", Like::Pending),
    ];
    let mut runs = BTreeMap::new();
    let wanted = damages.iter().map(|damage| (damage.key, damage.like)).chain(others);
    let wanted: Vec<(&'static str, Like)> = wanted.collect();
    for (key, like) in &wanted {
        let flow = if *like == Like::Pending { NOBODY } else { FLOW };
        let start = client.start(flow, &format!("{like:?}")).tenant("ours");
        let handle = start.idempotency_key(*key).await.unwrap();
        runs.insert(*key, handle.id());
        let mut changes = handle.changes();
        while !is_there(*like, &changes.next().await.expect("it goes on").unwrap().row.event) {}
    }
    engine.stop().await.unwrap();
    let client = Client::connect(url).await.unwrap();
    for (key, like) in wanted {
        if like == Like::Unread {
            for id in ["a", "b"] {
                client.signal_by_name(runs[key], "other", &1, Some(id)).await.unwrap();
            }
        }
    }
    runs
}

fn says(line: &Value, damage: &Damage, run: RunId) -> bool {
    let (invariant, what) = damage.says;
    line["run"] == run.to_string()
        && line["invariant"].as_str() == invariant
        && line["what"].as_str().is_some_and(|said| said.contains(what))
        && line["advice"].as_str().is_some_and(|advice| !advice.is_empty())
}

async fn every_damage_is_named(ground: &Ground) {
    let runs = populated(ground.url(), DAMAGES).await;
    assert_clean(ground.url());
    ground.damage(DAMAGES, &runs);
    let (lines, code) = told(ground.url());
    assert_eq!(code, 1);
    for damage in DAMAGES {
        let run = runs[damage.key];
        let named = lines.iter().any(|line| line["kind"] == "wrong" && says(line, damage, run));
        let of_run: Vec<_> = lines.iter().filter(|line| line["run"] == run.to_string()).collect();
        assert!(named, "{}: {of_run:#?}", damage.key);
    }
    for (key, run) in runs.iter().filter(|(key, _)| key.starts_with("not damaged")) {
        // It got the key of another one.
        let twin = *key == "not damaged: 3";
        let mut of_run = lines.iter().filter(|line| line["run"] == run.to_string());
        assert!(of_run.all(|line| twin && line["invariant"] == "I19"), "{key}: {lines:#?}");
    }
    let people = doctor(ground.url(), &[]);
    assert_eq!(people.status.code(), Some(1), "{}", text(&people.stderr));
    assert!(text(&people.stdout).contains("things are wrong"), "{}", text(&people.stdout));
}

async fn notes_are_not_damage(ground: &Ground) {
    let runs = populated(ground.url(), NOTES).await;
    ground.damage(NOTES, &runs);
    let (lines, code) = told(ground.url());
    assert_eq!(code, 0, "{lines:#?}");
    for note in NOTES {
        let named = |line: &Value| line["kind"] == "note" && says(line, note, runs[note.key]);
        assert!(lines.iter().any(named), "{}: {lines:#?}", note.key);
    }
}

/// Kills a process in the middle of its work, several times, and looks while it works and after.
fn crashes_leave_nothing_wrong(url: &str) {
    for stop_at in ["step reserve", "charge failed", "charge done", "timer sleep fired"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_durably"));
        command.args(["dev", "--store", url, "--orders", "3", "--every", "0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(stop_at)), "ended without {stop_at}");
        assert_clean(url);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_clean(url);
    }
}

macro_rules! on_every_database {
    ($($case:ident)*) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                super::$case(&super::Ground::sqlite()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                let database = durably_testbed::Database::postgres("doctor").unwrap();
                super::$case(&super::Ground::Server(database)).await;
            })*
        }
        mod mysql {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                let database = durably_testbed::Database::mysql("doctor").unwrap();
                super::$case(&super::Ground::Server(database)).await;
            })*
        }
    };
}

on_every_database! {
    every_damage_is_named
    notes_are_not_damage
    a_store_that_crashed_is_clean
    a_store_that_is_not_there_is_not_made
    a_schema_that_is_not_ours_is_refused
    a_store_in_which_nobody_can_lead_is_told_so
}

async fn a_store_in_which_nobody_can_lead_is_told_so(ground: &Ground) {
    drop(Client::connect(ground.url()).await.unwrap());
    assert_clean(ground.url());
    ground.execute(&["delete from durable_leader".to_owned()]);
    let (lines, code) = told(ground.url());
    let named = |line: &Value| line["what"].as_str().is_some_and(|what| what.contains("leader"));
    assert!(code == 1 && lines.iter().any(named), "{lines:#?}");
}

async fn a_store_that_crashed_is_clean(ground: &Ground) {
    crashes_leave_nothing_wrong(ground.url());
}

#[track_caller]
fn refused(url: &str, why: &str) {
    for more in [&[][..], &["--json"]] {
        let output = doctor(url, more);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("error: ") && said.contains(why), "{said}");
        assert_eq!(text(&output.stdout), "");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

async fn a_store_that_is_not_there_is_not_made(ground: &Ground) {
    match ground {
        Ground::File { url, path, _folder } => {
            refused(url, "there is no such file");
            assert_eq!(names(path.parent().unwrap()), Vec::<String>::new());
            rusqlite::Connection::open(path).unwrap().execute_batch("create table x (y)").unwrap();
            refused(url, "without the tables of durably");
        }
        Ground::Server(database) => {
            refused(database.url(), "there are no tables of durably");
            refused(database.url(), "there are no tables of durably");
        }
    }
}

async fn a_schema_that_is_not_ours_is_refused(ground: &Ground) {
    drop(Client::connect(ground.url()).await.unwrap());
    assert_clean(ground.url());
    let newer = "insert into durable_schema (version, name, checksum, applied_at)
        values (99, 'later', 'x', 1)";
    ground.execute(&[newer.to_owned()]);
    refused(ground.url(), "use a newer durably");
    ground.execute(&["delete from durable_schema where version > 0".to_owned()]);
    refused(ground.url(), "lacks migration 1 (first)");
}

#[test]
fn a_file_that_is_damaged_is_told_so() {
    let ground = Ground::sqlite();
    let Ground::File { path, url, _folder } = &ground else { unreachable!("it is a file") };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    drop(runtime.block_on(populated(url, &[])));
    let conn = rusqlite::Connection::open(path).unwrap();
    conn.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(())).unwrap();
    let root = "select rootpage from sqlite_schema where name = 'durable_runs_parked'";
    let page: u32 = conn.query_row(root, [], |row| row.get(0)).unwrap();
    let size: u32 = conn.query_row("pragma page_size", [], |row| row.get(0)).unwrap();
    drop(conn);
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(u64::from(page - 1) * u64::from(size))).unwrap();
    file.write_all(&[0xff; 64]).unwrap();
    drop(file);
    let output = doctor(url, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("integrity check"), "{}", text(&output.stdout));
}

#[test]
fn a_url_that_names_nothing_is_told() {
    refused("nonsense", "DUR-0020");
    refused("postgres://me:s3cret@127.0.0.1:1/d", "127.0.0.1:1");
}
