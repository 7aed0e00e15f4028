//! Starts of runs.

use crate::sample::{FIRST, done, json, pinned, puts, running, secs, signal, started, timer};
use crate::world::World;
use durably_kernel::{Place, RunStatus, Seq, TaskKind, TaskState, Waits};
use durably_store::{ClaimedWork, Delivery, RunCommit, TurnAfter};

pub(crate) async fn a_start_makes_a_run_and_a_ready_turn(world: &World) {
    let mut new = world.new_run();
    new.attributes = Some(json(r#"{"city":"Ulm"}"#));
    let run = world.start(new.clone()).await;
    let view = world.view(run).await;
    assert_eq!(view.identity, new.identity);
    assert_eq!(view.workflow_type, new.workflow_type);
    assert_eq!(view.version, None);
    assert_eq!(view.attributes, new.attributes);
    assert_eq!((view.head, view.status), (Seq(1), RunStatus::Pending));
    assert_eq!((view.waits, view.retries), (Waits::Any, 0));
    assert_eq!((view.inbox_last, view.inbox_used), (0, 0));
    assert_eq!((view.parked, view.last_error), (None, None));
    assert_eq!((view.created_at, view.started_at, view.ended_at), (world.now(), None, None));
    assert_eq!(world.events(run).await, [started()]);
    let rows = world.tasks(run).await;
    assert_eq!(rows.len(), 1);
    let turn = &rows[0];
    assert_eq!(
        (turn.place, turn.kind, turn.state),
        (Place::TURN, TaskKind::Turn, TaskState::Ready)
    );
    assert_eq!((turn.seq, turn.number, turn.due_at), (Seq(1), 0, None));
    assert_eq!((turn.attempt.clone(), turn.attempts), (None, 0));
}

pub(crate) async fn the_first_turn_comes_with_event_1(world: &World) {
    let who = world.worker("one").await;
    let run = world.start(world.new_run()).await;
    let task = world.claim_one(&who).await;
    assert_eq!(task.run.identity.id, run);
    let ClaimedWork::Turn { unread, first, losses } = task.work else {
        panic!("a turn: {task:?}");
    };
    assert_eq!(first.as_deref(), Some(&started()));
    assert!(unread.is_empty() && losses.is_empty());
}

pub(crate) async fn a_start_with_its_first_turn_is_one_commit(world: &World) {
    let who = world.worker("one").await;
    let commit = RunCommit {
        events: vec![started(), pinned()],
        summary: Some(running()),
        tasks: puts([timer(FIRST, "t", Seq(2), secs(5))]),
        turn: TurnAfter::Release,
        ..world.start_of(world.new_run())
    };
    let run = commit.run;
    world.pass(secs(1));
    let committed = done(world.commit(&who, commit).await);
    assert_eq!((committed.head, committed.turn, committed.unread), (Seq(2), None, vec![]));
    assert_eq!(committed.now, world.now());
    let view = world.view(run).await;
    assert_eq!((view.status, view.version), (RunStatus::Running, Some(1)));
    assert_eq!(view.started_at, Some(world.now()));
    assert!(world.task(run, Place::TURN).await.is_none(), "nothing to do for a turn");
    assert_eq!(world.row(run, FIRST).await.due_at, Some(world.now().after(secs(5))));
}

pub(crate) async fn an_eager_start_keeps_the_turn(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held(&who).await;
    assert_eq!((turn.claim.run, turn.claim.place), (turn.run, Place::TURN));
    let row = world.row(turn.run, Place::TURN).await;
    assert_eq!((row.state, row.seq, row.number), (TaskState::Claimed, turn.claim.seq, 1));
    let attempt = row.attempt.expect("a claimed row has an owner");
    assert_eq!((attempt.worker, attempt.started_at), (who, world.now()));
}

pub(crate) async fn a_delayed_start_is_not_claimed_before_its_time(world: &World) {
    let who = world.worker("one").await;
    let turn = TurnAfter::Want { delay: Some(secs(10)) };
    let commit = RunCommit { turn, ..world.start_of(world.new_run()) };
    let run = commit.run;
    done(world.commit(None, commit).await);
    let row = world.row(run, Place::TURN).await;
    assert_eq!((row.state, row.due_at), (TaskState::Waiting, Some(world.now().after(secs(10)))));
    world.pass(secs(9));
    assert_eq!(world.sweep().await.ready, 0);
    assert!(world.claim(&who, 1).await.is_empty());
    world.pass(secs(1));
    assert_eq!(world.sweep().await.ready, 1);
    let row = world.row(run, Place::TURN).await;
    assert_eq!((row.state, row.due_at), (TaskState::Ready, None));
    assert_eq!(world.claim_one(&who).await.claim.run, run);
}

pub(crate) async fn a_start_delayed_by_nothing_is_ready(world: &World) {
    let turn = TurnAfter::Want { delay: Some(secs(0)) };
    let commit = RunCommit { turn, ..world.start_of(world.new_run()) };
    let run = commit.run;
    done(world.commit(None, commit).await);
    assert_eq!(world.row(run, Place::TURN).await.state, TaskState::Ready);
}

pub(crate) async fn a_signal_with_the_start_is_in_the_inbox(world: &World) {
    let who = world.worker("one").await;
    let mut commit = world.start_of(world.new_run());
    let run = commit.run;
    let delivery = Delivery { run, id: "s".into(), fact: signal("s"), claim: None };
    commit.deliveries.push(delivery);
    done(world.commit(None, commit).await);
    assert_eq!(world.tasks(run).await.len(), 1, "one turn row");
    let task = world.claim_one(&who).await;
    assert_eq!((task.run.inbox_last, task.run.inbox_used), (1, 0));
    let ClaimedWork::Turn { unread, .. } = task.work else { panic!("a turn") };
    assert_eq!((unread.len(), unread[0].number, unread[0].id.as_str()), (1, 1, "s"));
}

pub(crate) async fn a_batch_starts_many(world: &World) {
    let batch: Vec<_> = (0..50).map(|_| world.start_of(world.new_run())).collect();
    let runs: Vec<_> = batch.iter().map(|commit| commit.run).collect();
    for answer in world.commit_all(None, batch).await {
        assert_eq!(done(answer).head, Seq(1));
    }
    for run in runs {
        assert_eq!(world.row(run, Place::TURN).await.state, TaskState::Ready);
    }
}

pub(crate) async fn a_version_that_was_asked_for_is_kept(world: &World) {
    let mut new = world.new_run();
    new.version = Some(3);
    let run = world.start(new).await;
    let view = world.view(run).await;
    assert_eq!((view.version, view.status), (Some(3), RunStatus::Pending));
}
