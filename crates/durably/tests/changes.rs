//! The stream of changes: every event once, in order, to the end, wherever the run is executed.

mod common;

use common::planted::{Call, Fault, Planted};
use common::toy::Toy;
use common::{TestStore, sqlite, until};
use durably::prelude::*;
use durably::{Change, Changes, Code, EngineBuilder, Event, EventRow, RunId, RunStatus, Seq};
use durably_runtime::{Caller, Environment};
use futures_util::future::{BoxFuture, join, join_all};
use futures_util::{FutureExt, TryStreamExt};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

on_every_store!(
    a_run_is_followed_from_its_first_event_to_its_last,
    a_stream_goes_on_after_any_event,
    a_run_that_has_ended_is_told_to_its_end,
    statuses_are_those_of_the_run,
    an_unknown_run_is_an_error_and_the_end,
    long_histories_come_in_pages,
    a_stream_that_is_dropped_disturbs_nothing,
    fifty_streams_of_one_run_see_the_same,
    a_codec_is_applied,
);

const WORK: ActivityRef<u32, u32> = ActivityRef::new("work");
const LINE: WorkflowRef<u32, u32> = WorkflowRef::new("line");
const GO: SignalRef<u32> = SignalRef::new("go");

/// So many activities, one after the other, each let go by a signal.
struct Chain {
    left: u32,
}

impl Workflow for Chain {
    const TYPE: &'static str = "chain";
    type Input = u32;
    type Output = u32;
    fn new(left: u32) -> Self {
        Chain { left }
    }
    fn on_start(&mut self) -> Actions<Self> {
        actions![]
    }
    fn on_signal(&mut self, signal: &Signal) -> Actions<Self> {
        let n = signal.of(GO)?.unwrap_or_default();
        actions![Action::activity(format!("work {n}"), WORK, &n)]
    }
    fn on_activity_completed(&mut self, _id: &str, _result: &Output) -> Actions<Self> {
        self.left -= 1;
        match self.left {
            0 => actions![Action::complete(&0)],
            _ => actions![],
        }
    }
}

async fn line(ctx: Ctx, rounds: u32) -> Result<u32> {
    for n in 0..rounds {
        ctx.signal(GO).await?;
        ctx.step(format!("step {n}"), async || Ok(n)).await?;
    }
    Ok(rounds)
}

fn app() -> EngineBuilder {
    Engine::builder()
        .workflow::<Chain>()
        .function(LINE, line)
        .activity_fn(WORK, async |_: ActivityContext, n: u32| Ok(n))
}

/// A stream that neither goes on nor ends fails loudly.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.expect("the stream stands still")
}

async fn all(changes: Changes) -> Vec<Change> {
    soon(changes.try_collect()).await.unwrap()
}

fn rows(changes: Vec<Change>) -> Vec<EventRow> {
    changes.into_iter().map(|change| change.row).collect()
}

async fn history<O>(run: &Handle<O>) -> Vec<EventRow> {
    run.history(Seq(0), 10_000).await.unwrap().events
}

/// Follows a run and lets it go on only after all that happened was seen.
async fn followed(run: &Handle<u32>, rounds: u32) -> Vec<Change> {
    let mut changes = run.changes();
    let mut seen = vec![];
    let mut sent = 0;
    while let Some(change) = soon(changes.next()).await {
        let change = change.unwrap();
        let waits = matches!(
            change.row.event,
            Event::VersionPinned { .. } | Event::ActivityCompleted { .. }
        );
        seen.push(change);
        if waits && sent < rounds {
            sent += 1;
            run.signal(GO, &sent).await.unwrap();
        }
    }
    assert!(changes.next().await.is_none(), "the end stays the end");
    seen
}

async fn a_run_is_followed_from_its_first_event_to_its_last(store: &TestStore) {
    let engine = store.start(app()).await;
    for name in [LINE.name(), Chain::TYPE] {
        let run = engine.start_by_name(name, 5.into()).await.unwrap();
        let run = engine.handle(LINE, run.id());
        let seen = followed(&run, 5).await;
        assert!(seen.last().unwrap().status.has_ended());
        let seen = rows(seen);
        let numbers: Vec<u64> = seen.iter().map(|row| row.seq.0).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        assert_eq!(seen, history(&run).await, "the same rows as in the history");
    }
}

