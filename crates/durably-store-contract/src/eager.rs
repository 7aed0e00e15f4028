//! Tasks that begin in the hands of whoever commits them.

use crate::sample::{
    FIRST, activity, completed, done, noted, pinned, puts, running, secs, signal, started, summary,
};
use crate::snapshot::assert_same;
use crate::world::{World, activities, turns};
use durably_kernel::{
    ActivityOptions, Claim, ClaimNumber, Fact, LossCause, Place, RunStatus, Seq, TaskPut,
    TaskState, TimeoutKind, WorkerId,
};
use durably_store::{
    BeatAnswer, ClaimedWork, CommitAnswer, Delivery, HandBack, NewRun, Returned, RunCommit,
    TurnAfter, WorkerStatus,
};
use futures_util::FutureExt;
use std::sync::Arc;

/// A start that decides its first turn: it puts one activity, and asks to begin it.
fn eager_start(world: &World, new: NewRun) -> RunCommit {
    let priority = new.identity.priority;
    let put = TaskPut { priority, ..activity(FIRST, "a", Seq(2)) };
    RunCommit {
        events: vec![started(), pinned()],
        summary: Some(running()),
        tasks: puts([put]),
        eager: [FIRST].into(),
        turn: TurnAfter::Release,
        ..world.start_of(new)
    }
}

/// The same of one that keeps the turn row instead.
fn keeping_start(world: &World, new: NewRun) -> RunCommit {
    RunCommit {
        events: vec![started(), pinned()],
        summary: Some(running()),
        turn: TurnAfter::Keep,
        ..world.start_of(new)
    }
}

fn with(world: &World, tenant: &str, priority: i32) -> NewRun {
    let mut new = world.new_for(tenant);
    new.identity.priority = priority;
    new
}

/// A run under way with one activity that waits.
async fn waits(world: &World, tenant: &str, priority: i32) {
    let put = TaskPut { priority, ..activity(FIRST, "waits", Seq(2)) };
    world.begun_as(with(world, tenant, priority), [put]).await;
}

/// Whether a start of that tenant and priority begins its activity at once.
async fn begins(world: &World, who: &WorkerId, tenant: &str, priority: i32) -> bool {
    let commit = eager_start(world, with(world, tenant, priority));
    let run = commit.run;
    let committed = done(world.commit(who, commit).await);
    let row = world.row(run, FIRST).await;
    let state = match committed.eager.is_empty() {
        true => TaskState::Ready,
        false => TaskState::Claimed,
    };
    assert_eq!((row.state, row.number), (state, committed.eager.len() as u64));
    // It is out of the way of what comes next.
    let end = RunCommit {
        events: vec![completed()],
        summary: Some(summary(RunStatus::Completed)),
        ..world.on(run, Seq(2))
    };
    done(world.commit(who, end).await);
    !committed.eager.is_empty()
}

/// Whether a start of that tenant and priority keeps its turn row.
async fn keeps(world: &World, who: &WorkerId, tenant: &str, priority: i32) -> bool {
    let commit = keeping_start(world, with(world, tenant, priority));
    let run = commit.run;
    let committed = done(world.commit(who, commit).await);
    let row = world.row(run, Place::TURN).await;
    let state = match committed.turn {
        None => TaskState::Ready,
        Some(_) => TaskState::Claimed,
    };
    assert_eq!((row.state, row.number), (state, u64::from(committed.turn.is_some())));
    let end = RunCommit {
        holder: committed.turn,
        events: vec![completed()],
        summary: Some(summary(RunStatus::Completed)),
        ..world.on(run, Seq(2))
    };
    done(world.commit(who, end).await);
    committed.turn.is_some()
}

pub(crate) async fn an_eager_task_begins_in_the_committers_hands(world: &World) {
    let who = world.worker("one").await;
    world.pass(secs(1));
    let commit = eager_start(world, world.new_run());
    let run = commit.run;
    let committed = done(world.commit(&who, commit).await);
    let claim = Claim { run, place: FIRST, seq: Seq(2), number: ClaimNumber(1) };
    assert_eq!(committed.eager, [claim]);
    let row = world.row(run, FIRST).await;
    assert_eq!((row.state, row.number, row.attempts), (TaskState::Claimed, 1, 1));
    let attempt = row.attempt.expect("a claimed row has an owner");
    assert_eq!((attempt.number, attempt.worker), (1, who.clone()));
    assert_eq!(attempt.started_at, world.now());
    assert!(world.claim(&who, 10).await.is_empty(), "nobody else gets it");
    assert_eq!(world.store.ask(who.clone()).await.unwrap().standing, [claim]);
    let result = RunCommit {
        claims: vec![claim],
        events: vec![noted("result")],
        summary: Some(running()),
        ..world.on(run, Seq(2))
    };
    done(world.commit(&who, result).await);
    assert!(world.tasks(run).await.is_empty());
}

