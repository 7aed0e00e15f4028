//! `durably dev`: sample workflows on a SQLite file, watched in the terminal.

mod samples;
mod watch;

use anyhow::Context;
use clap::Args;
use durably::{Client, Engine, RunQuery, RunStatus, RunView, Waits};
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
    let engine = samples::engine()
        .start(&args.store)
        .await
        .with_context(|| format!("cannot run on {}", args.store))?;
    let client = engine.client();
    println!("durably dev on {}   (Ctrl-C stops it; kill -9 harms nothing)", args.store);
    greet(&client).await?;
    let mut watcher = watch::Watcher::new(client.clone()).await?;
    for _ in 0..args.orders {
        samples::start_order(&client).await?;
    }
    samples::start_report(&client).await?;
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    let mut signals = Stop::new()?;
    let mut beats = 0u64;
    loop {
        tokio::select! {
            biased;
            () = signals.wait() => break,
            _ = ticks.tick() => {}
        }
        beats += 1;
        watcher.show().await?;
        samples::approve_waiting(&client).await?;
        if args.every > 0 && !args.once && beats.is_multiple_of(args.every * 10) {
            samples::start_order(&client).await?;
        }
        if args.once && open_runs(&client).await?.is_empty() {
            watcher.show().await?;
            println!("all runs have ended");
            return stop(&engine, signals).await;
        }
    }
    println!("stopping: work under way may end, the rest goes on at the next start");
    let stopped = stop(&engine, signals).await;
    watcher.show().await?;
    stopped
}

async fn stop(engine: &Engine, mut signals: Stop) -> anyhow::Result<()> {
    tokio::select! {
        biased;
        stopped = engine.stop() => stopped.context("cannot stop gracefully")?,
        () = signals.wait() => {
            println!("stopped at once");
            std::process::exit(130);
        }
    }
    println!("stopped");
    Ok(())
}

/// Says what a predecessor left.
async fn greet(client: &Client) -> anyhow::Result<()> {
    let open = open_runs(client).await?;
    if !open.is_empty() {
        println!("{} runs go on where they were:", open.len());
        for run in open.iter().rev() {
            println!("  {}  {} at event {}", watch::short(run), run.workflow_type, run.head);
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
