//! Beats: one write for all that a process has in its hands.

use crate::sample::{FIRST, activity, cancel, done, json, noted, puts, running, secs};
use crate::snapshot::assert_same;
use crate::world::{Turn, Working, World};
use durably_kernel::{Claim, Payload, Place, RunId, Seq, TaskChange, TaskPut, TaskState, WorkerId};
use durably_store::{
    Beat, BeatAnswer, ClaimedTask, ClaimedWork, Heartbeat, RunCommit, TurnAfter, WorkerRow,
};

struct Alive {
    lost: Vec<Claim>,
    cancelling: Vec<Claim>,
    unnamed: Vec<ClaimedTask>,
    unread: Vec<RunId>,
}

async fn beat(world: &World, who: &WorkerId, claims: &[Claim]) -> Alive {
    match world.beat(who, claims).await {
        BeatAnswer::Alive { lost, cancelling, unnamed, unread, now } => {
            assert_eq!(now, world.now());
            Alive { lost, cancelling, unnamed, unread }
        }
        BeatAnswer::Refused => panic!("the process is active"),
    }
}

async fn says(world: &World, who: &WorkerId, claim: Claim, details: Option<Payload>) {
    let heartbeats = vec![Heartbeat { claim, details }];
    let beat =
        Beat { who: who.clone(), number: world.draw(), load: 1, claims: vec![claim], heartbeats };
    world.store.beat(beat).await.unwrap();
}

async fn registered(world: &World, who: &WorkerId) -> WorkerRow {
    let workers = world.store.workers().await.unwrap();
    workers.into_iter().find(|worker| worker.who == *who).expect("registered")
}

pub(crate) async fn a_beat_is_in_the_registry(world: &World) {
    let who = world.worker("one").await;
    let began = world.now();
    world.pass(secs(5));
    let call = Beat {
        who: who.clone(),
        number: world.draw(),
        load: 7,
        claims: vec![],
        heartbeats: vec![],
    };
    world.store.beat(call).await.unwrap();
    let row = registered(world, &who).await;
    assert_eq!((row.load, row.beat_at, row.started_at), (7, world.now(), began));
}

pub(crate) async fn a_beat_that_comes_after_a_later_one_changes_nothing(world: &World) {
    let who = world.worker("one").await;
    let early = world.draw();
    let claim = world.working(&who).await.task.claim;
    world.beat(&who, &[claim]).await;
    let before = world.snapshot().await;
    for _ in 0..4 {
        world.pass(secs(1));
        let late =
            Beat { who: who.clone(), number: early, load: 9, claims: vec![], heartbeats: vec![] };
        let BeatAnswer::Alive { unnamed, .. } = world.store.beat(late).await.unwrap() else {
            panic!("the process is active");
        };
        assert_eq!(unnamed, []);
    }
    assert_same(&before, &world.snapshot().await);
    assert_eq!(beat(world, &who, &[claim]).await.lost, [], "it was not given back");
}

pub(crate) async fn a_beat_of_one_that_is_gone_is_refused(world: &World) {
    let stopped = world.worker("stopped").await;
    world.store.leave(stopped.clone()).await.unwrap();
    let stale = world.worker("stale").await;
    let working = world.working(&stale).await;
    world.pass(secs(61));
    world.sweep().await;
    let before = world.snapshot().await;
    for who in [stopped, stale, "nobody".into()] {
        assert_eq!(world.beat(&who, &[working.task.claim]).await, BeatAnswer::Refused, "{who}");
    }
    assert_same(&before, &world.snapshot().await);
}

pub(crate) async fn a_draining_process_goes_on_beating(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    world.store.drain(who.clone()).await.unwrap();
    world.pass(secs(50));
    let alive = beat(world, &who, &[working.task.claim]).await;
    assert_eq!((alive.lost, alive.unnamed), (vec![], vec![]));
    world.pass(secs(50));
    assert_eq!(world.sweep().await.dead, 0);
    done(world.commit(&who, world.result_of(&working)).await);
}