pub(crate) async fn only_what_is_asked_for_begins(world: &World) {
    let who = world.worker("one").await;
    let second = Place(2);
    let puts = puts([FIRST, second].map(|place| activity(place, &format!("a{place}"), Seq(2))));
    let commit = RunCommit { tasks: puts, ..eager_start(world, world.new_run()) };
    let run = commit.run;
    let committed = done(world.commit(&who, commit).await);
    assert_eq!(committed.eager.iter().map(|claim| claim.place).collect::<Vec<_>>(), [FIRST]);
    assert_eq!(world.row(run, FIRST).await.state, TaskState::Claimed);
    assert_eq!(world.row(run, second).await.state, TaskState::Ready);
}

pub(crate) async fn an_eager_task_is_timed_by_its_options(world: &World) {
    let who = world.worker("one").await;
    for (options, timeout) in [
        (
            ActivityOptions { start_to_close: Some(secs(5)), ..ActivityOptions::default() },
            TimeoutKind::StartToClose,
        ),
        (
            ActivityOptions { heartbeat: Some(secs(5)), ..ActivityOptions::default() },
            TimeoutKind::Heartbeat,
        ),
    ] {
        let put = TaskPut { options: Some(Arc::new(options)), ..activity(FIRST, "a", Seq(2)) };
        let commit = RunCommit { tasks: puts([put]), ..eager_start(world, world.new_run()) };
        let run = commit.run;
        assert_eq!(done(world.commit(&who, commit).await).eager.len(), 1);
        world.pass(secs(4));
        let swept = world.sweep().await;
        assert_eq!((swept.delivered, swept.next_due), (0, Some(secs(1))));
        world.pass(secs(1));
        assert_eq!(world.sweep().await.delivered, 1);
        let unread = world.unread(run).await;
        let Fact::ActivityTimedOut { timeout: found, attempt, .. } = &unread[0].fact else {
            panic!("a time-out: {unread:?}");
        };
        assert_eq!((*found, attempt.as_ref().map(|attempt| attempt.number)), (timeout, Some(1)));
        world.claim_one(&who).await;
    }
}

pub(crate) async fn an_eager_task_gives_no_hint_that_something_is_ready(world: &World) {
    // A store that has just begun to listen to other processes gives a hint of everything, once.
    const TRIES: usize = 5;
    let who = world.worker("one").await;
    let mut listener = world.store.hints().listen();
    let mut quiet = false;
    for _ in 0..TRIES {
        let begun = done(world.commit(&who, eager_start(world, world.new_run())).await);
        assert_eq!(begun.eager.len(), 1);
        done(world.commit(&who, keeping_start(world, world.new_run())).await).turn.expect("kept");
        quiet |= listener.next().now_or_never().is_none_or(|heard| !heard.ready);
    }
    assert!(quiet);
    world.start(world.new_run()).await;
    assert!(listener.next().await.ready);
}

pub(crate) async fn another_tenant_that_waits_comes_first(world: &World) {
    let who = world.worker("one").await;
    assert!(begins(world, &who, "b", 0).await);
    waits(world, "b", 0).await;
    assert!(!begins(world, &who, "a", 0).await);
    assert!(!begins(world, &who, "c", 0).await);
    assert!(begins(world, &who, "b", 0).await, "its own tenant waits");
    waits(world, "c", 0).await;
    assert!(!begins(world, &who, "b", 0).await, "others wait behind its own");
    assert!(!begins(world, &who, "c", 0).await, "others wait before its own");
}

pub(crate) async fn a_higher_priority_that_waits_comes_first(world: &World) {
    let who = world.worker("one").await;
    waits(world, "a", 1).await;
    waits(world, "b", 0).await;
    assert!(!begins(world, &who, "a", 0).await, "of its own tenant as well");
    assert!(begins(world, &who, "a", 1).await, "a lower one of another tenant is no obstacle");
    assert!(!begins(world, &who, "b", 1).await);
    assert!(begins(world, &who, "b", 2).await);
}

