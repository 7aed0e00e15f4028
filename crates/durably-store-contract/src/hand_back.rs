//! Giving claims back: a hand-back, a drain, a graceful end.

use crate::sample::{FIRST, activity, done, noted, secs};
use crate::snapshot::assert_same;
use crate::world::{Working, World};
use durably_kernel::{Claim, LossCause, Place, Seq, TaskChange, TaskState, WorkerId};
use durably_store::{
    BeatAnswer, Claimed, ClaimedWork, CommitAnswer, HandBack, Returned, RunCommit, WorkerStatus,
};

async fn back(world: &World, who: &WorkerId, claim: Claim, how: Returned) {
    world.store.hand_back(who.clone(), vec![HandBack { claim, how }]).await.unwrap();
}

async fn cancelling(world: &World, who: &WorkerId) -> Working {
    let working = world.working(who).await;
    let commit = RunCommit {
        events: vec![noted("cancelled")],
        tasks: [(FIRST, TaskChange::Cancel(FIRST))].into(),
        ..world.on(working.run, Seq(2))
    };
    done(world.commit(None, commit).await);
    assert_eq!(world.row(working.run, FIRST).await.state, TaskState::Cancelling);
    working
}

async fn status(world: &World, who: &WorkerId) -> WorkerStatus {
    let workers = world.store.workers().await.unwrap();
    workers.into_iter().find(|worker| worker.who == *who).expect("registered").status
}

pub(crate) async fn what_was_not_begun_counts_for_nothing(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    back(world, &who, working.task.claim, Returned::Unstarted).await;
    let row = world.row(working.run, FIRST).await;
    assert_eq!((row.state, row.attempts, row.losses), (TaskState::Ready, 0, vec![]));
    assert_eq!(row.attempt, None);
    let task = world.claim_one(&who).await;
    assert!(task.claim.number > working.task.claim.number);
    let ClaimedWork::Activity(work) = task.work else { panic!("an activity") };
    assert_eq!((work.attempt.number, work.losses), (1, vec![]));
}

pub(crate) async fn what_was_stopped_is_an_attempt_but_no_death(world: &World) {
    let who = world.worker("one").await;
    let mut working = world.working(&who).await;
    for attempt in 1..=5 {
        world.pass(secs(1));
        back(world, &who, working.task.claim, Returned::Stopped).await;
        let row = world.row(working.run, FIRST).await;
        assert_eq!((row.state, row.attempts), (TaskState::Ready, attempt));
        let last = row.losses.last().expect("noted");
        assert_eq!((last.attempt.number, last.cause), (attempt, LossCause::Stopped));
        assert_eq!((last.lost_at, &last.attempt.worker), (world.now(), &who));
        working.task = world.claim_one(&who).await;
        let ClaimedWork::Activity(work) = &working.task.work else { panic!("an activity") };
        assert_eq!(work.losses.len(), attempt as usize);
    }
}

/// What its holder had begun in place is lost with a stop, and the next holder records it.
pub(crate) async fn a_turn_goes_back_without_a_death(world: &World) {
    let who = world.worker("one").await;
    for how in [Returned::Unstarted, Returned::Stopped] {
        let turn = world.held(&who).await;
        back(world, &who, turn.claim, how).await;
        let row = world.row(turn.run, Place::TURN).await;
        assert_eq!((row.state, row.attempts), (TaskState::Ready, 0));
        let causes: Vec<LossCause> = row.losses.iter().map(|loss| loss.cause).collect();
        match how {
            Returned::Stopped => assert_eq!(causes, [LossCause::Stopped]),
            _ => assert_eq!(causes, []),
        }
        let answer = world.commit(&who, world.turn_of(&turn)).await;
        assert_eq!(answer, CommitAnswer::Fenced(vec![turn.claim]));
    }
}

pub(crate) async fn a_cancelled_task_goes_when_its_worker_lets_go(world: &World) {
    let who = world.worker("one").await;
    for how in [Returned::Confirmed, Returned::Unstarted, Returned::Stopped] {
        let working = cancelling(world, &who).await;
        back(world, &who, working.task.claim, how).await;
        assert!(world.tasks(working.run).await.is_empty(), "{how:?}");
    }
}

pub(crate) async fn only_a_cancelled_task_is_confirmed_away(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let before = world.snapshot().await;
    back(world, &who, working.task.claim, Returned::Confirmed).await;
    assert_same(&before, &world.snapshot().await);
    done(world.commit(&who, world.result_of(&working)).await);
}

