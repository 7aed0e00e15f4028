//! Every example runs, and says what it should.

use std::path::PathBuf;
use std::process::Command;

/// Runs an example in a folder of its own and gives what it printed.
fn run(example: &str) -> String {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(path.join("examples").join(example))
        .current_dir(folder.path())
        .output()
        .unwrap_or_else(|error| panic!("{example} cannot be run: {error}"));
    let printed = String::from_utf8(output.stdout).unwrap();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example} failed: {printed}\n{complained}");
    printed
}

#[test]
fn hello_greets_twice() {
    assert_eq!(run("hello"), "Hello, world!\nHello, world!\n");
}

#[test]
fn simple_workflow_ships_and_shows_its_trail() {
    let printed = run("simple_workflow");
    assert!(printed.starts_with("shipped: T-tea\n"), "{printed}");
    assert!(printed.contains("charge: 3 entries"), "{printed}");
}

#[test]
fn retry_shows_attempts_and_the_dead_letter() {
    let printed = run("retry");
    assert!(printed.contains("flaky took 3 attempts"), "{printed}");
    assert!(printed.contains("always down (retryable, DOWN)"), "{printed}");
    assert!(printed.contains("retries: 4"), "{printed}");
    assert!(printed.contains("dead letter: broken after 3 attempts, 3 errors"), "{printed}");
}

#[test]
fn signal_cancellation_pays_and_compensates() {
    let printed = run("signal_cancellation");
    assert!(printed.contains("expense: 4200 cents paid"), "{printed}");
    assert!(printed.contains("LH 123 is cancelled"), "{printed}");
    assert!(printed.contains("the long activity hears: the run no longer wants it"), "{printed}");
    assert!(printed.contains("trip cancelled: the meeting is off"), "{printed}");
}

#[test]
fn the_readme_shows_the_hello_example_in_at_most_thirty_lines() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let shown = readme
        .split("```rust\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("the README has a Rust block");
    let example = std::fs::read_to_string(root.join("examples/hello.rs")).unwrap();
    let code = example.split_once("use durably::prelude::*;").expect("the example").1;
    assert_eq!(shown, format!("use durably::prelude::*;{code}"), "README and example differ");
    assert!(shown.lines().count() <= 30);
}
