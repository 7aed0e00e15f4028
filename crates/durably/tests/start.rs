//! Starts: keys, ids, delays, tenants, priorities, and bad input at every boundary.

mod common;

use common::{TestStore, count, until};
use durably::prelude::*;
use durably::{EngineBuilder, RunId, RunQuery, RunStatus, Seq};
use serde_json::json;
use std::sync::{Arc, Mutex};

on_every_store!(
    the_same_key_gives_the_same_run,
    the_same_key_with_another_input_is_an_error,
    an_id_of_the_callers_own_works_like_a_key,
    a_delayed_start_waits,
    a_delayed_start_that_is_cancelled_runs_no_code,
    higher_priorities_come_first,
    tenants_take_turns,
    runs_by_name_are_json,
    bad_input_is_refused_and_nothing_is_stored,
    unknown_runs_are_named,
    a_wait_for_a_result_may_time_out,
    history_is_paged,
    a_type_that_nobody_hosts_waits,
);

const ECHO: WorkflowRef<serde_json::Value, serde_json::Value> = WorkflowRef::new("echo");
const NOTE: ActivityRef<String, ()> = ActivityRef::new("note");
const NOTED: WorkflowRef<String, ()> = WorkflowRef::new("noted");

fn echo() -> EngineBuilder {
    Engine::builder()
        .function(ECHO, async |ctx: Ctx, value| Ok(ctx.step("echo", async || Ok(value)).await?))
}

async fn the_same_key_gives_the_same_run(store: &TestStore) {
    let engine = echo().start(&store.url).await.unwrap();
    let one = engine.start(ECHO, &json!({"a": 1, "b": 2})).idempotency_key("k").await.unwrap();
    assert!(!one.existed());
    let two = engine.start(ECHO, &json!({"b": 2, "a": 1})).idempotency_key("k").await.unwrap();
    assert!(two.existed());
    assert_eq!(one.id(), two.id());
    assert_eq!(two.result().await.unwrap(), json!({"a": 1, "b": 2}));
    let other = engine.start(ECHO, &json!(1)).idempotency_key("k").tenant("other").await.unwrap();
    assert_ne!(one.id(), other.id(), "keys belong to a tenant");
}

async fn the_same_key_with_another_input_is_an_error(store: &TestStore) {
    let engine = echo().start(&store.url).await.unwrap();
    engine.start(ECHO, &json!(1)).idempotency_key("k").await.unwrap();
    let error = engine.start(ECHO, &json!(2)).idempotency_key("k").await.unwrap_err();
    assert_eq!(error.code().as_str(), "DUR-0032");
    assert!(error.to_string().contains("\"k\""), "{error}");
    assert_eq!(engine.runs(RunQuery::default()).await.unwrap().len(), 1);
}

async fn an_id_of_the_callers_own_works_like_a_key(store: &TestStore) {
    let engine = echo().start(&store.url).await.unwrap();
    let id: RunId = "01900000-0000-7000-8000-000000000001".parse().unwrap();
    let run = engine.start(ECHO, &json!(1)).id(id).await.unwrap();
    assert_eq!(run.id(), id);
    assert!(engine.start(ECHO, &json!(1)).id(id).await.unwrap().existed());
    let error = engine.start(ECHO, &json!(2)).id(id).await.unwrap_err();
    assert_eq!(error.code().as_str(), "DUR-0032");
}

async fn a_delayed_start_waits(store: &TestStore) {
    let engine = echo().start(&store.url).await.unwrap();
    let run = engine.start(ECHO, &json!(1)).delay(Duration::from_millis(150)).await.unwrap();
    assert_eq!(run.status().await.unwrap().status, RunStatus::Pending);
    assert_eq!(run.result().await.unwrap(), json!(1));
    let status = run.status().await.unwrap();
    let waited = status.started_at.unwrap().since(status.created_at);
    assert!(waited >= Duration::from_millis(150), "never early: {waited:?}");
}

async fn a_delayed_start_that_is_cancelled_runs_no_code(store: &TestStore) {
    let engine = echo().start(&store.url).await.unwrap();
    let run = engine.start(ECHO, &json!(1)).delay(Duration::from_secs(3600)).await.unwrap();
    run.cancel("changed my mind").await.unwrap();
    assert!(matches!(run.result().await, Err(durably::RunError::Cancelled { .. })));
    assert_eq!(count(&run, "VersionPinned").await, 0);
}

