//! Death of processes: their claims return, with the loss noted, and only theirs.

use crate::sample::{FIRST, activity, done, noted, puts, running, secs};
use crate::snapshot::assert_same;
use crate::world::{Turn, Working, World};
use durably_kernel::{
    ActivityOptions, Attempt, Fact, Loss, LossCause, Place, Seq, TaskChange, TaskPut, TaskState,
    WorkerId,
};
use durably_store::{
    BeatAnswer, Claimed, ClaimedWork, CommitAnswer, HandBack, Returned, RunCommit, SweepCall,
    TurnAfter, WorkerStatus,
};
use std::sync::Arc;
use std::time::Duration;

const MILLI: Duration = Duration::from_millis(1);

async fn status(world: &World, who: &WorkerId) -> WorkerStatus {
    let workers = world.store.workers().await.unwrap();
    workers.into_iter().find(|worker| worker.who == *who).expect("registered").status
}

/// A worker that claims one task and dies over it.
async fn dies_over(world: &World, name: &str) -> WorkerId {
    let who = world.worker(name).await;
    world.claim_one(&who).await;
    world.pass(secs(60) + MILLI);
    assert_eq!(world.sweep().await.dead, 1);
    who
}

pub(crate) async fn claims_of_a_silent_process_return_with_the_loss_noted(world: &World) {
    let who = world.worker("dead").await;
    let claimed_at = world.now();
    let working = world.working(&who).await;
    world.pass(secs(60));
    let swept = world.sweep().await;
    assert_eq!((swept.dead, swept.returned), (0, 0), "not older than 60 s");
    world.pass(MILLI);
    let swept = world.sweep().await;
    assert_eq!((swept.dead, swept.returned, swept.ready, swept.delivered), (1, 1, 1, 0));
    assert_eq!(status(world, &who).await, WorkerStatus::Stale);
    let row = world.row(working.run, FIRST).await;
    assert_eq!((row.state, row.attempt, row.attempts), (TaskState::Ready, None, 1));
    let attempt = Attempt { number: 1, worker: who.clone(), started_at: claimed_at };
    let loss = Loss { attempt, lost_at: world.now(), cause: LossCause::Died };
    assert_eq!(row.losses, std::slice::from_ref(&loss));
    let other = world.worker("heir").await;
    let task = world.claim_one(&other).await;
    let ClaimedWork::Activity(work) = task.work else { panic!("an activity") };
    assert_eq!((work.attempt.number, work.losses), (2, vec![loss]));
    assert_eq!(
        world.commit(&who, world.result_of(&working)).await,
        CommitAnswer::Fenced(vec![working.task.claim]),
        "a late writer is harmless"
    );
}

pub(crate) async fn a_beat_keeps_a_process_alive(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    for _ in 0..5 {
        world.pass(secs(60));
        world.beat(&who, &[working.task.claim]).await;
        assert_eq!(world.sweep().await.dead, 0);
    }
    done(world.commit(&who, world.result_of(&working)).await);
}

pub(crate) async fn living_processes_lose_nothing_by_anothers_death(world: &World) {
    let living = world.worker("living").await;
    let working = world.working(&living).await;
    let dead = world.worker("dead").await;
    let run = world.begun([activity(FIRST, "a", Seq(2))]).await;
    world.claim_one(&dead).await;
    world.pass(secs(61));
    world.beat(&living, &[working.task.claim]).await;
    let before = world.snapshot().await.runs[&working.run].clone();
    let swept = world.sweep().await;
    assert_eq!((swept.dead, swept.returned), (1, 1));
    assert_eq!(world.snapshot().await.runs[&working.run], before);
    assert_eq!(world.row(run, FIRST).await.state, TaskState::Ready);
}

pub(crate) async fn nobody_is_declared_dead_where_the_sweeper_may_not(world: &World) {
    let who = world.worker("one").await;
    world.working(&who).await;
    world.pass(secs(500));
    let before = world.snapshot().await;
    let call = SweepCall { may_declare: false, ..world.sweep_call() };
    let swept = world.store.sweep(call).await.unwrap();
    assert_eq!((swept.dead, swept.returned), (0, 0));
    assert_same(&before, &world.snapshot().await);
}

pub(crate) async fn a_sweeper_does_not_declare_itself_dead(world: &World) {
    let who = world.worker("sweeper").await;
    world.working(&who).await;
    let other = world.worker("other").await;
    world.pass(secs(61));
    let call = SweepCall { who: Some(who.clone()), ..world.sweep_call() };
    let swept = world.store.sweep(call).await.unwrap();
    assert_eq!((swept.dead, swept.returned), (1, 0));
    assert_eq!(status(world, &who).await, WorkerStatus::Active);
    assert_eq!(status(world, &other).await, WorkerStatus::Stale);
}

