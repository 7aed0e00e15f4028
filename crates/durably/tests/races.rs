//! Races that were found by review or by crashes, each made to happen.

mod common;

use common::planted::{Call, Fault, Planted};
use common::{count, events, until};
use durably::prelude::*;
use durably::{Event, RunStatus};
use durably_kernel::Fact;
use durably_store::{Base, Delivery, Store};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::Poll;

const RUN: WorkflowRef<(), u32> = WorkflowRef::new("run");
const ACT: ActivityRef<u32, u32> = ActivityRef::new("act");
const POKE: SignalRef<()> = SignalRef::new("poke");

fn sound() -> Arc<Planted> {
    Arc::new(Planted::new(|_, _| Fault::None))
}

/// Loses the answer of the first commit for which the condition holds.
fn loses_answer(
    once: impl Fn(&durably_store::RunCommit) -> bool + Send + Sync + 'static,
) -> Arc<Planted> {
    let done = AtomicBool::new(false);
    Arc::new(Planted::new(move |_, call| match call {
        Call::Commit(batch) if batch.iter().any(&once) && !done.swap(true, Ordering::SeqCst) => {
            Fault::LostAfter
        }
        _ => Fault::None,
    }))
}

/// Wakes itself so many times before it ends.
async fn spin(mut times: u32) {
    std::future::poll_fn(|cx| {
        if times == 0 {
            return Poll::Ready(());
        }
        times -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_step_is_kept_when_its_run_is_parked() {
    let (calls, broken) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(true)));
    let app = || {
        let (calls, broken) = (calls.clone(), broken.clone());
        Engine::builder().function(RUN, move |ctx: Ctx, ()| {
            let (calls, broken) = (calls.clone(), broken.clone());
            async move {
                let step = ctx.step("charge", async || Ok(calls.fetch_add(1, Ordering::SeqCst)));
                let charged = step.await?;
                assert!(!broken.load(Ordering::SeqCst), "a bug after the step");
                Ok(charged)
            }
        })
    };
    let store = sound();
    let engine = app().start_on(store.clone()).await.unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    until("the run is parked", async || run.status().await.unwrap().parked.is_some()).await;
    broken.store(false, Ordering::SeqCst);
    let fixed = app().start_on(store).await.unwrap();
    assert_eq!(fixed.handle(RUN, run.id()).result().await.unwrap(), 0);
    assert_eq!(calls.load(Ordering::SeqCst), 1, "the step does not run again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_under_way_when_its_run_is_parked_counts_as_lost() {
    let (calls, broken) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(true)));
    let app = || {
        let (calls, broken) = (calls.clone(), broken.clone());
        Engine::builder().function(RUN, move |ctx: Ctx, ()| {
            let (calls, broken) = (calls.clone(), broken.clone());
            async move {
                let step = ctx.step("slow", async || {
                    if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                        std::future::pending::<()>().await;
                    }
                    Ok(1)
                });
                let other = async {
                    ctx.signal(POKE).await?;
                    assert!(!broken.load(Ordering::SeqCst), "a bug in the other branch");
                    Ok::<u32, Error>(1)
                };
                let (a, b) = futures_util::future::join(step.deaths_max(1), other).await;
                Ok(a? + b?)
            }
        })
    };
    let store = sound();
    let engine = app().start_on(store.clone()).await.unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    until("the step runs", async || calls.load(Ordering::SeqCst) == 1).await;
    run.signal(POKE, &()).await.unwrap();
    until("the run is parked", async || run.status().await.unwrap().parked.is_some()).await;
    broken.store(false, Ordering::SeqCst);
    let fixed = app().start_on(store).await.unwrap();
    assert_eq!(fixed.handle(RUN, run.id()).result().await.unwrap(), 2);
    assert_eq!(count(&run, "ActivityLost").await, 1);
}

/// Ends with its first outcome, unless it was poked before.
struct Race {
    poked: bool,
}

