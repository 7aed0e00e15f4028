//! Who claims the turn row holds the run, and what becomes of the row after a commit.

use crate::sample::{FIRST, activity, completed, done, noted, running, secs, summary};
use crate::snapshot::assert_same;
use crate::world::{Turn, World};
use durably_kernel::{LossCause, Place, RunId, RunStatus, Seq, TaskState, WorkerId};
use durably_store::{Base, ClaimedWork, CommitAnswer, RunCommit, TurnAfter};

/// A commit of one event by somebody who does not hold the run.
fn from_aside(world: &World, run: RunId, turn: TurnAfter) -> RunCommit {
    RunCommit {
        events: vec![noted("aside")],
        summary: Some(running()),
        turn,
        ..world.on(run, Seq(2))
    }
}

pub(crate) async fn a_commit_beside_the_holder_is_held_and_changes_nothing(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    let turn = world.held(&who).await;
    let before = world.snapshot().await;
    // The holder itself is held where it does not name its claim: it may be an older decision.
    for who in [None, Some(&other), Some(&who)] {
        for after in [TurnAfter::Release, TurnAfter::Keep, TurnAfter::Return] {
            let answer = world.commit(who, from_aside(world, turn.run, after)).await;
            assert_eq!(answer, CommitAnswer::Held, "{who:?}");
            assert_same(&before, &world.snapshot().await);
        }
    }
}

pub(crate) async fn a_result_beside_the_holder_is_held_and_its_claim_stands(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held_with(&who, [activity(FIRST, "a", Seq(2))]).await;
    let task = world.claim_one(&who).await;
    let commit =
        RunCommit { claims: vec![task.claim], ..from_aside(world, turn.run, TurnAfter::Release) };
    assert_eq!(world.commit(&who, commit).await, CommitAnswer::Held);
    assert_eq!(world.row(turn.run, FIRST).await.state, TaskState::Claimed);
    let both = RunCommit { claims: vec![task.claim], ..world.turn_of(&turn) };
    done(world.commit(&who, both).await);
    assert!(world.tasks(turn.run).await.is_empty());
}

pub(crate) async fn the_holder_lets_go_where_nothing_is_left(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held(&who).await;
    world.signal(turn.run, "s").await;
    let commit = RunCommit { inbox_used: 1, ..world.turn_of(&turn) };
    let committed = done(world.commit(&who, commit).await);
    assert_eq!((committed.turn, committed.unread), (None, vec![]));
    assert!(world.tasks(turn.run).await.is_empty(), "the turn row is gone");
    let view = world.view(turn.run).await;
    assert_eq!((view.inbox_last, view.inbox_used), (1, 1));
    assert_eq!(world.unread(turn.run).await, []);
}

pub(crate) async fn the_holder_keeps_the_turn_where_the_inbox_has_more(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held(&who).await;
    world.signal(turn.run, "read").await;
    world.signal(turn.run, "newer").await;
    let commit = RunCommit { inbox_used: 1, ..world.turn_of(&turn) };
    let committed = done(world.commit(&who, commit).await);
    assert_eq!(committed.turn, Some(turn.claim));
    let unread: Vec<_> = committed.unread.iter().map(|e| (e.number, e.id.as_str())).collect();
    assert_eq!(unread, [(2, "newer")]);
    assert_eq!(world.row(turn.run, Place::TURN).await.state, TaskState::Claimed);
    let next = Turn { head: Seq(3), ..turn };
    let commit = RunCommit { inbox_used: 2, ..world.turn_of(&next) };
    assert_eq!(done(world.commit(&who, commit).await).turn, None);
    assert!(world.tasks(next.run).await.is_empty());
}

pub(crate) async fn the_holder_keeps_the_turn_while_steps_are_under_way(world: &World) {
    let who = world.worker("one").await;
    let mut turn = world.held(&who).await;
    for head in 2..6 {
        turn.head = Seq(head);
        let commit = RunCommit { turn: TurnAfter::Keep, ..world.turn_of(&turn) };
        let committed = done(world.commit(&who, commit).await);
        assert_eq!((committed.turn, committed.unread), (Some(turn.claim), vec![]));
    }
    let row = world.row(turn.run, Place::TURN).await;
    assert_eq!((row.state, row.number), (TaskState::Claimed, turn.claim.number.0));
}

pub(crate) async fn a_holder_that_returns_the_turn_leaves_it_ready(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    let turn = world.held(&who).await;
    world.signal(turn.run, "s").await;
    let commit = RunCommit { turn: TurnAfter::Return, ..world.turn_of(&turn) };
    let committed = done(world.commit(&who, commit).await);
    assert_eq!((committed.turn, committed.unread), (None, vec![]), "not for a non-holder");
    let row = world.row(turn.run, Place::TURN).await;
    assert_eq!((row.state, row.losses), (TaskState::Ready, vec![]));
    let task = world.claim_one(&other).await;
    let ClaimedWork::Turn { unread, losses, first } = task.work else { panic!("a turn") };
    assert_eq!((unread.len(), losses, first), (1, vec![], None));
}

