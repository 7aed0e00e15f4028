//! `durably dev`, as a newcomer meets it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

fn dev(folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_durably"));
    command.arg("dev").args(more).current_dir(folder).stdout(Stdio::piped());
    command
}

struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    seen: Vec<String>,
}

impl Running {
    fn start(mut command: Command) -> Running {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines, seen: vec![] }
    }

    fn read_until(&mut self, part: &str) {
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            let found = line.contains(part);
            self.seen.push(line);
            if found {
                return;
            }
        }
        panic!("ended without {part:?}: {:#?}", self.seen);
    }

    fn rest(mut self) -> (bool, String) {
        for line in self.lines.by_ref() {
            self.seen.push(line.unwrap());
        }
        (self.child.wait().unwrap().success(), self.seen.join("\n"))
    }
}

fn signal(child: &Child, name: &str) {
    let done = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status();
    assert!(done.unwrap().success());
}

#[test]
fn killed_and_started_again_every_run_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Running::start(dev(folder.path(), &["--orders", "1", "--every", "0"]));
    first.read_until("charge failed");
    first.child.kill().unwrap();
    let (_, before) = first.rest();
    assert!(before.contains("step reserve"), "{before}");

    let again = Running::start(dev(folder.path(), &["--orders", "0", "--once"]));
    let (success, after) = again.rest();
    assert!(success, "{after}");
    for part in [
        "go on where they were",
        "charge done (attempt 3)",
        "timer sleep fired",
        "signal approval received",
        "ship done",
        "all runs have ended",
        "stopped",
    ] {
        assert!(after.contains(part), "{part:?} is missing in\n{after}");
    }
    assert!(!after.contains("step reserve"), "a recorded step does not run again:\n{after}");
}

#[test]
fn ctrl_c_stops_gracefully() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::start(dev(folder.path(), &[]));
    running.read_until("started");
    signal(&running.child, "INT");
    let (success, printed) = running.rest();
    assert!(success, "{printed}");
    assert!(printed.trim_end().lines().any(|line| line == "stopped"), "{printed}");
}

#[test]
fn a_store_that_cannot_be_opened_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (url, code) in [("nonsense", "DUR-0020"), ("sqlite:no/such/folder/x.db", "DUR-0021")] {
        let output = dev(folder.path(), &["--store", url]).stderr(Stdio::piped()).output().unwrap();
        assert!(!output.status.success());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(code), "{said}");
        assert!(said.contains(url.trim_start_matches("sqlite:")), "{said}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = dev(folder.path(), &["--every", "0"]);
    let mut running = Running::start({
        command.stderr(Stdio::piped());
        command
    });
    running.read_until("started");
    let Running { mut child, lines, .. } = running;
    drop(lines);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    assert_eq!(said, "");
}
