//! `durably bench` on database servers, at sizes that measure nothing.
#![allow(clippy::disallowed_methods, reason = "nothing here runs in a simulation")]

use durably_testbed::Database;
use std::process::{Command, Output};

fn bench(store: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_durably"));
    command
        .args(["bench", "--store", store, "--scale", "0.01", "--runs", "2", "--json"])
        .args(more);
    command.output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn lines(output: &Output) -> Vec<serde_json::Value> {
    assert!(output.status.success(), "{}", stderr(output));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object")).collect()
}

fn find<'a>(lines: &'a [serde_json::Value], wanted: &str) -> &'a serde_json::Value {
    let title = |line: &serde_json::Value| {
        let word = |field: &str| line[field].as_str().unwrap_or("-").to_owned();
        [word("workload"), word("style"), word("metric")].join(" ")
    };
    let found = lines.iter().find(|line| title(line) == wanted);
    found.unwrap_or_else(|| panic!("no line {wanted}"))
}

/// The command on all workloads, with B6 for a moment.
fn check_all(store: &str, kind: &str, more: &[&str]) -> Vec<serde_json::Value> {
    let mut lines = lines(&bench(store, more));
    lines.extend(self::lines(&bench(store, &["--workload", "B6", "--minutes", "2"])));
    assert!(lines.iter().all(|line| line["store"] == kind));
    for limited in [
        "B1 machine runs_per_s",
        "B1 function runs_per_s",
        "B2 machine steps_per_s",
        "B2 function steps_per_s",
        "B4 - starts_per_s",
        "B4 - engine_starts_per_s",
        "B4 - bulk_starts_per_s",
    ] {
        assert!(find(&lines, limited)["ratio"].as_f64().is_some(), "{limited} has no limit");
    }
    for wanted in [
        "B2 machine limit_512_per_s",
        "B2 machine engine_mb",
        "B3 machine p99_ms",
        "B5 - tasks_per_s",
        "B5 - claim_p99_ms",
        "B6 machine end_to_start",
        "B6 machine back_to_start",
        "B7 machine us_per_step",
        "B8 - engine_mb",
        "B8 - claim_ratio",
        "B9 machine p99_ms",
        "B10 function recover_ms",
    ] {
        find(&lines, wanted);
    }
    assert_eq!(find(&lines, "B5 - duplicates")["value"], 0.0);
    for style in ["machine", "function"] {
        assert_eq!(find(&lines, &format!("B2 {style} ledger_steps"))["value"], 100.0);
        assert_eq!(find(&lines, &format!("B2 {style} ledger_violations"))["value"], 0.0);
    }
    lines
}

#[test]
fn every_workload_prints_its_lines_on_postgres() {
    let database = Database::postgres("bench").unwrap();
    let lines = check_all(database.url(), "postgres", &["--no-notify"]);
    find(&lines, "B3 machine notified_p99_ms");
    find(&lines, "B3 machine polled_p99_ms");
}

#[test]
fn every_workload_prints_its_lines_on_mysql() {
    let database = Database::mysql("bench").unwrap();
    let lines = check_all(database.url(), "mysql", &[]);
    find(&lines, "B3 machine polled_p99_ms");
}

/// The schemas or databases of benchmarks.
async fn left_on_postgres(database: &Database) -> Vec<String> {
    let (client, connection) =
        tokio_postgres::connect(database.server_url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = include_str!("bench_left.sql");
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_stays_on_postgres_and_a_schema_without_a_store_stays_without() {
    // A server of its own: others leave schemas behind while they are at work.
    let server = durably_testbed::Server::postgres(&Default::default()).unwrap();
    let database = Database::on(&server.url(), "bench").unwrap();
    let output = bench(database.url(), &["--workload", "B4", "--workload", "B8"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(left_on_postgres(&database).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_in_use_are_refused_and_left_as_they_were() {
    for database in [Database::postgres("bench_used"), Database::mysql("bench_used")] {
        let database = database.unwrap();
        let engine = durably::Engine::builder().start(database.url()).await.unwrap();
        let output = bench(database.url(), &[]);
        assert_eq!(output.status.code(), Some(1));
        let error = stderr(&output);
        let worker = engine.worker_id();
        assert!(error.contains("is in use: process") && error.contains(&worker), "{error}");
        assert_eq!(engine.workers().await.unwrap().len(), 1, "nobody else registered");
        engine.stop().await.unwrap();

        let mut dev = Command::new(env!("CARGO_BIN_EXE_durably"));
        dev.args(["dev", "--once", "--orders", "1", "--store", database.url()]);
        assert!(dev.output().unwrap().status.success());
        let client = durably::Client::connect(database.url()).await.unwrap();
        let runs = client.runs(Default::default()).await.unwrap();
        let output = bench(database.url(), &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("there are runs in it"), "{}", stderr(&output));
        assert_eq!(client.runs(Default::default()).await.unwrap(), runs);
    }
}