pub(crate) async fn a_turn_row_that_is_there_stays_as_it_is(world: &World) {
    let who = world.worker("one").await;
    for after in [TurnAfter::Release, TurnAfter::Keep, TurnAfter::Return] {
        let run = world.begun([]).await;
        world.signal(run, "s").await;
        let before = world.row(run, Place::TURN).await;
        assert_eq!(before.state, TaskState::Ready);
        let committed = done(world.commit(&who, from_aside(world, run, after.clone())).await);
        assert_eq!((committed.turn, committed.unread), (None, vec![]), "{after:?}");
        assert_eq!(world.row(run, Place::TURN).await, before, "{after:?}");
    }
}

pub(crate) async fn a_waiting_turn_row_stays_as_it_is(world: &World) {
    let who = world.worker("one").await;
    let delay = Some(secs(50));
    let commit = RunCommit { turn: TurnAfter::Want { delay }, ..world.start_of(world.new_run()) };
    let run = commit.run;
    done(world.commit(None, commit).await);
    let before = world.row(run, Place::TURN).await;
    let aside = RunCommit { base: Base::Head(Seq(1)), ..from_aside(world, run, TurnAfter::Keep) };
    assert_eq!(done(world.commit(&who, aside).await).turn, None);
    assert_eq!(world.row(run, Place::TURN).await, before);
}

pub(crate) async fn keep_inserts_a_claimed_turn_where_there_is_none(world: &World) {
    let who = world.worker("one").await;
    let run = world.begun([]).await;
    let committed = done(world.commit(&who, from_aside(world, run, TurnAfter::Keep)).await);
    let claim = committed.turn.expect("the committer holds the run");
    let row = world.row(run, Place::TURN).await;
    assert_eq!((row.state, row.seq, row.number), (TaskState::Claimed, claim.seq, claim.number.0));
    assert_eq!(row.attempt.expect("claimed").worker, who);
    let next = Turn { run, head: Seq(3), claim };
    done(world.commit(&who, world.turn_of(&next)).await);
    assert!(world.tasks(run).await.is_empty());
}

pub(crate) async fn keep_by_nobody_leaves_the_turn_ready(world: &World) {
    let run = world.begun([]).await;
    let committed = done(world.commit(None, from_aside(world, run, TurnAfter::Keep)).await);
    assert_eq!(committed.turn, None);
    assert_eq!(world.row(run, Place::TURN).await.state, TaskState::Ready);
}

pub(crate) async fn return_inserts_a_ready_turn_where_there_is_none(world: &World) {
    let who = world.worker("one").await;
    let run = world.begun([]).await;
    let committed = done(world.commit(&who, from_aside(world, run, TurnAfter::Return)).await);
    assert_eq!(committed.turn, None);
    let row = world.row(run, Place::TURN).await;
    assert_eq!((row.state, row.attempt), (TaskState::Ready, None));
}

pub(crate) async fn release_inserts_no_turn(world: &World) {
    let who = world.worker("one").await;
    let run = world.begun([]).await;
    done(world.commit(&who, from_aside(world, run, TurnAfter::Release)).await);
    assert!(world.tasks(run).await.is_empty());
}

pub(crate) async fn each_turn_row_of_a_run_has_a_number_of_its_own(world: &World) {
    let who = world.worker("one").await;
    let run = world.begun([]).await;
    let mut seen = Vec::new();
    for round in 0..4 {
        world.signal(run, &format!("s{round}")).await;
        let task = world.claim_one(&who).await;
        seen.push(task.claim.seq.0);
        let turn = Turn { run, head: Seq(2 + round), claim: task.claim };
        done(world.commit(&who, RunCommit { inbox_used: round + 1, ..world.turn_of(&turn) }).await);
    }
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
}

pub(crate) async fn an_operator_is_not_held_and_takes_the_turn(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held(&who).await;
    world.pass(secs(2));
    let commit = RunCommit { operator: true, ..from_aside(world, turn.run, TurnAfter::Release) };
    assert_eq!(done(world.commit(None, commit).await).turn, None);
    let row = world.row(turn.run, Place::TURN).await;
    assert_eq!((row.state, row.attempt), (TaskState::Ready, None));
    assert_eq!(row.losses.len(), 1, "steps of the holder are lost");
    let loss = &row.losses[0];
    assert_eq!((&loss.attempt.worker, loss.cause), (&who, LossCause::Died));
    assert_eq!(loss.lost_at, world.now());
    let late = RunCommit { base: Base::Head(Seq(3)), ..world.turn_of(&turn) };
    assert_eq!(world.commit(&who, late).await, CommitAnswer::Fenced(vec![turn.claim]));
    let task = world.claim_one(&who).await;
    let ClaimedWork::Turn { losses, .. } = task.work else { panic!("a turn") };
    assert_eq!(losses, row.losses);
}

