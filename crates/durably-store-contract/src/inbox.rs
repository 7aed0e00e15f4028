//! Deliveries: once, in order, and always with a turn row.

use crate::sample::{
    FIRST, activity, cancel, completed, done, json, noted, outcome, secs, signal, summary,
};
use crate::snapshot::assert_same;
use crate::world::{Turn, World};
use durably_kernel::{
    Attempt, Fact, Failure, FailureKind, Loss, LossCause, Place, RunId, RunStatus, Seq, TaskState,
    TimeoutKind, Timestamp,
};
use durably_store::{CommitAnswer, Delivered, Delivery, Held, RunCommit, TurnAfter};

async fn end(world: &World, run: RunId, inbox_used: u64) {
    let commit = RunCommit {
        events: vec![completed()],
        summary: Some(summary(RunStatus::Completed)),
        inbox_used,
        ..world.on(run, Seq(2))
    };
    done(world.commit(None, commit).await);
}

pub(crate) async fn a_delivery_is_numbered_and_wakes_the_run(world: &World) {
    let run = world.begun([]).await;
    let before = world.view(run).await;
    assert_eq!(world.signal(run, "s").await, Delivered::Entry(1));
    let row = world.row(run, Place::TURN).await;
    assert_eq!((row.state, row.due_at, row.attempt), (TaskState::Ready, None, None));
    let view = world.view(run).await;
    assert_eq!((view.inbox_last, view.inbox_used), (1, 0));
    assert_eq!(durably_store::RunView { inbox_last: 0, ..view }, before, "nothing else changed");
    assert_eq!(world.events(run).await.len(), 2, "an entry is no event yet");
}

pub(crate) async fn numbers_are_gapless_in_the_order_of_delivery(world: &World) {
    let run = world.begun([]).await;
    for n in 1..=5 {
        assert_eq!(world.signal(run, &format!("s{n}")).await, Delivered::Entry(n));
        world.signal(run, "s1").await;
    }
    let unread = world.unread(run).await;
    let seen: Vec<_> = unread.iter().map(|entry| (entry.number, entry.id.as_str())).collect();
    assert_eq!(seen, [(1, "s1"), (2, "s2"), (3, "s3"), (4, "s4"), (5, "s5")]);
}

pub(crate) async fn further_deliveries_do_not_move_the_turn_back(world: &World) {
    let who = world.worker("one").await;
    let (first, second) = (world.begun([]).await, world.begun([]).await);
    world.signal(first, "a").await;
    world.signal(second, "a").await;
    world.signal(first, "b").await;
    let tasks = world.claim(&who, 10).await;
    let order: Vec<RunId> = tasks.iter().map(|task| task.claim.run).collect();
    assert_eq!(order, [first, second], "one turn each, as they became ready");
}

pub(crate) async fn a_delivery_to_a_held_run_leaves_it_held(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held(&who).await;
    let before = world.row(turn.run, Place::TURN).await;
    assert_eq!(world.signal(turn.run, "s").await, Delivered::Entry(1));
    assert_eq!(world.deliver(turn.run, "c", cancel()).await, Delivered::Entry(2));
    assert_eq!(world.row(turn.run, Place::TURN).await, before);
}

pub(crate) async fn only_a_cancel_makes_a_waiting_turn_ready(world: &World) {
    let who = world.worker("one").await;
    let delay = Some(secs(100));
    let commit = RunCommit { turn: TurnAfter::Want { delay }, ..world.start_of(world.new_run()) };
    let run = commit.run;
    done(world.commit(None, commit).await);
    let before = world.row(run, Place::TURN).await;
    world.signal(run, "s").await;
    world.deliver(run, "x", Fact::ShutdownRequested {}).await;
    assert_eq!(world.row(run, Place::TURN).await, before, "it still waits");
    assert!(world.claim(&who, 1).await.is_empty());
    world.deliver(run, "c", cancel()).await;
    let row = world.row(run, Place::TURN).await;
    assert_eq!((row.state, row.due_at), (TaskState::Ready, None));
    assert_eq!(world.claim_one(&who).await.run.inbox_last, 3);
}

