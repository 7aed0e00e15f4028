//! Engine processes that a test starts, kills and stops.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::disallowed_methods, reason = "the test starts and kills real processes")]

use super::work::Effect;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::LazyLock;

/// Processes on one store, with one ledger.
pub(crate) struct Fleet {
    url: String,
    folder: tempfile::TempDir,
}

/// One of them. Killed if it is dropped.
pub(crate) struct Process {
    child: Child,
    says: BufReader<ChildStdout>,
    clock: i64,
}

impl Fleet {
    pub(crate) fn on(url: &str) -> Fleet {
        Fleet { url: url.to_owned(), folder: tempfile::tempdir().unwrap() }
    }

    fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    /// Launches a process, which opens the store by and by.
    pub(crate) fn launch(&self, slots: usize) -> Process {
        self.launch_with(slots, |command| command)
    }

    pub(crate) fn launch_with(
        &self,
        slots: usize,
        with: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Process {
        let mut command = Command::new(program());
        command.arg(&self.url).arg(self.ledger()).arg(slots.to_string());
        let command = with(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let says = BufReader::new(child.stdout.take().unwrap());
        Process { child, says, clock: 0 }
    }

    /// Launches several at once, and waits until all of them serve.
    pub(crate) fn ready(&self, processes: usize, slots: usize) -> Vec<Process> {
        let all: Vec<Process> = (0..processes).map(|_| self.launch(slots)).collect();
        all.into_iter().map(Process::ready).collect()
    }

    /// Effects so far, and who had how many of them.
    pub(crate) fn effects(&self) -> (Vec<Effect>, BTreeMap<u32, usize>) {
        let text = std::fs::read_to_string(self.ledger()).unwrap();
        let (mut effects, mut by_process) = (vec![], BTreeMap::new());
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let words: Vec<&str> = line.trim_end().split(' ').collect();
            let [run, activity, attempt, process] = words.as_slice() else {
                panic!("unexpected line {line:?}");
            };
            let (run, attempt) = (run.parse().unwrap(), attempt.parse().unwrap());
            effects.push(Effect { run, activity: (*activity).to_owned(), attempt });
            *by_process.entry(process.parse().unwrap()).or_default() += 1;
        }
        (effects, by_process)
    }
}

impl Process {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it serves.
    pub(crate) fn ready(mut self) -> Process {
        let line = self.line();
        let clock = line.strip_prefix("ready ").unwrap_or_else(|| panic!("not ready: {line:?}"));
        self.clock = clock.parse().unwrap();
        self
    }

    /// What its clock showed when it was ready, in milliseconds.
    pub(crate) fn clock(&self) -> i64 {
        self.clock
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// With SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Gracefully.
    pub(crate) fn stop(mut self) {
        drop(self.child.stdin.take());
        assert_eq!(self.line(), "stopped");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program, built beside the tests. Cargo does that when it builds all of them; where it was
/// asked for some test files alone, it is asked for the program here.
fn program() -> PathBuf {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(build);
    PROGRAM.clone()
}

fn build() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    if folder.ends_with("deps") || folder.ends_with("examples") {
        folder.pop();
    }
    let program = folder.join("examples").join("fleet");
    if !program.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "durably", "--example", "fleet"]);
        cargo.arg("--target-dir").arg(folder.parent().unwrap());
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        let built = cargo.status().unwrap();
        assert!(built.success(), "cargo could not build the example fleet: {built}");
    }
    program
}