pub(crate) async fn an_operators_commit_leaves_the_turn_ready(world: &World) {
    let delay = Some(secs(50));
    let waiting = RunCommit { turn: TurnAfter::Want { delay }, ..world.start_of(world.new_run()) };
    let (late, idle, ready) = (waiting.run, world.begun([]).await, world.begun([]).await);
    done(world.commit(None, waiting).await);
    world.signal(ready, "s").await;
    for (run, head) in [(late, 1), (idle, 2), (ready, 2)] {
        let base = Base::Head(Seq(head));
        let aside = from_aside(world, run, TurnAfter::Release);
        done(world.commit(None, RunCommit { operator: true, base, ..aside }).await);
        let row = world.row(run, Place::TURN).await;
        assert_eq!((row.state, row.due_at, row.losses), (TaskState::Ready, None, vec![]));
    }
}

pub(crate) async fn an_operator_ends_a_run_that_is_held(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held(&who).await;
    let commit = RunCommit {
        operator: true,
        events: vec![completed()],
        summary: Some(summary(RunStatus::Terminated)),
        ..world.on(turn.run, Seq(2))
    };
    done(world.commit(None, commit).await);
    assert!(world.tasks(turn.run).await.is_empty());
    let late = RunCommit { base: Base::Head(Seq(3)), ..world.turn_of(&turn) };
    assert_eq!(world.commit(&who, late).await, CommitAnswer::Fenced(vec![turn.claim]));
}

pub(crate) async fn the_inbox_is_handed_out_in_bounded_parts(world: &World) {
    let who = world.worker("one").await;
    let run = world.begun([]).await;
    for n in 1..=250 {
        world.signal(run, &format!("s{n}")).await;
    }
    let task = world.claim_one(&who).await;
    let ClaimedWork::Turn { unread, .. } = task.work else { panic!("a turn") };
    let mut turn = Turn { run, head: Seq(2), claim: task.claim };
    let (mut unread, mut seen) = (unread, Vec::new());
    while let Some(last) = unread.last() {
        assert!(unread.len() <= 100, "a turn gets a bounded number");
        seen.extend(unread.iter().map(|entry| (entry.number, entry.id.clone())));
        let commit = RunCommit { inbox_used: last.number, ..world.turn_of(&turn) };
        let committed = done(world.commit(&who, commit).await);
        turn.head = committed.head;
        assert_eq!(committed.turn.is_some(), last.number < 250);
        unread = committed.unread;
    }
    let all: Vec<_> = (1..=250).map(|n| (n, format!("s{n}"))).collect();
    assert_eq!(seen, all);
    assert!(world.tasks(run).await.is_empty());
}

pub(crate) async fn what_is_used_up_stays_used_up(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held(&who).await;
    world.signal(turn.run, "a").await;
    world.signal(turn.run, "b").await;
    let commit = RunCommit { inbox_used: 2, turn: TurnAfter::Keep, ..world.turn_of(&turn) };
    done(world.commit(&who, commit).await);
    let next = Turn { head: Seq(3), ..turn };
    let commit = RunCommit { inbox_used: 1, ..world.turn_of(&next) };
    assert_eq!(done(world.commit(&who, commit).await).turn, None);
    let view = world.view(next.run).await;
    assert_eq!((view.inbox_last, view.inbox_used), (2, 2));
}

pub(crate) async fn after_a_commit_unread_entries_have_a_turn_row(world: &World) {
    let who = world.worker("one").await;
    let afters = [TurnAfter::Release, TurnAfter::Keep, TurnAfter::Return];
    for after in afters {
        let turn = world.held(&who).await;
        world.signal(turn.run, "s").await;
        let commit = RunCommit { turn: after.clone(), ..world.turn_of(&turn) };
        let kept = done(world.commit(&who, commit).await).turn;
        let row = world.row(turn.run, Place::TURN).await;
        let claimed = row.state == TaskState::Claimed;
        assert_eq!(claimed, kept.is_some(), "{after:?}");
        assert!(claimed || row.state == TaskState::Ready, "{after:?}: {row:?}");
    }
}

/// Only the holder's own fact lets a held run go on; a worker that was declared dead does not.
pub(crate) async fn a_run_is_held_until_the_claim_is_taken_back(world: &World) {
    let who: WorkerId = world.worker("one").await;
    let turn = world.held(&who).await;
    world.pass(secs(65));
    let aside = from_aside(world, turn.run, TurnAfter::Release);
    assert_eq!(world.commit(None, aside.clone()).await, CommitAnswer::Held);
    world.sweep().await;
    done(world.commit(None, aside).await);
}
