//! `durably bench`: the workloads of docs/bench.md, beside what the bare database allows.

mod address;
mod entry;
mod fan;
mod flows;
mod ground;
mod history;
mod ledger;
mod limit;
mod line;
mod pace;
mod pickup;
mod report;
mod sleepers;
mod starts;

use anyhow::Context;
use clap::{Args, ValueEnum};
use durably::{Client, RunQuery, RunStatus};
use ground::Ground;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use report::Measured;
use std::io::{IsTerminal, Write};
use std::time::{Duration, SystemTime};

/// Threads for handlers and clients, wherever it runs: figures are compared.
pub(crate) const THREADS: usize = 2;

/// Measure how fast durably is on a store, beside what the bare database allows.
#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Where to measure: postgres://USER@HOST/DATABASE, sqlite:FILE (a file that is new or not in
    /// use) or memory:.
    #[arg(long, value_name = "URL")]
    store: String,
    /// Only this workload; may be given several times.
    #[arg(long = "workload", value_name = "NAME", ignore_case = true)]
    workloads: Vec<Workload>,
    /// One JSON object per line instead of a table.
    #[arg(long)]
    json: bool,
    /// Measured passes of each workload.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Shorter passes and smaller numbers, for a first impression.
    #[arg(long)]
    quick: bool,
    /// Steps that the bare loop writes in one transaction; 512 on SQLite, 128 on a server where
    /// none are given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit_batch: Option<u32>,
    /// Sleeping runs of B8; 1,000,000 where none are given.
    #[arg(long, value_name = "N")]
    sleepers: Option<usize>,
    /// Only starts an engine and says what it took; for B8 itself.
    #[arg(long, hide = true)]
    engine_only: bool,
    /// All sizes times this, for the tests of this command itself.
    #[arg(long, default_value_t = 1.0, hide = true)]
    scale: f64,
}

/// What can be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Workload {
    /// Single-step runs, started before: time to drain.
    #[value(name = "B1")]
    B1,
    /// Five-step runs in a line, several hundred in flight.
    #[value(name = "B2")]
    B2,
    /// Idle engine: from the call that starts a run to its handler running.
    #[value(name = "B3")]
    B3,
    /// Starts from one client: one by one, and in bulk.
    #[value(name = "B4")]
    B4,
    /// Fan-out of a thousand steps, and its fan-in.
    #[value(name = "B7")]
    B7,
    /// A million sleeping runs (SQLite).
    #[value(name = "B8")]
    B8,
    /// As B3, at half load.
    #[value(name = "B9")]
    B9,
    /// A run of 10,000 events: its steps, and its recovery.
    #[value(name = "B10")]
    B10,
}

impl Workload {
    async fn measure(self, bench: &Bench) -> anyhow::Result<Vec<Measured>> {
        match self {
            Workload::B1 => line::b1(bench).await,
            Workload::B2 => line::b2(bench).await,
            Workload::B3 => pickup::b3(bench).await,
            Workload::B4 => entry::b4(bench).await,
            Workload::B7 => fan::b7(bench).await,
            Workload::B8 => sleepers::b8(bench).await,
            Workload::B9 => pickup::b9(bench).await,
            Workload::B10 => history::b10(bench).await,
        }
    }
}

/// How large and how long.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// One measured pass, where the number of runs is free.
    pass: Duration,
    /// Runs of a first pass that warms up.
    warm_up: usize,
    /// Runs that the ledger looks at.
    audited: usize,
    /// Runs started before anybody works.
    backlog: usize,
    /// Single pickups of a pass.
    pickups: usize,
    /// Steps side by side.
    fan: u32,
    /// Sleeping runs.
    sleepers: usize,
    /// Tasks claimed beside them.
    claims: usize,
    /// Events of a long history.
    events: u32,
}

impl Sizes {
    fn of(args: &BenchArgs) -> Sizes {
        let all = args.scale.clamp(0.0001, 100.0);
        let quick = if args.quick { all * 0.2 } else { all };
        let scaled = |size: f64, scale: f64| ((size * scale).ceil() as usize).max(4);
        Sizes {
            pass: Duration::from_secs_f64(2.5 * quick),
            warm_up: scaled(400.0, quick),
            audited: scaled(2000.0, quick),
            backlog: scaled(50_000.0, quick),
            pickups: scaled(500.0, quick),
            fan: scaled(1000.0, all) as u32,
            sleepers: args.sleepers.unwrap_or_else(|| scaled(1e6, quick * quick)),
            claims: scaled(5000.0, all),
            events: scaled(10_000.0, all) as u32,
        }
    }
}

