//! Several processes, and several stores of one process, on one file.

mod scene;

use durably_kernel::WorkerId;
use durably_store::{Class, RunQuery, Store, StoreError, WorkerStatus};
use durably_store_sqlite::{Options, SqliteStore};
use scene::{
    child, claim, clock, commit, commit_id, integrity, open, open_at, place, register, run_id,
    scene, shell, start, sweep_of, wait,
};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

/// A line for the parent.
#[allow(clippy::print_stdout, reason = "the parent listens")]
fn tell(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("the parent listens");
}

/// A child with what it says.
struct Listened {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Listened {
    fn start(test: &str, path: &Path) -> Listened {
        let mut command = child(test, path);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("starts");
        let lines = BufReader::new(child.stdout.take().expect("is piped")).lines();
        Listened { child, lines }
    }

    /// Waits for a line with a word and gives what follows it.
    fn hear(&mut self, word: &str) -> String {
        for line in &mut self.lines {
            if let Some((_, rest)) = line.expect("a line").split_once(word) {
                return rest.trim().to_owned();
            }
        }
        panic!("the child ended before it said {word:?}");
    }

    /// Ends it without a word, and gives what it had said.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("kills");
        self.child.wait().expect("ends");
        self.lines.map_while(Result::ok).collect()
    }
}

async fn status(store: &SqliteStore, who: &WorkerId) -> WorkerStatus {
    let workers = store.workers().await.expect("reads");
    workers.into_iter().find(|worker| worker.who == *who).expect("is registered").status
}

fn lock_file(path: &Path, who: &str) -> std::path::PathBuf {
    let mut folder = path.as_os_str().to_owned();
    folder.push(".workers");
    Path::new(&folder).join(format!("{who}.lock"))
}

#[test]
fn a_killed_process_is_dead_at_once_and_its_work_goes_on() {
    if let Some(path) = scene() {
        let store = open(&path);
        wait(async {
            let who = register(&store, "victim", "here").await;
            assert_eq!(claim(&store, &who, 1).await.len(), 1);
            tell("claimed");
            std::future::pending::<()>().await;
        });
    }
    let (_folder, path) = place();
    let store = open(&path);
    wait(async {
        let victim = WorkerId::from("victim");
        let sweeper = register(&store, "sweeper", "here").await;
        commit(&store, start(1)).await;
        let test = "a_killed_process_is_dead_at_once_and_its_work_goes_on";
        let mut child = Listened::start(test, &path);
        child.hear("claimed");

        let swept = store.sweep(sweep_of(&sweeper)).await.expect("sweeps");
        assert_eq!((swept.dead, swept.returned), (0, 0), "it lives");
        child.kill();
        let swept = store.sweep(sweep_of(&sweeper)).await.expect("sweeps");
        assert_eq!((swept.dead, swept.returned, swept.ready), (1, 1, 1));
        assert_eq!(status(&store, &victim).await, WorkerStatus::Stale);
        assert!(!lock_file(&path, "victim").exists());

        let tasks = claim(&store, &sweeper, 2).await;
        assert_eq!(tasks.len(), 1, "the task is there for others");
        let swept = store.sweep(sweep_of(&sweeper)).await.expect("sweeps");
        assert_eq!(swept.dead, 0, "nobody dies twice");
    });
}

#[test]
fn a_store_that_is_dropped_without_leaving_is_dead() {
    let (_folder, path) = place();
    let (gone, store) = (open(&path), open(&path));
    wait(async {
        register(&gone, "gone", "here").await;
        let sweeper = register(&store, "sweeper", "here").await;
        assert_eq!(store.sweep(sweep_of(&sweeper)).await.expect("sweeps").dead, 0);
        drop(gone);
        assert_eq!(store.sweep(sweep_of(&sweeper)).await.expect("sweeps").dead, 1);
    });
}

#[test]
fn a_missing_lock_file_is_proof_as_well() {
    let (_folder, path) = place();
    let (other, store) = (open(&path), open(&path));
    wait(async {
        register(&other, "other", "here").await;
        let sweeper = register(&store, "sweeper", "here").await;
        std::fs::remove_file(lock_file(&path, "other")).expect("is there");
        assert_eq!(store.sweep(sweep_of(&sweeper)).await.expect("sweeps").dead, 1);
    });
}

#[test]
fn a_process_of_another_host_is_never_judged_by_its_file() {
    let (_folder, path) = place();
    let (gone, store) = (open(&path), open(&path));
    wait(async {
        let who = register(&gone, "gone", "there").await;
        let sweeper = register(&store, "sweeper", "here").await;
        drop(gone);
        std::fs::remove_file(lock_file(&path, "gone")).expect("is there");
        assert_eq!(store.sweep(sweep_of(&sweeper)).await.expect("sweeps").dead, 0);
        let mut by_nobody = sweep_of(&sweeper);
        by_nobody.who = None;
        assert_eq!(store.sweep(by_nobody).await.expect("sweeps").dead, 0);
        assert_eq!(status(&store, &who).await, WorkerStatus::Active);
    });
}

#[test]
fn time_decides_where_there_is_no_lock() {
    let (_folder, path) = place();
    // A file stands where the folder of lock files would.
    let mut folder = path.as_os_str().to_owned();
    folder.push(".workers");
    std::fs::write(folder, "in the way").expect("writes");
    let clock = clock();
    let store = open_at(&path, &clock);
    wait(async {
        register(&store, "other", "here").await;
        let sweeper = register(&store, "sweeper", "here").await;
        let mut call = sweep_of(&sweeper);
        call.may_declare = true;
        assert_eq!(store.sweep(call.clone()).await.expect("sweeps").dead, 0);
        clock.advance(Duration::from_secs(61));
        assert_eq!(store.sweep(call).await.expect("sweeps").dead, 1);
    });
}