pub(crate) async fn claims_of_a_batch_that_do_not_stand_are_ignored(world: &World) {
    let who = world.worker("one").await;
    let (one, two) = (world.working(&who).await, world.working(&who).await);
    done(world.commit(&who, world.result_of(&one)).await);
    let unknown = Claim { run: world.run_id(), ..one.task.claim };
    let claims = [one.task.claim, unknown, two.task.claim, two.task.claim];
    let batch = claims.map(|claim| HandBack { claim, how: Returned::Stopped });
    world.store.hand_back(who.clone(), batch.to_vec()).await.unwrap();
    assert!(world.tasks(one.run).await.is_empty());
    let row = world.row(two.run, FIRST).await;
    assert_eq!((row.state, row.losses.len()), (TaskState::Ready, 1));
}

pub(crate) async fn a_process_that_leaves_gives_everything_back(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    let (working, turn) = (world.working(&who).await, world.held(&who).await);
    let cancelled = cancelling(world, &who).await;
    let others = world.working(&other).await;
    world.beat(&who, &[]).await;
    world.store.leave(who.clone()).await.unwrap();
    let row = world.row(working.run, FIRST).await;
    assert_eq!((row.state, row.attempts, row.losses.len()), (TaskState::Ready, 1, 1));
    assert_eq!(row.losses[0].cause, LossCause::Stopped);
    let row = world.row(turn.run, Place::TURN).await;
    assert_eq!((row.state, row.losses.len()), (TaskState::Ready, 1));
    assert_eq!(row.losses[0].cause, LossCause::Stopped);
    assert!(world.tasks(cancelled.run).await.is_empty());
    assert_eq!(world.row(others.run, FIRST).await.state, TaskState::Claimed);
    let workers = world.store.workers().await.unwrap();
    let row = workers.iter().find(|worker| worker.who == who).expect("still listed");
    assert_eq!((row.status, row.load), (WorkerStatus::Stopped, 0));
    assert_eq!(world.beat(&who, &[]).await, BeatAnswer::Refused);
    let answer = world.store.claim(world.claim_call(&who, 1)).await.unwrap();
    assert_eq!(answer, Claimed::Refused);
    let answer = world.commit(&who, world.result_of(&working)).await;
    assert_eq!(answer, CommitAnswer::Fenced(vec![working.task.claim]));
}

pub(crate) async fn leaving_twice_or_unknown_is_nothing(world: &World) {
    let who = world.worker("one").await;
    world.working(&who).await;
    world.store.leave(who.clone()).await.unwrap();
    let before = world.snapshot().await;
    world.pass(secs(1));
    world.store.leave(who.clone()).await.unwrap();
    world.store.drain(who).await.unwrap();
    world.store.leave("nobody".into()).await.unwrap();
    world.store.drain("nobody".into()).await.unwrap();
    assert_same(&before, &world.snapshot().await);
}

pub(crate) async fn a_draining_process_keeps_what_it_has_and_claims_no_more(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let turn = world.held(&who).await;
    world.begun([activity(FIRST, "a", Seq(2))]).await;
    world.store.drain(who.clone()).await.unwrap();
    assert_eq!(status(world, &who).await, WorkerStatus::Draining);
    let answer = world.store.claim(world.claim_call(&who, 1)).await.unwrap();
    assert_eq!(answer, Claimed::Refused);
    assert_eq!(world.sweep().await.returned, 0, "its claims stand");
    done(world.commit(&who, world.result_of(&working)).await);
    let keep = RunCommit { turn: durably_store::TurnAfter::Keep, ..world.turn_of(&turn) };
    assert_eq!(done(world.commit(&who, keep).await).turn, Some(turn.claim));
    world.store.leave(who.clone()).await.unwrap();
    assert_eq!(status(world, &who).await, WorkerStatus::Stopped);
    assert_eq!(world.row(turn.run, Place::TURN).await.state, TaskState::Ready);
}

pub(crate) async fn a_turn_that_goes_back_keeps_the_losses_before(world: &World) {
    let dead = world.worker("dead").await;
    let turn = world.held(&dead).await;
    world.pass(secs(61));
    world.sweep().await;
    for name in ["one", "two"] {
        let who = world.worker(name).await;
        let task = world.claim_one(&who).await;
        let ClaimedWork::Turn { losses, .. } = &task.work else { panic!("a turn") };
        assert_eq!(losses.len(), 1, "of the dead alone");
        back(world, &who, task.claim, Returned::Unstarted).await;
        assert_eq!(&world.row(turn.run, Place::TURN).await.losses, losses);
    }
}
