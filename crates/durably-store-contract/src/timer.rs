//! Rows with a time: what is due becomes ready or an inbox entry, once.

use crate::sample::{FIRST, activity, done, noted, puts, retry, secs, timeout, timer};
use crate::snapshot::assert_same;
use crate::world::{Working, World};
use durably_kernel::{Fact, Place, Seq, TaskChange, TaskPut, TaskState, TimeoutKind, WorkerId};
use durably_store::{ClaimedWork, Delivered, HandBack, Returned, RunCommit, SweepCall, TurnAfter};
use std::time::Duration;

const MILLI: Duration = Duration::from_millis(1);

pub(crate) async fn a_timer_fires_once_and_not_before_its_time(world: &World) {
    let run = world.begun([timer(FIRST, "t", Seq(2), secs(10))]).await;
    world.pass(secs(10) - MILLI);
    let before = world.snapshot().await;
    let swept = world.sweep().await;
    assert_eq!((swept.delivered, swept.next_due), (0, Some(MILLI)));
    assert_same(&before, &world.snapshot().await);
    world.pass(MILLI);
    let swept = world.sweep().await;
    assert_eq!((swept.delivered, swept.ready, swept.returned, swept.dead), (1, 0, 0, 0));
    let unread = world.unread(run).await;
    assert_eq!(unread.len(), 1);
    assert_eq!(unread[0].fact, Fact::TimerFired { timer_id: "t".into(), seq: Seq(2) });
    let rows = world.tasks(run).await;
    assert_eq!(rows.len(), 1, "the timer's row is gone");
    assert_eq!((rows[0].place, rows[0].state), (Place::TURN, TaskState::Ready));
    let before = world.snapshot().await;
    world.pass(secs(100));
    assert_eq!(world.sweep().await.delivered, 0);
    assert_same(&before, &world.snapshot().await);
}

pub(crate) async fn a_backoff_becomes_an_entry(world: &World) {
    let run = world.begun([retry(FIRST, "step", Seq(2), secs(3))]).await;
    world.pass(secs(3));
    assert_eq!(world.sweep().await.delivered, 1);
    let unread = world.unread(run).await;
    assert_eq!(unread[0].fact, Fact::RetryDue { activity_id: "step".into(), seq: Seq(2) });
    assert!(world.task(run, FIRST).await.is_none());
}

pub(crate) async fn an_activity_in_backoff_becomes_ready(world: &World) {
    let who = world.worker("one").await;
    let put = TaskPut { delay: Some(secs(3)), attempt: 2, ..activity(FIRST, "a", Seq(2)) };
    let run = world.begun([put]).await;
    world.pass(secs(3));
    let swept = world.sweep().await;
    assert_eq!((swept.ready, swept.delivered, swept.next_due), (1, 0, None));
    let row = world.row(run, FIRST).await;
    assert_eq!((row.state, row.due_at, row.attempts), (TaskState::Ready, None, 2));
    let ClaimedWork::Activity(work) = world.claim_one(&who).await.work else { panic!() };
    assert_eq!(work.attempt.number, 3);
}

pub(crate) async fn a_timer_that_was_deleted_never_fires(world: &World) {
    let run = world.begun([timer(FIRST, "t", Seq(2), secs(3))]).await;
    let tasks = [(FIRST, TaskChange::Delete(FIRST))].into();
    let commit = RunCommit { events: vec![noted("x")], tasks, ..world.on(run, Seq(2)) };
    done(world.commit(None, commit).await);
    world.pass(secs(3));
    assert_eq!(world.sweep().await, durably_store::Swept::default());
    assert_eq!(world.unread(run).await, []);
}

pub(crate) async fn the_same_timer_id_fires_again_when_it_was_started_again(world: &World) {
    let run = world.begun([timer(FIRST, "t", Seq(2), secs(1))]).await;
    world.pass(secs(1));
    world.sweep().await;
    let commit = RunCommit {
        events: vec![noted("x")],
        tasks: puts([timer(FIRST, "t", Seq(3), secs(1))]),
        ..world.on(run, Seq(2))
    };
    done(world.commit(None, commit).await);
    world.pass(secs(1));
    assert_eq!(world.sweep().await.delivered, 1);
    let unread = world.unread(run).await;
    assert_eq!(unread.len(), 2);
    assert_eq!(unread[1].fact, Fact::TimerFired { timer_id: "t".into(), seq: Seq(3) });
}

