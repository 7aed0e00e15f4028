//! B6: constant load, while somebody keeps a snapshot open that pins what is dead.

use super::flows::Style;
use super::ground::{Server, Stage};
use super::report::Measured;
use super::starts::{Runs, STARTS_BATCH, start_runs};
use super::{Bench, patiently};
use durably::Client;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// So many runs are started ahead of the engine.
const AHEAD: usize = 5000;
/// The rate is looked at for this part of the time, at its beginning and at its end.
const WINDOWS: u32 = 10;
/// After so long without the snapshot, the rate should be back.
const BACK: Duration = Duration::from_secs(60);

/// B6; none where there is no server.
pub(super) async fn b6(bench: &Bench) -> anyhow::Result<Vec<Measured>> {
    if bench.ground.server().is_none() {
        return Ok(vec![]);
    }
    let stage = bench.ground.fresh().await?;
    let done = Arc::new(AtomicUsize::new(0));
    let counting = done.clone();
    let began = Arc::new(move |_, _| {
        counting.fetch_add(1, Ordering::Relaxed);
    });
    let engine = Style::Machine.engine(began).start_on(stage.store.clone()).await?;
    let feeder = tokio::spawn(feed(stage.client.clone(), done.clone()));
    let seen = watch(bench, &stage, &done).await;
    feeder.abort();
    engine.stop().await?;
    let [start, end, back] = seen?;
    Ok(vec![
        bench.measured("B6", Some("machine"), "start_runs_per_s", vec![start]),
        bench.measured("B6", Some("machine"), "end_runs_per_s", vec![end]),
        bench.measured("B6", Some("machine"), "end_to_start", vec![end / start]),
        bench.measured("B6", Some("machine"), "back_to_start", vec![back / start]),
    ])
}

/// Keeps the engine busy, with starts by somebody else.
async fn feed(client: Client, done: Arc<AtomicUsize>) -> anyhow::Result<()> {
    let mut started = 0;
    loop {
        if started < done.load(Ordering::Relaxed) + AHEAD {
            let runs = Runs { count: STARTS_BATCH, steps: 1 };
            start_runs(&client, Style::Machine, runs).await?;
            started += STARTS_BATCH;
        } else {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// The rates at the beginning, at the end, and when the snapshot has been closed for a while.
async fn watch(bench: &Bench, stage: &Stage, done: &AtomicUsize) -> anyhow::Result<[f64; 3]> {
    let lasts = bench.sizes.snapshot;
    let window = lasts / WINDOWS;
    let note = |what| bench.progress.note(format!("B6: {lasts:?} with a snapshot; {what}"));
    note("warming up");
    rate(done, window).await?;
    let snapshot = Snapshot::open(stage).await?;
    note("the beginning");
    let start = rate(done, window).await?;
    note("the middle");
    tokio::time::sleep(window * (WINDOWS - 2)).await;
    note("the end");
    let end = rate(done, window).await?;
    drop(snapshot);
    note("recovering");
    tokio::time::sleep(BACK.min(window)).await;
    let back = rate(done, window).await?;
    Ok([start, end, back])
}

/// Runs per second, for so long and until there is one.
async fn rate(done: &AtomicUsize, window: Duration) -> anyhow::Result<f64> {
    let (before, began) = (done.load(Ordering::Relaxed), Instant::now());
    tokio::time::sleep(window).await;
    let any = async {
        while done.load(Ordering::Relaxed) == before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    patiently("a run is done", any).await?;
    let runs = done.load(Ordering::Relaxed) - before;
    Ok(runs as f64 / began.elapsed().as_secs_f64())
}

/// A connection with an open transaction; its end is the end of both.
enum Snapshot {
    Postgres { _client: tokio_postgres::Client },
    Mysql { _conn: mysql_async::Conn },
}

impl Snapshot {
    async fn open(stage: &Stage) -> anyhow::Result<Option<Snapshot>> {
        match stage.server() {
            None => Ok(None),
            Some((Server::Postgres(server), schema)) => {
                Ok(Some(Snapshot::Postgres { _client: server.snapshot(schema).await? }))
            }
            Some((Server::Mysql(server), database)) => {
                Ok(Some(Snapshot::Mysql { _conn: server.snapshot(database).await? }))
            }
        }
    }
}
