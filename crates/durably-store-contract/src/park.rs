//! Runs whose code cannot go on.

use crate::sample::{ORDER, cancel, done, noted, running, secs};
use crate::snapshot::assert_same;
use crate::world::{Turn, World, activities, turns};
use durably_kernel::{Place, RunId, Seq, Summary, TaskState, WorkerId};
use durably_store::{Base, ClaimedWork, Parked, Registration, RunCommit, TurnAfter};

fn park(delay: u64, reason: &str) -> TurnAfter {
    TurnAfter::Park {
        delay: secs(delay),
        code: durably_kernel::Code::DIVERGED.as_str().into(),
        reason: reason.into(),
    }
}

/// The commit that parks: without events, and the summary stays.
fn parking(world: &World, turn: &Turn, delay: u64, reason: &str) -> RunCommit {
    RunCommit { events: vec![], summary: None, turn: park(delay, reason), ..world.turn_of(turn) }
}

/// A run that its holder parked for a minute.
async fn parked(world: &World, who: &WorkerId) -> RunId {
    let turn = world.held(who).await;
    let committed = done(world.commit(who, parking(world, &turn, 60, "diverged")).await);
    assert_eq!((committed.turn, committed.head), (None, Seq(2)));
    turn.run
}

pub(crate) async fn a_parked_run_waits_and_says_why(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held(&who).await;
    world.signal(turn.run, "s").await;
    world.pass(secs(3));
    done(world.commit(&who, parking(world, &turn, 5, "the code diverged")).await);
    let view = world.view(turn.run).await;
    let expected = Parked {
        code: durably_kernel::Code::DIVERGED.as_str().into(),
        reason: "the code diverged".into(),
        times: 1,
        at: world.now(),
    };
    assert_eq!((view.parked, view.head), (Some(expected), Seq(2)));
    assert_eq!((view.inbox_last, view.inbox_used), (1, 0), "nothing is used up");
    let row = world.row(turn.run, Place::TURN).await;
    assert_eq!((row.state, row.due_at), (TaskState::Waiting, Some(world.now().after(secs(5)))));
    assert_eq!(row.attempt, None);
    assert!(world.claim(&who, 5).await.is_empty());
}

pub(crate) async fn a_parked_run_comes_back_after_its_delay(world: &World) {
    let who = world.worker("one").await;
    let run = parked(world, &who).await;
    world.pass(secs(59));
    assert_eq!(world.sweep().await.ready, 0);
    world.pass(secs(1));
    assert_eq!(world.sweep().await.ready, 1);
    world.beat(&who, &[]).await;
    let task = world.claim_one(&who).await;
    assert_eq!(task.claim.run, run);
    assert!(task.run.parked.is_some(), "until a turn succeeds");
}

pub(crate) async fn times_in_a_row_are_counted(world: &World) {
    let who = world.worker("one").await;
    let mut turn = world.held(&who).await;
    for times in 1..=4 {
        let reason = format!("time {times}");
        done(world.commit(&who, parking(world, &turn, 5, &reason)).await);
        let parked = world.view(turn.run).await.parked.expect("parked");
        assert_eq!((parked.times, parked.reason, parked.at), (times, reason, world.now()));
        world.pass(secs(5));
        world.sweep().await;
        turn.claim = world.claim_one(&who).await.claim;
    }
    done(world.commit(&who, world.turn_of(&turn)).await);
    assert_eq!(world.view(turn.run).await.parked, None, "a turn went through");
    world.signal(turn.run, "s").await;
    let claim = world.claim_one(&who).await.claim;
    let next = Turn { run: turn.run, head: Seq(3), claim };
    done(world.commit(&who, parking(world, &next, 5, "again")).await);
    assert_eq!(world.view(turn.run).await.parked.expect("parked").times, 1);
}

pub(crate) async fn a_cancel_makes_a_parked_run_ready_and_a_signal_does_not(world: &World) {
    let who = world.worker("one").await;
    let run = parked(world, &who).await;
    let before = world.row(run, Place::TURN).await;
    world.signal(run, "s").await;
    assert_eq!(world.row(run, Place::TURN).await, before);
    world.deliver(run, "c", cancel()).await;
    let task = world.claim_one(&who).await;
    assert_eq!(task.claim.run, run);
    let ClaimedWork::Turn { unread, .. } = task.work else { panic!("a turn") };
    assert_eq!(unread.len(), 2);
}

fn hosts(world: &World, who: &str, workflow_type: &str, version: u32) -> Registration {
    Registration { can: vec![turns(workflow_type, version)], ..world.registration(who) }
}

pub(crate) async fn a_new_process_makes_parked_runs_of_its_types_due(world: &World) {
    let who = world.worker("one").await;
    let run = parked(world, &who).await;
    let others = [
        hosts(world, "o1", "Order", 1),
        hosts(world, "o2", ORDER, 2),
        Registration { can: vec![activities(ORDER)], ..world.registration("o3") },
        Registration { can: vec![], ..world.registration("o4") },
    ];
    let before = world.row(run, Place::TURN).await;
    for other in others {
        world.store.register(other).await.unwrap();
        assert_eq!(world.row(run, Place::TURN).await, before, "not its code");
    }
    world.store.register(hosts(world, "fits", ORDER, 1)).await.unwrap();
    let row = world.row(run, Place::TURN).await;
    assert_eq!((row.state, row.due_at), (TaskState::Ready, None));
    assert_eq!(world.claim_one(&who).await.claim.run, run);
}

