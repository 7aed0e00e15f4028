//! Names and payloads come back byte for byte, however odd.

use crate::sample::{FIRST, activity, done, json, noted, secs, started};
use crate::world::{World, activities, turns};
use durably_kernel::{Event, Fact, Payload, Seq, Signal, TaskPut, Timestamp};
use durably_store::{ClaimCall, ClaimedWork, RunCommit, RunQuery, Want};

/// Duplicate keys, order of keys, spelling of numbers, blanks, escapes.
const ODD: [&str; 8] = [
    r#"{"b":1.0,"a":[1e2,  "\u00e9"],"b":2}"#,
    r#"{"z":1,"a":2,"m":{"z":0,"a":0}}"#,
    "[1, 1.0, 1e0, 10E-1, -0, -0.0, 123456789012345678901234567890, 0.1000]",
    r#"" \" \\ \/ \b \f \n \r \t \u20ac € 😀 \ud83d\ude00 ""#,
    "{ }",
    "[\n  null,\r\n\ttrue\n]",
    r#""'; drop table durable_workers; --""#,
    r#"{"":{"":[]}}"#,
];

const NAMES: [&str; 8] = [
    "with blanks ",
    " in front",
    "Case",
    "case",
    "emoji 😀👩‍👩‍👧",
    "quotes ' \" ` ; -- %_\\",
    "ünïcödé",
    "u\u{308}nicode",
];

fn input(payload: &Payload) -> Event {
    match started() {
        Event::WorkflowStarted { workflow_type, seed, timeout_ms, at, .. } => {
            Event::WorkflowStarted { workflow_type, input: payload.clone(), seed, timeout_ms, at }
        }
        other => other,
    }
}

fn text_of(event: &Event) -> &str {
    match event {
        Event::WorkflowStarted { input, .. } => input.text(),
        other => panic!("a start: {other:?}"),
    }
}

pub(crate) async fn json_comes_back_byte_for_byte(world: &World) {
    let who = world.worker("one").await;
    for text in ODD {
        let payload = json(text);
        let mut new = world.new_run();
        new.attributes = Some(payload.clone());
        let put = TaskPut {
            input: Some(payload.clone()),
            details: Some(payload.clone()),
            ..activity(FIRST, "a", Seq(1))
        };
        let commit = RunCommit {
            events: vec![input(&payload)],
            tasks: crate::sample::puts([put]),
            ..world.start_of(new)
        };
        let run = commit.run;
        done(world.commit(None, commit).await);
        assert_eq!(text_of(&world.events(run).await[0]), text);
        assert_eq!(world.view(run).await.attributes.expect("kept").text(), text);
        let task = world.claim_one(&who).await;
        let ClaimedWork::Activity(work) = task.work else { panic!("an activity first") };
        assert_eq!((work.input.text(), work.details.expect("kept").text()), (text, text));
        let task = world.claim_one(&who).await;
        let ClaimedWork::Turn { first, .. } = task.work else { panic!("a turn") };
        assert_eq!(text_of(&first.expect("a first turn")), text);
        world.deliver(run, "s", sent("x", &payload)).await;
        let Fact::Signal(signal) = &world.unread(run).await[0].fact else { panic!("a signal") };
        assert_eq!(signal.payload.text(), text);
    }
}

fn sent(signal_type: &str, payload: &Payload) -> Fact {
    Fact::Signal(Signal {
        id: "s".into(),
        signal_type: signal_type.to_owned(),
        payload: payload.clone(),
        sent_at: Timestamp(0),
    })
}

