//! `durably doctor` looks at servers that may only be read.
#![allow(clippy::disallowed_methods, reason = "a standby follows in real time")]

use durably::Client;
use durably_testbed::{Database, Server, ServerOptions, ask, execute};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

const RUNS: usize = 3;

/// What doctor says at the end.
fn summary(store: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_durably"));
    let output = command.args(["doctor", "--json", "--store", store]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(lines.lines().last().expect("a summary")).unwrap()
}

async fn fill(store: &str) {
    let client = Client::connect(store).await.unwrap();
    for _ in 0..RUNS {
        client.start_by_name("nobody hosts this", json!(1)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_of_postgres() {
    let primary = Server::postgres(&ServerOptions::default()).unwrap();
    let standby = Server::standby_of(&primary, &ServerOptions::default()).unwrap();
    let database = Database::on(&primary.url(), "doctor").unwrap();
    fill(database.url()).await;
    let written = ask(&primary.url(), "select pg_current_wal_lsn()").unwrap().unwrap();
    let caught_up = "select pg_last_wal_replay_lsn() >= 'LSN'".replace("LSN", &written);
    let began = Instant::now();
    while ask(&standby.url(), &caught_up).unwrap().as_deref() != Some("t") {
        assert!(began.elapsed() < Duration::from_secs(60), "the standby does not follow");
        std::thread::sleep(Duration::from_millis(5)); // tidy: polls for a condition
    }
    let [one, two] = [&primary, &standby].map(|server| format!("127.0.0.1:{}", server.port()));
    let alone = summary(&database.url().replace(&one, &two));
    assert_eq!((&alone["runs"], &alone["wrong"]), (&json!(RUNS), &json!(0)));
    primary.kill().unwrap();
    let left = summary(&database.url().replace(&one, &[one.as_str(), &two].join(",")));
    assert_eq!(left["runs"], json!(RUNS), "of two servers one is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_of_mysql() {
    let server = Server::mariadb(&ServerOptions::default()).unwrap();
    let database = Database::on(&server.url(), "doctor").unwrap();
    fill(database.url()).await;
    // Who may do everything could also write then.
    let grant = "grant all on NAME.* to plain".replace("NAME", database.name());
    let statements = ["create user plain identified by 'p'", &grant, "set global read_only = on"];
    execute(&server.url(), &statements).unwrap();
    let (_, place) = database.url().split_once('@').unwrap();
    let replica = summary(&["mysql://plain:p@", place].concat());
    assert_eq!((&replica["runs"], &replica["wrong"]), (&json!(RUNS), &json!(0)));
    execute(&server.url(), &["set global read_only = off"]).unwrap();
}
