//! Codecs: no value reaches the store as it is, every value reaches its code as it was.

mod common;

use common::toy::Toy;
use common::{TestStore, count, events, until};
use durably::prelude::*;
use durably::{Code, Codec, DeadLetterKind, EngineBuilder, Event, RunError, RunQuery, Seq};
use durably_store::{LoadCall, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

on_every_store!(
    no_value_is_readable_in_the_store_and_every_value_reaches_its_code,
    progress_is_coded_in_the_store_and_shown_plain,
    runs_are_rebuilt_though_every_call_of_the_codec_gives_other_bytes,
    one_key_and_one_input_are_one_start_however_they_are_coded,
    a_store_that_is_in_use_can_be_given_a_codec,
    a_codec_of_another_name_is_told_from_the_right_one,
    attributes_and_reasons_stay_readable,
    limits_hold_for_what_is_stored,
    codecs_that_cannot_be_used_are_refused,
);

const PACK: ActivityRef<String, String> = ActivityRef::new("pack");
const LOSE: ActivityRef<String, String> = ActivityRef::new("lose");
const CARE: WorkflowRef<String, String> = WorkflowRef::new("care");
const NOTE: SignalRef<String> = SignalRef::new("note");

/// One for each kind of value.
const CANARIES: [&str; 14] = [
    "canary-input",
    "canary-many",
    "canary-activity-input",
    "canary-activity-output",
    "canary-heartbeat",
    "canary-activity-error",
    "canary-step",
    "canary-step-error",
    "canary-signal",
    "canary-output",
    "canary-run-error",
    "canary-dead",
    "canary-unread",
    "canary-inbox",
];

fn soon(attempts: u32) -> Retry {
    Retry::attempts(attempts).first(Duration::from_millis(5))
}

/// Waits for a note, has it packed, and gives what came back.
struct Ship {
    input: String,
}

impl Workflow for Ship {
    const TYPE: &'static str = "ship";
    type Input = String;
    type Output = String;
    fn new(input: String) -> Self {
        Ship { input }
    }
    fn on_start(&mut self) -> Actions<Self> {
        assert_eq!(self.input, "canary-input");
        actions![]
    }
    fn on_signal(&mut self, signal: &Signal) -> Actions<Self> {
        assert_eq!(signal.of(NOTE)?.as_deref(), Some("canary-signal"));
        let input = "canary-activity-input".to_owned();
        actions![Action::activity("pack", PACK, &input).retry(soon(2))]
    }
    fn on_activity_completed(&mut self, _id: &str, result: &Output) -> Actions<Self> {
        assert_eq!(result.of(PACK)?.as_deref(), Some("canary-activity-output"));
        actions![Action::complete(&"canary-output".to_owned())]
    }
}

/// The same as a function, which at last fails.
async fn care(ctx: Ctx, input: String) -> Result<String> {
    assert_eq!(input, "canary-input");
    let step = ctx.step("step", async || Ok("canary-step".to_owned())).await?;
    assert_eq!(step, "canary-step");
    let tries = AtomicU32::new(0);
    let again = ctx.step("again", async || match tries.fetch_add(1, Ordering::SeqCst) {
        0 => Err(Error::retryable("not yet").details(&"canary-step-error")),
        _ => Ok(()),
    });
    again.retry(soon(2)).await?;
    assert_eq!(ctx.signal(NOTE).await?, "canary-signal");
    let packed = ctx.activity(PACK, &"canary-activity-input".to_owned()).retry(soon(2)).await?;
    assert_eq!(packed, "canary-activity-output");
    let lost = ctx.activity(LOSE, &"canary-dead".to_owned()).retry(soon(2)).await.unwrap_err();
    let details = lost.details.clone().unwrap();
    assert_eq!(details.text(), "\"canary-activity-error\"", "details reach the code");
    Err(Error::permanent("gone").details(&"canary-run-error"))
}

fn app() -> EngineBuilder {
    Engine::builder()
        .workflow::<Ship>()
        .function(CARE, care)
        .activity_fn(PACK, async |ctx: ActivityContext, input: String| {
            assert_eq!(input, "canary-activity-input");
            if ctx.attempt() == 1 {
                ctx.heartbeat("canary-heartbeat")?;
                return Err(Error::retryable("once more").details(&"canary-activity-error"));
            }
            assert_eq!(ctx.heartbeat_details::<String>().as_deref(), Some("canary-heartbeat"));
            Ok("canary-activity-output".to_owned())
        })
        .activity_fn(LOSE, async |_: ActivityContext, _: String| {
            Err(Error::retryable("lost").details(&"canary-activity-error"))
        })
}

/// All that a client shows of a store.
async fn shown(client: &Client) -> String {
    let mut all = String::new();
    for run in client.runs(RunQuery::default()).await.unwrap() {
        all += &serde_json::to_string(&run.last_error.map(|last| last.error)).unwrap();
        let run = client.handle_by_id(run.identity.id);
        let page = run.history(Seq(0), 1000).await.unwrap();
        let events: Vec<Event> = page.events.into_iter().map(|row| row.event).collect();
        all += &Event::list_to_json(&events);
        all += &serde_json::to_string(&run.trail().await.unwrap()).unwrap();
        for task in run.tasks().await.unwrap() {
            all += task.details.as_ref().map_or("", |details| details.text());
        }
    }
    for letter in client.dead_letters(None, 100).await.unwrap() {
        all += letter.input.text();
        all += &serde_json::to_string(&letter.errors).unwrap();
    }
    all
}

/// All that the store itself holds.
async fn held(store: &TestStore, raw: &Client) -> String {
    let mut all = String::from_utf8_lossy(&store.bytes()).into_owned();
    if let Some(memory) = store.in_memory() {
        for run in raw.runs(RunQuery::default()).await.unwrap() {
            let run = run.identity.id;
            let call = LoadCall { run, after: Seq(0), claims: vec![], who: None, events_max: 1000 };
            for entry in memory.load(call).await.unwrap().unwrap().unread {
                all += &entry.fact.to_json();
            }
        }
    }
    all + &shown(raw).await
}

async fn no_value_is_readable_in_the_store_and_every_value_reaches_its_code(store: &TestStore) {
    let engine = store.start(app().codec(Toy::new("toy"))).await;
    let input = "canary-input".to_owned();
    let ship = engine.start(Ship::REF, &input).await.unwrap();
    ship.signal(NOTE, &"canary-signal".into()).await.unwrap();
    assert_eq!(ship.result().await.unwrap(), "canary-output");
    let said = "canary-signal".to_owned();
    let care = engine.start(CARE, &input).signal(NOTE, &said).await.unwrap();
    let Err(RunError::Failed { failure, .. }) = care.result().await else { panic!("it fails") };
    assert_eq!(failure.message, "gone");
    assert_eq!(failure.details.unwrap().text(), "\"canary-run-error\"");
    // One signal waits in an inbox, another one is never read.
    let hour = Duration::from_secs(3600);
    let later = engine.start(CARE, &input).delay(hour).await.unwrap();
    later.signal(NOTE, &"canary-inbox".into()).await.unwrap();
    let ended = engine.start(CARE, &input).delay(hour).await.unwrap();
    ended.signal(NOTE, &"canary-unread".into()).await.unwrap();
    ended.terminate("never mind").await.unwrap();
    let many = [1, 2].map(|n| {
        engine.start_by_name("nobody", serde_json::json!({ "n": n, "say": "canary-many" }))
    });
    engine.start_many(many).await.unwrap();

    let plain = shown(&engine).await;
    assert!(!plain.contains("$coded"), "{plain}");
    for canary in CANARIES {
        // What waits in an inbox is nowhere to be read yet.
        assert_eq!(plain.contains(canary), canary != "canary-inbox", "{canary} in {plain}");
    }
    let letters = engine.dead_letters(Some(ended.id()), 10).await.unwrap();
    assert_eq!(letters[0].kind, DeadLetterKind::Unread);
    assert!(letters[0].input.text().contains("canary-unread"), "{}", letters[0].input.text());
    let raw = store.start(Engine::builder()).await;
    let held = held(store, &raw).await;
    assert!(held.contains("\"$coded\":\"toy\""), "coded values are told from plain ones");
    for canary in CANARIES {
        let at = held.find(canary).map(|at| &held[at.saturating_sub(200)..at]);
        assert_eq!(at, None, "{canary} is readable");
    }
}

async fn progress_is_coded_in_the_store_and_shown_plain(store: &TestStore) {
    const WATCHED: WorkflowRef<(), ()> = WorkflowRef::new("watched");
    const LONG: ActivityRef<(), ()> = ActivityRef::new("long");
    let done = Arc::new(tokio::sync::Notify::new());
    let wait = done.clone();
    let app = Engine::builder()
        .beat(Duration::from_millis(20))
        .codec(Toy::new("toy"))
        .function(WATCHED, async |ctx: Ctx, ()| Ok(ctx.activity(LONG, &()).await?))
        .activity_fn(LONG, async move |ctx: ActivityContext, ()| {
            ctx.heartbeat("canary-progress")?;
            wait.notified().await;
            Ok(())
        });
    let engine = store.start(app).await;
    let run = engine.start(WATCHED, &()).await.unwrap();
    let said = async |client: &Client| {
        let tasks = client.handle_by_id(run.id()).tasks().await.unwrap();
        tasks.into_iter().find_map(|task| task.details)
    };
    until("a beat took it along", async || said(&engine).await.is_some()).await;
    assert_eq!(said(&engine).await.unwrap().text(), "\"canary-progress\"");
    let raw = store.start(Engine::builder()).await;
    let stored = said(&raw).await.unwrap();
    assert!(stored.text().starts_with("{\"$coded\":\"toy\""), "{}", stored.text());
    let other = engine.client().with_codec(Toy::new("other")).unwrap();
    let error = other.handle_by_id(run.id()).tasks().await.unwrap_err();
    assert_eq!(error.code(), Code::CODEC_OTHER);
    done.notify_one();
    run.result().await.unwrap();
}

async fn runs_are_rebuilt_though_every_call_of_the_codec_gives_other_bytes(store: &TestStore) {
    let steps = Arc::new(AtomicU32::new(0));
    let app = || {
        let steps = steps.clone();
        app().codec(Toy::new("toy")).function(COUNTED, move |ctx: Ctx, input: String| {
            let steps = steps.clone();
            async move {
                let step = ctx.step("step", async || {
                    steps.fetch_add(1, Ordering::SeqCst);
                    Ok(format!("{input} step"))
                });
                let step = step.await?;
                let note = ctx.signal(NOTE).await?;
                let more = ctx.step("more", async || Ok(format!("{step} {note}"))).await?;
                Ok(more)
            }
        })
    };
    const COUNTED: WorkflowRef<String, String> = WorkflowRef::new("counted");
    let first = store.start(app()).await;
    let counted = first.start(COUNTED, &"in".into()).await.unwrap();
    let ship = first.start(Ship::REF, &"canary-input".into()).await.unwrap();
    until("the step is recorded", async || count(&counted, "ActivityCompleted").await == 1).await;
    until("the machine began", async || count(&ship, "VersionPinned").await == 1).await;
    drop(first);
    let second = store.start(app()).await;
    let (counted, ship) =
        (second.handle(COUNTED, counted.id()), second.handle(Ship::REF, ship.id()));
    counted.signal(NOTE, &"note".into()).await.unwrap();
    ship.signal(NOTE, &"canary-signal".into()).await.unwrap();
    assert_eq!(counted.result().await.unwrap(), "in step note");
    assert_eq!(ship.result().await.unwrap(), "canary-output");
    assert_eq!(steps.load(Ordering::SeqCst), 1, "a recorded step does not run again");
}

async fn one_key_and_one_input_are_one_start_however_they_are_coded(store: &TestStore) {
    let engine = store.start(app().codec(Toy::new("toy"))).await;
    let hour = Duration::from_secs(3600);
    let start = async |input: &str| {
        let start = engine.start(CARE, &input.to_owned()).delay(hour);
        start.idempotency_key("one").await
    };
    let (first, second) = (start("same").await.unwrap(), start("same").await.unwrap());
    assert_eq!((first.id(), second.existed()), (second.id(), true));
    assert_eq!(start("other").await.unwrap_err().code(), Code::KEY_TAKEN);
}

async fn a_store_that_is_in_use_can_be_given_a_codec(store: &TestStore) {
    const MIXED: WorkflowRef<String, String> = WorkflowRef::new("mixed");
    let app = || {
        Engine::builder().function(MIXED, async |ctx: Ctx, input: String| {
            let one = ctx.step("one", async || Ok(format!("{input} one"))).await?;
            let note = ctx.signal(NOTE).await?;
            let two = ctx.step("two", async || Ok(format!("{one} {note} two"))).await?;
            Ok(two)
        })
    };
    let plain = store.start(app()).await;
    let run = plain.start(MIXED, &"canary".into()).await.unwrap();
    until("a step is recorded", async || count(&run, "ActivityCompleted").await == 1).await;
    plain.stop().await.unwrap();
    let coded = store.start(app().codec(Toy::new("toy"))).await;
    let run = coded.handle(MIXED, run.id());
    run.signal(NOTE, &"secret".into()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "canary one secret two");
    let raw = store.start(Engine::builder()).await;
    let page = raw.handle_by_id(run.id()).history(Seq(0), 100).await.unwrap();
    let text =
        Event::list_to_json(&page.events.into_iter().map(|row| row.event).collect::<Vec<_>>());
    assert!(text.contains("\"canary one\"") && !text.contains("secret"), "{text}");
    let page = run.history(Seq(0), 100).await.unwrap();
    let text =
        Event::list_to_json(&page.events.into_iter().map(|row| row.event).collect::<Vec<_>>());
    assert!(text.contains("\"canary one\"") && text.contains("\"secret\""), "{text}");
}

async fn a_codec_of_another_name_is_told_from_the_right_one(store: &TestStore) {
    let right = store.start(app().codec(Toy::new("toy"))).await;
    let run = right.start(Ship::REF, &"canary-input".into()).await.unwrap();
    until("it began", async || count(&run, "VersionPinned").await == 1).await;
    run.signal(NOTE, &"canary-signal".into()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "canary-output");
    let open = right.start(Ship::REF, &"canary-input".into()).await.unwrap();
    until("it began", async || count(&open, "VersionPinned").await == 1).await;
    right.stop().await.unwrap();

    for (wrong, has) in [(Some("other"), "\"other\""), (None, "none")] {
        let app = match wrong {
            Some(name) => app().codec(Toy::new(name)),
            None => app(),
        };
        let engine = store.start(app).await;
        let error = engine.handle(Ship::REF, run.id()).result().await.unwrap_err();
        assert_eq!(error.code(), Code::CODEC_OTHER);
        let text = error.to_string();
        assert!(text.contains("\"toy\"") && text.contains(has), "{text}");
        // A run that is rebuilt here parks and loses nothing.
        let run = engine.handle(Ship::REF, open.id());
        let sender = engine.client().with_codec(Toy::new("toy")).unwrap();
        let sent = sender.handle(Ship::REF, open.id());
        sent.signal_once(NOTE, &"canary-signal".into(), "1").await.unwrap();
        let parked = async || run.status().await.unwrap().parked;
        let here = async || parked().await.is_some_and(|parked| parked.reason.contains(has));
        until("it is parked here", here).await;
        let parked = parked().await.unwrap();
        assert_eq!(parked.code, Code::CODEC_OTHER.as_str());
        assert!(parked.reason.contains("\"toy\""), "{parked:?}");
        let history = run.history(Seq(0), 10).await;
        match wrong {
            Some(_) => {
                let error = history.unwrap_err().to_string();
                assert!(error.contains("event 1 (WorkflowStarted)"), "{error}");
            }
            None => assert_eq!(history.unwrap().events.len(), 2, "shown as it is stored"),
        }
        engine.stop().await.unwrap();
    }
    let right = store.start(app().codec(Toy::new("toy"))).await;
    assert_eq!(right.handle(Ship::REF, open.id()).result().await.unwrap(), "canary-output");
}

async fn attributes_and_reasons_stay_readable(store: &TestStore) {
    let engine = store.start(app().codec(Toy::new("toy"))).await;
    let start = engine.start(CARE, &"canary-input".into()).delay(Duration::from_secs(3600));
    let run = start.attributes(&serde_json::json!({"city": "Oslo"})).await.unwrap();
    assert_eq!(run.status().await.unwrap().attributes.unwrap().text(), r#"{"city":"Oslo"}"#);
    engine.signal_by_name(run.id(), "cancel", &"too late", None).await.unwrap();
    let Err(RunError::Cancelled { reason, .. }) = run.result().await else { panic!("cancelled") };
    assert_eq!(reason, "too late");
}

/// Repeats of one byte as their number; what else there is, it does not know.
struct Short;

impl Codec for Short {
    fn name(&self) -> &str {
        "short"
    }
    fn encode(&self, plain: &[u8]) -> Result<Vec<u8>> {
        let text = std::str::from_utf8(plain)?.trim_matches('"');
        if text.chars().any(|c| c != 'x') {
            return Ok([b"+", plain, &vec![b' '; plain.len()]].concat());
        }
        Ok(text.len().to_string().into_bytes())
    }
    fn decode(&self, coded: &[u8]) -> Result<Vec<u8>> {
        if let Some(plain) = coded.strip_prefix(b"+") {
            return Ok(plain.to_vec());
        }
        let length: usize = std::str::from_utf8(coded)?.parse()?;
        Ok(format!("\"{}\"", "x".repeat(length)).into_bytes())
    }
}

async fn limits_hold_for_what_is_stored(store: &TestStore) {
    const ECHO: WorkflowRef<String, String> = WorkflowRef::new("echo");
    let app =
        Engine::builder().codec(Short).function(ECHO, async |_: Ctx, input: String| Ok(input));
    let engine = store.start(app).await;
    let large = "x".repeat(3 << 20);
    assert_eq!(engine.run(ECHO, &large).await.unwrap(), large);
    let grows = "y".repeat(1 << 20);
    assert_eq!(engine.start(ECHO, &grows).await.unwrap_err().code(), Code::PAYLOAD);
}

async fn codecs_that_cannot_be_used_are_refused(store: &TestStore) {
    let both = Engine::builder().codec(Toy::new("one")).codec(Toy::new("two"));
    let error = both.codec(Toy::new("")).start("memory:").await.unwrap_err();
    assert_eq!(error.code(), Code::DEFINITIONS);
    let text = error.to_string();
    assert!(text.contains("two codecs") && text.contains("codec's name is empty"), "{text}");
    let engine = store.start(app()).await;
    let error = engine.client().with_codec(Toy::new("a\nb")).unwrap_err();
    assert_eq!(error.code(), Code::SETTINGS);
    let client = engine.client().with_codec(Toy::new("toy")).unwrap();
    let later = client.start(CARE, &"x".into()).delay(Duration::from_secs(3600)).await.unwrap();
    assert_eq!(events(&later).await, ["WorkflowStarted"]);
}
