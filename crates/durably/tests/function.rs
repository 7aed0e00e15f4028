//! Durable functions through the public API.

mod common;

use common::{TestStore, count, events, until};
use durably::prelude::*;
use durably::{EngineBuilder, FailureKind, RunError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

on_every_store!(
    steps_activities_sleeps_and_signals_work_together,
    names_that_repeat_are_numbered,
    a_step_is_retried_and_may_panic,
    a_step_that_takes_too_long_times_out,
    two_steps_run_side_by_side,
    a_signal_wait_may_time_out,
    a_signal_that_came_before_is_taken_at_once,
    cancel_arrives_once_at_the_open_await,
    time_and_randomness_are_recorded,
    an_await_of_something_else_parks_the_run,
    dropped_operations_are_given_up,
    a_panic_in_the_function_parks_the_run,
    failures_come_back_as_data,
);

const WORD: SignalRef<String> = SignalRef::new("word");
const UPPER: ActivityRef<String, String> = ActivityRef::new("upper");
const TEXT: WorkflowRef<String, String> = WorkflowRef::new("text");

fn base() -> EngineBuilder {
    Engine::builder().activity_fn(UPPER, async |_, text: String| Ok(text.to_uppercase()))
}

async fn steps_activities_sleeps_and_signals_work_together(store: &TestStore) {
    let engine = base()
        .function(TEXT, async |ctx: Ctx, name: String| {
            let hello = ctx.step("hello", async || Ok(format!("hello {name}"))).await?;
            let loud = ctx.activity(UPPER, &hello).await?;
            ctx.sleep(Duration::from_millis(10)).await?;
            let word = ctx.signal(WORD).await?;
            Ok(format!("{loud} {word}"))
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(TEXT, &"you".into()).await.unwrap();
    until("it waits for the signal", async || {
        run.status().await.unwrap().waits == durably::Waits::Signals(vec!["word".into()])
    })
    .await;
    run.signal(WORD, &"bye".into()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "HELLO you bye".replace("you", "YOU"));
    let expected = [
        "WorkflowStarted",
        "VersionPinned",
        "ActivityScheduled",
        "ActivityCompleted",
        "ActivityScheduled",
        "ActivityCompleted",
        "TimerStarted",
        "TimerFired",
        "SignalReceived",
        "WorkflowCompleted",
    ];
    assert_eq!(events(&run).await, expected);
}

async fn names_that_repeat_are_numbered(store: &TestStore) {
    let engine = base()
        .function(TEXT, async |ctx: Ctx, text: String| {
            let mut all = text;
            for n in 0..3 {
                all = ctx.step("add", async || Ok(format!("{all}{n}"))).await?;
            }
            Ok(all)
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(TEXT, &"x".into()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "x012");
    let ids: Vec<String> = run.trail().await.unwrap().into_iter().map(|task| task.id).collect();
    assert_eq!(ids, ["add", "add#2", "add#3"]);
}

async fn a_step_is_retried_and_may_panic(store: &TestStore) {
    let calls = Arc::new(AtomicU32::new(0));
    let seen = calls.clone();
    let engine = base()
        .function(TEXT, move |ctx: Ctx, _: String| {
            let calls = seen.clone();
            async move {
                let retry = Retry::attempts(3).first(Duration::from_millis(5));
                let step = ctx.step("it", async || match calls.fetch_add(1, Ordering::SeqCst) {
                    0 => Err(Error::retryable("first")),
                    1 => panic!("second"),
                    _ => Ok("third".to_owned()),
                });
                Ok(step.retry(retry).await?)
            }
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(TEXT, &"".into()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "third");
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    assert_eq!(count(&run, "ActivityFailed").await, 2);
    assert_eq!(count(&run, "ActivityRetryDue").await, 2);
}

async fn a_step_that_takes_too_long_times_out(store: &TestStore) {
    let engine = base()
        .function(TEXT, async |ctx: Ctx, _: String| {
            let step = ctx.step("slow", async || {
                std::future::pending::<()>().await;
                Ok(())
            });
            match step.timeout(Duration::from_millis(20)).retry(Retry::never()).await {
                Err(failure) => Ok(failure.kind.to_string()),
                Ok(()) => Ok("done".to_owned()),
            }
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(TEXT, &"".into()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), FailureKind::TimedOut.to_string());
    assert_eq!(count(&run, "ActivityTimedOut").await, 1);
}

async fn two_steps_run_side_by_side(store: &TestStore) {
    let engine = base()
        .function(TEXT, async |ctx: Ctx, text: String| {
            let meet = tokio::sync::Barrier::new(2);
            // Neither ends unless both are under way.
            let a = ctx.step("a", async || {
                meet.wait().await;
                Ok(format!("{text}a"))
            });
            let b = ctx.step("b", async || {
                meet.wait().await;
                Ok(format!("{text}b"))
            });
            let (a, b) = futures_util::future::join(a, b).await;
            Ok(format!("{} {}", a?, b?))
        })
        .start(&store.url)
        .await
        .unwrap();
    assert_eq!(engine.run(TEXT, &"-".into()).await.unwrap(), "-a -b");
}

async fn a_signal_wait_may_time_out(store: &TestStore) {
    let engine = base()
        .function(TEXT, async |ctx: Ctx, _: String| {
            let none = ctx.signal(WORD).timeout(Duration::from_millis(10)).await?;
            assert!(none.is_none());
            let some = ctx.signal(WORD).timeout(Duration::from_secs(60)).await?;
            Ok(some.unwrap_or_default())
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(TEXT, &"".into()).await.unwrap();
    until("the first wait is over", async || count(&run, "TimerStarted").await == 2).await;
    run.signal(WORD, &"here".into()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "here");
    assert_eq!(count(&run, "TimerFired").await, 1);
    assert_eq!(count(&run, "TimerCancelled").await, 1);
}

async fn a_signal_that_came_before_is_taken_at_once(store: &TestStore) {
    let engine = base()
        .function(TEXT, async |ctx: Ctx, _: String| {
            let go = ctx.signal(SignalRef::<()>::new("go"));
            go.await?;
            let (first, second) = (ctx.signal(WORD).await?, ctx.signal(WORD).await?);
            Ok(format!("{first} {second}"))
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(TEXT, &"".into()).await.unwrap();
    run.signal(WORD, &"one".into()).await.unwrap();
    run.signal(WORD, &"two".into()).await.unwrap();
    run.signal(SignalRef::new("go"), &()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "one two");
}

async fn cancel_arrives_once_at_the_open_await(store: &TestStore) {
    let engine = base()
        .function(TEXT, async |ctx: Ctx, _: String| {
            let Err(failure) = ctx.sleep(Duration::from_secs(3600)).await else {
                return Ok("not cancelled".to_owned());
            };
            assert_eq!(failure.kind, FailureKind::Cancelled);
            // Compensation needs no special scope.
            ctx.step("undo", async || Ok(())).await?;
            ctx.activity(UPPER, &"undo too".to_owned()).await?;
            Err(failure.into())
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(TEXT, &"".into()).await.unwrap();
    until("it sleeps", async || count(&run, "TimerStarted").await == 1).await;
    run.cancel("rain").await.unwrap();
    let Err(RunError::Cancelled { reason, .. }) = run.result().await else { panic!("cancelled") };
    assert_eq!(reason, "rain");
    assert_eq!(count(&run, "ActivityCompleted").await, 2);
}

async fn time_and_randomness_are_recorded(store: &TestStore) {
    let engine = base()
        .function(TEXT, async |ctx: Ctx, _: String| {
            let before = (ctx.now(), ctx.random(), ctx.uuid());
            ctx.sleep(Duration::from_millis(10)).await?;
            assert!(ctx.now() > before.0);
            assert_ne!(ctx.random(), before.1);
            Ok(before.2.to_string())
        })
        .start(&store.url)
        .await
        .unwrap();
    let one = engine.run(TEXT, &"".into()).await.unwrap();
    assert_ne!(one, engine.run(TEXT, &"".into()).await.unwrap());
}

async fn an_await_of_something_else_parks_the_run(store: &TestStore) {
    let engine = base()
        .function(TEXT, async |_: Ctx, _: String| {
            std::future::pending::<()>().await;
            Ok(String::new())
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(TEXT, &"".into()).await.unwrap();
    until("the run is parked", async || run.status().await.unwrap().parked.is_some()).await;
    assert_eq!(run.status().await.unwrap().parked.unwrap().code, "DUR-0018");
}

async fn dropped_operations_are_given_up(store: &TestStore) {
    let engine = base()
        .function(TEXT, async |ctx: Ctx, _: String| {
            let slow = ctx.sleep(Duration::from_secs(3600));
            let fast = ctx.sleep(Duration::from_millis(5));
            futures_util::future::select(fast, slow).await;
            ctx.step("after", async || Ok(())).await?;
            Ok("done".to_owned())
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(TEXT, &"".into()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "done");
    assert_eq!(count(&run, "TimerCancelled").await, 1);
}

async fn a_panic_in_the_function_parks_the_run(store: &TestStore) {
    let engine = base()
        .function(TEXT, async |ctx: Ctx, _: String| -> Result<String> {
            ctx.step("fine", async || Ok(())).await?;
            panic!("after the step")
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(TEXT, &"".into()).await.unwrap();
    until("the run is parked", async || run.status().await.unwrap().parked.is_some()).await;
    let parked = run.status().await.unwrap().parked.unwrap();
    assert_eq!(parked.code, "DUR-0011");
    assert!(parked.reason.contains("after the step"));
}

async fn failures_come_back_as_data(store: &TestStore) {
    let engine = Engine::builder()
        .activity_fn(UPPER, async |_, _: String| Err(Error::permanent("no").code("NO")))
        .function(TEXT, async |ctx: Ctx, text: String| {
            match ctx.activity(UPPER, &text).await {
                Err(failure) => assert_eq!(failure.origin.as_deref(), Some("upper")),
                Ok(_) => panic!("must fail"),
            }
            Ok(ctx.activity(UPPER, &text).await?)
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(TEXT, &"".into()).await.unwrap();
    let Err(RunError::Failed { failure, .. }) = run.result().await else { panic!("must fail") };
    assert_eq!(failure.code.as_deref(), Some("NO"), "the failure keeps its code through `?`");
    assert_eq!(failure.origin.as_deref(), Some("upper#2"));
}