async fn a_stream_goes_on_after_any_event(store: &TestStore) {
    let engine = store.start(app()).await;
    let run = engine.start(LINE, &2).await.unwrap();
    let whole = followed(&run, 2).await;
    for n in 0..=whole.len() {
        let rest = all(run.changes_after(Seq(n as u64))).await;
        assert_eq!(rest, whole[n..], "after {n}");
    }
    assert_eq!(all(run.changes_after(Seq(1000))).await, [], "nothing comes after the end");
}

async fn a_run_that_has_ended_is_told_to_its_end(store: &TestStore) {
    let engine = store.start(app()).await;
    let run = engine.start(Chain::REF, &3).await.unwrap();
    for n in 0..3 {
        run.signal(GO, &n).await.unwrap();
    }
    run.result().await.unwrap();
    let client = engine.client();
    engine.stop().await.unwrap();
    let run = client.handle(Chain::REF, run.id());
    let seen = rows(all(run.changes()).await);
    assert_eq!(seen, history(&run).await);
}

async fn statuses_are_those_of_the_run(store: &TestStore) {
    let engine = store.start(app()).await;
    let run = engine.start(LINE, &1).await.unwrap();
    let seen = followed(&run, 1).await;
    let statuses: Vec<RunStatus> = seen.iter().map(|change| change.status).collect();
    let (first, rest) = statuses.split_first().unwrap();
    let (last, middle) = rest.split_last().unwrap();
    assert_eq!((*first, *last), (RunStatus::Pending, RunStatus::Completed));
    assert!(middle.iter().all(|status| *status == RunStatus::Running), "{middle:?}");
    // One that is given up before its first turn.
    let hour = Duration::from_secs(3600);
    let never = engine.start(LINE, &1).delay(hour).await.unwrap();
    never.terminate("no").await.unwrap();
    let statuses = |changes: Vec<Change>| -> Vec<RunStatus> {
        changes.into_iter().map(|change| change.status).collect()
    };
    let given_up = statuses(all(never.changes()).await);
    assert_eq!(given_up, [RunStatus::Pending, RunStatus::Terminated]);
    let given_up = statuses(all(never.changes_after(Seq(1))).await);
    assert_eq!(given_up, [RunStatus::Terminated]);
}

async fn an_unknown_run_is_an_error_and_the_end(store: &TestStore) {
    let engine = store.start(app()).await;
    let mut changes = engine.handle_by_id(RunId::from_parts(7, [7; 10])).changes();
    let error = changes.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), Code::RUN_UNKNOWN);
    assert!(changes.next().await.is_none());
}

async fn long_histories_come_in_pages(store: &TestStore) {
    let engine = store.start(app()).await;
    let run = engine.start(LINE, &60).await.unwrap();
    for n in 0..60 {
        run.signal(GO, &n).await.unwrap();
    }
    let seen = rows(all(run.changes()).await);
    assert!(seen.len() > 180, "{} events are several pages", seen.len());
    assert_eq!(seen, history(&run).await);
}

async fn a_stream_that_is_dropped_disturbs_nothing(store: &TestStore) {
    let engine = store.start(app()).await;
    let run = engine.start(LINE, &1).await.unwrap();
    let mut dropped = run.changes();
    assert!(dropped.next().await.is_some());
    // In the middle of a wait, too.
    let mut waiting = run.changes_after(Seq(2));
    assert!(waiting.next().now_or_never().is_none());
    drop(dropped);
    drop(waiting);
    // A wait that is given up loses nothing either.
    let mut changes = run.changes();
    let mut seen = vec![];
    let mut sent = false;
    loop {
        match changes.next().now_or_never() {
            Some(Some(change)) => seen.push(change.unwrap().row),
            Some(None) => break,
            None if seen.len() == 2 && !sent => {
                run.signal(GO, &1).await.unwrap();
                sent = true;
            }
            None => tokio::task::yield_now().await,
        }
    }
    assert_eq!(seen, history(&run).await);
}

async fn fifty_streams_of_one_run_see_the_same(store: &TestStore) {
    let engine = store.start(app()).await;
    let run = engine.start(Chain::REF, &4).await.unwrap();
    let streams = (0..50).map(|_| all(run.changes()));
    let driver = async {
        for n in 0..4 {
            let before = n as usize;
            let enough = async || common::count(&run, "ActivityCompleted").await >= before;
            until("the one before is done", enough).await;
            run.signal(GO, &n).await.unwrap();
        }
    };
    let (seen, ()) = join(join_all(streams), driver).await;
    let history = history(&run).await;
    for seen in seen {
        assert_eq!(rows(seen), history);
    }
}

