//! Runs a command with a private database server, for scripts.
#![allow(clippy::print_stderr, reason = "a command talks to its terminal")]

use clap::{Args, Parser, Subcommand};
use durably_testbed::{Server, ServerOptions, TestbedError};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The variable in which the command finds the server's URL.
const URL_VARIABLE: &str = "DURABLY_STORE_URL";

/// Runs a command with a private database server, whose URL it finds in DURABLY_STORE_URL, and
/// throws the server away afterwards. Durability is on.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    order: Order,
}

#[derive(Subcommand)]
enum Order {
    /// With PostgreSQL.
    Postgres(With),
    /// With MariaDB; the URL names no database.
    Mysql(With),
    /// Stop the servers that tests of this clone shared, if nobody uses them any more.
    StopUnused,
}

#[derive(Args)]
struct With {
    /// Use the server that tests share, instead of a new one.
    #[arg(long, conflicts_with_all = ["below", "set", "without_fsync"])]
    shared: bool,
    /// Put the data below this folder, instead of the one for temporary files. The server's user
    /// must be able to get there.
    #[arg(long)]
    below: Option<PathBuf>,
    /// A setting of the server, such as shared_buffers=1GB.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Do not wait until writes reach the disk.
    #[arg(long)]
    without_fsync: bool,
    /// What to run.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

impl With {
    fn options(&self) -> ServerOptions {
        let mut options = ServerOptions::default();
        for (name, value) in &self.set {
            options = options.set(name, value);
        }
        if self.without_fsync {
            options = options.without_fsync();
        }
        match &self.below {
            Some(below) => options.below(below),
            None => options,
        }
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("not of the form NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn main() -> ExitCode {
    match obey(Cli::parse().order) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:?}");
            ExitCode::FAILURE
        }
    }
}

fn obey(order: Order) -> Result<ExitCode, TestbedError> {
    let (with, shared, start): (With, fn() -> _, fn(&_) -> _) = match order {
        Order::Postgres(with) => (with, durably_testbed::postgres, Server::postgres),
        Order::Mysql(with) => (with, durably_testbed::mysql, Server::mariadb),
        Order::StopUnused => return durably_testbed::stop_unused().map(|()| ExitCode::SUCCESS),
    };
    if with.shared {
        return run(&with.command, &shared()?);
    }
    let server = start(&with.options())?;
    run(&with.command, &server.url())
}

/// Runs the command and ends as it does.
fn run(command: &[String], url: &str) -> Result<ExitCode, TestbedError> {
    let status = Command::new(&command[0])
        .args(&command[1..])
        .env(URL_VARIABLE, url)
        .status()
        .map_err(|source| TestbedError::Io { doing: format!("run {}", command[0]), source })?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
