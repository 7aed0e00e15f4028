//! Damage, a full disk, a disk that fails: no panic, nothing half done, and it goes on afterwards.

mod scene;

use durably_kernel::{Seq, WorkerId};
use durably_store::{Class, CommitAnswer, Delivery, LoadCall, RunQuery, Store, StoreError};
use durably_store_sqlite::SqliteStore;
use scene::{
    claim, commit, commit_id, integrity, open, passes_in_mount, place, register, run_id, scene,
    shell, signal, start, sweep_of, wait,
};
use std::path::Path;
use std::process::Command;

/// A store with one run, one signal in its inbox and one claimed activity, then damaged by hand.
fn damaged(path: &Path, by: &str) -> SqliteStore {
    let store = open(path);
    wait(async {
        commit(&store, start(1)).await;
        let who = register(&store, "worker", "here").await;
        assert_eq!(claim(&store, &who, 1).await.len(), 1);
        let run = run_id(1);
        let delivery = Delivery { run, id: "s".to_owned(), fact: signal("s"), claim: None };
        store.deliver(vec![delivery]).await.expect("delivers");
    });
    let shell = shell(path);
    shell.execute_batch("pragma ignore_check_constraints = 1").expect("sets it");
    assert!(shell.execute(by, []).expect("damages") > 0, "{by}");
    store
}

#[track_caller]
fn assert_names<T: std::fmt::Debug>(answer: Result<T, StoreError>, words: &[&str]) {
    let error = answer.expect_err("it is damaged");
    assert_eq!(error.class(), Class::Corrupt, "{error:?}");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{text} does not name {word}");
    }
}

#[test]
fn damage_names_table_and_run() {
    let run = run_id(1).to_string();
    let load =
        || LoadCall { run: run_id(1), after: Seq(0), claims: vec![], who: None, events_max: 10 };
    for (by, table) in [
        ("update durable_runs set status = 'odd'", "durable_runs"),
        ("update durable_runs set head = -1", "durable_runs"),
        ("update durable_runs set waits = '{'", "durable_runs"),
        ("update durable_runs set last_error = '[]'", "durable_runs"),
        ("update durable_history set events = '[{\"type\":1}]'", "durable_history"),
        ("update durable_history set events = 'x'", "durable_history"),
        ("update durable_inbox set fact = '{\"type\":\"Odd\"}'", "durable_inbox"),
        ("update durable_history set events = cast(x'22ff22' as text)", "durable_history"),
    ] {
        let (_folder, path) = place();
        let store = damaged(&path, by);
        assert_names(wait(store.load(load())), &[table, &run]);
    }
}

#[test]
fn damaged_tasks_name_table_and_run() {
    let run = run_id(1).to_string();
    for by in [
        "update durable_tasks set state = 'odd' where place = 1",
        "update durable_tasks set kind = 'odd' where place = 1",
        "update durable_tasks set losses = 'odd' where place = 1",
        "update durable_tasks set options = '[' where place = 1",
        "update durable_tasks set deadline = null where place = 1",
        "update durable_tasks set input = 'odd' where place = 1",
    ] {
        let (_folder, path) = place();
        let store = damaged(&path, by);
        assert_names(wait(store.tasks(run_id(1))), &["durable_tasks", &run]);
        let leave = wait(store.leave(WorkerId::from("worker")));
        assert_names(leave, &["durable_tasks", &run]);
    }
}

#[test]
fn damaged_processes_and_letters_are_named() {
    let (_folder, path) = place();
    let store = damaged(&path, "update durable_workers set can = 'odd'");
    assert_names(wait(store.workers()), &["durable_workers", "worker"]);
    let (_folder, path) = place();
    let store = damaged(
        &path,
        "insert into durable_dead_letter_queue values \
         (1, zeroblob(16), 'odd', 'a', 'b', '1', 1, '', '[]', 0, null, 0)",
    );
    assert_names(wait(store.dead_letters(None, 10)), &["durable_dead_letter_queue"]);
}

#[test]
fn an_event_of_a_newer_version_is_no_damage() {
    let (_folder, path) = place();
    let event = r#"[{"type":"Later","v":9,"data":{}}]"#;
    let store = damaged(&path, "update durable_history set trace_context = null");
    shell(&path).execute("update durable_history set events = ?1", [event]).expect("writes");
    let error = wait(store.history(run_id(1), Seq(0), 10)).expect_err("is too new");
    assert_eq!(error, StoreError::EventNewer { name: "Later".to_owned(), needed: 9 });
}