pub(crate) async fn what_the_process_cannot_execute_is_no_obstacle(world: &World) {
    let mut registration = world.registration("one");
    registration.can.push(activities("other"));
    registration.queues.push("second".into());
    let who = registration.who.clone();
    let base = activity(FIRST, "waits", Seq(2));
    let elsewhere = TaskPut { queue: "third".into(), ..base.clone() };
    let unknown = TaskPut { name: "unknown".into(), ..base.clone() };
    world.begun_as(with(world, "z", 0), [elsewhere]).await;
    world.begun_as(with(world, "z", 0), [unknown]).await;
    world.start(with(world, "z", 9)).await;
    world.store.register(registration).await.unwrap();
    assert!(begins(world, &who, "a", 0).await, "nor is a turn");
    let other = TaskPut { name: "other".into(), queue: "second".into(), ..base };
    world.begun_as(with(world, "z", 0), [other]).await;
    assert!(!begins(world, &who, "a", 0).await, "any of its queues and types is");
}

pub(crate) async fn a_turn_is_kept_unless_another_has_a_better_right(world: &World) {
    let who = world.worker("one").await;
    waits(world, "z", 9).await;
    assert!(keeps(world, &who, "b", 0).await, "activities are no obstacle");
    let mut foreign = with(world, "z", 9);
    foreign.workflow_type = "unknown".into();
    world.start(foreign).await;
    let mut foreign = with(world, "z", 9);
    foreign.version = Some(2);
    world.start(foreign).await;
    assert!(keeps(world, &who, "b", 0).await, "nor what it cannot decide");
    let begun = world.begun_as(with(world, "b", 0), []).await;
    world.signal(begun, "s").await;
    assert!(keeps(world, &who, "b", 0).await, "its own tenant waits");
    assert!(!keeps(world, &who, "a", 0).await);
    assert!(!keeps(world, &who, "c", 0).await);
    assert!(keeps(world, &who, "a", 1).await);
    let mut new = with(world, "c", 0);
    new.version = Some(1);
    world.start(new).await;
    assert!(!keeps(world, &who, "b", 0).await, "a new run of another tenant waits");
    world.start(with(world, "b", 1)).await;
    assert!(!keeps(world, &who, "a", 1).await, "only a new run waits with that priority");
    assert!(keeps(world, &who, "b", 1).await);
}

pub(crate) async fn a_non_holder_keeps_by_the_same_rule(world: &World) {
    let who = world.worker("one").await;
    let aside = |run| RunCommit {
        events: vec![noted("aside")],
        summary: Some(running()),
        turn: TurnAfter::Keep,
        ..world.on(run, Seq(2))
    };
    let free = world.begun([]).await;
    let claim = done(world.commit(&who, aside(free)).await).turn.expect("nothing waits");
    assert_eq!((claim.seq, claim.number), (Seq(1), ClaimNumber(1)));
    let refused = world.begun([]).await;
    world.start(world.new_for("other")).await;
    assert_eq!(done(world.commit(&who, aside(refused)).await).turn, None);
    assert_eq!(world.row(refused, Place::TURN).await.state, TaskState::Ready);
}

pub(crate) async fn who_is_not_active_begins_nothing(world: &World) {
    let drains = world.worker("drains").await;
    let left = world.worker("left").await;
    let stale = world.worker("stale").await;
    world.pass(secs(61));
    world.sweep().await;
    let drains_now = world.worker("drains now").await;
    world.store.drain(drains_now.clone()).await.unwrap();
    let left_now = world.worker("left now").await;
    world.store.leave(left_now.clone()).await.unwrap();
    let rows = world.store.workers().await.unwrap();
    let stale_rows = rows.iter().filter(|row| row.status == WorkerStatus::Stale);
    assert_eq!(stale_rows.count(), 3);
    for who in [drains, left, stale, drains_now, left_now, "unknown".into()] {
        assert!(!begins(world, &who, "a", 0).await, "{who}");
        assert!(!keeps(world, &who, "a", 0).await, "{who}");
    }
    let committed = done(world.commit(None, eager_start(world, world.new_run())).await);
    assert_eq!(committed.eager, []);
}

pub(crate) async fn an_eager_task_with_a_delay_waits(world: &World) {
    let who = world.worker("one").await;
    let put = TaskPut { delay: Some(secs(5)), ..activity(FIRST, "a", Seq(2)) };
    let commit = RunCommit { tasks: puts([put]), ..eager_start(world, world.new_run()) };
    let run = commit.run;
    assert_eq!(done(world.commit(&who, commit).await).eager, []);
    let row = world.row(run, FIRST).await;
    assert_eq!((row.state, row.number), (TaskState::Waiting, 0));
    let put = TaskPut { delay: Some(secs(0)), ..activity(FIRST, "a", Seq(2)) };
    let commit = RunCommit { tasks: puts([put]), ..eager_start(world, world.new_run()) };
    assert_eq!(done(world.commit(&who, commit).await).eager.len(), 1, "no time at all");
}