#[test]
fn whoever_leaves_takes_the_lock_file_along() {
    let (_folder, path) = place();
    let store = open(&path);
    wait(async {
        let who = register(&store, "worker", "here").await;
        assert!(lock_file(&path, "worker").exists());
        store.drain(who.clone()).await.expect("drains");
        store.leave(who.clone()).await.expect("leaves");
        assert!(!lock_file(&path, "worker").exists());
        let sweeper = register(&store, "sweeper", "here").await;
        assert_eq!(store.sweep(sweep_of(&sweeper)).await.expect("sweeps").dead, 0);
        assert_eq!(status(&store, &who).await, WorkerStatus::Stopped);
    });
}

#[test]
fn two_stores_of_one_process_share_a_file() {
    let (_folder, path) = place();
    let (one, two) = (open(&path), open(&path));
    wait(async {
        let (first, second) =
            (register(&one, "first", "here").await, register(&two, "second", "here").await);
        for store in [&one, &two] {
            for sweeper in [&first, &second] {
                assert_eq!(store.sweep(sweep_of(sweeper)).await.expect("sweeps").dead, 0);
            }
        }
        commit(&one, start(1)).await;
        assert_eq!(claim(&two, &second, 1).await.len(), 1);
        assert!(claim(&one, &first, 2).await.is_empty());
        drop(one);
        commit(&two, start(2)).await;
        assert_eq!(claim(&two, &second, 3).await.len(), 1, "the other store lives on");
    });
}

#[test]
fn two_stores_write_at_the_same_time() {
    let (_folder, path) = place();
    std::thread::scope(|scope| {
        for part in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let store = open(path);
                wait(async {
                    register(&store, &format!("worker-{part}"), "here").await;
                    for number in 0..50 {
                        commit(&store, start(part * 1000 + number)).await;
                    }
                });
            });
        }
    });
    let query = RunQuery { most: 1000, ..RunQuery::default() };
    assert_eq!(wait(open(&path).runs(query)).expect("reads").len(), 200);
    assert_eq!(integrity(&path), "ok");
}

#[test]
fn a_database_that_stays_busy_is_not_available_and_then_again() {
    let (_folder, path) = place();
    let options = Options { busy_max: Duration::from_millis(20), ..Options::default() };
    let store = SqliteStore::open_with(path.to_str().expect("a plain path"), options);
    let store = store.expect("opens");
    let other = shell(&path);
    other.execute_batch("begin immediate").expect("locks");
    wait(async {
        let error = store.commit(None, vec![start(1)].into()).await.expect_err("is busy");
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        assert_eq!(error.class(), Class::Transient { retry_after: None });
        assert!(store.run(run_id(1)).await.expect("reads go on").is_none());
        other.execute_batch("rollback").expect("unlocks");
        commit(&store, start(1)).await;
        assert!(store.run(run_id(1)).await.expect("reads").is_some());
    });
}

#[test]
fn a_commit_whose_caller_goes_away_is_done() {
    let (_folder, path) = place();
    let store = open(&path);
    let other = shell(&path);
    other.execute_batch("begin immediate").expect("locks");
    wait(async {
        let mut future = store.commit(None, vec![start(1)].into());
        let polled = futures_util::poll!(&mut future);
        assert!(polled.is_pending(), "the lock is not free");
        drop(future);
        other.execute_batch("rollback").expect("unlocks");
        assert!(store.look_up(run_id(1), commit_id(1)).await.expect("looks"));
    });
}

#[test]
fn a_store_that_is_dropped_closes_the_file() {
    let (_folder, path) = place();
    let store = open(&path);
    wait(commit(&store, start(1)));
    drop(store);
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    assert!(!Path::new(&log).exists(), "the last one to close takes the log along");
}

/// Children commit until they are killed; what they were told is there. The numbers that decide
/// when a child is killed come from the seed.
#[test]
fn nothing_acknowledged_is_lost_by_kills() {
    if let Some(path) = scene() {
        let store = open(&path);
        wait(async {
            for number in 0.. {
                let id = u64::from(std::process::id()) << 32 | number;
                commit(&store, start(id)).await;
                tell(&format!("done {id} end"));
            }
        });
    }
    let seed = std::process::id();
    #[allow(clippy::print_stdout, reason = "a random test prints its seed")]
    {
        println!("seed {seed}");
    }
    let (_folder, path) = place();
    let mut state = u64::from(seed) | 1;
    let mut told = Vec::new();
    for _ in 0..4 {
        let mut children: Vec<Listened> = (0..2)
            .map(|_| Listened::start("nothing_acknowledged_is_lost_by_kills", &path))
            .collect();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        for _ in 0..5 + state % 40 {
            told.extend(children.iter_mut().map(|child| child.hear("done ")));
        }
        for child in children {
            let lines = child.kill();
            told.extend(
                lines.iter().filter_map(|line| Some(line.split_once("done ")?.1.to_owned())),
            );
        }
    }
    assert_eq!(integrity(&path), "ok", "seed {seed}");
    let store = open(&path);
    // The last line of a child may have been cut short.
    for id in told.iter().filter_map(|line| line.strip_suffix(" end")) {
        let run = run_id(id.parse().expect("a number"));
        assert!(wait(store.run(run)).expect("reads").is_some(), "seed {seed}: {id} is lost");
    }
    assert!(told.len() >= 40, "seed {seed}: only {} commits", told.len());
}