async fn a_codec_is_applied(store: &TestStore) {
    let engine = store.start(app().codec(Toy::new("toy"))).await;
    let run = engine.start(LINE, &1).await.unwrap();
    let seen = rows(followed(&run, 1).await);
    let Event::WorkflowStarted { input, .. } = &seen[0].event else { panic!("{seen:?}") };
    assert_eq!(input.text(), "1");
    assert_eq!(seen, history(&run).await);
    let other = engine.client().with_codec(Toy::new("other")).unwrap();
    let mut changes = other.handle(LINE, run.id()).changes();
    let error = changes.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), Code::CODEC_OTHER);
    assert!(error.to_string().contains("event 1 (WorkflowStarted)"), "{error}");
    assert!(changes.next().await.is_none(), "an error is the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_another_process_is_followed_through_the_file() {
    let store = sqlite();
    let engine = store.start(app()).await;
    // Its own connection: no hint of the engine reaches it.
    let client = Client::connect(&store.url).await.unwrap();
    let run = client.start(LINE, &3).await.unwrap();
    let seen = rows(followed(&run, 3).await);
    assert_eq!(seen, history(&engine.handle(LINE, run.id())).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_for_a_moment_is_waited_for() {
    let (reads, failing) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU32::new(0)));
    let (counted, planned) = (reads.clone(), failing.clone());
    let store = Arc::new(Planted::new(move |_, call| match call {
        // Every third read fails while it is so planned.
        Call::Read(_) if planned.load(Ordering::SeqCst) > 0 => {
            match counted.fetch_add(1, Ordering::SeqCst) % 3 {
                0 => Fault::Unavailable,
                _ => Fault::None,
            }
        }
        _ => Fault::None,
    }));
    let engine = app().start_on(store.clone()).await.unwrap();
    let run = engine.start(LINE, &3).await.unwrap();
    failing.store(1, Ordering::SeqCst);
    let seen = rows(followed(&run, 3).await);
    failing.store(0, Ordering::SeqCst);
    assert!(reads.load(Ordering::SeqCst) > 3);
    assert_eq!(seen, history(&run).await);
}

/// Time that passes only where somebody sleeps, and then at once.
#[derive(Default)]
struct Hurry(Mutex<Duration>);

impl Hurry {
    fn passed(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

impl Environment for Hurry {
    fn process(&self) -> String {
        "hurry".to_owned()
    }
    fn monotonic(&self) -> Duration {
        self.passed()
    }
    fn random(&self) -> u64 {
        4
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        *self.0.lock().unwrap() += duration;
        Box::pin(tokio::task::yield_now())
    }
    fn spawn(&self, _: BoxFuture<'static, ()>) {
        unreachable!("who follows a run spawns nothing");
    }
    fn spawn_vital(&self, _: BoxFuture<'static, ()>) {
        unreachable!("who follows a run spawns nothing");
    }
}

#[tokio::test]
async fn a_quiet_run_is_read_once_a_second_and_a_store_that_stays_away_is_an_error() {
    const LOOKS: u64 = 600;
    let reads = Arc::new(AtomicU64::new(0));
    let counted = reads.clone();
    let store = Arc::new(Planted::new(move |_, call| match call {
        Call::Read(_) if counted.fetch_add(1, Ordering::SeqCst) >= LOOKS => Fault::Unavailable,
        _ => Fault::None,
    }));
    let engine = Engine::builder().start_on(store.clone()).await.unwrap();
    let run = engine.start(LINE, &1).await.unwrap();
    engine.stop().await.unwrap();
    reads.store(0, Ordering::SeqCst);
    let hurry = Arc::new(Hurry::default());
    let mut changes = Caller::new(hurry.clone(), store).changes(run.id(), Seq(0));
    let (first, _) = changes.next().await.unwrap().unwrap();
    assert_eq!(first.seq, Seq(1));
    let error = changes.next().await.unwrap_err();
    assert_eq!(error.code(), Code::STORE_TRANSIENT);
    let seconds = hurry.passed().as_secs();
    // The first looks come faster, and the last half a minute is for a store that stays away.
    assert!((LOOKS - 10..LOOKS + 40).contains(&seconds), "{seconds} s for {LOOKS} reads");
}