pub(crate) async fn what_waits_is_judged_as_the_batch_begins(world: &World) {
    let who = world.worker("one").await;
    let waits = RunCommit { eager: [].into(), ..eager_start(world, world.new_for("a")) };
    let batch = vec![waits, eager_start(world, world.new_for("b"))];
    let answers = world.commit_all(&who, batch).await;
    let begun: Vec<_> = answers.into_iter().map(|answer| done(answer).eager.len()).collect();
    assert_eq!(begun, [0, 1]);
    let batch = vec![eager_start(world, world.new_for("b"))];
    let mut answers = world.commit_all(&who, batch).await;
    assert_eq!(done(answers.remove(0)).eager, []);
}

pub(crate) async fn a_place_put_anew_fences_the_claim_before(world: &World) {
    let who = world.worker("one").await;
    let commit = eager_start(world, world.new_run());
    let run = commit.run;
    let mut claim = done(world.commit(&who, commit).await).eager[0];
    for head in 2..5 {
        let step = RunCommit {
            claims: vec![claim],
            events: vec![noted("step")],
            tasks: puts([activity(FIRST, "a", Seq(head + 1))]),
            eager: [FIRST].into(),
            summary: Some(running()),
            ..world.on(run, Seq(head))
        };
        let committed = done(world.commit(&who, step.clone()).await);
        let next = Claim { seq: Seq(head + 1), number: claim.number.next(), ..claim };
        assert_eq!(committed.eager, [next]);
        let row = world.row(run, FIRST).await;
        assert_eq!((row.state, row.attempts), (TaskState::Claimed, 1));
        let before = world.snapshot().await;
        let stale = RunCommit { id: world.commit_id(), ..world.on(run, Seq(head + 1)) };
        let stale = RunCommit { claims: vec![claim], events: vec![noted("stale")], ..stale };
        assert_eq!(world.commit(&who, stale).await, CommitAnswer::Fenced(vec![claim]));
        assert_eq!(world.commit(&who, step).await, CommitAnswer::Fenced(vec![claim]));
        assert_same(&before, &world.snapshot().await);
        claim = next;
    }
}

pub(crate) async fn a_row_that_is_written_over_counts_its_claims_on(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    let working = world.working(&other).await;
    let back = HandBack { claim: working.task.claim, how: Returned::Unstarted };
    world.store.hand_back(other, vec![back]).await.unwrap();
    let over = RunCommit {
        events: vec![noted("over")],
        tasks: puts([activity(FIRST, "b", Seq(3))]),
        eager: [FIRST].into(),
        summary: Some(running()),
        ..world.on(working.run, Seq(2))
    };
    let committed = done(world.commit(&who, over).await);
    let claim = Claim { run: working.run, place: FIRST, seq: Seq(3), number: ClaimNumber(2) };
    assert_eq!(committed.eager, [claim]);
    let row = world.row(working.run, FIRST).await;
    assert_eq!((row.seq, row.number, row.attempts), (Seq(3), 2, 1));
}

pub(crate) async fn an_eager_claim_whose_answer_was_lost_goes_back(world: &World) {
    let who = world.worker("one").await;
    let commit = eager_start(world, world.new_run());
    let run = commit.run;
    let claim = done(world.commit(&who, commit).await).eager[0];
    for _ in 0..2 {
        let BeatAnswer::Alive { unnamed, .. } = world.beat(&who, &[]).await else {
            panic!("alive");
        };
        assert_eq!(unnamed.iter().map(|task| task.claim).collect::<Vec<_>>(), [claim]);
        let ClaimedWork::Activity(work) = &unnamed[0].work else { panic!("an activity") };
        assert_eq!((work.id.as_str(), work.attempt.number), ("a", 1));
    }
    let BeatAnswer::Alive { unnamed, .. } = world.beat(&who, &[]).await else { panic!("alive") };
    assert_eq!(unnamed, []);
    let row = world.row(run, FIRST).await;
    assert_eq!((row.state, row.number, row.attempts), (TaskState::Ready, 1, 0));
    assert_eq!(row.losses, []);
    assert_eq!(world.claim_one(&who).await.claim.number, ClaimNumber(2));
}