pub(crate) async fn the_bound_on_silence_is_the_sweepers(world: &World) {
    let who = world.worker("one").await;
    world.working(&who).await;
    world.pass(secs(6));
    let swept = |stale_after| world.store.sweep(SweepCall { stale_after, ..world.sweep_call() });
    assert_eq!(swept(secs(6)).await.unwrap().dead, 0);
    assert_eq!(swept(secs(5)).await.unwrap().dead, 1);
}

pub(crate) async fn a_process_declared_dead_stays_dead(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    world.pass(secs(61));
    world.sweep().await;
    let before = world.snapshot().await;
    assert_eq!(world.beat(&who, &[working.task.claim]).await, BeatAnswer::Refused);
    let answer = world.store.claim(world.claim_call(&who, 1)).await.unwrap();
    assert_eq!(answer, Claimed::Refused);
    assert!(!world.store.ask(who.clone()).await.unwrap().active);
    world.store.drain(who.clone()).await.unwrap();
    world.store.leave(who.clone()).await.unwrap();
    assert_same(&before, &world.snapshot().await);
    assert_eq!(world.sweep().await.dead, 0, "declared once");
    world.worker("one again").await;
    assert_eq!(status(world, &"one again".into()).await, WorkerStatus::Active);
}

pub(crate) async fn a_draining_process_can_die_as_well(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    world.store.drain(who.clone()).await.unwrap();
    world.pass(secs(61));
    let swept = world.sweep().await;
    assert_eq!((swept.dead, swept.returned), (1, 1));
    assert_eq!(world.row(working.run, FIRST).await.losses.len(), 1);
}

pub(crate) async fn a_process_that_left_is_not_declared_dead(world: &World) {
    let who = world.worker("one").await;
    world.store.leave(who.clone()).await.unwrap();
    world.pass(secs(500));
    assert_eq!(world.sweep().await.dead, 0);
    assert_eq!(status(world, &who).await, WorkerStatus::Stopped);
}

/// Every sweep, not only the one that declares somebody dead.
pub(crate) async fn claims_that_a_bounded_sweep_left_return_in_the_next(world: &World) {
    let dead = world.worker("dead").await;
    let turns = [world.held(&dead).await, world.held(&dead).await];
    world.pass(secs(61));
    let bounded = SweepCall { most: 1, ..world.sweep_call() };
    let swept = world.store.sweep(bounded).await.unwrap();
    assert_eq!((swept.returned, swept.ready, swept.dead), (1, 1, 1));
    assert_eq!(swept.next_due, Some(secs(0)), "there is more to do");
    let call = SweepCall { may_declare: false, ..world.sweep_call() };
    let swept = world.store.sweep(call).await.unwrap();
    assert_eq!((swept.returned, swept.ready, swept.dead), (1, 1, 0), "of one that was dead before");
    for turn in turns {
        assert_eq!(world.row(turn.run, Place::TURN).await.state, TaskState::Ready);
    }
}

