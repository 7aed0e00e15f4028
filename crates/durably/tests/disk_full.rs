//! The disk of a database server is full for a while, under an engine that has much to do: nothing
//! is acknowledged that is not there, and everything completes once there is room.
#![allow(clippy::disallowed_methods, reason = "a full disk lasts for real time")]
#![allow(clippy::print_stdout, reason = "the counts are printed")]

mod common;

use common::load::under_load;
use common::{own_server, until};
use durably_testbed::{Database, Kind, Server, ServerOptions};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

on_every_server!(a_disk_that_is_full_for_a_while);

/// Where the server's disk is, if this process is the one that sees it.
const DISK: &str = "DURABLY_TEST_DISK";

/// Runs a test of this program once more, as a process that sees a small disk in a folder.
fn with_small_disk(test: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=500m,mode=1777 none \"$1\" || exit 77; shift; exec \"$@\"";
    let owner = std::fs::metadata("/proc/self").unwrap();
    let mut command = Command::new("unshare");
    command.arg("--mount");
    if owner.uid() != 0 {
        command.arg("--map-root-user");
    }
    command.args(["sh", "-c", mount, "sh"]).arg(folder.path());
    if owner.uid() != 0 {
        // No server runs as root, not even as root of a namespace.
        command.args(["unshare", "--user"]);
        command
            .args([format!("--map-user={}", owner.uid()), format!("--map-group={}", owner.gid())]);
    }
    command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
    let status = command.env(DISK, folder.path()).status();
    let status = status.expect("`unshare` of util-linux can be run");
    // 1 is `unshare` itself, 77 the mount; a test that fails ends with 101.
    assert!(
        !matches!(status.code(), Some(1 | 77)),
        "{test} needs the right to mount: run as root, or allow user namespaces"
    );
    assert!(status.success(), "the child of {test} failed");
}

/// Takes all the room that there is.
fn fill(ballast: &Path) {
    let mut file = File::create(ballast).unwrap();
    for size in [1 << 20, 1 << 12] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
}

fn answers_soon(database: &Database) -> bool {
    std::thread::sleep(Duration::from_millis(100)); // tidy: it may be coming back
    database.execute(&["select 1"]).is_ok()
}

/// What takes some room of its own.
fn takes_room(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => {
            "insert into room select repeat(md5(random()::text), 200) from generate_series(1, 100)"
        }
        Kind::Mysql => "insert into room select repeat(uuid(), 200) from seq_1_to_100",
    }
}

/// The disk is full until the server has noticed it; one that went down over it is started again.
async fn full_for_a_while(kind: Kind, server: Arc<Server>, database: Arc<Database>, disk: PathBuf) {
    let ballast = disk.join("ballast");
    database.execute(&["create table room (x text)"]).unwrap();
    until("the disk is full", async || {
        let (ballast, database) = (ballast.clone(), database.clone());
        let full = move || {
            fill(&ballast);
            database.execute(&[takes_room(kind)]).is_err()
        };
        tokio::task::spawn_blocking(full).await.unwrap()
    })
    .await;
    if kind == Kind::Postgres {
        // It wants a new file for its log, too, and goes down over it.
        let (switched, logs) = (database.clone(), "select pg_switch_wal(), txid_current()");
        let switch = move || (0..10).any(|_| switched.execute(&[logs]).is_err());
        println!("a log that cannot grow: {}", tokio::task::spawn_blocking(switch).await.unwrap());
    }
    tokio::time::sleep(Duration::from_secs(2)).await; // tidy: a full disk lasts
    std::fs::remove_file(&ballast).unwrap();
    let mend = move || {
        if !(0..30).any(|_| answers_soon(&database)) {
            println!("the server is down");
            // What is left of it would be in the way.
            server.stop_immediate().unwrap();
            server.start_again().unwrap();
        }
    };
    tokio::task::spawn_blocking(mend).await.unwrap();
}

async fn a_disk_that_is_full_for_a_while(kind: Kind) {
    let Some(disk) = std::env::var_os(DISK).map(PathBuf::from) else {
        let module = if kind == Kind::Postgres { "on_postgres" } else { "on_mysql" };
        return with_small_disk(&format!("{module}::a_disk_that_is_full_for_a_while"));
    };
    let options = ServerOptions::default().below(&disk);
    let (server, database) = own_server(kind, &options);
    let (server, database) = (Arc::new(server), Arc::new(database));
    let full = full_for_a_while(kind, server.clone(), database.clone(), disk);
    println!("{:?}", under_load(database.url(), full).await);
}
