//! `durably bench`, at sizes that measure nothing: what it prints, and what it refuses.

use std::path::Path;
use std::process::{Command, Output};

fn bench(store: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_durably"));
    command.args(["bench", "--store", store, "--scale", "0.01", "--runs", "2"]).args(more);
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

fn url(file: &Path) -> String {
    format!("sqlite:{}", file.display())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

const FIELDS: [&str; 10] =
    ["workload", "style", "store", "metric", "value", "limit", "ratio", "runs", "min", "max"];

fn check_fields(line: &serde_json::Value, store: &str) {
    let object = line.as_object().expect("an object");
    assert_eq!(object.len(), FIELDS.len(), "{line}");
    for field in FIELDS {
        assert!(object.contains_key(field), "{field} is missing in {line}");
    }
    assert_eq!(line["store"], store);
    let number = |field: &str| line[field].as_f64().unwrap_or_else(|| panic!("{field} of {line}"));
    assert!(number("min") <= number("value") && number("value") <= number("max"), "{line}");
    assert_eq!(line["limit"].is_null(), line["ratio"].is_null(), "{line}");
}

/// Workload, style and metric of a line, as one text.
fn title(line: &serde_json::Value) -> String {
    let word = |field: &str| line[field].as_str().unwrap_or("-");
    format!("{} {} {}", word("workload"), word("style"), word("metric"))
}

fn find<'a>(lines: &'a [serde_json::Value], wanted: &str) -> &'a serde_json::Value {
    let found = lines.iter().find(|line| title(line) == wanted);
    found.unwrap_or_else(|| panic!("no line {wanted}"))
}

/// What every store prints.
fn check_lines(lines: &[serde_json::Value], store: &str) {
    lines.iter().for_each(|line| check_fields(line, store));
    for wanted in [
        "B1 machine runs_per_s",
        "B1 function runs_per_s",
        "B2 machine steps_per_s",
        "B2 function steps_per_s",
        "B2 - function_to_machine",
        "B3 machine p50_ms",
        "B3 machine p99_ms",
        "B4 - starts_per_s",
        "B4 - bulk_starts_per_s",
        "B7 machine ms",
        "B7 machine us_per_step",
        "B9 machine p99_ms",
        "B10 function recover_ms",
        "B10 function replay_steps_per_s",
        "B10 function late_to_early",
    ] {
        find(lines, wanted);
    }
    assert_eq!(find(lines, "B2 machine steps_per_s")["runs"], 2);
    for style in ["machine", "function"] {
        let steps = find(lines, &format!("B2 {style} ledger_steps"));
        assert_eq!(steps["value"], 100.0, "20 runs of five steps");
        assert_eq!(find(lines, &format!("B2 {style} ledger_violations"))["value"], 0.0);
    }
}

#[test]
fn every_workload_prints_its_lines_on_memory() {
    let lines = lines(&bench("memory:", &["--json"]));
    check_lines(&lines, "memory");
    assert!(lines.iter().all(|line| line["limit"].is_null()), "memory has no bare loop");
}

#[test]
fn every_workload_prints_its_lines_on_sqlite_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let lines = lines(&bench(&url(&file), &["--json"]));
    check_lines(&lines, "sqlite");
    for limited in ["B2 machine steps_per_s", "B2 function steps_per_s", "B4 - starts_per_s"] {
        assert!(find(&lines, limited)["ratio"].as_f64().is_some(), "{limited} has no limit");
    }
    find(&lines, "B8 - claim_ratio");
    find(&lines, "B8 - startup_s");
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn people_get_a_table() {
    let output = bench("memory:", &["--workload", "b3", "--workload", "B7"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("workload") && text.contains("p99_ms"), "{text}");
    assert!(text.contains("B7") && !text.contains("B2"), "{text}");
}

#[test]
fn an_unknown_workload_is_refused_with_the_names_of_all() {
    let output = bench("memory:", &["--workload", "B99"]);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(
        error.contains("B99") && error.contains("B1, B2, B3, B4, B5, B6, B7, B8, B9, B10"),
        "{error}"
    );
}

/// All that people see of a store.
async fn seen(file: &Path) -> String {
    let client = durably::Client::connect(&url(file)).await.unwrap();
    let (runs, workers) = (client.runs(Default::default()).await, client.workers().await);
    format!("{:?} {:?}", runs.unwrap(), workers.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_runs_in_it_is_refused_and_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.db");
    let mut dev = Command::new(env!("CARGO_BIN_EXE_durably"));
    dev.args(["dev", "--once", "--orders", "1", "--store", &url(&file)]);
    assert!(dev.output().unwrap().status.success());
    let before = seen(&file).await;
    let output = bench(&url(&file), &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let error = stderr(&output);
    assert!(error.contains("is in use: there are runs in it"), "{error}");
    assert_eq!(seen(&file).await, before);
    let others = |name: &String| !name.starts_with("mine.db");
    assert!(!names(folder.path()).iter().any(others), "{:?}", names(folder.path()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_a_process_works_on_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.db");
    let engine = durably::Engine::builder().start(&url(&file)).await.unwrap();
    let output = bench(&url(&file), &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    assert!(error.contains("is in use: process") && error.contains(&engine.worker_id()), "{error}");
    assert_eq!(engine.workers().await.unwrap().len(), 1, "nobody else registered");
    engine.stop().await.unwrap();
    let output = bench(&url(&file), &["--json", "--workload", "B3"]);
    assert!(output.status.success(), "an empty store is welcome: {}", stderr(&output));
}

#[test]
fn what_is_no_store_is_refused_with_the_stores_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letter.txt");
    let letter = "Dear reader, this is no database at all. ".repeat(100);
    std::fs::write(&file, &letter).unwrap();
    for (store, word) in [
        (url(&file), "[DUR-"),
        (url(&folder.path().join("no/a.db")), "create it first"),
        (url(folder.path()), "it is a folder"),
        ("mysql://me:s3cret@127.0.0.1:1/db".into(), "[DUR-"),
        ("mysql://me@host/db?sslmode=require".into(), "without encryption"),
        ("postgres://me:s3cret@host/db?none=1".into(), "there are schema, prefix"),
        ("postgres://me:s3cret@host".into(), "it names no database"),
        ("postgres://me:s3cret@127.0.0.1:1/db".into(), "[DUR-"),
        ("postgres://me@host/db?sslmode=require".into(), "without encryption"),
        ("nonsense:".into(), "the scheme is not known"),
    ] {
        let output = bench(&store, &["--json"]);
        assert_eq!(output.status.code(), Some(1), "{store}");
        let error = stderr(&output);
        assert!(error.contains(word) && !error.contains("s3cret"), "{store}: {error}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), letter);
    assert_eq!(names(folder.path()), ["letter.txt"]);
}
