//! B4: starts from one client.

use super::Bench;
use super::flows::{Parcel, Style};
use super::ground::Stage;
use super::limit::{BareLoop, Rows};
use super::pace::Pace;
use super::report::Measured;
use super::starts::{Runs, STARTS_BATCH, start_runs};
use durably::{Client, Engine};
use std::time::Instant;
use tokio::task::JoinSet;

/// Calls at a time, where runs are started one by one.
const CALLS: usize = 32;

/// How runs are started.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// One by one, by a client.
    OneByOne,
    /// One by one, by the client of an engine, whose commits share transactions.
    ThroughEngine,
    /// Many in one call.
    InBulk,
}

impl Way {
    const ALL: [Way; 3] = [Way::OneByOne, Way::ThroughEngine, Way::InBulk];

    fn metric(self) -> &'static str {
        match self {
            Way::OneByOne => "starts_per_s",
            Way::ThroughEngine => "engine_starts_per_s",
            Way::InBulk => "bulk_starts_per_s",
        }
    }

    fn bare_loop(self, bench: &Bench) -> BareLoop {
        let (batch, connections) = match self {
            // As many as the pool of a client has.
            Way::OneByOne => (1, 10),
            Way::ThroughEngine => (CALLS, 2),
            Way::InBulk => (STARTS_BATCH, 2),
        };
        let lasts = bench.sizes.pass;
        BareLoop { rows: Rows::Start, batch, connections, lasts, backlog: 0 }
    }
}

/// B4: one by one with 32 calls in flight, through an engine, and in bulk.
pub(super) async fn b4(bench: &Bench) -> anyhow::Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for way in Way::ALL {
        pass(bench, way).await?;
        let (mut values, mut limits) = (Vec::new(), Vec::new());
        for _ in 0..bench.runs {
            let limit = way.bare_loop(bench).pace(&bench.ground).await?;
            limits.extend(limit.map(|pace| pace.per_s));
            values.push(pass(bench, way).await?.per_s);
            bench.progress.advance(format!("B4 {}", way.metric()));
        }
        let of = bench.measured("B4", None, way.metric(), values);
        measured.push(Measured { limits, ..of });
    }
    Ok(measured)
}

/// Starts runs that nobody executes.
async fn pass(bench: &Bench, way: Way) -> anyhow::Result<Pace> {
    let stage = bench.ground.fresh().await?;
    match way {
        Way::OneByOne => one_by_one(bench, &stage, stage.client.clone()).await,
        Way::ThroughEngine => {
            let engine = Engine::builder().start_on(stage.store.clone()).await?;
            let pace = one_by_one(bench, &stage, engine.client()).await?;
            engine.stop().await?;
            Ok(pace)
        }
        Way::InBulk => in_bulk(bench, &stage).await,
    }
}

async fn one_by_one(bench: &Bench, stage: &Stage, client: Client) -> anyhow::Result<Pace> {
    let (cpu, began, lasts) = (stage.cpu(), Instant::now(), bench.sizes.pass);
    let mut callers = JoinSet::new();
    for _ in 0..CALLS {
        let client = client.clone();
        callers.spawn(async move {
            let mut starts = 0;
            while began.elapsed() < lasts {
                client.start(Style::Machine.workflow(), &Parcel::new(1)).await?;
                starts += 1;
            }
            anyhow::Ok(starts)
        });
    }
    let mut starts: usize = 0;
    while let Some(caller) = callers.join_next().await {
        starts += caller??;
    }
    Ok(Pace::of(starts, began.elapsed(), cpu))
}

async fn in_bulk(bench: &Bench, stage: &Stage) -> anyhow::Result<Pace> {
    let (cpu, began) = (stage.cpu(), Instant::now());
    let mut starts = 0;
    while began.elapsed() < bench.sizes.pass {
        let runs = Runs { count: STARTS_BATCH, steps: 1 };
        start_runs(&stage.client, Style::Machine, runs).await?;
        starts += runs.count;
    }
    Ok(Pace::of(starts, began.elapsed(), cpu))
}