pub(crate) async fn a_repeat_is_recognised(world: &World) {
    let who = world.worker("one").await;
    let run = world.begun([]).await;
    world.signal(run, "a").await;
    world.signal(run, "b").await;
    let before = world.snapshot().await;
    assert_eq!(world.signal(run, "a").await, Delivered::Entry(1));
    assert_eq!(world.deliver(run, "b", cancel()).await, Delivered::Entry(2));
    assert_same(&before, &world.snapshot().await);
    let task = world.claim_one(&who).await;
    let turn = Turn { run, head: Seq(2), claim: task.claim };
    done(world.commit(&who, RunCommit { inbox_used: 2, ..world.turn_of(&turn) }).await);
    let before = world.snapshot().await;
    assert_eq!(world.signal(run, "b").await, Delivered::Entry(2), "used up, and known");
    assert_same(&before, &world.snapshot().await);
    assert_eq!(world.signal(run, "c").await, Delivered::Entry(3));
}

pub(crate) async fn a_repeat_is_recognised_after_the_end(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let outcome = world.outcome_of(&who, &working);
    assert_eq!(world.deliver_one(outcome.clone()).await, Delivered::Entry(1));
    assert_eq!(world.deliver_one(outcome.clone()).await, Delivered::Entry(1), "its claim is gone");
    assert_eq!(world.signal(working.run, "s").await, Delivered::Entry(2));
    end(world, working.run, 2).await;
    let before = world.snapshot().await;
    assert_eq!(world.deliver_one(outcome).await, Delivered::Entry(1));
    assert_eq!(world.signal(working.run, "s").await, Delivered::Entry(2));
    assert_eq!(
        world.signal(working.run, "new").await,
        Delivered::Ended(RunStatus::Completed),
        "another one is told"
    );
    assert_same(&before, &world.snapshot().await);
}

pub(crate) async fn ids_are_of_one_run_and_compared_exactly(world: &World) {
    let (one, two) = (world.begun([]).await, world.begun([]).await);
    assert_eq!(world.signal(one, "id").await, Delivered::Entry(1));
    assert_eq!(world.signal(two, "id").await, Delivered::Entry(1));
    for (at, id) in ["Id", "id ", " id", "ID", "i\u{307}d", "ïd", "", "😀"].iter().enumerate() {
        assert_eq!(world.signal(one, id).await, Delivered::Entry(at as u64 + 2), "{id:?}");
    }
    assert_eq!(world.signal(one, "id ").await, Delivered::Entry(3));
}

pub(crate) async fn ended_and_unknown_runs_are_told_apart(world: &World) {
    assert_eq!(world.signal(world.run_id(), "s").await, Delivered::Unknown);
    for status in RunStatus::ALL.into_iter().filter(|status| status.has_ended()) {
        let run = world.begun([]).await;
        let commit = RunCommit {
            events: vec![completed()],
            summary: Some(summary(status)),
            ..world.on(run, Seq(2))
        };
        done(world.commit(None, commit).await);
        let before = world.snapshot().await;
        assert_eq!(world.signal(run, "s").await, Delivered::Ended(status));
        assert_same(&before, &world.snapshot().await);
    }
}

pub(crate) async fn an_outcome_takes_its_row_in_the_same_transaction(world: &World) {
    let who = world.worker("one").await;
    let put = activity(FIRST, "a", Seq(2));
    let working = world.working_on(&who, put).await;
    let outcome = world.outcome_of(&who, &working);
    assert_eq!(world.deliver_one(outcome).await, Delivered::Entry(1));
    let rows = world.tasks(working.run).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((rows[0].place, rows[0].state), (Place::TURN, TaskState::Ready));
    assert_eq!(
        world.commit(&who, world.result_of(&working)).await,
        CommitAnswer::Fenced(vec![working.task.claim])
    );
}

pub(crate) async fn an_outcome_with_a_lost_claim_writes_nothing(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    world.pass(secs(61));
    world.sweep().await;
    let before = world.snapshot().await;
    let outcome = world.outcome_of(&who, &working);
    assert_eq!(world.deliver_one(outcome.clone()).await, Delivered::Fenced);
    assert_same(&before, &world.snapshot().await);
    assert_eq!(world.signal(working.run, &outcome.id).await, Delivered::Entry(1), "id not taken");
}

