//! `durably bench --save` and `--compare`.

use std::path::Path;
use std::process::{Command, Output};

fn bench(folder: &Path, store: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_durably"));
    command.args(["bench", "--store", store, "--scale", "0.01", "--runs", "1", "--workload", "B7"]);
    command.arg("--checkpoints").arg(folder).args(more);
    command.output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_checkpoint_is_saved_with_the_machine_and_compared_with() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = folder.path().join("deep/checkpoints");
    let said = stdout(&bench(&checkpoints, "memory:", &["--save", "one"]));
    let file = checkpoints.join("one/memory.json");
    assert!(said.contains("saved as one") && file.exists(), "{said}");
    let saved = std::fs::read_to_string(&file).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
    assert_eq!(saved["store"], "memory");
    assert!(saved["machine"]["processors"].as_u64() > Some(0), "{saved}");
    assert_eq!(saved["figures"].as_array().unwrap().len(), 4, "{saved}");

    let said = stdout(&bench(&checkpoints, "memory:", &["--compare", "one"]));
    assert!(said.contains("compared with") && said.contains("change"), "{said}");
    let said = stdout(&bench(&checkpoints, "memory:", &["--compare", "one", "--json"]));
    let last: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert!(last["before"].as_f64().is_some() && last["now"].as_f64().is_some(), "{last}");
}

/// Makes what was measured before better or worse than what will be.
fn change_figures(file: &Path, value: f64) {
    let saved = std::fs::read_to_string(file).unwrap();
    let mut saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
    for figure in saved["figures"].as_array_mut().unwrap() {
        figure["value"] = value.into();
    }
    std::fs::write(file, saved.to_string()).unwrap();
}

#[test]
fn a_loss_beyond_the_bound_fails_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    stdout(&bench(folder.path(), "memory:", &["--save", "one"]));
    let file = folder.path().join("one/memory.json");
    change_figures(&file, 1e-6);
    let output = bench(folder.path(), "memory:", &["--compare", "one", "--max-loss", "30%"]);
    assert_eq!(output.status.code(), Some(1));
    let error = stderr(&output);
    assert!(error.contains("worse by more than 30%") && error.contains("us_per_step"), "{error}");
    change_figures(&file, 1e9);
    stdout(&bench(folder.path(), "memory:", &["--compare", "one", "--max-loss", "30%"]));
}

#[test]
fn what_cannot_be_compared_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |store: &str, more: &[&str], code: i32, word: &str| {
        let output = bench(folder.path(), store, more);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{more:?}");
        assert!(stderr(&output).contains(word), "{more:?}: {}", stderr(&output));
    };
    refused("memory:", &["--compare", "one"], 1, "make one with --save one");
    stdout(&bench(folder.path(), "memory:", &["--save", "one"]));
    refused("memory:", &["--compare", "two"], 1, "there are one");
    let file = format!("sqlite:{}", folder.path().join("a.db").display());
    refused(&file, &["--compare", "one"], 1, "is of memory, not of sqlite");
    refused("memory:", &["--compare", "one", "--quick"], 1, "different sizes");
    for name in ["../one", ".one", "a/b", ""] {
        refused("memory:", &["--save", name], 2, "letters, digits");
    }
    for loss in ["much", "-3%", "101%"] {
        let max = format!("--max-loss={loss}");
        refused("memory:", &["--compare", "one", &max], 2, "from 0% to 100%");
    }
    refused("memory:", &["--max-loss", "3%"], 2, "--compare");
    refused("memory:", &["--minutes", "0"], 2, "--minutes");
    refused("memory:", &["--no-notify"], 1, "for PostgreSQL");
    std::fs::write(folder.path().join("one/memory.json"), "{").unwrap();
    refused("memory:", &["--compare", "one"], 1, "is no checkpoint");
}