/// What every workload is given.
struct Bench {
    ground: Ground,
    sizes: Sizes,
    runs: u32,
    /// Steps in one transaction of the bare loop.
    limit_batch: usize,
    /// Another size, to be measured beside it.
    other_batch: Option<usize>,
    progress: Progress,
}

impl Bench {
    fn measured(
        &self,
        workload: &'static str,
        style: Option<&'static str>,
        metric: &'static str,
        values: Vec<f64>,
    ) -> Measured {
        Measured { workload, style, store: self.ground.kind(), metric, values, limits: vec![] }
    }
}

/// Measures and reports. Ctrl-C ends it and removes what was made.
pub(crate) async fn run(args: BenchArgs) -> anyhow::Result<()> {
    if args.engine_only {
        return say(sleepers::engine_only(&args.store).await?);
    }
    let ground = Ground::of(&args.store).await?;
    let (limit_batch, other_batch) = match (args.limit_batch, &ground) {
        (Some(batch), _) => (batch as usize, None),
        (None, Ground::Memory | Ground::Sqlite(_)) => (512, None),
        (None, Ground::Postgres(_)) => (128, Some(512)),
    };
    let bench = Bench {
        ground,
        sizes: Sizes::of(&args),
        runs: args.runs,
        limit_batch,
        other_batch,
        progress: Progress::new(),
    };
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => anyhow::bail!("stopped before the end"),
        measured = measure(&args, &bench) => measured,
    }
}

async fn measure(args: &BenchArgs, bench: &Bench) -> anyhow::Result<()> {
    let workloads = match args.workloads.is_empty() {
        true => Workload::value_variants(),
        false => &args.workloads,
    };
    if let (Some(made), false) = (bench.ground.made(), args.json) {
        say(made)?;
    }
    let mut all = Vec::new();
    for workload in workloads {
        bench.progress.begin(*workload);
        let measured = workload.measure(bench).await?;
        bench.progress.clear();
        if args.json {
            measured.iter().try_for_each(|measured| say(measured.to_json()?))?;
        }
        all.extend(measured);
    }
    if !args.json {
        say(report::table(&all))?;
    }
    let broken = |one: &&Measured| one.metric == line::VIOLATIONS && one.values != [0.0];
    if let Some(broken) = all.iter().find(broken) {
        anyhow::bail!(
            "the ledger of B2 ({}) has violations: steps began before what they build upon was \
             committed; this is a defect, please report it with the lines above",
            broken.style.unwrap_or_default()
        );
    }
    Ok(())
}

/// One line on standard output. A reader that went away is an error, not a panic.
fn say(line: impl std::fmt::Display) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}

/// Shows on a terminal that something goes on.
struct Progress(ProgressBar);

impl Progress {
    fn new() -> Progress {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(ProgressStyle::default_spinner());
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress(bar)
    }

    fn begin(&self, workload: Workload) {
        let name = workload.to_possible_value().map(|value| value.get_name().to_owned());
        self.0.set_message(format!("{}: warming up", name.unwrap_or_default()));
    }

    fn note(&self, what: String) {
        self.0.set_message(what);
    }

    fn advance(&self, what: String) {
        self.0.inc(1);
        self.0.set_message(format!("{what}: {} passes", self.0.position()));
    }

    fn clear(&self) {
        self.0.reset();
        self.0.set_message("");
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Waits for something that takes moments; an engine that does not get there is reported.
async fn patiently<T>(what: &str, waiting: impl Future<Output = T>) -> anyhow::Result<T> {
    let limit = Duration::from_secs(120);
    let waited = tokio::time::timeout(limit, waiting).await;
    waited.with_context(|| format!("waited {limit:?} in vain until {what}; please report it"))
}

/// Waits until no run is open, and checks that so many have completed.
async fn until_ended(client: &Client, runs: usize) -> anyhow::Result<()> {
    let of = |statuses: Vec<RunStatus>, most| RunQuery { statuses, most, ..RunQuery::default() };
    let ended = async {
        let open = of(vec![RunStatus::Pending, RunStatus::Running], 1);
        while !client.runs(open.clone()).await?.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        anyhow::Ok(())
    };
    patiently("all runs have ended", ended).await??;
    let failed = of(vec![RunStatus::Failed, RunStatus::Cancelled, RunStatus::Terminated], 1);
    if let Some(run) = client.runs(failed).await?.first() {
        anyhow::bail!("of {runs} measured runs, {} did not complete", run.identity.id);
    }
    Ok(())
}
