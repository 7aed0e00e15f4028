//! Many starts in one call: all of them or none.

mod common;

use common::planted::{Call, Fault, Planted};
use common::{TestStore, until};
use durably::prelude::*;
use durably::{EngineBuilder, RunQuery, RunStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

on_every_store!(
    many_runs_start_in_one_call,
    a_client_without_an_engine_starts_many,
    taken_keys_do_not_keep_others_from_starting,
    one_bad_start_keeps_all_from_starting,
    no_starts_are_no_error,
);

const DOUBLE: ActivityRef<u32, u32> = ActivityRef::new("double");
const DOUBLED: WorkflowRef<u32, u32> = WorkflowRef::new("doubled");

fn doubling() -> EngineBuilder {
    Engine::builder()
        .activity_fn(DOUBLE, async |_, number: u32| Ok(number * 2))
        .function(DOUBLED, async |ctx: Ctx, number: u32| Ok(ctx.activity(DOUBLE, &number).await?))
}

async fn many_runs_start_in_one_call(store: &TestStore) {
    let engine = doubling().slots(3).start(&store.url).await.unwrap();
    let starts = (0..100).map(|number| engine.start(DOUBLED, &number));
    let started = engine.start_many(starts).await.unwrap();
    assert_eq!(started.len(), 100);
    for (number, run) in (0..).zip(started) {
        let run = run.unwrap();
        assert!(!run.existed());
        assert_eq!(run.result().await.unwrap(), number * 2, "answers come in order");
    }
}

async fn a_client_without_an_engine_starts_many(store: &TestStore) {
    let engine = doubling().start(&store.url).await.unwrap();
    let client = match store.url.starts_with("memory") {
        true => engine.client(),
        false => Client::connect(&store.url).await.unwrap(),
    };
    let started = client.start_many((0..5).map(|n| client.start(DOUBLED, &n))).await.unwrap();
    for (number, run) in (0..).zip(started) {
        assert_eq!(run.unwrap().result().await.unwrap(), number * 2);
    }
}

async fn taken_keys_do_not_keep_others_from_starting(store: &TestStore) {
    let engine = doubling().start(&store.url).await.unwrap();
    let first = engine.start(DOUBLED, &1).idempotency_key("one").await.unwrap();
    let starts = [
        engine.start(DOUBLED, &1).idempotency_key("one"),
        engine.start(DOUBLED, &2).idempotency_key("one"),
        engine.start(DOUBLED, &3).idempotency_key("two"),
        engine.start(DOUBLED, &3).idempotency_key("two"),
    ];
    let started = engine.start_many(starts).await.unwrap();
    let [same, other, new, twin] = <[_; 4]>::try_from(started).unwrap();
    assert_eq!(same.unwrap().id(), first.id());
    assert_eq!(other.unwrap_err().code().as_str(), "DUR-0032");
    let new = new.unwrap();
    assert_eq!(new.result().await.unwrap(), 6);
    assert_eq!(twin.unwrap().id(), new.id(), "a key counts within the call too");
    assert_eq!(engine.runs(RunQuery::default()).await.unwrap().len(), 2);
}

async fn one_bad_start_keeps_all_from_starting(store: &TestStore) {
    let engine = doubling().start(&store.url).await.unwrap();
    let starts = [engine.start(DOUBLED, &1), engine.start(DOUBLED, &2).tenant("")];
    let error = engine.start_many(starts).await.unwrap_err();
    assert_eq!(error.code().as_str(), "DUR-0001");
    assert!(error.to_string().contains("start 1 of the bulk"), "{error}");
    let error = engine.start_many((0..10_001).map(|n| engine.start(DOUBLED, &n))).await;
    let error = error.unwrap_err();
    assert_eq!(error.code().as_str(), "DUR-0007");
    assert!(error.to_string().contains("10001 starts in one call"), "{error}");
    assert!(engine.runs(RunQuery::default()).await.unwrap().is_empty());
}

async fn no_starts_are_no_error(store: &TestStore) {
    let engine = doubling().start(&store.url).await.unwrap();
    let none: [durably::Start<u32>; 0] = [];
    assert!(engine.start_many(none).await.unwrap().is_empty());
}

/// A store on which the commits of bulk starts fail as given, the first so many times.
fn failing(times: u32, fault: fn() -> Fault) -> (Arc<Planted>, Arc<AtomicU32>) {
    let failed = Arc::new(AtomicU32::new(0));
    let seen = failed.clone();
    let store = Planted::new(move |_, call| match call {
        Call::Commit(batch) if batch.len() == 20 && seen.load(Ordering::SeqCst) < times => {
            seen.fetch_add(1, Ordering::SeqCst);
            fault()
        }
        _ => Fault::None,
    });
    (Arc::new(store), failed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_fails_leaves_nothing_half_done() {
    let (store, failed) = failing(1, || Fault::Refused);
    let engine = doubling().start_on(store).await.unwrap();
    let starts = || (0..20).map(|number| engine.start(DOUBLED, &number));
    let error = engine.start_many(starts()).await.unwrap_err();
    assert_eq!(error.code().as_str(), "DUR-0026", "{error}");
    assert_eq!(failed.load(Ordering::SeqCst), 1);
    assert!(engine.runs(RunQuery::default()).await.unwrap().is_empty());
    for run in engine.start_many(starts()).await.unwrap() {
        run.unwrap().result().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_answers_start_no_run_twice() {
    for fault in [|| Fault::LostBefore, || Fault::LostAfter, || Fault::Unavailable] {
        let (store, failed) = failing(2, fault);
        let engine = doubling().beat(Duration::from_millis(50)).start_on(store).await.unwrap();
        let started = engine.start_many((0..20).map(|n| engine.start(DOUBLED, &n))).await.unwrap();
        assert_eq!(failed.load(Ordering::SeqCst), 2);
        for (number, run) in (0..).zip(started) {
            let run = run.unwrap();
            assert!(!run.existed(), "the runs are its own");
            assert_eq!(run.result().await.unwrap(), number * 2);
        }
        let runs = engine.runs(RunQuery::default()).await.unwrap();
        assert_eq!(runs.len(), 20);
        assert!(runs.iter().all(|run| run.status == RunStatus::Completed));
    }
}

/// The answer to the commit that begins an activity is lost: the activity is in our hands without
/// our knowing, until a beat tells us.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_activity_whose_eager_claim_was_lost_is_begun_once() {
    let lose = Arc::new(AtomicBool::new(true));
    let losing = lose.clone();
    let store = Arc::new(Planted::new(move |_, call| match call {
        Call::Commit(batch) if batch.iter().any(|commit| !commit.eager.is_empty()) => {
            match losing.swap(false, Ordering::SeqCst) {
                true => Fault::LostAfter,
                false => Fault::None,
            }
        }
        _ => Fault::None,
    }));
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let engine = Engine::builder()
        .function(DOUBLED, async |ctx: Ctx, number: u32| Ok(ctx.activity(DOUBLE, &number).await?))
        .activity_fn(DOUBLE, move |_, number: u32| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move { Ok(number * 2) }
        })
        .beat(Duration::from_millis(30))
        .start_on(store)
        .await
        .unwrap();
    let run = engine.start(DOUBLED, &4).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 8);
    assert!(!lose.load(Ordering::SeqCst), "an answer was lost");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    until("no row is left", || async { run.tasks().await.unwrap().is_empty() }).await;
}
