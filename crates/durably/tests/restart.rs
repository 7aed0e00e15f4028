//! Stops, restarts, new code, several engines: all on one SQLite file.

mod common;

use common::{count, sqlite, until};
use durably::prelude::*;
use durably::{CancelReason, EngineBuilder, RunQuery, TrailStep, WorkerStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const WORK: ActivityRef<(), u32> = ActivityRef::new("work");
const RUN: WorkflowRef<(), String> = WorkflowRef::new("run");
const GO: SignalRef<()> = SignalRef::new("go");

fn hanging(begun: Arc<AtomicU32>) -> EngineBuilder {
    Engine::builder()
        .function(RUN, async |ctx: Ctx, ()| {
            let attempt = ctx.activity(WORK, &()).retry(Retry::never()).await?;
            Ok(format!("attempt {attempt}"))
        })
        .activity_fn(WORK, async move |ctx: ActivityContext, ()| {
            begun.fetch_add(1, Ordering::SeqCst);
            if ctx.attempt() == 1 {
                ctx.cancellation().cancelled().await;
                assert_eq!(ctx.cancellation().reason(), Some(CancelReason::Stopping));
                return Err(Error::cancelled("stopping"));
            }
            Ok(ctx.attempt())
        })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graceful_stop_fails_nothing_and_the_next_process_goes_on_at_once() {
    let store = sqlite();
    let begun = Arc::new(AtomicU32::new(0));
    let first = hanging(begun.clone()).start(&store.url).await.unwrap();
    let run = first.start(RUN, &()).await.unwrap();
    until("the activity runs", async || begun.load(Ordering::SeqCst) == 1).await;
    first.stop_within(Duration::from_millis(20)).await.unwrap();
    assert_eq!(first.workers().await.unwrap()[0].status, WorkerStatus::Stopped);
    let second = hanging(begun.clone()).start(&store.url).await.unwrap();
    let run = second.handle(RUN, run.id());
    assert_eq!(run.result().await.unwrap(), "attempt 2", "a stop uses no attempt of the policy");
    let trail = run.trail().await.unwrap();
    let lost = trail[0].entries.iter().find_map(|entry| match &entry.what {
        TrailStep::Lost { attempt, worker, died } => Some((*attempt, worker.to_string(), *died)),
        _ => None,
    });
    assert_eq!(lost, Some((1, first.worker_id(), false)));
    assert!(second.dead_letters(None, 10).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_ends_within_the_grace_is_kept() {
    let store = sqlite();
    let (begun, go) = (Arc::new(AtomicU32::new(0)), Arc::new(tokio::sync::Notify::new()));
    let (b, g) = (begun.clone(), go.clone());
    let engine = Engine::builder()
        .function(RUN, async |ctx: Ctx, ()| Ok(ctx.activity(WORK, &()).await?.to_string()))
        .activity_fn(WORK, async move |ctx: ActivityContext, ()| {
            b.fetch_add(1, Ordering::SeqCst);
            g.notified().await;
            Ok(ctx.attempt())
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    until("the activity runs", async || begun.load(Ordering::SeqCst) == 1).await;
    go.notify_one();
    engine.stop().await.unwrap();
    assert_eq!(count(&run, "ActivityCompleted").await, 1);
}

/// Two recorded steps around a signal; counts how often each ran.
fn counted(first: Arc<AtomicU32>, second: Arc<AtomicU32>) -> EngineBuilder {
    Engine::builder().function(RUN, move |ctx: Ctx, ()| {
        let (first, second) = (first.clone(), second.clone());
        async move {
            let a = ctx.step("first", async || Ok(first.fetch_add(1, Ordering::SeqCst))).await?;
            ctx.signal(GO).await?;
            let b = ctx.step("second", async || Ok(second.fetch_add(1, Ordering::SeqCst))).await?;
            Ok(format!("{a} {b}"))
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_steps_do_not_run_again_after_a_restart() {
    let store = sqlite();
    let (first, second) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let engine = counted(first.clone(), second.clone()).start(&store.url).await.unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    until("the first step is recorded", async || count(&run, "ActivityCompleted").await == 1).await;
    engine.stop().await.unwrap();
    let engine = counted(first.clone(), second.clone()).start(&store.url).await.unwrap();
    let run = engine.handle(RUN, run.id());
    run.signal(GO, &()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "0 0");
    assert_eq!((first.load(Ordering::SeqCst), second.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inline_step_cut_off_by_a_stop_runs_again_elsewhere() {
    let store = sqlite();
    let calls = Arc::new(AtomicU32::new(0));
    let app = |calls: Arc<AtomicU32>| {
        Engine::builder().function(RUN, move |ctx: Ctx, ()| {
            let calls = calls.clone();
            async move {
                let step = ctx.step("it", async || {
                    if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                        std::future::pending::<()>().await;
                    }
                    Ok("done".to_owned())
                });
                Ok(step.retry(Retry::never()).await?)
            }
        })
    };
    let engine = app(calls.clone()).start(&store.url).await.unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    until("the step runs", async || calls.load(Ordering::SeqCst) == 1).await;
    engine.stop_within(Duration::from_millis(20)).await.unwrap();
    let engine = app(calls.clone()).start(&store.url).await.unwrap();
    let run = engine.handle(RUN, run.id());
    assert_eq!(run.result().await.unwrap(), "done");
    assert_eq!(count(&run, "ActivityLost").await, 1);
}

fn renamed(name: &'static str) -> EngineBuilder {
    Engine::builder().function(RUN, move |ctx: Ctx, ()| async move {
        ctx.step(name, async || Ok(())).await?;
        ctx.signal(GO).await?;
        Ok(name.to_owned())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_does_not_fit_parks_the_run_by_name_and_fitting_code_goes_on() {
    let store = sqlite();
    let engine = renamed("old").start(&store.url).await.unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    until("the step is recorded", async || count(&run, "ActivityCompleted").await == 1).await;
    engine.stop().await.unwrap();

    let engine = renamed("new").start(&store.url).await.unwrap();
    let run = engine.handle(RUN, run.id());
    run.signal(GO, &()).await.unwrap();
    until("the run is parked", async || run.status().await.unwrap().parked.is_some()).await;
    let parked = run.status().await.unwrap().parked.unwrap();
    assert_eq!(parked.code, "DUR-0012");
    for part in ["event 3", "\"old\"", "\"new\""] {
        assert!(parked.reason.contains(part), "{part} is missing in {}", parked.reason);
    }
    engine.stop().await.unwrap();

    // The run waits for seconds, but an engine's start makes it due at once.
    let engine = renamed("old").start(&store.url).await.unwrap();
    let run = engine.handle(RUN, run.id());
    assert_eq!(run.result().await.unwrap(), "old");
    assert!(run.status().await.unwrap().parked.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_stays_with_the_version_that_began_it() {
    let store = sqlite();
    let version = |number: u32| {
        Engine::builder().function(RUN.version(number), move |ctx: Ctx, ()| async move {
            ctx.signal(GO).await?;
            Ok(format!("version {number}"))
        })
    };
    let engine = version(1).start(&store.url).await.unwrap();
    let old = engine.start(RUN, &()).await.unwrap();
    until("it has begun", async || count(&old, "VersionPinned").await == 1).await;
    engine.stop().await.unwrap();

    let engine = version(2).start(&store.url).await.unwrap();
    let new = engine.start(RUN, &()).await.unwrap();
    let old = engine.handle(RUN, old.id());
    old.signal(GO, &()).await.unwrap();
    new.signal(GO, &()).await.unwrap();
    assert_eq!(new.result().await.unwrap(), "version 2");
    assert_eq!(old.status().await.unwrap().version, Some(1), "nobody here hosts version 1");
    let other = version(1).start(&store.url).await.unwrap();
    assert_eq!(old.result().await.unwrap(), "version 1");
    other.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_from_a_process_without_the_workflow_is_delivered() {
    let store = sqlite();
    let decides = Engine::builder()
        .function(RUN, async |ctx: Ctx, ()| {
            let first =
                ctx.activity(WORK, &()).retry(Retry::attempts(3).first(Duration::from_millis(5)));
            Ok(format!("attempt {}", first.await?))
        })
        .start(&store.url)
        .await
        .unwrap();
    let executes = Engine::builder()
        .activity_fn(WORK, async |ctx: ActivityContext, ()| match ctx.attempt() {
            1 => Err(Error::retryable("once")),
            attempt => Ok(attempt),
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = decides.start(RUN, &()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "attempt 2");
    executes.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_on_two_stores_live_in_one_process() {
    let (one, two) = (sqlite(), sqlite());
    let (a, b) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let first = counted(a.clone(), a.clone()).start(&one.url).await.unwrap();
    let second = counted(b.clone(), b.clone()).start(&two.url).await.unwrap();
    let run = first.start(RUN, &()).await.unwrap();
    run.signal(GO, &()).await.unwrap();
    run.result().await.unwrap();
    assert!(second.runs(RunQuery::default()).await.unwrap().is_empty());
    assert_eq!(b.load(Ordering::SeqCst), 0);
}

/// Beats recorded in the file so far, as another process would see them.
fn last_beat(url: &str) -> i64 {
    let path = url.strip_prefix("sqlite:").unwrap();
    let database = rusqlite::Connection::open(path).unwrap();
    let sql = "SELECT max(last_heartbeat_at) FROM durable_workers";
    database.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test(flavor = "current_thread")]
async fn an_activity_that_blocks_the_only_thread_does_not_stop_the_beats() {
    let store = sqlite();
    let url = store.url.clone();
    let engine = Engine::builder()
        .beat(Duration::from_millis(20))
        .function(RUN, async |ctx: Ctx, ()| Ok(ctx.activity(WORK, &()).await?.to_string()))
        .activity_fn(WORK, async move |ctx: ActivityContext, ()| {
            // Blocks until two more beats are in the file: for ever, if beats need this thread.
            for _ in 0..2 {
                let seen = last_beat(&url);
                while last_beat(&url) == seen {}
            }
            Ok(ctx.attempt())
        })
        .start(&store.url)
        .await
        .unwrap();
    assert_eq!(engine.run(RUN, &()).await.unwrap(), "1");
}

#[tokio::test]
async fn files_that_are_no_store_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.db");
    std::fs::write(&text, "this is a text and no database, however long it may become").unwrap();
    let cases = [
        (format!("sqlite:{}", text.display()), "DUR-0022"),
        (format!("sqlite:{}", folder.path().display()), "DUR-002"),
        (format!("sqlite:{}/no/folder/x.db", folder.path().display()), "DUR-0021"),
        ("sqlite:".to_owned(), "DUR-0020"),
    ];
    for (url, code) in cases {
        let error = Client::connect(&url).await.unwrap_err();
        assert!(error.code().as_str().starts_with(code), "{url}: {error}");
    }
    let kept = std::fs::read_to_string(&text).unwrap();
    assert!(kept.starts_with("this is a text"), "what is not ours is not touched");
}
