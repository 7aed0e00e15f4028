//! Codecs that fail or panic, at every edge: clear errors, nothing half done, and everything goes
//! on once they work.

mod common;

use common::toy::{How, Toy, Trouble, Way};
use common::{TestStore, count, until};
use durably::prelude::*;
use durably::{Code, EngineBuilder, Event, FailureKind, RunError, RunQuery, Seq};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

on_every_store!(
    a_start_that_cannot_be_coded_writes_nothing,
    many_starts_of_which_one_cannot_be_coded_start_none,
    a_signal_that_cannot_be_coded_is_not_sent,
    an_attempt_whose_values_cannot_be_coded_fails_and_is_tried_again,
    a_step_whose_result_cannot_be_coded_is_tried_again,
    an_attempt_is_not_tried_again_when_the_codec_says_so,
    details_that_cannot_be_coded_do_not_hide_the_error,
    a_run_whose_values_cannot_be_coded_is_parked_and_goes_on,
    a_result_that_cannot_be_decoded_is_the_readers_error,
);

const WORK: ActivityRef<String, String> = ActivityRef::new("work");
const LINE: WorkflowRef<String, String> = WorkflowRef::new("line");
const NOTE: SignalRef<String> = SignalRef::new("note");
const HOWS: [How; 2] = [How::Fails, How::Panics];
const LONG: u32 = u32::MAX;

fn soon(attempts: u32) -> Retry {
    Retry::attempts(attempts).first(Duration::from_millis(5))
}

/// A signal, an activity, a result; each is known by its text.
struct Machine;

impl Workflow for Machine {
    const TYPE: &'static str = "machine";
    type Input = String;
    type Output = String;
    fn new(_: String) -> Self {
        Machine
    }
    fn on_start(&mut self) -> Actions<Self> {
        actions![]
    }
    fn on_signal(&mut self, signal: &Signal) -> Actions<Self> {
        assert_eq!(signal.of(NOTE)?.as_deref(), Some("the signal"));
        actions![Action::activity("work", WORK, &"the work".to_owned()).retry(soon(3))]
    }
    fn on_activity_completed(&mut self, _id: &str, result: &Output) -> Actions<Self> {
        assert_eq!(result.of(WORK)?.as_deref(), Some("the work done"));
        actions![Action::complete(&"the output".to_owned())]
    }
}

async fn line(ctx: Ctx, _: String) -> Result<String> {
    assert_eq!(ctx.signal(NOTE).await?, "the signal");
    let done = ctx.activity(WORK, &"the work".to_owned()).retry(soon(3)).await?;
    assert_eq!(done, "the work done");
    Ok("the output".to_owned())
}

fn app(trouble: &Trouble) -> EngineBuilder {
    Engine::builder()
        .codec(Toy::with("toy", trouble))
        .workflow::<Machine>()
        .function(LINE, line)
        .activity_fn(WORK, async |_: ActivityContext, input: String| Ok(format!("{input} done")))
}

fn is_clear(text: &str) {
    assert!(text.contains("codec \"toy\"") && text.contains("the key server is down"), "{text}");
}

async fn a_start_that_cannot_be_coded_writes_nothing(store: &TestStore) {
    let trouble = Trouble::default();
    let engine = store.start(app(&trouble)).await;
    for how in HOWS {
        trouble.plan(Way::Encode, how, "the input", 1);
        let error = engine.start(LINE, &"the input".into()).await.unwrap_err();
        assert_eq!(error.code(), Code::CODEC);
        is_clear(&error.to_string());
        trouble.plan(Way::Encode, how, "the signal", 1);
        let start = engine.start(LINE, &"the input".into());
        let error = start.signal(NOTE, &"the signal".into()).await.unwrap_err();
        assert_eq!(error.code(), Code::CODEC);
    }
    assert!(engine.runs(RunQuery::default()).await.unwrap().is_empty());
    let start = engine.start(LINE, &"the input".into()).signal(NOTE, &"the signal".into());
    assert_eq!(start.await.unwrap().result().await.unwrap(), "the output");
}

async fn many_starts_of_which_one_cannot_be_coded_start_none(store: &TestStore) {
    let trouble = Trouble::default();
    let engine = store.start(app(&trouble)).await;
    let starts = || {
        let start = |n: u32| engine.start(LINE, &format!("the input {n}"));
        let said = "the signal".to_owned();
        [1, 2, 3].map(|n| start(n).signal(NOTE, &said))
    };
    for how in HOWS {
        trouble.plan(Way::Encode, how, "the input 2", 1);
        let error = engine.start_many(starts()).await.unwrap_err();
        assert_eq!(error.code(), Code::CODEC);
        is_clear(&error.to_string());
    }
    assert!(engine.runs(RunQuery::default()).await.unwrap().is_empty());
    for run in engine.start_many(starts()).await.unwrap() {
        assert_eq!(run.unwrap().result().await.unwrap(), "the output");
    }
}

