//! B3 and B9: from the call that starts a run to its handler running.

use super::flows::{Began, Parcel, Style};
use super::ground::Stage;
use super::line::{IN_FLIGHT, feed, frees_at_the_end};
use super::pace::Pace;
use super::report::{Measured, percentile};
use super::starts::Runs;
use super::{Bench, patiently, until_ended};
use anyhow::Context;
use durably::{Client, RunId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Whose client starts the runs of B3, and how the engine hears of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Caller {
    /// The engine's own.
    Own,
    /// One elsewhere, whose server tells the engine.
    Notifying,
    /// One elsewhere; the engine looks from time to time.
    Silent,
}

impl Caller {
    fn all(bench: &Bench) -> Vec<Caller> {
        match (bench.ground.server(), bench.ground.notifies()) {
            (None, _) => vec![Caller::Own],
            (Some(_), false) => vec![Caller::Own, Caller::Silent],
            (Some(_), true) if bench.polls => vec![Caller::Own, Caller::Notifying, Caller::Silent],
            (Some(_), true) => vec![Caller::Own, Caller::Notifying],
        }
    }

    fn metrics(self) -> [&'static str; 2] {
        match self {
            Caller::Own => OWN,
            Caller::Notifying => ["notified_p50_ms", "notified_p99_ms"],
            Caller::Silent => ["polled_p50_ms", "polled_p99_ms"],
        }
    }
}

/// The names of both percentiles.
const OWN: [&str; 2] = ["p50_ms", "p99_ms"];

/// B3: one run at a time on an idle engine, in both styles.
pub(super) async fn b3(bench: &Bench) -> anyhow::Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for style in Style::ALL {
        for caller in Caller::all(bench) {
            idle_pass(bench, style, caller, bench.sizes.pickups / 10 + 1).await?;
            let mut waits = Vec::new();
            for _ in 0..bench.runs {
                waits.push(idle_pass(bench, style, caller, bench.sizes.pickups).await?);
                bench.progress.advance(format!("B3 {}", style.name()));
            }
            measured.extend(percentiles(bench, "B3", style, caller.metrics(), &waits));
        }
    }
    Ok(measured)
}

/// B9: runs that come evenly, at half the rate that the engine can do, in both styles.
pub(super) async fn b9(bench: &Bench) -> anyhow::Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for style in Style::ALL {
        let rate = full_rate(bench, style).await? / 2.0;
        let (mut waits, mut rates) = (Vec::new(), Vec::new());
        for _ in 0..bench.runs {
            let pass = busy_pass(bench, style, rate).await?;
            waits.push(pass.waits);
            rates.push(pass.per_s);
            bench.progress.advance(format!("B9 {}", style.name()));
        }
        measured.push(bench.measured("B9", Some(style.name()), "runs_per_s", rates));
        measured.extend(percentiles(bench, "B9", style, OWN, &waits));
    }
    Ok(measured)
}