pub(crate) async fn a_parked_run_without_a_version_is_due_for_any_host(world: &World) {
    let who = world.worker("one").await;
    let run = world.start(world.new_run()).await;
    let claim = world.claim_one(&who).await.claim;
    let turn = Turn { run, head: Seq(1), claim };
    done(world.commit(&who, parking(world, &turn, 60, "panicked")).await);
    world.store.register(hosts(world, "other", "other", 9)).await.unwrap();
    assert_eq!(world.row(run, Place::TURN).await.state, TaskState::Waiting);
    world.store.register(hosts(world, "newer", ORDER, 9)).await.unwrap();
    assert_eq!(world.row(run, Place::TURN).await.state, TaskState::Ready);
}

pub(crate) async fn a_new_process_does_not_hurry_delayed_starts(world: &World) {
    let delay = Some(secs(60));
    let commit = RunCommit { turn: TurnAfter::Want { delay }, ..world.start_of(world.new_run()) };
    let run = commit.run;
    done(world.commit(None, commit).await);
    let before = world.row(run, Place::TURN).await;
    world.worker("one").await;
    assert_eq!(world.row(run, Place::TURN).await, before);
}

pub(crate) async fn a_new_process_leaves_ready_and_claimed_turns_as_they_are(world: &World) {
    let who = world.worker("one").await;
    let (ready, claimed) = (parked(world, &who).await, parked(world, &who).await);
    world.pass(secs(60));
    world.beat(&who, &[]).await;
    world.sweep().await;
    assert_eq!(world.claim_one(&who).await.claim.run, ready);
    let before = [world.row(ready, Place::TURN).await, world.row(claimed, Place::TURN).await];
    assert_eq!((before[0].state, before[1].state), (TaskState::Claimed, TaskState::Ready));
    world.worker("two").await;
    let after = [world.row(ready, Place::TURN).await, world.row(claimed, Place::TURN).await];
    assert_eq!(before, after);
}

pub(crate) async fn who_does_not_hold_the_run_does_not_park_it(world: &World) {
    let who = world.worker("one").await;
    let run = world.begun([]).await;
    let commit = RunCommit { turn: park(60, "not mine"), ..world.on(run, Seq(2)) };
    let before = world.snapshot().await;
    done(world.commit(&who, commit.clone()).await);
    assert_same(&before, &world.snapshot().await);
    world.signal(run, "s").await;
    let before = world.snapshot().await;
    done(world.commit(&who, RunCommit { id: world.commit_id(), ..commit }).await);
    assert_same(&before, &world.snapshot().await);
}

pub(crate) async fn nobody_holds_a_parked_run(world: &World) {
    let who = world.worker("one").await;
    let run = parked(world, &who).await;
    let before = world.row(run, Place::TURN).await;
    let commit =
        RunCommit { events: vec![noted("aside")], turn: TurnAfter::Keep, ..world.on(run, Seq(2)) };
    assert_eq!(done(world.commit(&who, commit).await).turn, None);
    assert_eq!(world.row(run, Place::TURN).await, before, "and its turn row still waits");
    let view = world.view(run).await;
    assert!(view.parked.is_some(), "a commit without a summary says nothing about the code");
    let base = Base::Head(Seq(3));
    let summary = Some(Summary { retries: 1, ..running() });
    let commit = RunCommit { base, summary, ..world.on(run, Seq(3)) };
    done(world.commit(None, RunCommit { events: vec![noted("more")], ..commit }).await);
    let view = world.view(run).await;
    assert_eq!((view.parked, view.retries), (None, 1));
}

pub(crate) async fn an_operator_makes_a_parked_run_ready(world: &World) {
    let who = world.worker("one").await;
    let run = parked(world, &who).await;
    let commit = RunCommit {
        operator: true,
        events: vec![noted("reset")],
        summary: Some(running()),
        ..world.on(run, Seq(2))
    };
    done(world.commit(None, commit).await);
    assert_eq!(world.row(run, Place::TURN).await.state, TaskState::Ready);
    assert_eq!(world.view(run).await.parked, None);
}

/// What was lost is known to the row alone until an event tells it.
pub(crate) async fn losses_of_a_parked_run_stay_until_a_turn_records_them(world: &World) {
    let dead = world.worker("dead").await;
    let mut turn = world.held(&dead).await;
    world.pass(secs(61));
    world.sweep().await;
    let who = world.worker("heir").await;
    turn.claim = world.claim_one(&who).await.claim;
    done(world.commit(&who, parking(world, &turn, 5, "panicked")).await);
    assert_eq!(world.row(turn.run, Place::TURN).await.losses.len(), 1);
    world.pass(secs(5));
    world.sweep().await;
    let task = world.claim_one(&who).await;
    let ClaimedWork::Turn { losses, .. } = task.work else { panic!("a turn") };
    assert_eq!(losses.len(), 1);
    assert_eq!(losses[0].attempt.worker, dead);
    turn.claim = task.claim;
    let keep = RunCommit { turn: TurnAfter::Keep, ..world.turn_of(&turn) };
    done(world.commit(&who, keep).await);
    assert_eq!(world.row(turn.run, Place::TURN).await.losses, []);
}
