//! B1 and B2: runs whose steps stand in a line.

use super::flows::{Began, Parcel, Style};
use super::ground::Ground;
use super::ledger::Ledger;
use super::limit::{BareLoop, Rows};
use super::pace::Pace;
use super::part::{Part, Seen, Task};
use super::report::Measured;
use super::starts::{Runs, start_runs};
use super::watched::Watched;
use super::{Bench, patiently, until_ended};
use durably::Client;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Steps that began before what they build upon was committed: always 0.
pub(super) const VIOLATIONS: &str = "ledger_violations";
/// Steps of a run of B2.
const STEPS: u32 = 5;
/// A backlog is watched for so many times the length of a pass.
const DRAIN_PASSES: u32 = 6;
/// Connections of the bare loop to a server.
const CONNECTIONS: usize = 2;
/// Runs of B2 in flight: another one is started as one comes to its last step.
pub(super) const IN_FLIGHT: usize = 512;

/// B2 in both styles, each beside its limit.
pub(super) async fn b2(bench: &Bench) -> anyhow::Result<Vec<Measured>> {
    let mut plans = Vec::new();
    for style in Style::ALL {
        let runs = calibrate(bench, style).await?;
        plans.push(Plan { style, runs, paces: vec![], limits: vec![], others: vec![] });
    }
    for _ in 0..bench.runs {
        for plan in &mut plans {
            let rows = Rows::Step(plan.style);
            let limit = bare_loop(bench, rows, bench.limit_batch).pace(&bench.ground).await?;
            plan.limits.extend(limit);
            if let Some(batch) = bench.other_batch {
                let other = bare_loop(bench, rows, batch).pace(&bench.ground).await?;
                plan.others.extend(other);
            }
            plan.paces.push(pass(&bench.ground, plan.style, plan.runs).await?);
            bench.progress.advance(format!("B2 {}", plan.style.name()));
        }
    }
    let mut measured: Vec<Measured> = plans.iter().flat_map(|plan| plan.measured(bench)).collect();
    let [machine, function] = &plans[..] else { return Ok(measured) };
    let ratios = function.paces.iter().zip(&machine.paces);
    let ratios = ratios.map(|(function, machine)| function.per_s / machine.per_s).collect();
    measured.push(bench.measured("B2", None, "function_to_machine", ratios));
    for plan in &plans {
        measured.extend(memory(bench, plan.style, plan.runs).await?);
        measured.extend(audit(bench, plan.style).await?);
    }
    Ok(measured)
}

/// A pass that is not measured, with a ledger of when steps began and commits were acknowledged.
async fn audit(bench: &Bench, style: Style) -> anyhow::Result<Vec<Measured>> {
    let stage = bench.ground.fresh().await?;
    let ledger = Arc::new(Ledger::default());
    let store = Arc::new(Watched { inner: stage.store.clone(), by: ledger.clone() });
    let free = Arc::new(Semaphore::new(IN_FLIGHT));
    let (ends, noting) = (frees_at_the_end(&free, STEPS), ledger.clone());
    let began = Arc::new(move |run, step| {
        noting.began(run, step);
        ends(run, step);
    });
    let engine = style.engine(began).start_on(store).await?;
    let runs = bench.sizes.audited;
    feed(&engine.client(), style, Runs { count: runs, steps: STEPS }, &free).await?;
    until_ended(&stage.client, runs).await?;
    engine.stop().await?;
    let found = ledger.audit(runs, STEPS);
    for violation in found.violations.iter().take(10) {
        tracing::error!("{violation}");
    }
    let of =
        |metric, value: usize| bench.measured("B2", Some(style.name()), metric, vec![value as f64]);
    Ok(vec![of("ledger_steps", found.steps), of(VIOLATIONS, found.violations.len())])
}

/// B1 in both styles: runs of one step that were started before anybody worked.
pub(super) async fn b1(bench: &Bench) -> anyhow::Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for style in Style::ALL {
        drain(bench, style, bench.sizes.warm_up).await?;
        let (mut values, mut limits) = (Vec::new(), Vec::new());
        for _ in 0..bench.runs {
            let limit = bare_loop(bench, Rows::Run(style), bench.limit_batch);
            limits.extend(limit.pace(&bench.ground).await?.map(|pace| pace.per_s));
            values.push(drain(bench, style, bench.sizes.backlog).await?.per_s);
            bench.progress.advance(format!("B1 {}", style.name()));
        }
        let of = bench.measured("B1", Some(style.name()), "runs_per_s", values);
        measured.push(Measured { limits, ..of });
    }
    Ok(measured)
}

/// One pass of B1: from the start of the engine to the end of the last run, or to the end of our
/// patience; then what was done by then counts.
async fn drain(bench: &Bench, style: Style, runs: usize) -> anyhow::Result<Pace> {
    let stage = bench.ground.fresh().await?;
    start_runs(&stage.client, style, Runs { count: runs, steps: 1 }).await?;
    let left = Arc::new(Semaphore::new(0));
    let (cpu, began) = (stage.cpu(), Instant::now());
    let engine = style.engine(frees_at_the_end(&left, 1)).start_on(stage.store.clone()).await?;
    let all = left.acquire_many(u32::try_from(runs)?);
    let done = match tokio::time::timeout(bench.sizes.pass * DRAIN_PASSES, all).await {
        Ok(all) => {
            all?.forget();
            until_ended(&stage.client, runs).await?;
            runs
        }
        Err(_) => left.available_permits(),
    };
    let pace = Pace::of(done, began.elapsed(), cpu);
    engine.stop().await?;
    Ok(pace)
}

