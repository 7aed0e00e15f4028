//! `durably bench`: the workloads of docs/bench.md, beside what the bare database allows.

mod address;
mod checkpoint;
mod entry;
mod fan;
mod flows;
mod ground;
mod history;
mod keeping;
mod ledger;
mod limit;
mod line;
mod many;
mod pace;
mod part;
mod pickup;
mod progress;
mod report;
mod sleepers;
mod snapshot;
mod starts;
mod watched;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use durably::{Client, RunQuery, RunStatus};
use ground::Ground;
use keeping::Keeping;
use progress::Progress;
use report::Measured;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Threads for handlers and clients, wherever it runs: figures are compared.
pub(crate) const THREADS: usize = 2;
/// Steps in a transaction of the bare loop: the engine's largest batch.
const OTHER_BATCH: usize = 512;

/// Measure how fast durably is on a store, beside what the bare database allows.
#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Where to measure: postgres://USER@HOST/DATABASE, mysql://USER@HOST, sqlite:FILE (a file that
    /// is new or not in use) or memory:.
    #[arg(long, value_name = "URL", required_unless_present = "part")]
    store: Option<String>,
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
    /// How long B6 keeps its snapshot open.
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1440))]
    minutes: u32,
    /// In B3, also measure engines that hear nothing and look from time to time (PostgreSQL).
    #[arg(long)]
    no_notify: bool,
    /// Keep what was measured as a checkpoint of this name.
    #[arg(long, value_name = "NAME", value_parser = checkpoint::checkpoint_name)]
    save: Option<String>,
    /// Show the difference to a checkpoint.
    #[arg(long, value_name = "NAME", value_parser = checkpoint::checkpoint_name)]
    compare: Option<String>,
    /// Fail if a metric is worse by more than this, as 30%.
    #[arg(long, value_name = "PERCENT", requires = "compare", value_parser = checkpoint::percentage)]
    max_loss: Option<f64>,
    /// Where checkpoints are kept, instead of durably/bench in the user's data folder.
    #[arg(long, value_name = "FOLDER")]
    checkpoints: Option<PathBuf>,
    /// Only does a part of a workload, as said on standard input; for the benchmark itself.
    #[arg(long, hide = true)]
    part: bool,
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
    /// A thousand workers in four processes claim 20,000 tasks (servers).
    #[value(name = "B5")]
    B5,
    /// Constant load for minutes, while a snapshot is held open (servers; only if named).
    #[value(name = "B6")]
    B6,
    /// Fan-out of a thousand steps, and its fan-in.
    #[value(name = "B7")]
    B7,
    /// A million sleeping runs (not on memory:).
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
    /// What is measured where nothing is named. B6 takes many minutes.
    fn usual() -> Vec<Workload> {
        let all = Workload::value_variants().iter().copied();
        all.filter(|workload| *workload != Workload::B6).collect()
    }

    async fn measure(self, bench: &Bench) -> anyhow::Result<Vec<Measured>> {
        match self {
            Workload::B1 => line::b1(bench).await,
            Workload::B2 => line::b2(bench).await,
            Workload::B3 => pickup::b3(bench).await,
            Workload::B4 => entry::b4(bench).await,
            Workload::B5 => many::b5(bench).await,
            Workload::B6 => snapshot::b6(bench).await,
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
    /// Tasks that processes share.
    shared: usize,
    /// How long a snapshot is held open.
    snapshot: Duration,
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
            shared: scaled(20_000.0, quick),
            snapshot: Duration::from_secs_f64(f64::from(args.minutes) * 60.0 * all),
            events: scaled(10_000.0, all) as u32,
        }
    }
}

/// The sizes in words: figures of different sizes are not compared.
fn sizes_in_words(args: &BenchArgs) -> String {
    let mut words = String::from(if args.quick { "--quick" } else { "the usual sizes" });
    if let Some(sleepers) = args.sleepers {
        words.push_str(&format!(" --sleepers {sleepers}"));
    }
    if args.minutes != 10 {
        words.push_str(&format!(" --minutes {}", args.minutes));
    }
    if args.scale != 1.0 {
        words.push_str(&format!(" --scale {}", args.scale));
    }
    words
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
    /// Whether engines that hear nothing are measured too.
    polls: bool,
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
    if args.part {
        return part::obey().await;
    }
    let store = args.store.as_deref().unwrap_or_default();
    let ground = Ground::of(store).await?;
    ensure!(
        !args.no_notify || ground.notifies(),
        "--no-notify is for PostgreSQL: on {} processes tell each other nothing anyway",
        ground.kind()
    );
    let (limit_batch, other_batch) = match (args.limit_batch, &ground) {
        (Some(batch), _) => (batch as usize, None),
        (None, Ground::Memory | Ground::Sqlite(_)) => (OTHER_BATCH, None),
        (None, Ground::Server(_)) => (128, Some(OTHER_BATCH)),
    };
    let bench = Bench {
        ground,
        sizes: Sizes::of(&args),
        runs: args.runs,
        limit_batch,
        other_batch,
        polls: args.no_notify,
        progress: Progress::new(),
    };
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => anyhow::bail!("stopped before the end"),
        measured = measure(&args, &bench) => measured,
    }
}

async fn measure(args: &BenchArgs, bench: &Bench) -> anyhow::Result<()> {
    let keeping = Keeping::of(args, bench)?;
    let workloads = match args.workloads.is_empty() {
        true => Workload::usual(),
        false => args.workloads.clone(),
    };
    if let (Some(made), false) = (bench.ground.made(), args.json) {
        say(made)?;
    }
    let mut all = Vec::new();
    for workload in workloads {
        bench.progress.begin(workload);
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
    let never = |one: &&Measured| {
        [line::VIOLATIONS, many::DUPLICATES].contains(&one.metric) && one.values != [0.0]
    };
    if let Some(broken) = all.iter().find(never) {
        let (workload, style) = (broken.workload, broken.style.unwrap_or_default());
        let what = match broken.metric {
            many::DUPLICATES => "tasks were claimed twice at once",
            _ => "steps began before what they build upon was committed",
        };
        anyhow::bail!(
            "{workload} {style}: {what}; this is a defect, please report it with the lines above"
        );
    }
    match keeping {
        Some(keeping) => keeping.finish(args, bench, &all),
        None => Ok(()),
    }
}

/// One line on standard output. A reader that went away is an error, not a panic.
fn say(line: impl std::fmt::Display) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
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
