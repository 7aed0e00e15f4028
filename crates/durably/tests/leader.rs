//! What leaders do is harmless when several believe that they lead.

mod common;

use common::check::check;
use common::load::Effects;
use common::planted::Planted;
use common::work::{self, MANY};
use common::{start_all, until};
use durably::{Engine, RunId, WorkerStatus};
use durably_store::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn two_that_both_lead_do_no_harm() {
    const RUNS: u32 = 60;
    let store = Arc::new(Planted::where_all_lead());
    let effects = Effects::default();
    let start = async |effects: work::Ledger| -> Engine {
        let engine = work::engine(effects).slots(4).beat(Duration::from_millis(100));
        let engine = engine.stale_after(Duration::from_millis(600));
        engine.start_on(store.clone()).await.unwrap()
    };
    let engines = [start(effects.ledger()).await, start(effects.ledger()).await];
    // The third dies with its hands full.
    let (inner, done) = (effects.ledger(), Arc::new(AtomicUsize::new(0)));
    let counted = done.clone();
    let stuck = move |effect| inner(effect) && counted.fetch_add(1, Ordering::SeqCst) < 10;
    let dies = start(Arc::new(stuck)).await;
    let died = dies.worker_id();
    let handles = start_all(&engines[0], MANY, RUNS).await;
    until("it has its hands full", async || done.load(Ordering::SeqCst) > 10).await;
    drop(dies);
    for handle in &handles {
        handle.result_within(Duration::from_secs(60)).await.unwrap();
    }
    let runs: Vec<RunId> = handles.iter().map(|handle| handle.id()).collect();
    let checked = check(&engines[0], &runs, &effects.all()).await;
    assert!(checked.lost > 0, "a death that hits nothing proves nothing");
    for engine in engines {
        engine.stop().await.unwrap();
    }
    for worker in store.workers().await.unwrap() {
        let dead = worker.who.as_str() == died;
        let status = if dead { WorkerStatus::Stale } else { WorkerStatus::Stopped };
        assert_eq!(worker.status, status, "{}", worker.who);
    }
}
