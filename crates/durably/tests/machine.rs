//! State machines through the public API.

mod common;

use common::{TestStore, count, events, until};
use durably::prelude::*;
use durably::{EngineBuilder, FailureKind, RunError, RunStatus, TrailStep};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

on_every_store!(
    five_steps_in_a_line_complete,
    a_failing_activity_is_retried_and_the_trail_shows_every_attempt,
    a_permanent_failure_fails_the_run_without_a_retry,
    used_up_attempts_leave_a_dead_letter_with_every_error,
    a_panicking_activity_is_a_failure_of_its_own_kind,
    timers_and_signals_reach_the_machine_in_order,
    a_signal_id_is_delivered_once,
    an_id_used_twice_fails_the_run_by_name,
    a_panicking_handler_parks_the_run_and_not_the_process,
    cancel_ends_a_machine_and_reaches_its_activity,
    a_machine_may_compensate_when_cancelled,
    shutdown_lets_current_activities_finish,
    terminate_runs_no_code,
    cancel_and_shutdown_have_their_meaning_as_signals,
    input_of_another_type_fails_the_run,
);

const ADD: ActivityRef<u32, u32> = ActivityRef::new("add");
const FLAKY: ActivityRef<u32, u32> = ActivityRef::new("flaky");
const WAIT: ActivityRef<(), String> = ActivityRef::new("wait");

struct Line {
    total: u32,
    steps: u32,
}

impl Workflow for Line {
    const TYPE: &'static str = "line";
    type Input = u32;
    type Output = u32;
    fn new(steps: u32) -> Self {
        Line { total: 0, steps }
    }
    fn on_start(&mut self) -> Actions<Self> {
        actions![Action::activity("add-0", ADD, &self.total)]
    }
    fn on_activity_completed(&mut self, _id: &str, result: &Output) -> Actions<Self> {
        self.total = result.of(ADD)?.expect("only adds");
        if self.total == self.steps {
            return actions![Action::complete(&self.total)];
        }
        actions![Action::activity(format!("add-{}", self.total), ADD, &self.total)]
    }
}

fn adding() -> EngineBuilder {
    Engine::builder().activity_fn(ADD, async |_, n: u32| Ok(n + 1))
}

async fn five_steps_in_a_line_complete(store: &TestStore) {
    let engine = adding().workflow::<Line>().start(&store.url).await.unwrap();
    let run = engine.start(Line::REF, &5).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 5);
    let status = run.status().await.unwrap();
    assert_eq!(status.status, RunStatus::Completed);
    assert!(run.tasks().await.unwrap().is_empty(), "an ended run has no tasks");
    assert_eq!(count(&run, "ActivityCompleted").await, 5);
    engine.stop().await.unwrap();
}

/// One activity of a type, with options.
struct One;
impl Workflow for One {
    const TYPE: &'static str = "one";
    type Input = u32;
    type Output = u32;
    fn new(_: u32) -> Self {
        One
    }
    fn on_start(&mut self) -> Actions<Self> {
        let retry = Retry::attempts(3).first(Duration::from_millis(5));
        actions![Action::activity("it", FLAKY, &3).retry(retry)]
    }
    fn on_activity_completed(&mut self, _id: &str, result: &Output) -> Actions<Self> {
        actions![Action::complete(&result.decode()?)]
    }
}

