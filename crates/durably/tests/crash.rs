//! Real crashes: a program on the public API is killed with SIGKILL at random moments, again and
//! again; afterwards the file and a ledger outside of it must agree.
#![allow(clippy::disallowed_methods, reason = "the test kills real processes at real moments")]
#![allow(clippy::print_stdout, reason = "the seed and the counts are printed")]

use durably::{Client, Event, RunId, RunQuery, RunStatus, RunView, Seq, WorkerStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

const KILLS: u32 = 50;

/// The example's program, built beside the tests.
fn program() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    let path = path.join("examples").join("crash");
    assert!(path.exists(), "{} is missing; cargo builds it with the tests", path.display());
    path
}

struct Scene {
    folder: tempfile::TempDir,
    random: u64,
}

impl Scene {
    fn new() -> Scene {
        let seed = match std::env::var("DURABLY_SEED") {
            Ok(seed) => seed.parse().expect("DURABLY_SEED is a number"),
            Err(_) => u64::from(std::process::id()) * 7919,
        };
        println!("DURABLY_SEED={seed}");
        Scene { folder: tempfile::tempdir().unwrap(), random: seed }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.random >> 33) % below
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("crash.db")
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.database().display())
    }

    fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    fn spawn(&self, mode: &str, more: &[String]) -> Child {
        Command::new(program())
            .arg(mode)
            .arg(self.url())
            .arg(self.ledger())
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

/// Reads lines until one begins with a word.
fn wait_for(lines: &mut std::io::Lines<BufReader<ChildStdout>>, word: &str) -> String {
    for line in lines.by_ref() {
        let line = line.unwrap();
        if line.starts_with(word) {
            return line;
        }
    }
    panic!("the program ended without {word:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_and_nothing_recorded_twice_through_fifty_kills() {
    let mut scene = Scene::new();
    let mut holder = scene.spawn("hold", &[]);
    let mut held = BufReader::new(holder.stdout.take().unwrap()).lines();
    wait_for(&mut held, "holding");
    wait_for(&mut held, "holding");

    let (mut runs, mut kills) = (300u32, 0);
    while kills < KILLS {
        let mut child = scene.spawn("work", &[runs.to_string()]);
        let pause = Duration::from_millis(15 + scene.random(250));
        std::thread::sleep(pause); // tidy: a kill at a random moment is the point
        match child.try_wait().unwrap() {
            // It ended by itself: give it more to do.
            Some(status) => {
                assert!(status.success(), "the program failed: {status}");
                runs += 100;
            }
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
            }
        }
    }
    let status = scene.spawn("work", &[runs.to_string()]).wait().unwrap();
    assert!(status.success(), "the last start must finish everything: {status}");

    std::fs::write(format!("{}.release", scene.ledger().display()), "").unwrap();
    let result = wait_for(&mut held, "result");
    assert!(holder.wait().unwrap().success());
    // The step ran in that very process, and the activity at its first attempt.
    assert_eq!(result, format!("result {} 1", holder.id()));

    let checked = check(&scene, runs).await;
    println!("{kills} kills, {runs} runs, {checked:?}");
    assert!(checked.lost > 0, "kills that hit nothing prove nothing");
}

/// Starts the program until it survives; gives the number of deaths and what it said.
fn until_it_survives(scene: &Scene, how: &str) -> (u32, String) {
    for deaths in 0..10 {
        let output = Command::new(program()).args(["abort", &scene.url(), how]).output().unwrap();
        if output.status.success() {
            return (deaths, String::from_utf8(output.stdout).unwrap());
        }
    }
    panic!("work that kills its process must not go on for ever");
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_kills_its_process_ends_in_the_dead_letters() {
    for how in ["activity", "step"] {
        let scene = Scene::new();
        let (deaths, said) = until_it_survives(&scene, how);
        assert_eq!((deaths, said.as_str()), (3, "ended as lost\n"), "{how}");
        let client = Client::connect(&scene.url()).await.unwrap();
        let letters = client.dead_letters(None, 10).await.unwrap();
        assert_eq!(letters.len(), 1, "{how}: {letters:?}");
        assert_eq!(letters[0].attempts, 3, "{how}: {letters:?}");
        let runs = client.runs(RunQuery::default()).await.unwrap();
        let trail = client.handle_by_id(runs[0].identity.id).trail().await.unwrap();
        let lost = trail[0].entries.iter().filter_map(|entry| match &entry.what {
            durably::TrailStep::Lost { attempt, died: true, .. } => Some(*attempt),
            _ => None,
        });
        assert_eq!(lost.collect::<Vec<_>>(), [1, 2, 3], "{how}: every death shows");
    }
}

#[derive(Debug, Default)]
struct Checked {
    events: usize,
    lost: usize,
    effects: usize,
}

/// The invariants, in the file and against the ledger.
async fn check(scene: &Scene, runs: u32) -> Checked {
    check_file(&scene.database());
    let client = Client::connect(&scene.url()).await.unwrap();
    let ledger = Ledger::read(&scene.ledger());
    let all = client.runs(RunQuery { most: 100_000, ..RunQuery::default() }).await.unwrap();
    assert_eq!(all.len(), runs as usize + 1, "every start exists once, and the held run");
    let known: BTreeSet<RunId> = all.iter().map(|run| run.identity.id).collect();
    for run in &ledger.acknowledged {
        assert!(known.contains(run), "acknowledged start of {run} is lost");
    }
    assert!(client.dead_letters(None, 10).await.unwrap().is_empty());
    let mut checked = Checked::default();
    for run in &all {
        check_run(&client, run, &ledger, &mut checked).await;
    }
    for worker in client.workers().await.unwrap() {
        assert_ne!(worker.status, WorkerStatus::Active, "{worker:?} is gone");
    }
    checked
}

async fn check_run(client: &Client, run: &RunView, ledger: &Ledger, checked: &mut Checked) {
    let id = run.identity.id;
    assert_eq!(run.status, RunStatus::Completed, "{id}");
    let handle = client.handle_by_id(id);
    assert!(handle.tasks().await.unwrap().is_empty(), "{id} has tasks after its end");
    let page = handle.history(Seq(0), 10_000).await.unwrap();
    let seqs: Vec<u64> = page.events.iter().map(|row| row.seq.0).collect();
    assert_eq!(seqs, (1..=run.head.0).collect::<Vec<_>>(), "{id}: gapless up to the head");
    checked.events += seqs.len();
    let mut open: BTreeMap<String, u32> = BTreeMap::new();
    let mut recorded: Vec<String> = vec![];
    for row in &page.events {
        match &row.event {
            Event::ActivityScheduled { activity_id, .. } => {
                assert!(open.insert(activity_id.to_string(), 0).is_none(), "scheduled twice");
            }
            Event::ActivityLost { activity_id, .. } => {
                *open.get_mut(activity_id.as_str()).expect("lost while open") += 1;
                checked.lost += 1;
            }
            Event::ActivityCompleted { activity_id, attempt, result, .. } => {
                let lost = open.remove(activity_id.as_str()).expect("one outcome while open");
                assert_eq!(attempt.number, lost + 1, "{id} {activity_id}: every attempt shows");
                let effects = ledger.effects.get(&(id, activity_id.to_string()));
                if run.workflow_type.as_str() == "held" {
                    continue;
                }
                let effects = effects.unwrap_or_else(|| panic!("{id} {activity_id}: no effect"));
                let token: String = result.decode().unwrap();
                assert!(effects.contains(&token), "{id} {activity_id}: not a real effect");
                assert!(effects.len() as u32 <= lost + 1, "{id} {activity_id}: {effects:?}");
                checked.effects += effects.len();
                recorded.push(token);
            }
            Event::ActivityFailed { .. } | Event::ActivityTimedOut { .. } => {
                panic!("{id}: a kill is no failure: {:?}", row.event)
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{id}: {open:?} without an outcome");
    let ends = page.events.iter().filter(|row| row.event.name() == "WorkflowCompleted").count();
    assert_eq!(ends, 1, "{id}");
    let Some(Event::WorkflowCompleted { result }) = page.events.last().map(|row| &row.event) else {
        panic!("{id}: the end is the last event");
    };
    if run.workflow_type.as_str() != "held" {
        assert_eq!(result.decode::<Vec<String>>().unwrap(), recorded, "{id}: what was recorded");
        assert_eq!(recorded.len(), 5, "{id}");
    }
}

/// What the program did outside of the store.
struct Ledger {
    acknowledged: Vec<RunId>,
    effects: BTreeMap<(RunId, String), BTreeSet<String>>,
}

impl Ledger {
    fn read(path: &Path) -> Ledger {
        let mut ledger = Ledger { acknowledged: vec![], effects: BTreeMap::new() };
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["ack", run, _] => ledger.acknowledged.push(run.parse().unwrap()),
                ["effect", run, step, token] => {
                    let key = (run.parse().unwrap(), (*step).to_owned());
                    let fresh = ledger.effects.entry(key).or_default().insert((*token).to_owned());
                    assert!(fresh, "tokens are unique: {line}");
                }
                _ => panic!("unexpected line {line:?}"),
            }
        }
        ledger
    }
}

/// What SQL can tell.
fn check_file(path: &Path) {
    let database = rusqlite::Connection::open(path).unwrap();
    let count = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let sound: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    assert_eq!(count("SELECT count(*) FROM durable_tasks"), 0, "no task of an ended run");
    let gaps = "SELECT count(*) FROM durable_runs r WHERE r.head <> \
                (SELECT sum(h.count) FROM durable_history h WHERE h.run = r.id)";
    assert_eq!(count(gaps), 0, "a run's head is the number of its events");
    let unread = "SELECT count(*) FROM durable_runs WHERE inbox_used < inbox_last";
    assert_eq!(count(unread), 0, "nothing is left unread");
    let twice = "SELECT count(*) FROM (SELECT 1 FROM durable_runs WHERE idempotency_key IS NOT NULL \
                 GROUP BY tenant, idempotency_key HAVING count(*) > 1)";
    assert_eq!(count(twice), 0, "one run for each key");
}