pub(crate) async fn payloads_may_be_as_large_as_the_limit(world: &World) {
    let who = world.worker("one").await;
    let most = durably_kernel::limit::PAYLOAD_LEN_MAX;
    let payload = json(&format!("\"{}\"", "x".repeat(most - 2)));
    assert_eq!(payload.text().len(), most);
    let put = TaskPut { input: Some(payload.clone()), ..activity(FIRST, "a", Seq(1)) };
    let commit = RunCommit {
        events: vec![input(&payload)],
        tasks: crate::sample::puts([put]),
        ..world.start_of(world.new_run())
    };
    let run = commit.run;
    done(world.commit(None, commit).await);
    world.deliver(run, "s", sent("large", &payload)).await;
    assert!(text_of(&world.events(run).await[0]) == payload.text());
    let ClaimedWork::Activity(work) = world.claim_one(&who).await.work else { panic!() };
    assert!(work.input == payload);
    let ClaimedWork::Turn { unread, first, .. } = world.claim_one(&who).await.work else {
        panic!()
    };
    assert!(text_of(&first.expect("a first turn")) == payload.text());
    assert!(matches!(&unread[0].fact, Fact::Signal(signal) if signal.payload == payload));
}

/// 255 bytes, the longest name that is allowed.
fn longest() -> String {
    let mut name = "n".repeat(251);
    name.push('😀');
    assert_eq!(name.len(), durably_kernel::limit::NAME_LEN_MAX);
    name
}

pub(crate) async fn names_are_kept_and_told_apart(world: &World) {
    let who = world.worker("one").await;
    let longest = longest();
    for name in NAMES.into_iter().chain([longest.as_str()]) {
        let mut new = world.new_for(name);
        new.identity.queue = name.into();
        new.workflow_type = name.into();
        let put =
            TaskPut { name: name.into(), queue: name.into(), ..activity(FIRST, name, Seq(2)) };
        let run = world.begun_as(new.clone(), [put]).await;
        world.deliver(run, name, sent(name, &json("1"))).await;
        let view = world.view(run).await;
        assert_eq!((view.identity, view.workflow_type), (new.identity, new.workflow_type));
        let query = RunQuery { tenant: Some(name.into()), ..RunQuery::default() };
        assert_eq!(world.store.runs(query).await.unwrap().len(), 1, "{name:?}");
        let call = ClaimCall {
            queues: vec![name.into()],
            wants: vec![Want { any: vec![turns(name, 1), activities(name)], most: 10 }],
            ..world.claim_call(&who, 0)
        };
        let tasks = world.claimed(call).await;
        assert_eq!(tasks.len(), 2, "{name:?}");
        for task in tasks {
            assert_eq!(task.claim.run, run);
            match task.work {
                ClaimedWork::Activity(work) => {
                    assert_eq!((work.id.as_str(), work.activity_type.as_str()), (name, name));
                }
                ClaimedWork::Turn { unread, .. } => assert_eq!(unread[0].id, name),
            }
        }
    }
}

pub(crate) async fn names_of_processes_are_kept(world: &World) {
    for name in NAMES {
        world.worker(name).await;
    }
    for name in NAMES {
        world.store.drain(name.into()).await.unwrap();
        let workers = world.store.workers().await.unwrap();
        let active = workers.iter().filter(|w| w.status == durably_store::WorkerStatus::Active);
        let at = NAMES.iter().position(|other| *other == name).unwrap();
        assert_eq!(active.count(), NAMES.len() - at - 1, "{name:?} alone drains");
    }
}

pub(crate) async fn long_texts_are_kept(world: &World) {
    let who = world.worker("one").await;
    let long = "reason 😀 ".repeat(2000);
    let turn = world.held(&who).await;
    let commit = RunCommit {
        events: vec![noted(&long)],
        summary: None,
        turn: durably_store::TurnAfter::Park {
            delay: secs(5),
            code: durably_kernel::Code::DIVERGED.as_str().into(),
            reason: long.clone(),
        },
        ..world.turn_of(&turn)
    };
    done(world.commit(&who, commit).await);
    assert_eq!(world.view(turn.run).await.parked.expect("parked").reason, long);
    assert_eq!(world.events(turn.run).await[2], noted(&long));
    let id = "i".repeat(600);
    assert_eq!(world.signal(turn.run, &id).await, durably_store::Delivered::Entry(1));
    assert_eq!(world.signal(turn.run, &format!("{id}!")).await, durably_store::Delivered::Entry(2));
    assert_eq!(world.signal(turn.run, &id).await, durably_store::Delivered::Entry(1));
}