/// One slot, so that the order of claims is the order of notes.
async fn noted_in_order(store: &TestStore, starts: &[(&str, &str, i32)]) -> Vec<String> {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let seen = notes.clone();
    let decides = Engine::builder().function(NOTED, async |ctx: Ctx, text: String| {
        ctx.activity(NOTE, &text).queue("notes").await?;
        Ok(())
    });
    let decides = store.start(decides).await;
    let mut runs = vec![];
    for (tenant, text, priority) in starts {
        let start = decides.start(NOTED, &(*text).to_owned());
        runs.push(start.tenant(tenant).priority(*priority).await.unwrap());
        let run = runs.last().unwrap();
        until("it is queued", async || count(run, "ActivityScheduled").await == 1).await;
    }
    let worker = Engine::builder().queue("notes").slots(1).activity_fn(
        NOTE,
        async move |_, text: String| {
            seen.lock().unwrap().push(text);
            Ok(())
        },
    );
    let worker = store.start(worker).await;
    for run in &runs {
        run.result().await.unwrap();
    }
    worker.stop().await.unwrap();
    let mut order = notes.lock().unwrap();
    std::mem::take(&mut order)
}

async fn higher_priorities_come_first(store: &TestStore) {
    let starts = [("t", "low", -5), ("t", "mid", 0), ("t", "high", 7), ("t", "mid 2", 0)];
    assert_eq!(noted_in_order(store, &starts).await, ["high", "mid", "mid 2", "low"]);
}

async fn tenants_take_turns(store: &TestStore) {
    let starts = [("a", "a1", 0), ("a", "a2", 0), ("a", "a3", 0), ("b", "b1", 0)];
    let order = noted_in_order(store, &starts).await;
    let place = order.iter().position(|note| note == "b1").unwrap();
    assert!(place <= 1, "b waits for one round at most: {order:?}");
}

async fn runs_by_name_are_json(store: &TestStore) {
    let engine = echo().start(&store.url).await.unwrap();
    let run = engine.start_by_name("echo", json!({"x": [1, 2]})).await.unwrap();
    assert_eq!(run.result().await.unwrap(), json!({"x": [1, 2]}));
    let found = engine.runs(RunQuery { workflow_type: Some("echo".into()), ..Default::default() });
    assert_eq!(found.await.unwrap().len(), 1);
}

async fn bad_input_is_refused_and_nothing_is_stored(store: &TestStore) {
    let engine = echo().start(&store.url).await.unwrap();
    let mut deep = json!(1);
    for _ in 0..101 {
        deep = json!([deep]);
    }
    let start = |input| engine.start(ECHO, input);
    let one = json!(1);
    let long = "x".repeat(256);
    let cases = [
        ("DUR-0001", start(&one).tenant("").await),
        ("DUR-0001", start(&one).tenant("a\0b").await),
        ("DUR-0001", start(&one).tenant(&long).await),
        ("DUR-0001", start(&one).queue("").await),
        ("DUR-0001", start(&one).idempotency_key("").await),
        ("DUR-0001", start(&one).idempotency_key("line\nbreak").await),
        ("DUR-0002", start(&json!("nul \u{0}")).await),
        ("DUR-0002", start(&deep).await),
        ("DUR-0002", start(&json!("x".repeat(3 << 20))).await),
        ("DUR-0003", start(&one).delay(Duration::MAX).await),
        ("DUR-0003", start(&one).timeout(Duration::ZERO).await),
        ("DUR-0003", start(&one).timeout(Duration::MAX).await),
        ("DUR-0001", engine.start_by_name("", json!(1)).await.map(|_| unreachable!())),
    ];
    for (n, (code, result)) in cases.into_iter().enumerate() {
        let error = result.expect_err("must be refused");
        assert_eq!(error.code().as_str(), code, "case {n}: {error}");
    }
    assert!(engine.runs(RunQuery::default()).await.unwrap().is_empty());
    let run = engine.start(ECHO, &json!(1)).await.unwrap();
    let refused = engine.signal_by_name(run.id(), "", &1, None).await.unwrap_err();
    assert_eq!(refused.code().as_str(), "DUR-0001");
    let refused = engine.signal_by_name(run.id(), "s", &"\u{0}", None).await.unwrap_err();
    assert_eq!(refused.code().as_str(), "DUR-0002");
}

