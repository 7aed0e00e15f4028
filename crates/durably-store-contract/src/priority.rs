//! Priority above fairness, and started runs before new ones.

use crate::sample::{FIRST, activity, done, secs};
use crate::world::{Turn, World};
use durably_kernel::{RunId, Seq, TaskPut, WorkerId};
use durably_store::{HandBack, NewRun, Returned, RunCommit, TurnAfter};

fn with_priority(world: &World, tenant: &str, priority: i32) -> NewRun {
    let mut new = world.new_for(tenant);
    new.identity.priority = priority;
    new
}

async fn order(world: &World, who: &WorkerId) -> Vec<RunId> {
    world.claim(who, 100).await.iter().map(|task| task.claim.run).collect()
}

pub(crate) async fn higher_priorities_come_first(world: &World) {
    let who = world.worker("one").await;
    let mut runs = Vec::new();
    for priority in [0, -1, 7, i32::MIN, i32::MAX, 0] {
        runs.push(world.start(with_priority(world, "t", priority)).await);
    }
    let expected = [runs[4], runs[2], runs[0], runs[5], runs[1], runs[3]];
    assert_eq!(order(world, &who).await, expected);
}

pub(crate) async fn priority_is_above_fairness(world: &World) {
    let who = world.worker("one").await;
    let mut high = Vec::new();
    world.start(with_priority(world, "a", 0)).await;
    for _ in 0..3 {
        high.push(world.start(with_priority(world, "b", 1)).await);
    }
    let tasks = world.claim(&who, 3).await;
    let found: Vec<_> = tasks.iter().map(|task| task.claim.run).collect();
    assert_eq!(found, high, "though another tenant waits");
}

pub(crate) async fn started_runs_come_before_new_ones(world: &World) {
    let who = world.worker("one").await;
    let new = world.start(world.new_run()).await;
    let started = world.begun([]).await;
    world.signal(started, "s").await;
    let working = world.begun([activity(FIRST, "a", Seq(2))]).await;
    assert_eq!(order(world, &who).await, [started, working, new]);
}

pub(crate) async fn started_runs_come_first_whatever_their_tenant(world: &World) {
    let who = world.worker("one").await;
    let new = world.start(world.new_for("a")).await;
    let mut started = Vec::new();
    for _ in 0..3 {
        let put = activity(FIRST, "a", Seq(2));
        started.push(world.begun_as(world.new_for("b"), [put]).await);
    }
    let mut expected = started;
    expected.push(new);
    assert_eq!(order(world, &who).await, expected);
}

pub(crate) async fn priority_is_above_having_started(world: &World) {
    let who = world.worker("one").await;
    let started = world.begun([activity(FIRST, "a", Seq(2))]).await;
    let new = world.start(with_priority(world, "default", 1)).await;
    assert_eq!(order(world, &who).await, [new, started]);
}

pub(crate) async fn an_activity_may_have_a_priority_of_its_own(world: &World) {
    let who = world.worker("one").await;
    let low = world.begun([activity(FIRST, "a", Seq(2))]).await;
    let put = TaskPut { priority: 5, ..activity(FIRST, "a", Seq(2)) };
    let high = world.begun([put]).await;
    assert_eq!(order(world, &who).await, [high, low]);
}

pub(crate) async fn a_delivered_turn_has_the_priority_of_its_run(world: &World) {
    let who = world.worker("one").await;
    let low = world.begun([]).await;
    let high = world.begun_as(with_priority(world, "default", 3), []).await;
    world.signal(low, "s").await;
    world.signal(high, "s").await;
    assert_eq!(world.row(high, durably_kernel::Place::TURN).await.priority, 3);
    assert_eq!(order(world, &who).await, [high, low]);
}

pub(crate) async fn a_run_is_new_until_its_first_turn_is_committed(world: &World) {
    let who = world.worker("one").await;
    let first = world.start(world.new_run()).await;
    let task = world.claim_one(&who).await;
    let back = HandBack { claim: task.claim, how: Returned::Unstarted };
    world.store.hand_back(who.clone(), vec![back]).await.unwrap();
    let started = world.begun([activity(FIRST, "a", Seq(2))]).await;
    let tasks = world.claim(&who, 2).await;
    assert_eq!(tasks[0].claim.run, started, "claimed once is not begun");
    assert_eq!(tasks[1].claim.run, first);
    let turn = Turn { run: first, head: Seq(1), claim: tasks[1].claim };
    let commit = RunCommit { turn: TurnAfter::Return, ..world.turn_of(&turn) };
    let new = world.start(world.new_run()).await;
    done(world.commit(&who, commit).await);
    assert_eq!(order(world, &who).await, [first, new]);
}

/// Becoming ready takes a fresh order number, whatever was the way.
pub(crate) async fn what_becomes_ready_again_goes_behind(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    let put = TaskPut { delay: Some(secs(5)), ..activity(FIRST, "a", Seq(2)) };
    let retried = world.begun([put]).await;
    let handed = world.begun([activity(FIRST, "a", Seq(2))]).await;
    let task = world.claim_one(&who).await;
    let lost = world.begun([activity(FIRST, "a", Seq(2))]).await;
    world.claim_one(&other).await;
    let waiting = world.begun([activity(FIRST, "a", Seq(2))]).await;
    let back = HandBack { claim: task.claim, how: Returned::Stopped };
    world.store.hand_back(who.clone(), vec![back]).await.unwrap();
    world.pass(secs(5));
    world.sweep().await;
    world.pass(secs(56));
    world.beat(&who, &[]).await;
    assert_eq!(world.sweep().await.dead, 1);
    assert_eq!(order(world, &who).await, [waiting, handed, retried, lost]);
}