async fn a_signal_that_cannot_be_coded_is_not_sent(store: &TestStore) {
    let trouble = Trouble::default();
    let engine = store.start(app(&trouble)).await;
    let run = engine.start(LINE, &"the input".into()).await.unwrap();
    for how in HOWS {
        trouble.plan(Way::Encode, how, "the signal", 1);
        let error = run.signal(NOTE, &"the signal".into()).await.unwrap_err();
        assert_eq!(error.code(), Code::CODEC);
        is_clear(&error.to_string());
    }
    assert_eq!(run.status().await.unwrap().inbox_last, 0);
    run.signal(NOTE, &"the signal".into()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "the output");
    assert_eq!(count(&run, "SignalReceived").await, 1);
}

/// What was recorded of the attempts that failed.
async fn failures<O>(run: &Handle<O>) -> Vec<(Failure, bool)> {
    let page = run.history(Seq(0), 100).await.unwrap();
    let failed = page.events.into_iter().filter_map(|row| match row.event {
        Event::ActivityFailed { error, will_retry, .. } => Some((*error, will_retry)),
        _ => None,
    });
    failed.collect()
}

async fn an_attempt_whose_values_cannot_be_coded_fails_and_is_tried_again(store: &TestStore) {
    let trouble = Trouble::default();
    let engine = store.start(app(&trouble)).await;
    for how in HOWS {
        for (way, value, what) in [
            (Way::Decode, "\"the work\"", "activity input"),
            (Way::Encode, "\"the work done\"", "activity output"),
        ] {
            trouble.plan(way, how, value, 1);
            let run = engine.start(Machine::REF, &"the input".into()).await.unwrap();
            run.signal(NOTE, &"the signal".into()).await.unwrap();
            assert_eq!(run.result().await.unwrap(), "the output");
            let failed = failures(&run).await;
            let [(failure, true)] = failed.as_slice() else { panic!("{failed:?}") };
            assert_eq!(failure.kind, FailureKind::Retryable);
            assert_eq!(failure.code.as_deref(), Some(Code::CODEC.as_str()));
            is_clear(&failure.message);
            assert!(failure.message.starts_with(what), "{}", failure.message);
        }
    }
}

async fn a_step_whose_result_cannot_be_coded_is_tried_again(store: &TestStore) {
    const STEPS: WorkflowRef<(), String> = WorkflowRef::new("steps");
    let (trouble, ran) = (Trouble::default(), Arc::new(AtomicU32::new(0)));
    let counted = ran.clone();
    let app = app(&trouble).function(STEPS, move |ctx: Ctx, ()| {
        let ran = counted.clone();
        async move {
            let step = ctx.step("step", async || {
                ran.fetch_add(1, Ordering::SeqCst);
                Ok("the step".to_owned())
            });
            Ok(step.retry(soon(3)).await?)
        }
    });
    let engine = store.start(app).await;
    for how in HOWS {
        ran.store(0, Ordering::SeqCst);
        trouble.plan(Way::Encode, how, "the step", 1);
        let run = engine.start(STEPS, &()).await.unwrap();
        assert_eq!(run.result().await.unwrap(), "the step");
        let failed = failures(&run).await;
        let [(failure, true)] = failed.as_slice() else { panic!("{failed:?}") };
        assert_eq!(failure.code.as_deref(), Some(Code::CODEC.as_str()));
        is_clear(&failure.message);
        assert_eq!(ran.load(Ordering::SeqCst), 2, "what was not recorded is done again");
    }
}

/// It has lost its keys for good.
struct Keyless;

impl durably::Codec for Keyless {
    fn name(&self) -> &str {
        "toy"
    }
    fn encode(&self, plain: &[u8]) -> Result<Vec<u8>> {
        Ok(plain.to_vec())
    }
    fn decode(&self, _: &[u8]) -> Result<Vec<u8>> {
        Err(Error::permanent("the key is destroyed"))
    }
}

async fn an_attempt_is_not_tried_again_when_the_codec_says_so(store: &TestStore) {
    // The workflow's process has the keys, the activity's has not.
    let trouble = Trouble::default();
    let workflows = Engine::builder().codec(Toy::with("toy", &trouble)).function(LINE, line);
    let engine = store.start(workflows).await;
    let activities = Engine::builder()
        .codec(Keyless)
        .activity_fn(WORK, async |_: ActivityContext, input: String| Ok(input));
    let _activities = store.start(activities).await;
    let start = engine.start(LINE, &"the input".into()).signal(NOTE, &"the signal".into());
    let run = start.await.unwrap();
    let Err(RunError::Failed { failure, .. }) = run.result().await else { panic!("it fails") };
    assert_eq!(failure.kind, FailureKind::Permanent);
    assert!(failure.message.contains("the key is destroyed"), "{failure}");
    assert_eq!(failures(&run).await.len(), 1);
}