pub(crate) async fn an_eager_claim_of_a_dead_process_returns(world: &World) {
    let who = world.worker("one").await;
    let commit = eager_start(world, world.new_run());
    let run = commit.run;
    assert_eq!(done(world.commit(&who, commit).await).eager.len(), 1);
    let begun = world.now();
    world.pass(secs(61));
    let swept = world.sweep().await;
    assert_eq!((swept.dead, swept.returned, swept.ready), (1, 1, 1));
    let row = world.row(run, FIRST).await;
    assert_eq!((row.state, row.attempts), (TaskState::Ready, 1));
    assert_eq!(row.losses.len(), 1);
    let loss = &row.losses[0];
    assert_eq!((loss.cause, loss.attempt.number), (LossCause::Died, 1));
    assert_eq!((loss.attempt.worker.clone(), loss.attempt.started_at), (who, begun));
}

pub(crate) async fn a_repeat_claims_nothing_again(world: &World) {
    let who = world.worker("one").await;
    let start = eager_start(world, world.new_run());
    let run = start.run;
    let claim = done(world.commit(&who, start.clone()).await).eager[0];
    let before = world.snapshot().await;
    let answer = world.commit(&who, start.clone()).await;
    assert_eq!(answer, CommitAnswer::Exists { run, same: true });
    assert_same(&before, &world.snapshot().await);
    assert!(world.store.look_up(run, start.id).await.unwrap());
    let step = RunCommit {
        events: vec![noted("step")],
        tasks: puts([activity(Place(2), "b", Seq(3))]),
        eager: [Place(2)].into(),
        summary: Some(running()),
        ..world.on(run, Seq(2))
    };
    let second = done(world.commit(&who, step.clone()).await).eager[0];
    let before = world.snapshot().await;
    assert_eq!(world.commit(&who, step).await, CommitAnswer::Conflict);
    assert_same(&before, &world.snapshot().await);
    assert_eq!(world.store.ask(who).await.unwrap().standing, [claim, second]);
}

pub(crate) async fn a_start_may_end_at_once(world: &World) {
    let who = world.worker("one").await;
    let commit = RunCommit {
        events: vec![started(), pinned(), completed()],
        summary: Some(summary(RunStatus::Completed)),
        ..eager_start(world, world.new_run())
    };
    let run = commit.run;
    let committed = done(world.commit(&who, commit).await);
    assert_eq!((committed.head, committed.turn, committed.eager), (Seq(3), None, vec![]));
    assert!(world.tasks(run).await.is_empty(), "nothing of an ended run begins");
    let view = world.view(run).await;
    assert_eq!((view.status, view.version), (RunStatus::Completed, Some(1)));
    let now = Some(world.now());
    assert_eq!((view.created_at, view.started_at, view.ended_at), (world.now(), now, now));
    assert!(world.claim(&who, 10).await.is_empty());
}

pub(crate) async fn a_decided_start_may_deliver_to_itself(world: &World) {
    let who = world.worker("one").await;
    for (turn, holds) in
        [(TurnAfter::Release, false), (TurnAfter::Keep, true), (TurnAfter::Return, false)]
    {
        let mut commit = RunCommit { turn, ..eager_start(world, world.new_run()) };
        let run = commit.run;
        let fact = signal("s");
        commit.deliveries.push(Delivery { run, id: "s".into(), fact, claim: None });
        let committed = done(world.commit(&who, commit).await);
        assert_eq!(committed.eager.len(), 1);
        assert_eq!((committed.turn.is_some(), committed.unread.len()), (holds, usize::from(holds)));
        let row = world.row(run, Place::TURN).await;
        let state = if holds { TaskState::Claimed } else { TaskState::Ready };
        assert_eq!(row.state, state);
        assert_eq!(world.unread(run).await.len(), 1);
        let tasks = world.claim(&who, 10).await;
        assert_eq!(tasks.len(), usize::from(!holds), "the turn row, if it is free");
    }
    let mut ends = RunCommit {
        events: vec![started(), pinned(), completed()],
        summary: Some(summary(RunStatus::Completed)),
        ..eager_start(world, world.new_run())
    };
    let run = ends.run;
    ends.deliveries.push(Delivery { run, id: "s".into(), fact: signal("s"), claim: None });
    done(world.commit(&who, ends).await);
    assert_eq!(world.view(run).await.inbox_last, 0, "a run that has ended gets nothing");
}

pub(crate) async fn a_process_may_decide_turns_without_any_activity(world: &World) {
    let mut registration = world.registration("one");
    registration.can = vec![turns(crate::sample::ORDER, 1)];
    let who = registration.who.clone();
    world.store.register(registration).await.unwrap();
    waits(world, "z", 9).await;
    assert!(begins(world, &who, "a", 0).await, "nothing that waits is for it");
    assert!(keeps(world, &who, "a", 0).await);
}
