//! Deadlines of attempts, by the store's clock.

use crate::sample::{FIRST, activity, done, json, noted, puts, secs};
use crate::world::{Working, World};
use durably_kernel::{
    ActivityOptions, Claim, Fact, Payload, Place, Seq, TaskChange, TaskPut, TaskState, TimeoutKind,
    WorkerId,
};
use durably_store::{Beat, BeatAnswer, CommitAnswer, Delivered, Heartbeat, RunCommit, SweepCall};
use std::sync::Arc;
use std::time::Duration;

const MILLI: Duration = Duration::from_millis(1);

/// A run with one claimed activity of these options.
async fn limited(world: &World, who: &WorkerId, options: ActivityOptions) -> Working {
    let put = TaskPut { options: Some(Arc::new(options)), ..activity(FIRST, "a", Seq(2)) };
    world.working_on(who, put).await
}

fn start_to_close(time: Duration) -> ActivityOptions {
    ActivityOptions { start_to_close: Some(time), ..ActivityOptions::default() }
}

fn heartbeat(time: Duration) -> ActivityOptions {
    ActivityOptions { heartbeat: Some(time), ..ActivityOptions::default() }
}

/// A beat that names the claim and, with details or without, says that the activity lives.
async fn says(world: &World, who: &WorkerId, claim: Claim, details: Option<Payload>) {
    let heartbeats = vec![Heartbeat { claim, details }];
    let beat =
        Beat { who: who.clone(), number: world.draw(), load: 1, claims: vec![claim], heartbeats };
    let answer = world.store.beat(beat).await.unwrap();
    assert!(matches!(answer, BeatAnswer::Alive { .. }));
}

/// Lets time pass while the process beats, and the activity says nothing.
async fn beats(world: &World, who: &WorkerId, claim: Claim, time: Duration) {
    let mut left = time;
    while !left.is_zero() {
        let part = left.min(secs(30));
        world.pass(part);
        left -= part;
        world.beat(who, &[claim]).await;
    }
}

pub(crate) async fn an_attempt_that_takes_too_long_becomes_an_entry(world: &World) {
    let who = world.worker("one").await;
    let working = limited(world, &who, start_to_close(secs(5))).await;
    let row = world.row(working.run, FIRST).await;
    world.pass(secs(5) - MILLI);
    assert_eq!(world.sweep().await.delivered, 0);
    world.pass(MILLI);
    let swept = world.sweep().await;
    assert_eq!((swept.delivered, swept.returned, swept.ready, swept.dead), (1, 0, 0, 0));
    assert!(world.task(working.run, FIRST).await.is_none());
    assert_eq!(world.row(working.run, Place::TURN).await.state, TaskState::Ready);
    let expected = Fact::ActivityTimedOut {
        activity_id: "a".into(),
        seq: Seq(2),
        timeout: TimeoutKind::StartToClose,
        attempt: row.attempt,
        details: None,
        losses: vec![],
    };
    assert_eq!(world.unread(working.run).await[0].fact, expected);
    let answer = world.commit(&who, world.result_of(&working)).await;
    assert_eq!(answer, CommitAnswer::Fenced(vec![working.task.claim]));
    let late = world.outcome_of(&who, &working);
    assert_eq!(world.deliver_one(late).await, Delivered::Fenced);
}

pub(crate) async fn an_attempt_may_take_ten_minutes_by_default(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    beats(world, &who, working.task.claim, secs(600) - MILLI).await;
    assert_eq!(world.sweep().await.delivered, 0);
    world.pass(MILLI);
    assert_eq!(world.sweep().await.delivered, 1);
}

pub(crate) async fn neither_beats_nor_heartbeats_prolong_an_attempt(world: &World) {
    let who = world.worker("one").await;
    let working = limited(world, &who, start_to_close(secs(20))).await;
    for _ in 0..4 {
        world.pass(secs(5));
        says(world, &who, working.task.claim, None).await;
    }
    assert_eq!(world.sweep().await.delivered, 1);
    let unread = world.unread(working.run).await;
    assert!(
        matches!(unread[0].fact, Fact::ActivityTimedOut { timeout: TimeoutKind::StartToClose, .. }),
        "{unread:?}"
    );
}

