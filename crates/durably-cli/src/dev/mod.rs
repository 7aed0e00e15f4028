//! `durably dev`: sample workflows on a SQLite file, watched in the terminal.

mod samples;
mod watch;

use anyhow::Context;
use clap::Args;
use durably::{Client, Engine, RunQuery, RunStatus, RunView, Waits};
use std::io::Write;
use std::time::Duration;

/// Run sample workflows on a SQLite file and watch them in the terminal.
#[derive(Args)]
pub(crate) struct DevArgs {
    /// Where runs are kept.
    #[arg(long, default_value = "sqlite:durably-dev.db", value_name = "URL")]
    store: String,
    /// Start this many orders at the beginning.
    #[arg(long, default_value_t = 2, value_name = "N")]
    orders: u32,
    /// Start another order every so many seconds; 0 for none.
    #[arg(long, default_value_t = 15, value_name = "SECONDS")]
    every: u64,
    /// End when all runs have ended instead of waiting for Ctrl-C.
    #[arg(long)]
    once: bool,
}

/// Runs until Ctrl-C or SIGTERM; a second one ends at once.
pub(crate) async fn run(args: DevArgs) -> anyhow::Result<()> {
    let mut signals = Stop::new()?;
    let engine = samples::engine()
        .start(&args.store)
        .await
        .with_context(|| format!("cannot run on {}", args.store))?;
    let watched = watch_until_stopped(&engine, &args, &mut signals).await;
    // Whatever ended it, what is under way may end.
    stop(&engine, signals).await?;
    watched?.show().await?;
    say("stopped")
}

async fn watch_until_stopped(
    engine: &Engine,
    args: &DevArgs,
    signals: &mut Stop,
) -> anyhow::Result<watch::Watcher> {
    let client = engine.client();
    say(format!("durably dev on {}   (Ctrl-C stops it; kill -9 harms nothing)", args.store))?;
    greet(&client).await?;
    let mut watcher = watch::Watcher::new(client.clone()).await?;
    for _ in 0..args.orders {
        samples::start_order(&client).await?;
    }
    samples::start_report(&client).await?;
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    for beat in 1u64.. {
        tokio::select! {
            biased;
            () = signals.wait() => break,
            _ = ticks.tick() => {}
        }
        watcher.show().await?;
        samples::approve_waiting(&client).await?;
        if args.every > 0 && !args.once && beat.is_multiple_of(args.every * 10) {
            samples::start_order(&client).await?;
        }
        if args.once && open_runs(&client).await?.is_empty() {
            watcher.show().await?;
            say("all runs have ended")?;
            return Ok(watcher);
        }
    }
    say("stopping: work under way may end, the rest goes on at the next start")?;
    Ok(watcher)
}

async fn stop(engine: &Engine, mut signals: Stop) -> anyhow::Result<()> {
    tokio::select! {
        biased;
        stopped = engine.stop() => stopped.context("cannot stop gracefully"),
        () = signals.wait() => {
            say("stopped at once")?;
            std::process::exit(130);
        }
    }
}

/// One line for people. A reader that went away is an error, not a panic.
fn say(line: impl std::fmt::Display) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}

/// Says what a predecessor left.
async fn greet(client: &Client) -> anyhow::Result<()> {
    let open = open_runs(client).await?;
    if !open.is_empty() {
        say(format!("{} runs go on where they were:", open.len()))?;
        for run in open.iter().rev() {
            let (id, kind) = (watch::short(run), &run.workflow_type);
            say(format!("  {id}  {kind} at event {}", run.head))?;
        }
    }
    Ok(())
}

async fn open_runs(client: &Client) -> anyhow::Result<Vec<RunView>> {
    let statuses = vec![RunStatus::Pending, RunStatus::Running];
    Ok(client.runs(RunQuery { statuses, most: 1000, ..RunQuery::default() }).await?)
}

/// Whether a run waits for a signal of this name.
fn waits_for(run: &RunView, signal: &str) -> bool {
    match &run.waits {
        Waits::Any => false,
        Waits::Signals(names) => names.iter().any(|name| name == signal),
    }
}

/// Ctrl-C and SIGTERM.
struct Stop {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Stop {
    fn new() -> anyhow::Result<Stop> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Stop {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