pub(crate) async fn a_batch_is_answered_in_order_and_losers_disturb_nobody(world: &World) {
    let who = world.worker("one").await;
    let (one, two) = (world.begun([]).await, world.begun([]).await);
    let ended = world.begun([]).await;
    end(world, ended, 0).await;
    let working = world.working(&who).await;
    let wrong = Held { who: "other".into(), claim: working.task.claim };
    let to = |run, id: &str| Delivery { run, id: id.into(), fact: signal(id), claim: None };
    let batch = vec![
        to(two, "a"),
        to(ended, "a"),
        to(one, "a"),
        Delivery { claim: Some(wrong), ..to(working.run, "w") },
        to(one, "b"),
        to(world.run_id(), "a"),
        to(one, "a"),
        to(two, "b"),
    ];
    let answers = world.store.deliver(batch).await.unwrap();
    let entry = Delivered::Entry;
    let ended = Delivered::Ended(RunStatus::Completed);
    let expected = [
        entry(1),
        ended,
        entry(1),
        Delivered::Fenced,
        entry(2),
        Delivered::Unknown,
        entry(1),
        entry(2),
    ];
    assert_eq!(answers, expected);
    assert_eq!(world.unread(one).await.len(), 2);
    assert_eq!(world.unread(working.run).await, []);
}

pub(crate) async fn a_signal_has_the_stores_time(world: &World) {
    let run = world.begun([]).await;
    world.pass(secs(3));
    world.signal(run, "s").await;
    let Fact::Signal(sent) = &world.unread(run).await[0].fact else { panic!("a signal") };
    assert_eq!(sent.sent_at, world.now());
    assert_eq!((sent.id.as_str(), sent.signal_type.as_str()), ("s", "approval"));
    assert_eq!(sent.payload, json(r#"{"by":"hand"}"#));
}

pub(crate) async fn every_kind_of_fact_comes_back_as_it_was(world: &World) {
    let run = world.begun([]).await;
    let attempt = Attempt { number: 2, worker: "w".into(), started_at: Timestamp(5) };
    let loss = Loss { attempt: attempt.clone(), lost_at: Timestamp(6), cause: LossCause::Stopped };
    let error = Failure {
        retry_after_ms: Some(3),
        origin: Some("a".into()),
        details: Some(json(r#"{"k":[1,1.0]}"#)),
        ..Failure::new(FailureKind::RateLimited, "slow\ndown").code("C")
    };
    let (activity_id, seq) = (durably_kernel::ActivityId::from("a"), Seq(4));
    let facts = [
        Fact::Begin { version: 3 },
        outcome("a", seq, &attempt),
        Fact::ActivityFailed {
            activity_id: activity_id.clone(),
            seq,
            attempt: attempt.clone(),
            error,
            details: Some(json("[null]")),
            losses: vec![loss.clone()],
        },
        Fact::ActivityTimedOut {
            activity_id: activity_id.clone(),
            seq,
            timeout: TimeoutKind::Heartbeat,
            attempt: Some(attempt),
            details: None,
            losses: vec![],
        },
        Fact::ActivityLost { activity_id: activity_id.clone(), seq, losses: vec![loss.clone()] },
        Fact::InlineLost { activity_id: activity_id.clone(), seq, loss },
        Fact::RetryDue { activity_id, seq },
        Fact::TimerFired { timer_id: "t".into(), seq },
        cancel(),
        Fact::ShutdownRequested {},
        Fact::RunTimedOut {},
    ];
    for (at, fact) in facts.iter().enumerate() {
        let number = at as u64 + 1;
        let answer = world.deliver(run, &format!("f{at}"), fact.clone()).await;
        assert_eq!(answer, Delivered::Entry(number));
    }
    let unread = world.unread(run).await;
    let found: Vec<Fact> = unread.into_iter().map(|entry| entry.fact).collect();
    assert_eq!(found, facts);
}

pub(crate) async fn a_commit_sees_what_was_delivered_meanwhile(world: &World) {
    let who = world.worker("one").await;
    let run = world.begun([]).await;
    world.signal(run, "a").await;
    let task = world.claim_one(&who).await;
    world.signal(run, "b").await;
    let loaded = world.load(world.load_call(run)).await;
    assert_eq!((loaded.unread.len(), loaded.view.inbox_last), (2, 2));
    let turn = Turn { run, head: Seq(2), claim: task.claim };
    let commit = RunCommit { inbox_used: 1, events: vec![noted("a")], ..world.turn_of(&turn) };
    let committed = done(world.commit(&who, commit).await);
    assert_eq!(committed.unread.len(), 1);
    assert_eq!(committed.unread[0].id, "b");
}