async fn unknown_runs_are_named(store: &TestStore) {
    let engine = echo().start(&store.url).await.unwrap();
    let id: RunId = "01900000-0000-7000-8000-00000000dead".parse().unwrap();
    let run = engine.handle(ECHO, id);
    for error in [
        run.cancel("x").await.unwrap_err(),
        run.status().await.unwrap_err(),
        run.terminate("x").await.unwrap_err(),
        run.history(Seq(0), 10).await.unwrap_err(),
        run.trail().await.unwrap_err(),
        engine.signal_by_name(id, "s", &1, None).await.unwrap_err(),
    ] {
        assert_eq!(error.code().as_str(), "DUR-0030");
        assert!(error.to_string().contains("00000000dead"), "{error}");
    }
    assert_eq!(run.result().await.unwrap_err().code().as_str(), "DUR-0030");
}

async fn a_wait_for_a_result_may_time_out(store: &TestStore) {
    let engine = echo().start(&store.url).await.unwrap();
    let run = engine.start(ECHO, &json!(1)).delay(Duration::from_secs(3600)).await.unwrap();
    let error = run.result_within(Duration::from_millis(30)).await.unwrap_err();
    assert_eq!(error.code().as_str(), "DUR-0033");
    assert_eq!(run.status().await.unwrap().status, RunStatus::Pending);
}

async fn history_is_paged(store: &TestStore) {
    let engine = echo().start(&store.url).await.unwrap();
    let run = engine.start(ECHO, &json!(1)).await.unwrap();
    run.result().await.unwrap();
    let mut seen = vec![];
    loop {
        let after = Seq(seen.len() as u64);
        let page = run.history(after, 2).await.unwrap();
        assert!(page.events.len() <= 2);
        seen.extend(page.events.into_iter().map(|row| row.seq.0));
        if !page.more {
            break;
        }
    }
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    assert!(seen.len() >= 5);
}

async fn a_type_that_nobody_hosts_waits(store: &TestStore) {
    let engine = echo().start(&store.url).await.unwrap();
    let run = engine.start_by_name("elsewhere", json!(null)).await.unwrap();
    engine.run(ECHO, &json!(1)).await.unwrap();
    let status = run.status().await.unwrap();
    assert_eq!(status.status, RunStatus::Pending);
    assert_eq!(run.tasks().await.unwrap().len(), 1);
}

#[tokio::test]
async fn wrong_urls_say_what_is_wrong() {
    for (url, code) in [
        ("", "DUR-0020"),
        ("nonsense", "DUR-0020"),
        ("memory:x", "DUR-0020"),
        ("oracle:db", "DUR-0020"),
        ("postgres://me:canary@host/db?pool=none", "DUR-0020"),
        ("mysql://me:canary@host/db?pool=none", "DUR-0020"),
        // Nobody listens there.
        ("postgres://me:canary@127.0.0.1:1/db", "DUR-0024"),
        ("mysql://me:canary@127.0.0.1:1/db", "DUR-0024"),
    ] {
        let error = echo().start(url).await.unwrap_err();
        assert_eq!(error.code().as_str(), code, "{url}: {error}");
        assert!(!error.to_string().contains("canary"), "{error}");
    }
}

#[tokio::test]
async fn all_problems_of_all_definitions_are_reported_together() {
    const EMPTY: WorkflowRef<(), ()> = WorkflowRef::new("");
    let error = echo()
        .function(ECHO, async |_, value| Ok(value))
        .function(EMPTY, async |_, ()| Ok(()))
        .function(NOTED.version(0), async |_, _| Ok(()))
        .activity_fn(NOTE, async |_, _| Ok(()))
        .activity_fn(NOTE, async |_, _| Ok(()))
        .start("memory:")
        .await
        .unwrap_err();
    assert_eq!(error.code().as_str(), "DUR-0035");
    let text = error.to_string();
    for part in ["\"echo\"", "empty", "version 0", "\"note\" is registered twice"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused() {
    for builder in [
        echo().slots(0),
        echo().queue(""),
        echo().group(""),
        echo().stale_after(Duration::from_secs(6)),
        echo().beat(Duration::ZERO),
    ] {
        let error = builder.start("memory:").await.unwrap_err();
        assert!(["DUR-0036", "DUR-0001"].contains(&error.code().as_str()), "{error}");
    }
}
