//! The durably command.
#![allow(clippy::print_stderr, reason = "a command talks to its terminal")]
#![allow(clippy::disallowed_methods, reason = "a program of its own, not the runtime")]

mod bench;
mod dev;
mod doctor;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Memory is asked for in one thread and given back in another all the time (decision 12).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Durable execution on the database you already have.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run sample workflows on a SQLite file and watch them in the terminal.
    ///
    /// Kill it at any moment and run it again: every run goes on where it was.
    Dev(dev::DevArgs),
    /// Measure how fast durably is on a store, beside what the bare database allows.
    ///
    /// Each figure is the median of several passes after a warm-up, each on a new database. The
    /// limit is a loop without an engine that writes the same rows in batches, in turns with the
    /// engine; the ratio is what the engine reaches of it. A store that holds runs, or that a
    /// process works on, is refused; otherwise databases are made in a folder beside a SQLite
    /// file, schemas in a database of PostgreSQL, databases on a server of MySQL or MariaDB, and
    /// removed afterwards.
    ///
    /// With --save NAME the figures are kept as a checkpoint, with --compare NAME those of now are
    /// shown beside it, and with --max-loss 30% it fails where one is worse by more than that.
    ///
    /// B1t (standalone tasks) needs features that this version does not have yet.
    Bench(bench::BenchArgs),
    /// Look at every run of a store and say what is wrong, and what to do.
    ///
    /// Reads only, also while engines work on the store: what looks wrong is looked at again
    /// before it is reported. Exits with 0 if nothing is wrong, 1 if something is, 2 if the store
    /// could not be looked at.
    Doctor(doctor::DoctorArgs),
}

/// Doctor could not look; 1 is what it says of a store in which something is wrong.
const COULD_NOT_LOOK: u8 = 2;

fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("DURABLY_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let Cli { command } = Cli::parse();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Command::Bench(_) = command {
        runtime.worker_threads(bench::THREADS);
    }
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the async runtime could not be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    let (done, failed) = match command {
        Command::Dev(args) => (runtime.block_on(dev::run(args)), ExitCode::FAILURE),
        Command::Bench(args) => (runtime.block_on(bench::run(args)), ExitCode::FAILURE),
        Command::Doctor(args) => match runtime.block_on(doctor::run(args)) {
            Ok(doctor::Health::Wrong) => return ExitCode::FAILURE,
            looked => (looked.map(|_| ()), ExitCode::from(COULD_NOT_LOOK)),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            failed
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