#[test]
fn a_file_that_is_overwritten_is_damaged_and_does_not_panic() {
    let (_folder, path) = place();
    wait(commit(&open(&path), start(1)));
    let mut bytes = std::fs::read(&path).expect("reads");
    for byte in bytes.iter_mut().skip(4096) {
        *byte = !*byte;
    }
    std::fs::write(&path, bytes).expect("writes");
    let opened = SqliteStore::open(path.to_str().expect("a path"), durably_store::Clock::Database);
    let error = match opened {
        Err(error) => error,
        Ok(store) => wait(store.commit(None, vec![start(2)].into())).expect_err("is damaged"),
    };
    assert_eq!(error.class(), Class::Corrupt, "{error:?}");
}

#[test]
fn a_full_disk_acknowledges_nothing_and_is_left_behind() {
    let test = "a_full_disk_acknowledges_nothing_and_is_left_behind";
    if let Some(path) = scene() {
        return fill(&path);
    }
    let (folder, _) = place();
    passes_in_mount("mount -t tmpfs -o size=3m tmpfs \"$1\"", test, folder.path());
}

/// Fills the disk that the path is on, and makes room again.
fn fill(path: &Path) {
    let store = open(path);
    let ballast = path.with_extension("ballast");
    std::fs::write(&ballast, vec![0; 512 * 1024]).expect("writes");
    wait(async {
        let who = register(&store, "worker", "here").await;
        let mut acknowledged = Vec::new();
        let failed = loop {
            let number = acknowledged.len() as u64;
            match store.commit(None, vec![start(number)].into()).await {
                Ok(_) => acknowledged.push(number),
                Err(error) => {
                    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
                    break number;
                }
            }
            assert!(number < 100_000, "the disk is never full");
        };
        for _ in 0..3 {
            let error = store.commit(None, vec![start(failed)].into()).await.expect_err("is full");
            assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
        }
        assert!(store.run(run_id(failed)).await.expect("reads").is_none());
        std::fs::remove_file(&ballast).expect("makes room");
        let again = commit(&store, start(failed)).await;
        assert!(matches!(again, CommitAnswer::Committed(_)), "{again:?}");
        store.sweep(sweep_of(&who)).await.expect("sweeps");
        let query = RunQuery { most: usize::MAX, ..RunQuery::default() };
        assert_eq!(store.runs(query).await.expect("reads").len(), acknowledged.len() + 1);
    });
    assert_eq!(integrity(path), "ok");
}

/// Files of the child cannot grow beyond a bound, which is an error of the disk like any other;
/// the signal that comes with it is ignored.
#[test]
fn an_error_of_the_disk_during_commit_is_looked_up() {
    let test = "an_error_of_the_disk_during_commit_is_looked_up";
    if let Some(path) = scene() {
        return grow(&path);
    }
    let (folder, path) = place();
    let program = std::env::current_exe().expect("the path of this program");
    let script = "trap '' XFSZ; ulimit -S -f 600; exec \"$1\" --exact \"$2\" --nocapture";
    let status = Command::new("sh")
        .args(["-c", script, "sh"])
        .args([program.as_os_str(), test.as_ref()])
        .env("SCENE", &path)
        .status();
    assert!(status.expect("runs").success());
    drop(folder);
}

/// Writes until the bound is met, then without one.
fn grow(path: &Path) {
    let store = open(path);
    wait(async {
        let mut number = 0;
        let error = loop {
            number += 1;
            match store.commit(None, vec![start(number)].into()).await {
                Ok(_) => assert!(number < 100_000, "there is no bound"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.class(), Class::Ambiguous, "{error:?}");
        let found = store.look_up(run_id(number), commit_id(number)).await.expect("looks");
        assert_eq!(found, store.run(run_id(number)).await.expect("reads").is_some());
        assert!(!found, "it was not reached");
        let me = std::process::id().to_string();
        let freed = Command::new("prlimit").args(["--pid", &me, "--fsize=unlimited:"]).status();
        assert!(freed.expect("runs").success());
        let again = commit(&store, start(number)).await;
        assert!(matches!(again, CommitAnswer::Committed(_)), "{again:?}");
        let query = RunQuery { most: usize::MAX, ..RunQuery::default() };
        assert_eq!(store.runs(query).await.expect("reads").len() as u64, number);
    });
    assert_eq!(integrity(path), "ok");
}