fn percentiles(
    bench: &Bench,
    workload: &'static str,
    style: Style,
    metrics: [&'static str; 2],
    passes: &[Vec<f64>],
) -> [Measured; 2] {
    let of = |metric, percent| {
        let values = passes.iter().map(|waits| percentile(waits, percent)).collect();
        bench.measured(workload, Some(style.name()), metric, values)
    };
    [of(metrics[0], 50.0), of(metrics[1], 99.0)]
}

type Handlers = mpsc::UnboundedReceiver<(RunId, Instant)>;

async fn begun(handlers: &mut Handlers) -> anyhow::Result<(RunId, Instant)> {
    patiently("a handler begins", handlers.recv()).await?.context("the engine is gone")
}

/// Where handlers say which run's began, and when.
fn handlers() -> (Began, Handlers) {
    let (begun, handlers) = mpsc::unbounded_channel();
    let began = move |run, _| {
        // The receiver is gone when the pass is over.
        let _ = begun.send((run, Instant::now()));
    };
    (Arc::new(began), handlers)
}

fn millis_between(called: Instant, running: Instant) -> f64 {
    running.saturating_duration_since(called).as_secs_f64() * 1e3
}

/// How long each of so many pickups took, in milliseconds.
async fn idle_pass(
    bench: &Bench,
    style: Style,
    caller: Caller,
    pickups: usize,
) -> anyhow::Result<Vec<f64>> {
    let stage = match caller {
        Caller::Own | Caller::Notifying => bench.ground.fresh().await?,
        Caller::Silent => bench.ground.fresh_polled().await?,
    };
    let (began, mut handlers) = handlers();
    let engine = style.engine(began).start_on(stage.store.clone()).await?;
    let client = match caller {
        Caller::Own => engine.client(),
        // With connections of its own, as in another process.
        Caller::Notifying | Caller::Silent => Client::connect(&stage.url).await?,
    };
    let mut waits = Vec::new();
    for _ in 0..pickups {
        let called = Instant::now();
        let run = client.start(style.workflow(), &Parcel::new(1)).await?;
        let (_, running) = begun(&mut handlers).await?;
        waits.push(millis_between(called, running));
        engine.handle(style.workflow(), run.id()).result().await?;
    }
    engine.stop().await?;
    Ok(waits)
}

/// Runs of one step per second with as many in flight as there may be.
async fn full_rate(bench: &Bench, style: Style) -> anyhow::Result<f64> {
    let mut count = bench.sizes.warm_up;
    loop {
        let stage = bench.ground.fresh().await?;
        let free = Arc::new(Semaphore::new(IN_FLIGHT));
        let engine = style.engine(frees_at_the_end(&free, 1)).start_on(stage.store.clone()).await?;
        let (cpu, began) = (stage.cpu(), Instant::now());
        feed(&engine.client(), style, Runs { count, steps: 1 }, &free).await?;
        until_ended(&stage.client, count).await?;
        let pace = Pace::of(count, began.elapsed(), cpu);
        let enough = began.elapsed() > bench.sizes.pass / 4;
        engine.stop().await?;
        if enough {
            return Ok(pace.per_s);
        }
        count *= 4;
    }
}

/// What a pass of B9 saw.
struct Busy {
    waits: Vec<f64>,
    /// The rate that was reached.
    per_s: f64,
}

async fn busy_pass(bench: &Bench, style: Style, per_s: f64) -> anyhow::Result<Busy> {
    let stage: Stage = bench.ground.fresh().await?;
    let (began, mut handlers) = handlers();
    let engine = style.engine(began).start_on(stage.store.clone()).await?;
    let began = Instant::now();
    let called = start_evenly(&engine.client(), style, per_s, bench.sizes.pass).await?;
    let reached = called.len() as f64 / began.elapsed().as_secs_f64();
    let mut waits = Vec::with_capacity(called.len());
    for _ in 0..called.len() {
        let (run, running) = begun(&mut handlers).await?;
        waits.extend(called.get(&run).map(|called| millis_between(*called, running)));
    }
    until_ended(&stage.client, called.len()).await?;
    engine.stop().await?;
    Ok(Busy { waits, per_s: reached })
}

/// Starts runs at a rate, whether or not earlier ones are answered; says when each was called.
async fn start_evenly(
    client: &Client,
    style: Style,
    per_s: f64,
    lasts: Duration,
) -> anyhow::Result<BTreeMap<RunId, Instant>> {
    let mut calls = JoinSet::new();
    let mut ticks = tokio::time::interval(Duration::from_millis(1));
    let began = Instant::now();
    let mut sent = 0;
    while began.elapsed() < lasts || sent == 0 {
        ticks.tick().await;
        let due = (began.elapsed().as_secs_f64() * per_s).ceil() as usize;
        for _ in sent..due {
            let client = client.clone();
            calls.spawn(async move {
                let called = Instant::now();
                let run = client.start(style.workflow(), &Parcel::new(1)).await?;
                anyhow::Ok((run.id(), called))
            });
        }
        sent = due;
    }
    let mut called = BTreeMap::new();
    while let Some(call) = calls.join_next().await {
        let (run, at) = call??;
        called.insert(run, at);
    }
    Ok(called)
}