pub(crate) async fn the_third_death_becomes_an_entry_with_all_losses(world: &World) {
    let run = world.begun([activity(FIRST, "a", Seq(2))]).await;
    let mut dead = Vec::new();
    for name in ["d1", "d2", "d3"] {
        assert!(world.unread(run).await.is_empty(), "not before the third");
        dead.push(dies_over(world, name).await);
    }
    assert!(world.task(run, FIRST).await.is_none(), "nobody dies over it again");
    let unread = world.unread(run).await;
    assert_eq!(unread.len(), 1);
    let Fact::ActivityLost { activity_id, seq, losses } = &unread[0].fact else {
        panic!("lost: {unread:?}");
    };
    assert_eq!((activity_id.as_str(), *seq), ("a", Seq(2)));
    let workers: Vec<_> = losses.iter().map(|loss| loss.attempt.worker.clone()).collect();
    assert_eq!(workers, dead);
    let numbers: Vec<_> = losses.iter().map(|loss| loss.attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert!(losses.iter().all(|loss| loss.cause == LossCause::Died));
    assert_eq!(world.row(run, Place::TURN).await.state, TaskState::Ready);
}

pub(crate) async fn an_activity_may_have_its_own_bound_on_deaths(world: &World) {
    for most in [1, 5] {
        let options = ActivityOptions { deaths_max: Some(most), ..ActivityOptions::default() };
        let put = TaskPut { options: Some(Arc::new(options)), ..activity(FIRST, "a", Seq(2)) };
        let run = world.begun([put]).await;
        for death in 0..most {
            assert!(world.unread(run).await.is_empty());
            dies_over(world, &format!("w{most}-{death}")).await;
        }
        assert_eq!(world.unread(run).await.len(), 1, "after {most}");
        let commit = RunCommit {
            events: vec![noted("end")],
            summary: Some(crate::sample::summary(durably_kernel::RunStatus::Failed)),
            inbox_used: 1,
            ..world.on(run, Seq(2))
        };
        done(world.commit(None, commit).await);
    }
}

pub(crate) async fn deaths_recorded_before_count(world: &World) {
    let put = TaskPut { attempt: 4, deaths: 2, ..activity(FIRST, "a", Seq(2)) };
    let run = world.begun([put]).await;
    dies_over(world, "third").await;
    let unread = world.unread(run).await;
    let Fact::ActivityLost { losses, .. } = &unread[0].fact else { panic!("lost") };
    assert_eq!(losses.len(), 1, "the others are in the history");
    assert_eq!(losses[0].attempt.number, 5);
}

pub(crate) async fn graceful_stops_are_free(world: &World) {
    let run = world.begun([activity(FIRST, "a", Seq(2))]).await;
    for round in 0..5 {
        let who = world.worker(&format!("stops{round}")).await;
        world.claim_one(&who).await;
        world.store.leave(who).await.unwrap();
    }
    for name in ["d1", "d2"] {
        dies_over(world, name).await;
    }
    let row = world.row(run, FIRST).await;
    assert_eq!((row.state, row.attempts, row.losses.len()), (TaskState::Ready, 7, 7));
    let died = row.losses.iter().filter(|loss| loss.cause == LossCause::Died).count();
    assert_eq!(died, 2);
    dies_over(world, "d3").await;
    assert_eq!(world.unread(run).await.len(), 1);
}

pub(crate) async fn losses_are_gone_once_a_commit_recorded_them(world: &World) {
    let run = world.begun([activity(FIRST, "a", Seq(2))]).await;
    dies_over(world, "dead").await;
    let who = world.worker("heir").await;
    let working = Working { run, head: Seq(2), task: world.claim_one(&who).await };
    let again = TaskPut { attempt: 2, deaths: 1, ..activity(FIRST, "a", Seq(3)) };
    let commit = RunCommit { tasks: puts([again]), ..world.result_of(&working) };
    done(world.commit(&who, commit).await);
    let row = world.row(run, FIRST).await;
    assert_eq!((row.losses, row.attempts), (vec![], 2));
    world.store.leave(who).await.unwrap();
    dies_over(world, "second").await;
    assert_eq!(world.row(run, FIRST).await.losses.len(), 1);
}

pub(crate) async fn a_lost_turn_is_ready_again_with_the_loss_noted(world: &World) {
    let who = world.worker("dead").await;
    let turn = world.held(&who).await;
    let claimed_at = world.now();
    world.pass(secs(61));
    let swept = world.sweep().await;
    assert_eq!((swept.returned, swept.ready), (1, 1));
    let heir = world.worker("heir").await;
    let task = world.claim_one(&heir).await;
    assert_eq!(task.claim.seq, turn.claim.seq, "the same turn row");
    let ClaimedWork::Turn { losses, .. } = &task.work else { panic!("a turn") };
    assert_eq!(losses.len(), 1);
    assert_eq!((&losses[0].attempt.worker, losses[0].cause), (&who, LossCause::Died));
    assert_eq!(losses[0].attempt.started_at, claimed_at);
    assert_eq!(losses[0].lost_at, world.now());
    let turn = Turn { claim: task.claim, ..turn };
    let commit = RunCommit { turn: TurnAfter::Keep, ..world.turn_of(&turn) };
    done(world.commit(&heir, commit).await);
    let row = world.row(turn.run, Place::TURN).await;
    assert_eq!(row.losses, [], "the holder's commit recorded them");
}

pub(crate) async fn a_turn_is_never_lost_for_good(world: &World) {
    let run = world.begun([]).await;
    world.signal(run, "s").await;
    for round in 0..5 {
        dies_over(world, &format!("d{round}")).await;
        let row = world.row(run, Place::TURN).await;
        assert_eq!((row.state, row.losses.len()), (TaskState::Ready, round + 1));
    }
    assert_eq!(world.unread(run).await.len(), 1, "no entry but the signal");
}

pub(crate) async fn a_turn_is_lost_after_its_deadline_though_its_process_lives(world: &World) {
    let who = world.worker("one").await;
    let run = world.start(world.new_run()).await;
    let call = durably_store::ClaimCall { turn_deadline: secs(20), ..world.claim_call(&who, 1) };
    let task = world.claimed(call).await.remove(0);
    world.pass(secs(20) - MILLI);
    assert_eq!(world.sweep().await.returned, 0);
    world.pass(MILLI);
    assert_eq!(world.sweep().await.returned, 1);
    let row = world.row(run, Place::TURN).await;
    assert_eq!((row.state, row.losses.len()), (TaskState::Ready, 1));
    let turn = Turn { run, head: Seq(1), claim: task.claim };
    let answer = world.commit(&who, world.turn_of(&turn)).await;
    assert_eq!(answer, CommitAnswer::Fenced(vec![task.claim]));
}

pub(crate) async fn a_holders_commit_renews_the_turns_deadline(world: &World) {
    let who = world.worker("one").await;
    let mut turn = world.held(&who).await;
    for _ in 0..4 {
        world.pass(secs(20));
        let commit =
            RunCommit { turn: TurnAfter::Keep, turn_deadline: secs(21), ..world.turn_of(&turn) };
        turn.head = done(world.commit(&who, commit).await).head;
        world.beat(&who, &[turn.claim]).await;
        assert_eq!(world.sweep().await.next_due, Some(secs(21)));
    }
    world.pass(secs(21));
    assert_eq!(world.sweep().await.returned, 1);
}

pub(crate) async fn cancelling_rows_of_a_dead_process_go(world: &World) {
    let who = world.worker("dead").await;
    let working = world.working(&who).await;
    let commit = RunCommit {
        events: vec![noted("cancelled")],
        tasks: [(FIRST, TaskChange::Cancel(FIRST))].into(),
        summary: Some(running()),
        ..world.on(working.run, Seq(2))
    };
    done(world.commit(None, commit).await);
    assert_eq!(world.row(working.run, FIRST).await.state, TaskState::Cancelling);
    world.pass(secs(61));
    let swept = world.sweep().await;
    assert_eq!((swept.dead, swept.returned, swept.ready, swept.delivered), (1, 1, 0, 0));
    assert!(world.tasks(working.run).await.is_empty());
}

pub(crate) async fn returns_are_bounded_and_go_on(world: &World) {
    let who = world.worker("dead").await;
    for _ in 0..5 {
        world.working(&who).await;
    }
    world.pass(secs(61));
    let call = SweepCall { most: 2, ..world.sweep_call() };
    let mut counts = Vec::new();
    loop {
        let swept = world.store.sweep(call.clone()).await.unwrap();
        counts.push(swept.returned);
        if swept.next_due != Some(Duration::ZERO) {
            break;
        }
    }
    assert_eq!(counts, [2, 2, 1], "at once, and not when some deadline passes");
}

pub(crate) async fn an_unstarted_hand_back_before_a_death_counts_nothing(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let back = HandBack { claim: working.task.claim, how: Returned::Unstarted };
    world.store.hand_back(who, vec![back]).await.unwrap();
    world.pass(secs(61));
    let swept = world.sweep().await;
    assert_eq!((swept.dead, swept.returned), (1, 0));
    let row = world.row(working.run, FIRST).await;
    assert_eq!((row.attempts, row.losses), (0, vec![]));
}

pub(crate) async fn a_clock_that_is_set_back_kills_nobody_and_keeps_nobody_alive(world: &World) {
    let hour = secs(3600);
    world.pass(hour);
    let (dead, alive) = (world.worker("dead").await, world.worker("alive").await);
    let working = world.working(&dead).await;
    world.clock.set(World::START);
    assert_eq!(world.sweep().await.dead, 0);
    world.beat(&alive, &[]).await;
    world.pass(secs(60));
    world.beat(&alive, &[]).await;
    assert_eq!(world.sweep().await.dead, 0, "silent for 60 s since the clock was set");
    world.pass(MILLI);
    let swept = world.sweep().await;
    assert_eq!((swept.dead, swept.returned), (1, 1), "instead of in an hour");
    assert_eq!(status(world, &dead).await, WorkerStatus::Stale);
    assert_eq!(status(world, &alive).await, WorkerStatus::Active);
    let heir = world.worker("heir").await;
    assert_eq!(world.claim_one(&heir).await.claim.run, working.run);
}