pub(crate) async fn a_beat_says_which_claims_are_lost_or_cancelled(world: &World) {
    let who = world.worker("one").await;
    let (gone, kept) = (world.working(&who).await, world.working(&who).await);
    let cancelled = world.working(&who).await;
    world.deliver_one(world.outcome_of(&who, &gone)).await;
    let commit = RunCommit {
        events: vec![noted("cancelled")],
        tasks: [(FIRST, TaskChange::Cancel(FIRST))].into(),
        ..world.on(cancelled.run, Seq(2))
    };
    done(world.commit(None, commit).await);
    let claims = [gone.task.claim, kept.task.claim, cancelled.task.claim];
    let alive = beat(world, &who, &claims).await;
    assert_eq!(alive.lost, [gone.task.claim]);
    assert_eq!(alive.cancelling, [cancelled.task.claim]);
    assert_eq!((alive.unnamed, alive.unread), (vec![], vec![]));
}

pub(crate) async fn a_claim_whose_answer_was_lost_is_told_in_full(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let turn = world.held(&who).await;
    world.signal(turn.run, "s").await;
    let alive = beat(world, &who, &[]).await;
    assert_eq!(alive.unnamed.len(), 2);
    assert!(alive.unnamed.contains(&working.task), "as the claim itself told it");
    let found = alive.unnamed.iter().find(|task| task.claim == turn.claim).expect("the turn");
    let ClaimedWork::Turn { unread, .. } = &found.work else { panic!("a turn") };
    assert_eq!(unread.len(), 1);
    assert_eq!(alive.unread, [turn.run]);
    let alive = beat(world, &who, &[turn.claim]).await;
    assert_eq!(alive.unnamed, [working.task], "what it names is not told");
}

pub(crate) async fn a_claim_that_three_beats_did_not_name_goes_back_uncounted(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    for _ in 0..2 {
        assert_eq!(beat(world, &who, &[]).await.unnamed.len(), 1);
        assert_eq!(world.row(working.run, FIRST).await.state, TaskState::Claimed);
    }
    assert_eq!(beat(world, &who, &[]).await.unnamed, []);
    let row = world.row(working.run, FIRST).await;
    assert_eq!((row.state, row.attempts, row.losses), (TaskState::Ready, 0, vec![]));
    let alive = beat(world, &who, &[working.task.claim]).await;
    assert_eq!(alive.lost, [working.task.claim]);
    let ClaimedWork::Activity(work) = world.claim_one(&who).await.work else { panic!() };
    assert_eq!(work.attempt.number, 1, "neither an attempt nor a loss");
}

pub(crate) async fn a_turn_that_three_beats_did_not_name_goes_back(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held(&who).await;
    for _ in 0..3 {
        beat(world, &who, &[]).await;
    }
    let row = world.row(turn.run, Place::TURN).await;
    assert_eq!((row.state, row.losses), (TaskState::Ready, vec![]));
}

pub(crate) async fn a_claim_that_is_named_again_is_not_given_back(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    for _ in 0..3 {
        beat(world, &who, &[]).await;
        beat(world, &who, &[]).await;
        beat(world, &who, &[working.task.claim]).await;
    }
    assert_eq!(world.row(working.run, FIRST).await.state, TaskState::Claimed);
    done(world.commit(&who, world.result_of(&working)).await);
}

pub(crate) async fn a_cancelling_claim_that_is_not_named_stays(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let commit = RunCommit {
        events: vec![noted("cancelled")],
        tasks: [(FIRST, TaskChange::Cancel(FIRST))].into(),
        ..world.on(working.run, Seq(2))
    };
    done(world.commit(None, commit).await);
    for _ in 0..5 {
        assert_eq!(beat(world, &who, &[]).await.unnamed, []);
    }
    assert_eq!(world.row(working.run, FIRST).await.state, TaskState::Cancelling);
}