impl Workflow for Race {
    const TYPE: &'static str = "race";
    type Input = ();
    type Output = u32;
    fn new((): ()) -> Self {
        Race { poked: false }
    }
    fn on_start(&mut self) -> Actions<Self> {
        Ok((0..3).map(|n| Action::activity(format!("a{n}"), ACT, &n).into()).collect())
    }
    fn on_activity_completed(&mut self, _id: &str, _: &Output) -> Actions<Self> {
        match self.poked {
            true => actions![],
            false => actions![Action::complete(&1)],
        }
    }
    fn on_signal(&mut self, _: &Signal) -> Actions<Self> {
        self.poked = true;
        actions![]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn outcomes_that_come_after_an_end_which_did_not_land_are_kept() {
    let poked = AtomicBool::new(false);
    // A signal arrives just before the commit that would end the run.
    let store = Arc::new(Planted::new(move |inner, call| {
        let Call::Commit(batch) = call else { return Fault::None };
        let end = |c: &&durably_store::RunCommit| {
            c.summary.as_ref().is_some_and(|summary| summary.status.has_ended())
        };
        if let Some(commit) = batch.iter().find(end).filter(|_| !poked.swap(true, Ordering::SeqCst))
        {
            let signal = durably_kernel::Signal {
                id: "x".into(),
                signal_type: "poke".into(),
                payload: durably_kernel::Payload::null(),
                sent_at: durably_kernel::Timestamp::default(),
            };
            let fact = Fact::Signal(signal);
            // A memory store carries commands out when they are called.
            drop(inner.deliver(vec![Delivery {
                run: commit.run,
                id: "x".into(),
                fact,
                claim: None,
            }]));
        }
        Fault::None
    }));
    let (calls, meet) = (Arc::new(AtomicU32::new(0)), Arc::new(tokio::sync::Barrier::new(3)));
    let seen = calls.clone();
    let engine = Engine::builder()
        .beat(Duration::from_millis(30))
        .workflow::<Race>()
        .activity_fn(ACT, async move |_, n: u32| {
            seen.fetch_add(1, Ordering::SeqCst);
            meet.wait().await;
            Ok(n)
        })
        .start_on(store)
        .await
        .unwrap();
    let run = engine.start(Race::REF, &()).await.unwrap();
    until("all outcomes are recorded", async || count(&run, "ActivityCompleted").await == 3).await;
    assert_eq!(calls.load(Ordering::SeqCst), 3, "nothing is executed twice");
    assert_eq!(run.status().await.unwrap().status, RunStatus::Running);
}

#[tokio::test(flavor = "multi_thread")]
async fn losses_are_recorded_once_though_the_answer_was_lost() {
    let store = loses_answer(|commit| {
        commit.events.iter().any(|event| matches!(event, Event::ActivityLost { .. }))
    });
    let begun = Arc::new(AtomicU32::new(0));
    let app = |stuck: bool| {
        let begun = begun.clone();
        Engine::builder()
            .beat(Duration::from_millis(50))
            .stale_after(Duration::from_millis(300))
            .function(RUN, move |ctx: Ctx, ()| {
                let begun = begun.clone();
                async move {
                    let step = ctx.step("first", async || {
                        begun.fetch_add(1, Ordering::SeqCst);
                        if stuck {
                            std::future::pending::<()>().await;
                        }
                        Ok(1)
                    });
                    Ok(step.await?)
                }
            })
    };
    let dies = app(true).start_on(store.clone()).await.unwrap();
    let run = dies.start(RUN, &()).await.unwrap().id();
    until("the step runs", async || begun.load(Ordering::SeqCst) == 1).await;
    drop(dies);
    let engine = app(false).start_on(store).await.unwrap();
    let run = engine.handle(RUN, run);
    assert_eq!(run.result().await.unwrap(), 1);
    assert_eq!(count(&run, "ActivityLost").await, 1);
}

/// One activity, nothing after it.
struct One;

impl Workflow for One {
    const TYPE: &'static str = "one";
    type Input = ();
    type Output = ();
    fn new((): ()) -> Self {
        One
    }
    fn on_start(&mut self) -> Actions<Self> {
        actions![Action::activity("a", ACT, &0)]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_row_of_a_terminated_activity_is_let_go_when_it_obeys() {
    let begun = Arc::new(AtomicU32::new(0));
    let seen = begun.clone();
    let engine = Engine::builder()
        .workflow::<One>()
        .activity_fn(ACT, async move |ctx: ActivityContext, n: u32| {
            seen.fetch_add(1, Ordering::SeqCst);
            ctx.cancellation().cancelled().await;
            Ok(n)
        })
        .start_on(sound())
        .await
        .unwrap();
    let run = engine.start(One::REF, &()).await.unwrap();
    until("the activity runs", async || begun.load(Ordering::SeqCst) == 1).await;
    run.terminate("stop").await.unwrap();
    until("its row is gone", async || run.tasks().await.unwrap().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_with_a_start_is_delivered_once_though_the_answer_was_lost() {
    let engine = Engine::builder()
        .function(RUN, async |ctx: Ctx, ()| {
            ctx.signal(POKE).await?;
            ctx.sleep(Duration::from_millis(20)).await?;
            Ok(1)
        })
        .start_on(loses_answer(|commit| matches!(commit.base, Base::New(_))))
        .await
        .unwrap();
    let run = engine.start(RUN, &()).signal(POKE, &()).await.unwrap();
    run.result().await.unwrap();
    assert_eq!(count(&run, "SignalReceived").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_combinator_that_yields_early_changes_nothing() {
    let engine = Engine::builder()
        .function(RUN, async |ctx: Ctx, ()| {
            let mut all = FuturesUnordered::new();
            for n in 0..3u32 {
                let ctx = ctx.clone();
                all.push(async move {
                    let work = async move || {
                        if n < 2 {
                            spin(3000).await;
                        }
                        Ok(n)
                    };
                    let first = ctx.step(format!("c{n}"), work).await?;
                    ctx.step(format!("d{n}"), async move || Ok(first)).await
                });
            }
            let mut sum = 0;
            while let Some(next) = all.next().await {
                sum += next?;
            }
            Ok(sum)
        })
        .start_on(sound())
        .await
        .unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_after_a_cancel_is_the_same_at_replay() {
    let begun = Arc::new(AtomicU32::new(0));
    let app = || {
        let begun = begun.clone();
        Engine::builder().function(RUN, move |ctx: Ctx, ()| {
            let begun = begun.clone();
            async move {
                let mut all = FuturesUnordered::new();
                for n in 0..3u32 {
                    let (ctx, begun) = (ctx.clone(), begun.clone());
                    all.push(async move {
                        let begun = &begun;
                        let work = async move || {
                            begun.fetch_add(1, Ordering::SeqCst);
                            if n == 2 {
                                spin(u32::MAX).await;
                            }
                            std::future::pending::<()>().await;
                            Ok(n)
                        };
                        if ctx.step(format!("c{n}"), work).await.is_err() {
                            ctx.step(format!("undo{n}"), async move || Ok(n)).await?;
                            ctx.signal(POKE).await?;
                        }
                        Ok::<u32, Error>(n)
                    });
                }
                while let Some(next) = all.next().await {
                    next?;
                }
                Ok(1)
            }
        })
    };
    let store = sound();
    let engine = app().start_on(store.clone()).await.unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    until("the steps run", async || begun.load(Ordering::SeqCst) == 3).await;
    run.cancel("no").await.unwrap();
    until("all is undone", async || count(&run, "ActivityCompleted").await == 3).await;
    engine.stop().await.unwrap();
    let engine = app().start_on(store).await.unwrap();
    let run = engine.handle(RUN, run.id());
    for _ in 0..3 {
        run.signal(POKE, &()).await.unwrap();
    }
    assert_eq!(run.result().await.unwrap(), 1, "{:?}", events(&run).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_the_store_refuses_parks_the_run_and_no_other() {
    let refuses = Arc::new(AtomicBool::new(true));
    let plan = refuses.clone();
    let store = Arc::new(Planted::new(move |_, call| {
        let Call::Commit(batch) = call else { return Fault::None };
        let bad = batch.iter().flat_map(|commit| &commit.events).any(
            |event| matches!(event, Event::WorkflowCompleted { result } if result.text() == "13"),
        );
        if bad && plan.load(Ordering::SeqCst) { Fault::Refused } else { Fault::None }
    }));
    const ECHO: WorkflowRef<u32, u32> = WorkflowRef::new("echo");
    let app = || {
        Engine::builder()
            .function(ECHO, async |ctx: Ctx, n: u32| Ok(ctx.step("echo", async || Ok(n)).await?))
    };
    let engine = app().start_on(store.clone()).await.unwrap();
    let bad = engine.start(ECHO, &13).await.unwrap();
    assert_eq!(engine.run(ECHO, &1).await.unwrap(), 1, "one bad member does not fail the others");
    until("it is parked", async || bad.status().await.unwrap().parked.is_some()).await;
    assert_eq!(bad.status().await.unwrap().parked.unwrap().code, "DUR-0026");
    refuses.store(false, Ordering::SeqCst);
    let healed = app().start_on(store).await.unwrap();
    assert_eq!(healed.handle(ECHO, bad.id()).result().await.unwrap(), 13);
    assert_eq!(count(&bad, "ActivityCompleted").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_under_way_when_the_store_refuses_a_turn_counts_as_lost() {
    let refuses = Arc::new(AtomicBool::new(true));
    let plan = refuses.clone();
    let store = Arc::new(Planted::new(move |_, call| {
        let Call::Commit(batch) = call else { return Fault::None };
        let mut events = batch.iter().flat_map(|commit| &commit.events);
        let bad = events.any(|event| matches!(event, Event::SignalReceived { .. }));
        if bad && plan.load(Ordering::SeqCst) { Fault::Refused } else { Fault::None }
    }));
    let calls = Arc::new(AtomicU32::new(0));
    let app = || {
        let calls = calls.clone();
        Engine::builder().function(RUN, move |ctx: Ctx, ()| {
            let calls = calls.clone();
            async move {
                let step = ctx.step("slow", async || {
                    if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                        std::future::pending::<()>().await;
                    }
                    Ok(1)
                });
                let (slow, poke) = futures_util::future::join(step, ctx.signal(POKE)).await;
                poke?;
                Ok(slow?)
            }
        })
    };
    let engine = app().start_on(store.clone()).await.unwrap();
    let run = engine.start(RUN, &()).await.unwrap();
    until("the step runs", async || calls.load(Ordering::SeqCst) == 1).await;
    run.signal(POKE, &()).await.unwrap();
    until("it is parked", async || run.status().await.unwrap().parked.is_some()).await;
    refuses.store(false, Ordering::SeqCst);
    let healed = app().start_on(store).await.unwrap();
    assert_eq!(healed.handle(RUN, run.id()).result().await.unwrap(), 1);
    assert_eq!(count(&run, "ActivityLost").await, 1);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

/// Whoever commits a batch commits for all others too: a panic there must not stop them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_panics_once_keeps_nobody_from_committing() {
    let panics = Arc::new(AtomicBool::new(true));
    let plan = panics.clone();
    let store = Arc::new(Planted::new(move |_, call| {
        let Call::Commit(batch) = call else { return Fault::None };
        let mut events = batch.iter().flat_map(|commit| &commit.events);
        let done = events.any(|event| matches!(event, Event::ActivityCompleted { .. }));
        assert!(!(done && plan.swap(false, Ordering::SeqCst)), "planted");
        Fault::None
    }));
    const DOUBLE: ActivityRef<u32, u32> = ActivityRef::new("double");
    const DOUBLED: WorkflowRef<u32, u32> = WorkflowRef::new("doubled");
    let engine = Engine::builder()
        .activity_fn(DOUBLE, async |_, n: u32| Ok(n * 2))
        .function(DOUBLED, async |ctx: Ctx, n: u32| Ok(ctx.activity(DOUBLE, &n).await?))
        .beat(Duration::from_millis(30))
        .start_on(store)
        .await
        .unwrap();
    let started = engine.start_many((0..20).map(|n| engine.start(DOUBLED, &n))).await.unwrap();
    for (n, run) in (0..).zip(started) {
        assert_eq!(run.unwrap().result().await.unwrap(), n * 2);
    }
    assert!(!panics.load(Ordering::SeqCst), "it has panicked");
}
