//! Texts with NUL, which databases do not take: what fails with one ends all the same, on every
//! store.

mod common;

use common::TestStore;
use durably::RunStatus;
use durably::prelude::*;

const FAILING: WorkflowRef<(), ()> = WorkflowRef::new("failing");
const FAIL: ActivityRef<(), ()> = ActivityRef::new("fail");
const WAITING: WorkflowRef<(), ()> = WorkflowRef::new("waiting");
const NEVER: SignalRef<()> = SignalRef::new("never");

on_every_store!(
    a_failure_whose_text_has_a_nul_is_recorded,
    a_reason_with_a_nul_cancels_or_is_refused
);

fn engine() -> durably::EngineBuilder {
    Engine::builder()
        .function(FAILING, async |ctx: Ctx, ()| Ok(ctx.activity(FAIL, &()).await?))
        .function(WAITING, async |ctx: Ctx, ()| Ok(ctx.signal(NEVER).await?))
        .activity_fn(FAIL, async |_, ()| Err(Error::permanent("before\0after")))
}

async fn a_failure_whose_text_has_a_nul_is_recorded(store: &TestStore) {
    let engine = store.start(engine()).await;
    let run = engine.start(FAILING, &()).await.unwrap();
    let failed = run.result_within(Duration::from_secs(60)).await.unwrap_err().to_string();
    assert!(failed.contains("before") && failed.contains("after"), "{failed:?}");
    assert_eq!(run.status().await.unwrap().status, RunStatus::Failed);
    engine.stop().await.unwrap();
}

async fn a_reason_with_a_nul_cancels_or_is_refused(store: &TestStore) {
    let engine = store.start(engine()).await;
    let run = engine.start(WAITING, &()).await.unwrap();
    if run.cancel("before\0after").await.is_err() {
        run.cancel("another").await.unwrap();
    }
    assert!(run.result_within(Duration::from_secs(60)).await.is_err());
    assert_eq!(run.status().await.unwrap().status, RunStatus::Cancelled);
    assert!(engine.start(WAITING, &()).idempotency_key("a\0b").await.is_err());
    engine.stop().await.unwrap();
}
