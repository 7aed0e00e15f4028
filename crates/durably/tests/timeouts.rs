//! Every time-out of an activity, and of a run.

mod common;

use common::{TestStore, count, until};
use durably::prelude::*;
use durably::{CancelReason, EngineBuilder, FailureKind, RunError};
use std::sync::{Arc, Mutex};

on_every_store!(
    an_attempt_that_takes_too_long_is_ended_and_retried,
    a_silent_attempt_is_taken_back_and_the_next_one_knows_what_it_said,
    heartbeats_keep_an_attempt_alive,
    nobody_to_begin_it_in_time,
    all_attempts_together_take_too_long,
    a_run_that_takes_too_long_fails,
    zero_time_outs_are_errors_of_the_program,
);

const WORK: ActivityRef<(), u32> = ActivityRef::new("work");
const RUN: WorkflowRef<(), String> = WorkflowRef::new("run");

fn soon(attempts: u32) -> Retry {
    Retry::attempts(attempts).first(Duration::from_millis(5))
}

fn engine() -> EngineBuilder {
    // Beats are often, so that heartbeats of a fraction of a second work.
    Engine::builder().beat(Duration::from_millis(50))
}

fn told(result: std::result::Result<u32, Failure>) -> Result<String> {
    Ok(match result {
        Ok(attempt) => format!("attempt {attempt}"),
        Err(failure) => format!("{}: {}", failure.kind, failure.message),
    })
}

async fn an_attempt_that_takes_too_long_is_ended_and_retried(store: &TestStore) {
    let engine = engine()
        .function(RUN, async |ctx: Ctx, ()| {
            let call = ctx.activity(WORK, &()).timeout(Duration::from_millis(60)).retry(soon(3));
            told(call.await)
        })
        .activity_fn(WORK, async |ctx: ActivityContext, ()| {
            if ctx.attempt() < 3 {
                std::future::pending::<()>().await;
            }
            Ok(ctx.attempt())
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "attempt 3");
    assert_eq!(count(&run, "ActivityTimedOut").await, 2);
}

async fn a_silent_attempt_is_taken_back_and_the_next_one_knows_what_it_said(store: &TestStore) {
    let reason = Arc::new(Mutex::new(None));
    let heard = reason.clone();
    let engine = engine()
        .function(RUN, async |ctx: Ctx, ()| {
            let call = ctx.activity(WORK, &()).heartbeat_timeout(Duration::from_millis(150));
            told(call.retry(soon(3)).await)
        })
        .activity_fn(WORK, async move |ctx: ActivityContext, ()| {
            if ctx.attempt() == 1 {
                ctx.heartbeat(&41)?;
                ctx.cancellation().cancelled().await;
                *heard.lock().unwrap() = ctx.cancellation().reason();
                return Ok(0);
            }
            Ok(ctx.heartbeat_details::<u32>().unwrap_or(0) + 1)
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "attempt 42");
    assert_eq!(count(&run, "ActivityTimedOut").await, 1);
    until("the silent one hears of it", async || reason.lock().unwrap().is_some()).await;
    assert_eq!(*reason.lock().unwrap(), Some(CancelReason::ClaimLost));
}

async fn heartbeats_keep_an_attempt_alive(store: &TestStore) {
    let engine = engine()
        .function(RUN, async |ctx: Ctx, ()| {
            let call = ctx.activity(WORK, &()).heartbeat_timeout(Duration::from_millis(300));
            told(call.retry(Retry::never()).await)
        })
        .activity_fn(WORK, async |ctx: ActivityContext, ()| {
            for n in 0..40 {
                ctx.heartbeat(&n)?;
                #[allow(clippy::disallowed_methods, reason = "the work of this activity")]
                tokio::time::sleep(Duration::from_millis(20)).await; // tidy: this is the work
            }
            Ok(ctx.attempt())
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "attempt 1");
}

async fn nobody_to_begin_it_in_time(store: &TestStore) {
    let engine = engine()
        .function(RUN, async |ctx: Ctx, ()| {
            told(ctx.activity(WORK, &()).start_timeout(Duration::from_millis(50)).await)
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    let told = run.result().await.unwrap();
    assert!(told.starts_with("timed_out"), "{told}");
    assert!(told.contains("schedule-to-start"), "{told}");
}

async fn all_attempts_together_take_too_long(store: &TestStore) {
    let engine = engine()
        .function(RUN, async |ctx: Ctx, ()| {
            let call = ctx.activity(WORK, &()).deadline(Duration::from_millis(200));
            told(call.retry(soon(1000)).await)
        })
        .activity_fn(WORK, async |ctx: ActivityContext, ()| match ctx.attempt() {
            1 => Err(Error::retryable("first")),
            _ => {
                ctx.cancellation().cancelled().await;
                Ok(0)
            }
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    let told = run.result().await.unwrap();
    assert!(told.contains("schedule-to-close"), "{told}");
    assert_eq!(count(&run, "ActivityTimedOut").await, 1);
}

async fn a_run_that_takes_too_long_fails(store: &TestStore) {
    let engine = engine()
        .function(RUN, async |ctx: Ctx, ()| {
            ctx.sleep(Duration::from_secs(3600)).await?;
            Ok(String::new())
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(RUN, &()).timeout(Duration::from_millis(100)).await.unwrap();
    let Err(RunError::Failed { failure, .. }) = run.result().await else { panic!("must fail") };
    assert_eq!(failure.kind, FailureKind::TimedOut);
    assert_eq!(failure.code.as_deref(), Some("DUR-0014"));
    assert!(run.tasks().await.unwrap().is_empty());
}

async fn zero_time_outs_are_errors_of_the_program(store: &TestStore) {
    let engine = engine()
        .function(RUN, async |ctx: Ctx, ()| {
            told(ctx.activity(WORK, &()).timeout(Duration::ZERO).await)
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    let Err(RunError::Failed { failure, .. }) = run.result().await else { panic!("must fail") };
    assert_eq!(failure.code.as_deref(), Some("DUR-0003"));
}
