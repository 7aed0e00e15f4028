//! What reaches the disk before somebody is told, and the locks on the file: seen from outside, by
//! the system.

mod scene;

use durably_kernel::WorkerId;
use durably_store::check::Doctor;
use durably_store::{Clock, CommitAnswer, Store};
use durably_store_sqlite::SqliteStore;
use scene::{child, commit, open, place, register, scene, start, wait};
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

const COMMITS: u64 = 20;

/// Commits one after the other, and says so after each.
#[allow(clippy::print_stdout, reason = "what is written is traced")]
fn commit_and_tell(path: &Path) {
    let store = open(path);
    wait(async {
        for number in 1..=COMMITS {
            let answer = commit(&store, start(number)).await;
            assert!(matches!(answer, CommitAnswer::Committed(_)), "{answer:?}");
            println!("acknowledged {number}");
            std::io::stdout().flush().expect("is written");
        }
    });
}

#[test]
fn every_commit_is_on_the_disk_before_it_is_acknowledged() {
    const TEST: &str = "every_commit_is_on_the_disk_before_it_is_acknowledged";
    if let Some(path) = scene() {
        return commit_and_tell(&path);
    }
    let (folder, path) = place();
    let calls = folder.path().join("calls");
    let traced = child(TEST, &path);
    let status = Command::new("strace")
        .args(["--follow-forks", "--trace=fsync,fdatasync,write", "--output"])
        .arg(&calls)
        .arg(traced.get_program())
        .args(traced.get_args())
        .env("SCENE", &path)
        .stdin(Stdio::null())
        .status();
    let status = status.expect("strace is not installed: run ./scripts/test, which installs it");
    assert!(status.success(), "the traced child failed, or strace may not trace: {status}");
    let calls = std::fs::read_to_string(&calls).expect("strace has written it");
    let (mut acknowledged, mut synced) = (0, 0);
    for call in calls.lines() {
        // A call that another thread interrupts is told in two lines, the second with its result.
        let sync = ["fsync(", "fdatasync(", "sync resumed"].iter().any(|name| call.contains(name));
        synced += u32::from(sync && call.trim_end().ends_with("= 0"));
        if call.contains("write(1, \"acknowledged ") {
            acknowledged += 1;
            assert!(synced > 0, "commit {acknowledged} was acknowledged before it was durable");
            synced = 0;
        }
    }
    assert_eq!(acknowledged, COMMITS, "all were seen");
}

/// The locks that this process has on the database and on what stands beside it.
fn locks(path: &Path) -> BTreeSet<String> {
    let beside = |end: &str| Path::new(&format!("{}{end}", path.display())).to_owned();
    let files = ["", "-wal", "-shm"].map(beside);
    let inodes: Vec<String> = files
        .iter()
        .filter_map(|file| std::fs::metadata(file).ok())
        .map(|file| file.ino().to_string())
        .collect();
    let ours = std::process::id().to_string();
    let table = std::fs::read_to_string("/proc/locks").expect("Linux has it");
    // 1: POSIX ADVISORY READ 4711 fe:01:1234 128 128
    let held = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, mode, pid, file, from, to] = words.as_slice() else { return None };
        let inode = file.rsplit(':').next()?;
        let is_it = *pid == ours && inodes.iter().any(|known| known == inode);
        is_it.then(|| format!("{mode} {inode} {from} {to}"))
    });
    held.collect()
}

#[test]
fn stores_that_are_closed_give_up_no_locks_of_others() {
    let (_folder, path) = place();
    let store = open(&path);
    wait(async {
        let who: WorkerId = register(&store, "one", "here").await;
        commit(&store, start(1)).await;
        let before = locks(&path);
        assert!(!before.is_empty(), "an open store holds locks");

        let other = open(&path);
        commit(&other, start(2)).await;
        drop(other);
        assert_eq!(locks(&path), before, "after a second store was closed");

        let url = path.to_str().expect("a plain path");
        let patient = SqliteStore::open_to_look(url, Clock::Database).expect("opens");
        let mut doctor = Doctor::new(patient.store.as_ref());
        while doctor.page().await.expect("looks").is_some() {}
        drop(patient);
        assert_eq!(locks(&path), before, "after doctor has looked");
        store.leave(who).await.expect("goes on");

        // What must never happen in our code, to show that it would be seen.
        drop(std::fs::File::open(&path).expect("opens"));
        assert_ne!(locks(&path), before, "a file of our own gives the locks up");
    });
}
