//! Opening: what is refused and how, and many who open at once.

mod scene;

use durably_store::{Class, Clock, Store, StoreError};
use durably_store_sqlite::SqliteStore;
use scene::{child, commit, integrity, open, passes_in_mount, place, scene, shell, start, wait};
use std::path::Path;
use std::process::Stdio;

fn refused(path: &Path) -> StoreError {
    SqliteStore::open(path.to_str().expect("a plain path"), Clock::Database)
        .expect_err("the store does not open")
}

#[test]
fn a_new_file_is_created_and_found_again() {
    let (_folder, path) = place();
    wait(commit(&open(&path), start(1)));
    let store = open(&path);
    assert_eq!(store.kind(), "sqlite");
    assert_eq!(store.path().file_name(), path.file_name());
    assert!(wait(store.run(scene::run_id(1))).expect("reads").is_some());
}

#[test]
fn the_log_is_kept_in_wal_mode() {
    let (_folder, path) = place();
    drop(open(&path));
    let mode: String =
        shell(&path).query_row("pragma journal_mode", [], |row| row.get(0)).expect("reads");
    assert_eq!(mode, "wal");
}

#[test]
fn an_empty_file_is_a_new_database() {
    let (_folder, path) = place();
    std::fs::write(&path, "").expect("writes");
    wait(commit(&open(&path), start(1)));
}

#[test]
fn a_file_that_is_no_database_is_told_and_left_alone() {
    for content in ["hello", &"This is a text and no database. ".repeat(500)] {
        let (_folder, path) = place();
        std::fs::write(&path, content).expect("writes");
        let error = refused(&path);
        assert_eq!(error.class(), Class::Corrupt, "{error}");
        assert!(error.to_string().contains("is no SQLite database"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), content);
    }
}

#[test]
fn a_database_of_somebody_else_is_shared() {
    let (_folder, path) = place();
    shell(&path).execute_batch("create table theirs (a); insert into theirs values (1)").unwrap();
    wait(commit(&open(&path), start(1)));
    let rows: i64 =
        shell(&path).query_row("select count(*) from theirs", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
}

#[test]
fn tables_in_the_way_are_told_and_left_alone() {
    let (_folder, path) = place();
    shell(&path).execute_batch("create table durable_tasks (a)").unwrap();
    let error = refused(&path);
    assert!(matches!(error, StoreError::Open { .. }), "{error:?}");
    assert!(error.to_string().contains("durable_tasks"), "{error}");
    let tables: i64 =
        shell(&path).query_row("select count(*) from sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1, "nothing of ours was left");
}

#[test]
fn a_schema_from_the_future_is_refused() {
    let (_folder, path) = place();
    drop(open(&path));
    shell(&path)
        .execute("insert into durable_schema values (7, 'later', 'x', 0)", [])
        .expect("writes");
    assert_eq!(refused(&path), StoreError::SchemaNewer { found: 7, known: 1 });
}

#[test]
fn a_migration_with_another_text_is_refused() {
    let (_folder, path) = place();
    drop(open(&path));
    shell(&path).execute("update durable_schema set checksum = 'x'", []).expect("writes");
    let error = refused(&path);
    assert_eq!(error.class(), Class::Corrupt, "{error}");
    assert!(error.to_string().contains("migration 1 (first)"), "{error}");
}

#[test]
fn many_threads_open_a_new_file_at_once() {
    let (_folder, path) = place();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let path = &path;
            scope.spawn(move || wait(commit(&open(path), start(number))));
        }
    });
    let runs = wait(open(&path).runs(durably_store::RunQuery::default())).expect("reads");
    assert_eq!(runs.len(), 16);
    assert_eq!(integrity(&path), "ok");
}

#[test]
fn many_processes_open_a_new_file_at_once() {
    if let Some(path) = scene() {
        let number = std::process::id().into();
        wait(commit(&open(&path), start(number)));
        return;
    }
    let (_folder, path) = place();
    let mut children: Vec<_> = (0..6)
        .map(|_| {
            let mut command = child("many_processes_open_a_new_file_at_once", &path);
            command.stdout(Stdio::null()).spawn().expect("starts")
        })
        .collect();
    for child in &mut children {
        assert!(child.wait().expect("ends").success());
    }
    let runs = wait(open(&path).runs(durably_store::RunQuery::default())).expect("reads");
    assert_eq!(runs.len(), 6);
    assert_eq!(integrity(&path), "ok");
}

#[cfg(unix)]
#[test]
fn a_file_is_one_store_whatever_it_is_called() {
    let (folder, path) = place();
    let store = open(&path);
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).expect("links");
    let linked = open(&link);
    assert_eq!(linked.path(), store.path());
    wait(commit(&linked, start(1)));
    assert!(wait(store.run(scene::run_id(1))).expect("reads").is_some());
}

#[test]
fn what_cannot_be_written_is_told() {
    if let Some(path) = scene() {
        let error = refused(&path);
        assert!(matches!(error, StoreError::Open { .. }), "{error:?}");
        return;
    }
    let (folder, path) = place();
    let passes = || {
        let mount = "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\"";
        passes_in_mount(mount, "what_cannot_be_written_is_told", folder.path())
    };
    // Without a file, with one that was closed, and with one that is open.
    passes();
    wait(commit(&open(&path), start(1)));
    passes();
    let store = open(&path);
    wait(commit(&store, start(2)));
    passes();
}
