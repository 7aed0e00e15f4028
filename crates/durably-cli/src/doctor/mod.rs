//! `durably doctor`: looks at every run of a store and says what does not hold, and what to do.
//! Reads only; makes and migrates nothing.

mod report;

use anyhow::Context;
use clap::Args;
use durably_store::check::{Doctor, Finding, Weight};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use report::Report;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Look for what is wrong in a store.
#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// The store: sqlite:FILE, postgres://…, mysql://….
    #[arg(long, value_name = "URL")]
    store: String,
    /// One JSON object per finding and line, and one at the end, instead of a table.
    #[arg(long)]
    json: bool,
}

/// Whether something is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Health {
    /// Nothing is; there may be notes.
    Clean,
    /// Something is.
    Wrong,
}

/// Looks at the store.
pub(crate) async fn run(args: DoctorArgs) -> anyhow::Result<Health> {
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => anyhow::bail!("stopped before all was looked at"),
        looked = look(&args) => looked,
    }
}

async fn look(args: &DoctorArgs) -> anyhow::Result<Health> {
    let progress = Progress::new();
    let patient = durably::open_to_look(&args.store).await?;
    let store = patient.store.as_ref();
    let now = store.now().await.context("cannot look at the store")?;
    let mut report = Report::new(now);
    for error in &patient.wrong {
        report.add(args, Finding::of_store(error))?;
    }
    let mut doctor = Doctor::new(store);
    while let Some(seen) = doctor.page().await.context("cannot look at the whole store")? {
        report.runs += seen.runs;
        for finding in seen.findings {
            report.add(args, finding)?;
        }
        progress.at(&report, seen.last.map(|run| run.0.as_u128()));
    }
    progress.0.finish_and_clear();
    report.end(args, store.kind())?;
    Ok(if report.wrong == 0 { Health::Clean } else { Health::Wrong })
}

/// One line on standard output. A reader that went away is an error, not a panic.
fn say(line: impl std::fmt::Display) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}

impl Report {
    fn add(&mut self, args: &DoctorArgs, finding: Finding) -> anyhow::Result<()> {
        match finding.weight {
            Weight::Wrong => self.wrong += 1,
            Weight::Note => self.notes += 1,
        }
        match args.json {
            true => say(report::json(&finding)),
            false => {
                self.keep(finding);
                Ok(())
            }
        }
    }

    fn end(&self, args: &DoctorArgs, kind: &str) -> anyhow::Result<()> {
        if args.json {
            return say(self.summary_json(kind));
        }
        if let Some(table) = self.table() {
            say(table)?;
        }
        say(self.summary())
    }
}

/// Shows on a terminal how far it is.
struct Progress(ProgressBar);

impl Progress {
    /// Parts that are shown.
    const PARTS: u64 = 1_000;

    fn new() -> Progress {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(Self::PARTS), target);
        let style = ProgressStyle::with_template("{bar:40} {elapsed} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message("opening the store");
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress(bar)
    }

    /// Ids begin with the time of their run's birth: how far that is on the way to now is how far
    /// the walk is, roughly, without counting a large table first.
    fn at(&self, report: &Report, last: Option<u128>) {
        self.0.set_message(format!("{} runs, {} wrong", report.runs, report.wrong));
        let Some(at) = last.and_then(|last| i64::try_from(last >> 80).ok()) else { return };
        if let Some(part) = report.part(at, Self::PARTS) {
            self.0.set_position(part);
        }
    }
}