/// What is measured of one style.
struct Plan {
    style: Style,
    runs: usize,
    paces: Vec<Pace>,
    limits: Vec<Pace>,
    /// The bare loop in batches of another size.
    others: Vec<Pace>,
}

impl Plan {
    fn measured(&self, bench: &Bench) -> Vec<Measured> {
        let style = Some(self.style.name());
        let per_s = |paces: &[Pace]| paces.iter().map(|pace| pace.per_s).collect::<Vec<f64>>();
        let cpu =
            |paces: &[Pace]| paces.iter().filter_map(|pace| pace.cpu_us).collect::<Vec<f64>>();
        let server =
            |paces: &[Pace]| paces.iter().filter_map(|pace| pace.server_us).collect::<Vec<f64>>();
        let of = |metric, values, limits| Measured {
            limits,
            ..bench.measured("B2", style, metric, values)
        };
        let lines = [
            of("steps_per_s", per_s(&self.paces), per_s(&self.limits)),
            of("cpu_us_per_step", cpu(&self.paces), cpu(&self.limits)),
            of("server_us_per_step", server(&self.paces), server(&self.limits)),
            of("limit_512_per_s", per_s(&self.others), vec![]),
            of("limit_512_server_us", server(&self.others), vec![]),
        ];
        lines.into_iter().filter(|line| !line.values.is_empty()).collect()
    }
}

fn bare_loop(bench: &Bench, rows: Rows, batch: usize) -> BareLoop {
    let (lasts, backlog) = (bench.sizes.pass, bench.sizes.backlog);
    BareLoop { rows, batch, connections: CONNECTIONS, lasts, backlog }
}

/// Warms up, and finds the number of runs that fill a pass.
async fn calibrate(bench: &Bench, style: Style) -> anyhow::Result<usize> {
    let lasts = bench.sizes.pass.as_secs_f64();
    let mut runs = bench.sizes.warm_up;
    loop {
        let began = Instant::now();
        let pace = pass(&bench.ground, style, runs).await?;
        let fitting = (pace.per_s * lasts / f64::from(STEPS)).ceil() as usize;
        if began.elapsed().as_secs_f64() > lasts / 4.0 || runs >= fitting {
            return Ok(fitting.max(1));
        }
        runs *= 4;
    }
}

/// One pass of B2: from the first start to the last end, with so many in flight all the time.
async fn pass(ground: &Ground, style: Style, runs: usize) -> anyhow::Result<Pace> {
    let stage = ground.fresh().await?;
    let free = Arc::new(Semaphore::new(IN_FLIGHT));
    let engine = style.engine(frees_at_the_end(&free, STEPS)).start_on(stage.store.clone()).await?;
    let (cpu, began) = (stage.cpu(), Instant::now());
    feed(&engine.client(), style, Runs { count: runs, steps: STEPS }, &free).await?;
    until_ended(&stage.client, runs).await?;
    let pace = Pace::of(runs * STEPS as usize, began.elapsed(), cpu);
    engine.stop().await?;
    Ok(pace)
}

/// The same without a clock, for a process of its own.
pub(super) async fn steps(client: &Client, style: Style, runs: usize) -> anyhow::Result<()> {
    let free = Arc::new(Semaphore::new(IN_FLIGHT));
    let engine =
        style.engine(frees_at_the_end(&free, STEPS)).start_on(client.store().clone()).await?;
    feed(&engine.client(), style, Runs { count: runs, steps: STEPS }, &free).await?;
    until_ended(client, runs).await?;
    engine.stop().await?;
    Ok(())
}

/// The most memory of a process that does nothing else; on a server, where the data is elsewhere.
async fn memory(bench: &Bench, style: Style, runs: usize) -> anyhow::Result<Option<Measured>> {
    if bench.ground.server().is_none() {
        return Ok(None);
    }
    let stage = bench.ground.fresh().await?;
    let part = Part::start(&stage.url, Task::Steps { style, runs })?;
    let (_, seen): (Part, Seen) = part.hear().await?;
    let of = |mb| bench.measured("B2", Some(style.name()), "engine_mb", vec![mb]);
    Ok(seen.mb.map(of))
}

/// The handler of the last step makes room for another run.
pub(super) fn frees_at_the_end(free: &Arc<Semaphore>, steps: u32) -> Began {
    let free = free.clone();
    Arc::new(move |_, step| {
        if step == steps {
            free.add_permits(1);
        }
    })
}

/// Starts runs as room is made for them, and waits until the last has come to its last step.
pub(super) async fn feed(
    client: &Client,
    style: Style,
    runs: Runs,
    free: &Arc<Semaphore>,
) -> anyhow::Result<()> {
    let left = Arc::new(AtomicUsize::new(runs.count));
    let mut starters = JoinSet::new();
    for _ in 0..IN_FLIGHT.min(runs.count) {
        let (client, free, left) = (client.clone(), free.clone(), left.clone());
        starters.spawn(async move {
            let input = Parcel::new(runs.steps);
            let take = |left: usize| left.checked_sub(1);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                patiently("a run comes to its end", free.acquire()).await??.forget();
                client.start(style.workflow(), &input).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(starter) = starters.join_next().await {
        starter??;
    }
    let all = free.acquire_many(IN_FLIGHT as u32);
    patiently("the last runs come to their ends", all).await??.forget();
    Ok(())
}