pub(crate) async fn a_beat_tells_which_held_runs_have_unread_entries(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    let (mine, quiet) = (world.held(&who).await, world.held(&who).await);
    let others = world.held(&other).await;
    let free = world.begun([]).await;
    for run in [mine.run, others.run, free] {
        world.deliver(run, "c", cancel()).await;
    }
    let alive = beat(world, &who, &[mine.claim, quiet.claim]).await;
    assert_eq!(alive.unread, [mine.run]);
    let commit = RunCommit { inbox_used: 1, turn: TurnAfter::Keep, ..world.turn_of(&mine) };
    done(world.commit(&who, commit).await);
    let alive = beat(world, &who, &[mine.claim, quiet.claim]).await;
    assert_eq!(alive.unread, []);
}

pub(crate) async fn details_are_what_was_said_last(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let claim = working.task.claim;
    let text = r#"{"b":1.0, "a":[1e2], "b":2}"#;
    says(world, &who, claim, Some(json(text))).await;
    let details = world.row(working.run, FIRST).await.details.expect("said");
    assert_eq!(details.text(), text, "byte for byte");
    says(world, &who, claim, None).await;
    assert_eq!(world.row(working.run, FIRST).await.details, Some(json(text)), "kept");
    says(world, &who, claim, Some(json("2"))).await;
    assert_eq!(world.row(working.run, FIRST).await.details, Some(json("2")));
}

pub(crate) async fn details_survive_a_loss(world: &World) {
    let who = world.worker("dead").await;
    let working = world.working(&who).await;
    says(world, &who, working.task.claim, Some(json("7"))).await;
    world.pass(secs(25));
    world.store.leave(who).await.unwrap();
    let heir = world.worker("heir").await;
    let ClaimedWork::Activity(work) = world.claim_one(&heir).await.work else { panic!() };
    assert_eq!((work.attempt.number, work.details), (2, Some(json("7"))));
}

async fn put_again(world: &World, who: &WorkerId, working: &Working, put: TaskPut) {
    let commit = RunCommit { tasks: puts([put]), ..world.result_of(working) };
    done(world.commit(who, commit).await);
}

pub(crate) async fn details_survive_a_retry_in_place(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    says(world, &who, working.task.claim, Some(json("7"))).await;
    let put = TaskPut { attempt: 1, ..activity(FIRST, "a", Seq(3)) };
    put_again(world, &who, &working, put).await;
    let task = world.claim_one(&who).await;
    let ClaimedWork::Activity(work) = &task.work else { panic!() };
    assert_eq!(work.details, Some(json("7")));
    let again = Working { head: Seq(3), task, ..working };
    let put = TaskPut { attempt: 2, details: Some(json("8")), ..activity(FIRST, "a", Seq(4)) };
    put_again(world, &who, &again, put).await;
    let ClaimedWork::Activity(work) = world.claim_one(&who).await.work else { panic!() };
    assert_eq!(work.details, Some(json("8")), "what the commit says goes before");
}

pub(crate) async fn details_are_not_for_another_activity_at_the_place(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    says(world, &who, working.task.claim, Some(json("7"))).await;
    put_again(world, &who, &working, activity(FIRST, "b", Seq(3))).await;
    let ClaimedWork::Activity(work) = world.claim_one(&who).await.work else { panic!() };
    assert_eq!((work.id.as_str(), work.details), ("b", None));
}

pub(crate) async fn a_heartbeat_of_a_cancelled_task_is_ignored(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let commit = RunCommit {
        events: vec![noted("cancelled")],
        tasks: [(FIRST, TaskChange::Cancel(FIRST))].into(),
        summary: Some(running()),
        ..world.on(working.run, Seq(2))
    };
    done(world.commit(None, commit).await);
    says(world, &who, working.task.claim, Some(json("7"))).await;
    assert_eq!(world.row(working.run, FIRST).await.details, None);
}

pub(crate) async fn a_holder_beats_for_its_turn_without_renewing_it(world: &World) {
    let who = world.worker("one").await;
    let turn: Turn = world.held(&who).await;
    world.pass(secs(40));
    beat(world, &who, &[turn.claim]).await;
    world.pass(secs(30));
    assert_eq!(world.sweep().await.returned, 1);
}