pub(crate) async fn a_timer_of_a_held_run_leaves_it_held(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held_with(&who, [timer(FIRST, "t", Seq(2), secs(1))]).await;
    let before = world.row(turn.run, Place::TURN).await;
    world.pass(secs(1));
    world.sweep().await;
    assert_eq!(world.row(turn.run, Place::TURN).await, before);
    assert_eq!(world.unread(turn.run).await.len(), 1);
}

pub(crate) async fn a_timer_does_not_make_a_waiting_turn_ready(world: &World) {
    let commit = RunCommit {
        tasks: puts([timer(FIRST, "t", Seq(1), secs(1))]),
        turn: TurnAfter::Want { delay: Some(secs(100)) },
        ..world.start_of(world.new_run())
    };
    let run = commit.run;
    done(world.commit(None, commit).await);
    let before = world.row(run, Place::TURN).await;
    world.pass(secs(1));
    assert_eq!(world.sweep().await.delivered, 1);
    assert_eq!(world.row(run, Place::TURN).await, before);
}

pub(crate) async fn a_sweep_is_bounded_and_says_that_more_is_due(world: &World) {
    let rows = (1..=7).map(|n| timer(Place(n), &format!("t{n}"), Seq(2), secs(10 - u64::from(n))));
    let run = world.begun(rows).await;
    world.pass(secs(10));
    let call = SweepCall { most: 3, ..world.sweep_call() };
    let mut counts = Vec::new();
    loop {
        let swept = world.store.sweep(call.clone()).await.unwrap();
        counts.push(swept.delivered);
        if swept.next_due.is_none() {
            break;
        }
        assert_eq!(swept.next_due, Some(Duration::ZERO), "the bound was reached");
    }
    assert_eq!(counts, [3, 3, 1]);
    let fired: Vec<String> = world
        .unread(run)
        .await
        .into_iter()
        .map(|entry| match entry.fact {
            Fact::TimerFired { timer_id, .. } => timer_id.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(fired, ["t7", "t6", "t5", "t4", "t3", "t2", "t1"], "the longest due first");
}

pub(crate) async fn a_sweep_says_when_the_next_thing_is_due(world: &World) {
    assert_eq!(world.sweep().await.next_due, None);
    let who = world.worker("one").await;
    world.begun([timer(FIRST, "t", Seq(2), secs(900))]).await;
    assert_eq!(world.sweep().await.next_due, Some(secs(900)));
    let working = world.working(&who).await;
    assert_eq!(world.sweep().await.next_due, Some(secs(600)), "the attempt's deadline");
    world.pass(secs(1));
    let turn = world.held(&who).await;
    assert_eq!(world.sweep().await.next_due, Some(secs(70)), "the turn row's deadline");
    world.begun([timer(FIRST, "t", Seq(2), secs(5))]).await;
    assert_eq!(world.sweep().await.next_due, Some(secs(5)));
    world.pass(secs(5));
    assert_eq!(world.sweep().await.next_due, Some(secs(65)));
    done(world.commit(&who, world.turn_of(&turn)).await);
    assert_eq!(world.sweep().await.next_due, Some(secs(594)));
    done(world.commit(&who, world.result_of(&working)).await);
    assert_eq!(world.sweep().await.next_due, Some(secs(894)));
}

pub(crate) async fn a_run_times_out_once(world: &World) {
    let put = TaskPut {
        watched: None,
        target: "".into(),
        ..timeout(TimeoutKind::Run, &activity(FIRST, "", Seq(1)), FIRST, secs(60))
    };
    let commit = RunCommit { tasks: puts([put]), ..world.start_of(world.new_run()) };
    let run = commit.run;
    done(world.commit(None, commit).await);
    world.pass(secs(60));
    assert_eq!(world.sweep().await.delivered, 1);
    assert_eq!(world.unread(run).await[0].fact, Fact::RunTimedOut {});
    assert!(world.task(run, FIRST).await.is_none());
    world.pass(secs(60));
    assert_eq!(world.sweep().await.delivered, 0);
}

/// A run with an activity at place 1 and a time-out of it at place 2, due in ten seconds.
async fn watched(world: &World, kind: TimeoutKind, put: TaskPut) -> durably_kernel::RunId {
    let watch = timeout(kind, &put, Place(2), secs(10));
    world.begun([put, watch]).await
}

fn timed_out(fact: &Fact) -> (TimeoutKind, Option<u32>, usize) {
    match fact {
        Fact::ActivityTimedOut { activity_id, seq, timeout, attempt, losses, .. } => {
            assert_eq!((activity_id.as_str(), *seq), ("a", Seq(2)));
            (*timeout, attempt.as_ref().map(|attempt| attempt.number), losses.len())
        }
        other => panic!("a time-out: {other:?}"),
    }
}

pub(crate) async fn schedule_to_start_passes_where_nobody_began(world: &World) {
    let kind = TimeoutKind::ScheduleToStart;
    let run = watched(world, kind, activity(FIRST, "a", Seq(2))).await;
    world.pass(secs(10));
    assert_eq!(world.sweep().await.delivered, 1);
    let unread = world.unread(run).await;
    assert_eq!(timed_out(&unread[0].fact), (kind, None, 0));
    let rows = world.tasks(run).await;
    assert_eq!(rows.len(), 1, "activity and time-out are gone: {rows:?}");
    assert_eq!(rows[0].place, Place::TURN);
}

pub(crate) async fn schedule_to_start_is_met_by_a_claim(world: &World) {
    let who = world.worker("one").await;
    let kind = TimeoutKind::ScheduleToStart;
    let run = watched(world, kind, activity(FIRST, "a", Seq(2))).await;
    world.claim_one(&who).await;
    world.pass(secs(10));
    assert_eq!(world.sweep().await.delivered, 0);
    let rows = world.tasks(run).await;
    assert_eq!(rows.len(), 1, "only the time-out is gone: {rows:?}");
    assert_eq!((rows[0].place, rows[0].state), (FIRST, TaskState::Claimed));
}

pub(crate) async fn schedule_to_start_is_met_by_an_attempt_that_was_lost(world: &World) {
    let who = world.worker("one").await;
    let kind = TimeoutKind::ScheduleToStart;
    let run = watched(world, kind, activity(FIRST, "a", Seq(2))).await;
    hand_back(world, &who, Returned::Stopped).await;
    world.pass(secs(10));
    assert_eq!(world.sweep().await.delivered, 0);
    assert_eq!(world.row(run, FIRST).await.state, TaskState::Ready);
}

pub(crate) async fn schedule_to_start_passes_where_nothing_was_begun(world: &World) {
    let who = world.worker("one").await;
    let kind = TimeoutKind::ScheduleToStart;
    let run = watched(world, kind, activity(FIRST, "a", Seq(2))).await;
    hand_back(world, &who, Returned::Unstarted).await;
    world.pass(secs(10));
    assert_eq!(world.sweep().await.delivered, 1);
    assert_eq!(timed_out(&world.unread(run).await[0].fact), (kind, None, 0));
}

async fn hand_back(world: &World, who: &WorkerId, how: Returned) {
    let task = world.claim_one(who).await;
    let back = vec![HandBack { claim: task.claim, how }];
    world.store.hand_back(who.clone(), back).await.unwrap();
}

pub(crate) async fn schedule_to_close_takes_the_row_whatever_its_state(world: &World) {
    let who = world.worker("one").await;
    let kind = TimeoutKind::ScheduleToClose;
    let ready = watched(world, kind, activity(FIRST, "a", Seq(2))).await;
    hand_back(world, &who, Returned::Stopped).await;
    let waits = TaskPut { delay: Some(secs(99)), ..activity(FIRST, "a", Seq(2)) };
    let waiting = watched(world, kind, waits).await;
    let other = world.worker("two").await;
    assert_eq!(world.claim_one(&other).await.claim.run, ready);
    let claimed = ready;
    let idle = watched(world, kind, activity(FIRST, "a", Seq(2))).await;
    world.pass(secs(10));
    assert_eq!(world.sweep().await.delivered, 3);
    for (run, expected) in
        [(claimed, (kind, Some(2), 1)), (waiting, (kind, None, 0)), (idle, (kind, None, 0))]
    {
        let rows = world.tasks(run).await;
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(timed_out(&world.unread(run).await[0].fact), expected);
    }
}

pub(crate) async fn schedule_to_close_ends_the_claim(world: &World) {
    let who = world.worker("one").await;
    let run = watched(world, TimeoutKind::ScheduleToClose, activity(FIRST, "a", Seq(2))).await;
    let working = Working { run, head: Seq(2), task: world.claim_one(&who).await };
    world.pass(secs(10));
    world.sweep().await;
    let answer = world.commit(&who, world.result_of(&working)).await;
    assert_eq!(answer, durably_store::CommitAnswer::Fenced(vec![working.task.claim]));
    let late = world.outcome_of(&who, &working);
    assert_eq!(world.deliver_one(late).await, Delivered::Fenced);
}

pub(crate) async fn schedule_to_close_passes_also_while_an_outcome_waits(world: &World) {
    let who = world.worker("one").await;
    let kind = TimeoutKind::ScheduleToClose;
    let run = watched(world, kind, activity(FIRST, "a", Seq(2))).await;
    let working = Working { run, head: Seq(2), task: world.claim_one(&who).await };
    world.deliver_one(world.outcome_of(&who, &working)).await;
    world.pass(secs(10));
    assert_eq!(world.sweep().await.delivered, 1);
    let unread = world.unread(run).await;
    assert_eq!(
        timed_out(&unread[1].fact),
        (kind, None, 0),
        "behind the outcome: it comes too late"
    );
}

pub(crate) async fn both_time_outs_of_an_activity_may_be_due_at_once(world: &World) {
    let put = activity(FIRST, "a", Seq(2));
    let start = timeout(TimeoutKind::ScheduleToStart, &put, Place(2), secs(5));
    let close = timeout(TimeoutKind::ScheduleToClose, &put, Place(3), secs(10));
    let run = world.begun([put, start, close]).await;
    world.pass(secs(10));
    assert_eq!(world.sweep().await.delivered, 2);
    let kinds: Vec<_> =
        world.unread(run).await.iter().map(|entry| timed_out(&entry.fact).0).collect();
    assert_eq!(kinds, [TimeoutKind::ScheduleToStart, TimeoutKind::ScheduleToClose]);
    assert_eq!(world.tasks(run).await.len(), 1);
}

pub(crate) async fn a_clock_that_stands_still_delivers_nothing_twice(world: &World) {
    let run = world.begun([timer(FIRST, "t", Seq(2), secs(0))]).await;
    assert_eq!(world.row(run, FIRST).await.state, TaskState::Waiting, "a timer is never ready");
    for expected in [1, 0, 0] {
        assert_eq!(world.sweep().await.delivered, expected);
    }
    assert_eq!(world.unread(run).await.len(), 1);
}

pub(crate) async fn a_clock_that_is_set_back_fires_nothing_early_or_twice(world: &World) {
    let hour = secs(3600);
    world.pass(hour);
    let early = world.begun([timer(FIRST, "t", Seq(2), secs(10))]).await;
    let due = world.now().after(secs(10));
    world.pass(secs(10));
    assert_eq!(world.sweep().await.delivered, 1);
    let late = world.begun([timer(FIRST, "t", Seq(2), secs(10))]).await;
    world.clock.set(World::START);
    let soon = world.begun([timer(FIRST, "t", Seq(2), secs(10))]).await;
    assert_eq!(world.sweep().await.delivered, 0, "nothing is due, and nothing fires again");
    world.pass(secs(10));
    assert_eq!(world.sweep().await.delivered, 1, "what was started since goes by the new time");
    assert_eq!(world.unread(soon).await.len(), 1);
    world.clock.set(due.after(secs(10)));
    assert_eq!(world.sweep().await.delivered, 1);
    assert_eq!((world.unread(early).await.len(), world.unread(late).await.len()), (1, 1));
}

pub(crate) async fn very_long_delays_are_kept(world: &World) {
    let years = Duration::from_secs(100 * 366 * 24 * 60 * 60);
    let run = world.begun([timer(FIRST, "t", Seq(2), years)]).await;
    assert_eq!(world.row(run, FIRST).await.due_at, Some(world.now().after(years)));
    assert_eq!(world.sweep().await.next_due, Some(years));
    world.pass(years);
    assert_eq!(world.sweep().await.delivered, 1);
}