async fn details_that_cannot_be_coded_do_not_hide_the_error(store: &TestStore) {
    const FAIL: ActivityRef<(), ()> = ActivityRef::new("fail");
    const TELL: WorkflowRef<(), String> = WorkflowRef::new("tell");
    const BEAT: ActivityRef<(), String> = ActivityRef::new("beat");
    let trouble = Trouble::default();
    let app = app(&trouble)
        .function(TELL, async |ctx: Ctx, ()| {
            let failed = ctx.activity(FAIL, &()).await.unwrap_err();
            let beat = ctx.activity(BEAT, &()).retry(soon(3)).await?;
            Ok(format!("{} / {beat}", failed.message))
        })
        .activity_fn(FAIL, async |_: ActivityContext, ()| {
            Err(Error::permanent("no such card").details(&"the details"))
        })
        .activity_fn(BEAT, async |ctx: ActivityContext, ()| match ctx.attempt() {
            1 => {
                let error = ctx.heartbeat("the beat").unwrap_err();
                ctx.heartbeat("a good beat")?;
                Err(Error::retryable(error))
            }
            _ => Ok(ctx.heartbeat_details::<String>().unwrap_or_default()),
        });
    let engine = store.start(app).await;
    for how in HOWS {
        trouble.plan(Way::Encode, how, "the details", 1);
        trouble.plan(Way::Encode, how, "the beat", 1);
        trouble.plan(Way::Decode, how, "a good beat", 1);
        let run = engine.start(TELL, &()).await.unwrap();
        let told = run.result().await.unwrap();
        assert!(told.starts_with("no such card (its details are left out: the codec"), "{told}");
        assert!(told.ends_with("/ a good beat"), "{told}");
        let failed = failures(&run).await;
        let messages: Vec<&str> =
            failed.iter().map(|(failure, _)| failure.message.as_str()).collect();
        messages.iter().for_each(|message| is_clear(message));
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert!(messages[1].starts_with("heartbeat details"), "the call's error: {messages:?}");
        assert!(messages[2].starts_with("heartbeat details"), "the attempt's: {messages:?}");
        assert_eq!(failed[0].0.kind, FailureKind::Permanent, "it is not tried again");
    }
}

async fn a_run_whose_values_cannot_be_coded_is_parked_and_goes_on(store: &TestStore) {
    let trouble = Trouble::default();
    // What goes wrong, and the last event before it.
    let edges = [
        (Way::Decode, "the input", "workflow input", "WorkflowStarted"),
        (Way::Decode, "the signal", "SignalReceived", "VersionPinned"),
        (Way::Encode, "\"the work\"", "input of activity work", "VersionPinned"),
        (Way::Decode, "the work done", "ActivityCompleted", "ActivityScheduled"),
        (Way::Encode, "the output", "workflow output", "ActivityScheduled"),
    ];
    for (way, value, what, before) in edges {
        for how in HOWS {
            for name in [LINE.name(), Machine::TYPE] {
                let engine = store.start(app(&trouble)).await;
                let at = format!("{way:?} of {value} {how:?} in {name}");
                trouble.plan(way, how, value, LONG);
                let start = engine.start_by_name(name, "the input".into());
                let run = start.await.unwrap();
                if before != "WorkflowStarted" {
                    until(&at, async || run.status().await.unwrap().head >= Seq(2)).await;
                }
                run.signal(NOTE, &"the signal".into()).await.unwrap();
                let parked = async || run.status().await.unwrap().parked;
                until(&at, async || parked().await.is_some()).await;
                let parked = parked().await.unwrap();
                assert_eq!(parked.code, Code::CODEC.as_str(), "{at}");
                is_clear(&parked.reason);
                assert!(parked.reason.starts_with(what), "{at}: {}", parked.reason);
                trouble.end();
                let page = run.history(Seq(0), 100).await.unwrap();
                assert_eq!(page.events.last().unwrap().event.name(), before, "{at}");
                // Another process makes what is parked due at once.
                let other = store.start(app(&trouble)).await;
                assert_eq!(run.result().await.unwrap(), "the output", "{at}");
                assert_eq!(count(&run, "ActivityCompleted").await, 1, "{at}");
                engine.stop().await.unwrap();
                other.stop().await.unwrap();
            }
        }
    }
}

async fn a_result_that_cannot_be_decoded_is_the_readers_error(store: &TestStore) {
    let trouble = Trouble::default();
    let engine = store.start(app(&Trouble::default())).await;
    let client = engine.client().with_codec(Toy::with("toy", &trouble)).unwrap();
    let start = client.start(LINE, &"the input".into()).signal(NOTE, &"the signal".into());
    let run = start.await.unwrap();
    for how in HOWS {
        trouble.plan(Way::Decode, how, "the output", LONG);
        let error = run.result().await.unwrap_err();
        assert_eq!(error.code(), Code::CODEC);
        is_clear(&error.to_string());
        assert!(error.to_string().contains(&run.id().to_string()), "{error}");
        let error = run.history(Seq(0), 100).await.unwrap_err();
        is_clear(&error.to_string());
        assert!(error.to_string().contains("(WorkflowCompleted)"), "{error}");
        trouble.end();
    }
    assert_eq!(run.result().await.unwrap(), "the output");
}