pub(crate) async fn a_silent_attempt_times_out_with_its_last_details(world: &World) {
    let who = world.worker("one").await;
    let working = limited(world, &who, heartbeat(secs(8))).await;
    world.pass(secs(7));
    says(world, &who, working.task.claim, Some(json(r#"{"page": 3}"#))).await;
    world.pass(secs(8) - MILLI);
    world.beat(&who, &[working.task.claim]).await;
    assert_eq!(world.sweep().await.delivered, 0);
    world.pass(MILLI);
    assert_eq!(world.sweep().await.delivered, 1, "a beat of the process is no heartbeat");
    let unread = world.unread(working.run).await;
    let Fact::ActivityTimedOut { timeout, details, attempt, .. } = &unread[0].fact else {
        panic!("a time-out");
    };
    assert_eq!(*timeout, TimeoutKind::Heartbeat);
    assert_eq!(*details, Some(json(r#"{"page": 3}"#)));
    assert_eq!(attempt.as_ref().unwrap().number, 1);
}

pub(crate) async fn the_first_heartbeat_is_due_from_the_claim_on(world: &World) {
    let who = world.worker("one").await;
    let working = limited(world, &who, heartbeat(secs(8))).await;
    assert_eq!(world.sweep().await.next_due, Some(secs(8)));
    world.pass(secs(8));
    assert_eq!(world.sweep().await.delivered, 1);
    assert!(world.task(working.run, FIRST).await.is_none());
}

pub(crate) async fn without_heartbeats_silence_is_no_time_out(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    beats(world, &who, working.task.claim, secs(300)).await;
    assert_eq!(world.sweep().await.delivered, 0);
}

pub(crate) async fn once_used_the_heartbeat_is_due_every_thirty_seconds(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    beats(world, &who, working.task.claim, secs(100)).await;
    says(world, &who, working.task.claim, None).await;
    world.pass(secs(20));
    says(world, &who, working.task.claim, None).await;
    world.pass(secs(30) - MILLI);
    assert_eq!(world.sweep().await.delivered, 0);
    world.pass(MILLI);
    assert_eq!(world.sweep().await.delivered, 1);
    let unread = world.unread(working.run).await;
    assert!(matches!(
        unread[0].fact,
        Fact::ActivityTimedOut { timeout: TimeoutKind::Heartbeat, details: None, .. }
    ));
}

pub(crate) async fn the_next_attempt_begins_without_the_heartbeat_of_the_last(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    says(world, &who, working.task.claim, Some(json("1"))).await;
    let back = durably_store::HandBack {
        claim: working.task.claim,
        how: durably_store::Returned::Stopped,
    };
    world.store.hand_back(who.clone(), vec![back]).await.unwrap();
    let task = world.claim_one(&who).await;
    beats(world, &who, task.claim, secs(100)).await;
    assert_eq!(world.sweep().await.delivered, 0);
}

pub(crate) async fn every_attempt_that_times_out_has_an_entry_of_its_own(world: &World) {
    let who = world.worker("one").await;
    let options = start_to_close(secs(5));
    let working = limited(world, &who, options.clone()).await;
    world.pass(secs(5));
    world.sweep().await;
    let again =
        TaskPut { options: Some(Arc::new(options)), attempt: 1, ..activity(FIRST, "a", Seq(3)) };
    let commit = RunCommit {
        events: vec![noted("timed out")],
        tasks: puts([again]),
        ..world.on(working.run, Seq(2))
    };
    done(world.commit(None, commit).await);
    let mut call = world.claim_call(&who, 1);
    call.wants[0].any = vec![crate::world::activities("charge")];
    assert_eq!(world.claimed(call).await.len(), 1);
    world.pass(secs(5));
    assert_eq!(world.sweep().await.delivered, 1);
    let unread = world.unread(working.run).await;
    assert_eq!(unread.len(), 2);
    let Fact::ActivityTimedOut { seq, attempt, .. } = &unread[1].fact else { panic!() };
    assert_eq!((*seq, attempt.as_ref().unwrap().number), (Seq(3), 2));
}

pub(crate) async fn a_time_out_carries_the_losses_before_it(world: &World) {
    let dead = world.worker("dead").await;
    let working = limited(world, &dead, start_to_close(secs(100))).await;
    world.pass(secs(61));
    world.sweep().await;
    let who = world.worker("heir").await;
    let task = world.claim_one(&who).await;
    beats(world, &who, task.claim, secs(100)).await;
    assert_eq!(world.sweep().await.delivered, 1);
    let unread = world.unread(working.run).await;
    let Fact::ActivityTimedOut { attempt, losses, .. } = &unread[0].fact else { panic!() };
    assert_eq!(attempt.as_ref().unwrap().number, 2);
    assert_eq!(losses.len(), 1);
    assert_eq!(losses[0].attempt.worker, dead);
}

pub(crate) async fn a_dead_process_and_a_time_out_at_once_count_once(world: &World) {
    let who = world.worker("dead").await;
    let working = limited(world, &who, start_to_close(secs(61))).await;
    world.pass(secs(61));
    let swept = world.sweep().await;
    assert_eq!((swept.dead, swept.returned, swept.delivered), (1, 1, 0));
    let row = world.row(working.run, FIRST).await;
    assert_eq!((row.state, row.losses.len()), (TaskState::Ready, 1));
    assert_eq!(world.unread(working.run).await, []);
}

pub(crate) async fn a_cancelling_task_goes_when_its_time_is_over(world: &World) {
    let who = world.worker("one").await;
    let options = ActivityOptions { heartbeat: Some(secs(3)), ..start_to_close(secs(20)) };
    let working = limited(world, &who, options).await;
    let commit = RunCommit {
        events: vec![noted("cancelled")],
        tasks: [(FIRST, TaskChange::Cancel(FIRST))].into(),
        ..world.on(working.run, Seq(2))
    };
    done(world.commit(None, commit).await);
    world.pass(secs(19));
    let swept = world.sweep().await;
    assert_eq!((swept.delivered, swept.returned), (0, 0), "silence is none of its crimes");
    assert_eq!(swept.next_due, Some(secs(1)));
    world.pass(secs(1));
    let swept = world.sweep().await;
    assert_eq!((swept.delivered, swept.returned, swept.ready), (0, 1, 0));
    assert!(world.tasks(working.run).await.is_empty());
    assert_eq!(world.unread(working.run).await, []);
}

pub(crate) async fn time_outs_are_bounded_and_go_on(world: &World) {
    let who = world.worker("one").await;
    for _ in 0..5 {
        limited(world, &who, start_to_close(secs(5))).await;
    }
    world.pass(secs(5));
    let call = SweepCall { most: 2, ..world.sweep_call() };
    let mut counts = Vec::new();
    loop {
        let swept = world.store.sweep(call.clone()).await.unwrap();
        counts.push(swept.delivered);
        if swept.next_due.is_none() {
            break;
        }
        assert_eq!(swept.next_due, Some(Duration::ZERO));
    }
    assert_eq!(counts, [2, 2, 1]);
}