async fn a_failing_activity_is_retried_and_the_trail_shows_every_attempt(store: &TestStore) {
    let engine = Engine::builder()
        .workflow::<One>()
        .activity_fn(FLAKY, async |ctx: ActivityContext, n: u32| {
            assert_eq!(ctx.attempts_max(), 3);
            if ctx.attempt() < n { Err(Error::retryable("not yet")) } else { Ok(ctx.attempt()) }
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(One::REF, &0).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 3);
    assert_eq!(run.status().await.unwrap().retries, 2);
    let trail = run.trail().await.unwrap();
    let steps: Vec<&str> = trail[0]
        .entries
        .iter()
        .map(|entry| match &entry.what {
            TrailStep::Queued => "queued",
            TrailStep::Started { .. } => "started",
            TrailStep::Retrying { .. } => "retrying",
            TrailStep::Completed { .. } => "completed",
            other => panic!("unexpected {other:?}"),
        })
        .collect();
    let expected = ["queued", "started", "retrying", "started", "retrying", "started", "completed"];
    assert_eq!(steps, expected);
    assert!(engine.dead_letters(None, 10).await.unwrap().is_empty());
}

async fn a_permanent_failure_fails_the_run_without_a_retry(store: &TestStore) {
    let engine = Engine::builder()
        .workflow::<One>()
        .activity_fn(FLAKY, async |_, _: u32| Err(Error::permanent("no such card").code("CARD")))
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(One::REF, &0).await.unwrap();
    let Err(RunError::Failed { failure, .. }) = run.result().await else { panic!("must fail") };
    assert_eq!(failure.code.as_deref(), Some("CARD"));
    assert_eq!(failure.origin.as_deref(), Some("it"));
    assert_eq!(failure.kind, FailureKind::Permanent);
    assert_eq!(count(&run, "ActivityFailed").await, 1);
    assert!(engine.dead_letters(None, 10).await.unwrap().is_empty());
}

async fn used_up_attempts_leave_a_dead_letter_with_every_error(store: &TestStore) {
    let engine = Engine::builder()
        .workflow::<One>()
        .activity_fn(FLAKY, async |ctx: ActivityContext, _: u32| {
            Err(Error::retryable(format!("down {}", ctx.attempt())))
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(One::REF, &0).await.unwrap();
    assert!(run.result().await.is_err());
    let letters = engine.dead_letters(Some(run.id()), 10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].attempts, 3);
    let messages: Vec<&str> = letters[0].errors.iter().map(|e| e.message.as_str()).collect();
    assert_eq!(messages, ["down 1", "down 2", "down 3"]);
    let last = run.status().await.unwrap().last_error.unwrap();
    assert!(last.error.message.contains("down 3"), "{last:?}");
}

async fn a_panicking_activity_is_a_failure_of_its_own_kind(store: &TestStore) {
    let engine = Engine::builder()
        .workflow::<One>()
        .activity_fn(FLAKY, async |_, _: u32| -> Result<u32> { panic!("boom") })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(One::REF, &0).await.unwrap();
    let Err(RunError::Failed { failure, .. }) = run.result().await else { panic!("must fail") };
    assert_eq!(failure.kind, FailureKind::Panicked);
    assert_eq!(failure.message, "boom");
    assert_eq!(failure.code.as_deref(), Some("DUR-0017"));
}

const WORD: SignalRef<String> = SignalRef::new("word");

/// Gathers words; ends when its timer, begun by "go", fires.
struct Words(Vec<String>);
impl Workflow for Words {
    const TYPE: &'static str = "words";
    type Input = ();
    type Output = String;
    fn new((): ()) -> Self {
        Words(vec![])
    }
    fn on_start(&mut self) -> Actions<Self> {
        actions![]
    }
    fn on_signal(&mut self, signal: &Signal) -> Actions<Self> {
        let Some(word) = signal.of(WORD)? else { return actions![] };
        if word == "go" {
            return actions![Action::timer("end", Duration::from_millis(20))];
        }
        self.0.push(word);
        actions![]
    }
    fn on_timer_fired(&mut self, id: &str) -> Actions<Self> {
        assert_eq!(id, "end");
        actions![Action::complete(&self.0.join(" "))]
    }
}

async fn timers_and_signals_reach_the_machine_in_order(store: &TestStore) {
    let engine = Engine::builder().workflow::<Words>().start(&store.url).await.unwrap();
    let run = engine.start(Words::REF, &()).signal(WORD, &"zero".into()).await.unwrap();
    for word in ["one", "two", "three", "go"] {
        run.signal(WORD, &word.to_owned()).await.unwrap();
    }
    assert_eq!(run.result().await.unwrap(), "zero one two three");
    let error = run.signal(WORD, &"late".into()).await.unwrap_err();
    assert_eq!(error.code().as_str(), "DUR-0031");
}

async fn a_signal_id_is_delivered_once(store: &TestStore) {
    let engine = Engine::builder().workflow::<Words>().start(&store.url).await.unwrap();
    let run = engine.start(Words::REF, &()).await.unwrap();
    for _ in 0..3 {
        run.signal_once(WORD, &"once".into(), "id-1").await.unwrap();
    }
    run.signal(WORD, &"go".into()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "once");
    // Recognised even after the end.
    run.signal_once(WORD, &"once".into(), "id-1").await.unwrap();
}

struct Twice;
impl Workflow for Twice {
    const TYPE: &'static str = "twice";
    type Input = ();
    type Output = ();
    fn new((): ()) -> Self {
        Twice
    }
    fn on_start(&mut self) -> Actions<Self> {
        actions![Action::activity("same", ADD, &1), Action::activity("same", ADD, &2)]
    }
}

async fn an_id_used_twice_fails_the_run_by_name(store: &TestStore) {
    let engine = adding().workflow::<Twice>().start(&store.url).await.unwrap();
    let run = engine.start(Twice::REF, &()).await.unwrap();
    let Err(RunError::Failed { failure, .. }) = run.result().await else { panic!("must fail") };
    assert_eq!(failure.code.as_deref(), Some("DUR-0010"));
    assert!(failure.message.contains("\"same\""), "{failure}");
}

struct Panics;
impl Workflow for Panics {
    const TYPE: &'static str = "panics";
    type Input = ();
    type Output = ();
    fn new((): ()) -> Self {
        Panics
    }
    fn on_start(&mut self) -> Actions<Self> {
        panic!("not my day")
    }
}

async fn a_panicking_handler_parks_the_run_and_not_the_process(store: &TestStore) {
    let engine = adding().workflow::<Panics>().workflow::<Line>().start(&store.url).await.unwrap();
    let run = engine.start(Panics::REF, &()).await.unwrap();
    until("the run is parked", async || run.status().await.unwrap().parked.is_some()).await;
    let parked = run.status().await.unwrap().parked.unwrap();
    assert_eq!(parked.code, "DUR-0011");
    assert!(parked.reason.contains("not my day"));
    assert_eq!(engine.run(Line::REF, &1).await.unwrap(), 1);
    run.terminate("enough").await.unwrap();
    assert!(matches!(run.result().await, Err(RunError::Terminated { .. })));
}

/// Waits in an activity until it is cancelled.
struct Waits;
impl Workflow for Waits {
    const TYPE: &'static str = "waits";
    type Input = ();
    type Output = String;
    fn new((): ()) -> Self {
        Waits
    }
    fn on_start(&mut self) -> Actions<Self> {
        actions![Action::activity("wait", WAIT, &()), Action::timer("t", Duration::from_secs(3600))]
    }
    fn on_activity_completed(&mut self, _id: &str, result: &Output) -> Actions<Self> {
        actions![Action::complete(&result.decode()?)]
    }
}

async fn cancel_ends_a_machine_and_reaches_its_activity(store: &TestStore) {
    let (begun, heard) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (b, h) = (begun.clone(), heard.clone());
    let engine = Engine::builder()
        .workflow::<Waits>()
        .activity_fn(WAIT, async move |ctx: ActivityContext, ()| {
            b.fetch_add(1, Ordering::SeqCst);
            ctx.cancellation().cancelled().await;
            assert_eq!(ctx.cancellation().reason(), Some(durably::CancelReason::RunCancelled));
            h.fetch_add(1, Ordering::SeqCst);
            Ok("ignored".to_owned())
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(Waits::REF, &()).await.unwrap();
    until("the activity runs", async || begun.load(Ordering::SeqCst) == 1).await;
    run.cancel("no longer needed").await.unwrap();
    let Err(RunError::Cancelled { reason, .. }) = run.result().await else { panic!("cancelled") };
    assert_eq!(reason, "no longer needed");
    until("the activity hears it", async || heard.load(Ordering::SeqCst) == 1).await;
    until("its row is let go", async || run.tasks().await.unwrap().is_empty()).await;
    let events = events(&run).await;
    assert_eq!(events.last().unwrap(), "WorkflowCancelled");
    assert!(events.contains(&"ActivityCancelled".to_owned()));
    assert!(events.contains(&"TimerCancelled".to_owned()));
    assert!(!events.contains(&"ActivityCompleted".to_owned()));
}

/// Runs an activity before it ends as cancelled.
struct Compensates;
impl Workflow for Compensates {
    const TYPE: &'static str = "compensates";
    type Input = ();
    type Output = ();
    fn new((): ()) -> Self {
        Compensates
    }
    fn on_start(&mut self) -> Actions<Self> {
        actions![Action::timer("long", Duration::from_secs(3600))]
    }
    fn on_cancel(&mut self, _reason: &str) -> Actions<Self> {
        actions![Action::cancel_timer("long"), Action::activity("undo", ADD, &1)]
    }
    fn on_activity_completed(&mut self, _id: &str, _: &Output) -> Actions<Self> {
        actions![Action::cancelled("undone")]
    }
}

async fn a_machine_may_compensate_when_cancelled(store: &TestStore) {
    let engine = adding().workflow::<Compensates>().start(&store.url).await.unwrap();
    let run = engine.start(Compensates::REF, &()).await.unwrap();
    until("the timer runs", async || count(&run, "TimerStarted").await == 1).await;
    run.cancel("stop").await.unwrap();
    if let Err(error) = run.cancel("stop again").await {
        assert_eq!(error.code().as_str(), "DUR-0031", "it may have ended by now: {error}");
    }
    let Err(RunError::Cancelled { reason, .. }) = run.result().await else { panic!("cancelled") };
    assert_eq!(reason, "undone");
    assert_eq!(count(&run, "WorkflowCancelRequested").await, 1);
    assert_eq!(count(&run, "ActivityCompleted").await, 1);
}

async fn shutdown_lets_current_activities_finish(store: &TestStore) {
    let (begun, go) = (Arc::new(AtomicU32::new(0)), Arc::new(tokio::sync::Notify::new()));
    let (b, g) = (begun.clone(), go.clone());
    let engine = Engine::builder()
        .workflow::<Waits>()
        .activity_fn(WAIT, async move |_, ()| {
            b.fetch_add(1, Ordering::SeqCst);
            g.notified().await;
            Ok("done".to_owned())
        })
        .start(&store.url)
        .await
        .unwrap();
    let run = engine.start(Waits::REF, &()).await.unwrap();
    until("the activity runs", async || begun.load(Ordering::SeqCst) == 1).await;
    run.shutdown().await.unwrap();
    until("the request is heard", async || count(&run, "WorkflowShutdownRequested").await == 1)
        .await;
    assert_eq!(run.status().await.unwrap().status, RunStatus::Running);
    go.notify_one();
    let Err(RunError::Cancelled { reason, .. }) = run.result().await else { panic!("cancelled") };
    assert_eq!(reason, "shutdown");
    assert_eq!(count(&run, "ActivityCompleted").await, 1);
}

async fn terminate_runs_no_code(store: &TestStore) {
    let engine = adding().workflow::<Compensates>().start(&store.url).await.unwrap();
    let run = engine.start(Compensates::REF, &()).await.unwrap();
    until("the timer runs", async || count(&run, "TimerStarted").await == 1).await;
    run.terminate("now").await.unwrap();
    let Err(RunError::Terminated { reason, .. }) = run.result().await else { panic!("ended") };
    assert_eq!(reason, "now");
    assert_eq!(count(&run, "ActivityScheduled").await, 0);
    assert_eq!(run.terminate("again").await.unwrap_err().code().as_str(), "DUR-0031");
}

async fn input_of_another_type_fails_the_run(store: &TestStore) {
    let engine = adding().workflow::<Line>().start(&store.url).await.unwrap();
    let run = engine.start_by_name("line", serde_json::json!({"no": "number"})).await.unwrap();
    let Err(RunError::Failed { failure, .. }) = run.result().await else { panic!("must fail") };
    assert_eq!(failure.kind, FailureKind::InvalidInput);
    assert_eq!(failure.code.as_deref(), Some("DUR-0006"));
}

async fn cancel_and_shutdown_have_their_meaning_as_signals(store: &TestStore) {
    let engine = adding().workflow::<Words>().start(&store.url).await.unwrap();
    let run = engine.start(Words::REF, &()).await.unwrap();
    engine.signal_by_name(run.id(), "cancel", &"by signal", None).await.unwrap();
    let Err(RunError::Cancelled { reason, .. }) = run.result().await else { panic!("cancelled") };
    assert_eq!(reason, "by signal");
    let run = engine.start(Words::REF, &()).await.unwrap();
    until("it has begun", async || count(&run, "VersionPinned").await == 1).await;
    engine.signal_by_name(run.id(), "shutdown", &(), None).await.unwrap();
    let Err(RunError::Cancelled { reason, .. }) = run.result().await else { panic!("cancelled") };
    assert_eq!(reason, "shutdown");
}
