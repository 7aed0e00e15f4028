//! Changes of runs: whole or not at all.

use crate::sample::{
    FIRST, activity, completed, done, noted, puts, running, secs, signal, summary, timer,
};
use crate::snapshot::assert_same;
use crate::world::World;
use durably_kernel::{
    ClaimNumber, Event, Failure, FailureKind, LastError, Place, RunStatus, Seq, Summary,
    TaskChange, TaskState, Waits,
};
use durably_store::{CommitAnswer, Delivery, RunCommit, TurnAfter};
use futures_util::FutureExt;
use std::collections::BTreeMap;

pub(crate) async fn events_are_numbered_without_gaps(world: &World) {
    let run = world.begun([]).await;
    let first = world.now();
    world.pass(secs(1));
    let events = vec![noted("c"), noted("d"), noted("e")];
    let commit = RunCommit { events, ..world.on(run, Seq(2)) };
    assert_eq!(done(world.commit(None, commit).await).head, Seq(5));
    let commit = RunCommit { events: vec![noted("f")], ..world.on(run, Seq(5)) };
    assert_eq!(done(world.commit(None, commit).await).head, Seq(6));
    let page = world.store.history(run, Seq(0), 100).await.unwrap();
    let seqs: Vec<u64> = page.events.iter().map(|row| row.seq.0).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6]);
    assert_eq!(page.events[3].event, noted("d"));
    assert_eq!(page.events[1].committed_at, first);
    assert_eq!(page.events[2].committed_at, world.now());
    assert_eq!(world.view(run).await.head, Seq(6));
}

pub(crate) async fn a_commit_on_another_head_is_a_conflict_and_changes_nothing(world: &World) {
    let run = world.begun([]).await;
    let before = world.snapshot().await;
    for head in [0, 1, 3] {
        let commit = RunCommit {
            events: vec![noted("late")],
            tasks: puts([timer(FIRST, "t", Seq(3), secs(1))]),
            summary: Some(summary(RunStatus::Failed)),
            turn: TurnAfter::Return,
            ..world.on(run, Seq(head))
        };
        assert_eq!(world.commit(None, commit).await, CommitAnswer::Conflict, "head {head}");
        assert_same(&before, &world.snapshot().await);
    }
}

pub(crate) async fn a_commit_to_an_unknown_run_is_answered_so(world: &World) {
    let commit = RunCommit { events: vec![noted("x")], ..world.on(world.run_id(), Seq(1)) };
    assert_eq!(world.commit(None, commit).await, CommitAnswer::Unknown);
    assert!(world.snapshot().await.runs.is_empty());
}

pub(crate) async fn a_commit_that_loses_does_not_disturb_its_batch(world: &World) {
    let who = world.worker("one").await;
    let held = world.held(&who).await;
    let gone = world.working(&who).await;
    let outcome = world.outcome_of(&who, &gone);
    world.deliver_one(outcome).await;
    let (good, late, last) = (world.begun([]).await, world.begun([]).await, world.begun([]).await);
    let note = |run, head| RunCommit { events: vec![noted("n")], ..world.on(run, Seq(head)) };
    let mut again = world.new_run();
    again.identity.id = late;
    let before = world.snapshot().await;
    let batch = vec![
        note(good, 2),
        note(late, 1),
        world.start_of(again),
        note(held.run, 2),
        world.result_of(&gone),
        note(world.run_id(), 1),
        note(last, 2),
    ];
    let answers = world.commit_all(&who, batch).await;
    assert_eq!(answers.len(), 7);
    assert!(matches!(&answers[0], CommitAnswer::Committed(c) if c.head == Seq(3)));
    assert_eq!(answers[1], CommitAnswer::Conflict);
    assert_eq!(answers[2], CommitAnswer::Exists { run: late, same: true });
    assert_eq!(answers[3], CommitAnswer::Held);
    assert_eq!(answers[4], CommitAnswer::Fenced(vec![gone.task.claim]));
    assert_eq!(answers[5], CommitAnswer::Unknown);
    assert!(matches!(&answers[6], CommitAnswer::Committed(c) if c.head == Seq(3)));
    let mut after = world.snapshot().await;
    for run in [good, last] {
        assert_eq!(after.runs[&run].view.head, Seq(3));
        after.runs.insert(run, before.runs[&run].clone());
    }
    assert_same(&before, &after);
}

pub(crate) async fn an_empty_batch_is_nothing(world: &World) {
    assert_eq!(world.commit_all(None, vec![]).await, []);
    assert_eq!(world.store.deliver(vec![]).await.unwrap(), []);
}

pub(crate) async fn a_commit_without_events_moves_no_head(world: &World) {
    let run = world.begun([]).await;
    let commit = RunCommit { turn: TurnAfter::Return, ..world.on(run, Seq(2)) };
    let id = commit.id;
    assert_eq!(done(world.commit(None, commit).await).head, Seq(2));
    assert_eq!(world.events(run).await.len(), 2);
    assert_eq!(world.row(run, Place::TURN).await.state, TaskState::Ready);
    assert!(!world.store.look_up(run, id).await.unwrap(), "there is nothing to look up");
}

pub(crate) async fn the_summary_is_what_people_see(world: &World) {
    let run = world.begun([]).await;
    let error = Failure::new(FailureKind::Retryable, "no answer").code("E42");
    let last_error = Some(Box::new(LastError { error, at: world.now() }));
    let waits = Waits::Signals(vec!["a".into(), "b c".into()]);
    let shown = Summary { waits, retries: 2, last_error, ..running() };
    let commit = RunCommit {
        events: vec![noted("x")],
        summary: Some(shown.clone()),
        ..world.on(run, Seq(2))
    };
    done(world.commit(None, commit).await);
    let view = world.view(run).await;
    assert_eq!((view.waits, view.retries, view.last_error), (shown.waits, 2, shown.last_error));
    let commit = RunCommit { events: vec![noted("y")], ..world.on(run, Seq(3)) };
    done(world.commit(None, commit).await);
    let kept = world.view(run).await;
    assert_eq!((kept.head, kept.retries), (Seq(4), 2), "no summary leaves it as it is");
    let nothing = Summary { waits: Waits::Signals(vec![]), version: None, ..running() };
    let commit = RunCommit { summary: Some(nothing), ..world.on(run, Seq(4)) };
    done(world.commit(None, commit).await);
    let view = world.view(run).await;
    assert_eq!((view.waits, view.last_error), (Waits::Signals(vec![]), None));
    assert_eq!(view.version, Some(1), "a version stays pinned");
}

pub(crate) async fn beginning_and_end_have_their_times(world: &World) {
    let begun_at = world.now();
    let run = world.begun([]).await;
    world.pass(secs(5));
    let commit =
        RunCommit { events: vec![noted("x")], summary: Some(running()), ..world.on(run, Seq(2)) };
    done(world.commit(None, commit).await);
    let view = world.view(run).await;
    assert_eq!((view.created_at, view.started_at), (begun_at, Some(begun_at)));
    world.pass(secs(5));
    end(world, run, Seq(3)).await;
    let view = world.view(run).await;
    assert_eq!((view.status, view.ended_at), (RunStatus::Completed, Some(world.now())));
    assert_eq!((view.created_at, view.started_at), (begun_at, Some(begun_at)));
}

async fn end(world: &World, run: durably_kernel::RunId, head: Seq) {
    let commit = RunCommit {
        events: vec![completed()],
        summary: Some(summary(RunStatus::Completed)),
        ..world.on(run, head)
    };
    done(world.commit(None, commit).await);
}

pub(crate) async fn an_ended_run_never_changes(world: &World) {
    let who = world.worker("one").await;
    let run = world.begun([timer(FIRST, "t", Seq(2), secs(1))]).await;
    end(world, run, Seq(2)).await;
    let before = world.snapshot().await;
    assert!(before.runs[&run].tasks.is_empty(), "nothing of it is left in the queue");
    for (head, operator) in [(3, false), (3, true), (2, true)] {
        let commit = RunCommit {
            events: vec![noted("late")],
            tasks: puts([activity(FIRST, "a", Seq(4))]),
            turn: TurnAfter::Return,
            operator,
            ..world.on(run, Seq(head))
        };
        assert_eq!(world.commit(&who, commit).await, CommitAnswer::Conflict);
    }
    world.signal(run, "late").await;
    world.deliver(run, "cancel", crate::sample::cancel()).await;
    world.pass(secs(30));
    assert_eq!(world.sweep().await.delivered, 0);
    assert!(world.claim(&who, 10).await.is_empty());
    assert_same(&before, &world.snapshot().await);
}

pub(crate) async fn rows_are_put_and_deleted_with_the_events(world: &World) {
    let run = world.begun([activity(FIRST, "a", Seq(2)), activity(Place(2), "b", Seq(2))]).await;
    let mut tasks = puts([activity(Place(3), "c", Seq(3)), timer(Place(2), "d", Seq(3), secs(4))]);
    tasks.insert(FIRST, TaskChange::Delete(FIRST));
    tasks.insert(Place(9), TaskChange::Delete(Place(9)));
    tasks.insert(Place(8), TaskChange::Cancel(Place(8)));
    let commit = RunCommit { events: vec![noted("x")], tasks, ..world.on(run, Seq(2)) };
    done(world.commit(None, commit).await);
    let rows = world.tasks(run).await;
    let seen: Vec<_> = rows.iter().map(|row| (row.place.0, row.target.as_str())).collect();
    assert_eq!(seen, [(2, "d"), (3, "c")]);
    assert_eq!((rows[0].state, rows[1].state), (TaskState::Waiting, TaskState::Ready));
    assert_eq!(rows[0].due_at, Some(world.now().after(secs(4))));
    assert_eq!((rows[0].name.as_str(), rows[1].name.as_str()), ("", "charge"));
    assert_eq!((rows[0].seq, rows[1].seq), (Seq(3), Seq(3)));
}

pub(crate) async fn a_row_shows_what_was_put(world: &World) {
    let put = durably_kernel::TaskPut {
        queue: "slow".into(),
        priority: -7,
        attempt: 4,
        delay: Some(secs(2)),
        details: Some(crate::sample::json("[1]")),
        ..activity(Place(5), "late one", Seq(2))
    };
    let run = world.begun([put]).await;
    let row = world.row(run, Place(5)).await;
    assert_eq!((row.queue.as_str(), row.priority, row.attempts), ("slow", -7, 4));
    assert_eq!((row.state, row.due_at), (TaskState::Waiting, Some(world.now().after(secs(2)))));
    assert_eq!((row.target.as_str(), row.details), ("late one", Some(crate::sample::json("[1]"))));
    assert_eq!((row.attempt, row.losses, row.number), (None, vec![], 0));
}

/// A retry in place: the row is written over by the commit that uses its claim up.
pub(crate) async fn a_used_up_claim_takes_its_row_unless_it_is_put_anew(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let retry = durably_kernel::TaskPut {
        delay: Some(secs(3)),
        attempt: 1,
        ..activity(FIRST, "a", Seq(3))
    };
    let commit = RunCommit { tasks: puts([retry]), ..world.result_of(&working) };
    done(world.commit(&who, commit).await);
    let row = world.row(working.run, FIRST).await;
    assert_eq!((row.state, row.seq, row.attempts), (TaskState::Waiting, Seq(3), 1));
    assert_eq!((row.attempt, row.losses), (None, vec![]));
    world.pass(secs(3));
    world.sweep().await;
    let task = world.claim_one(&who).await;
    assert_eq!(task.claim.seq, Seq(3));
    assert!(task.claim.number > working.task.claim.number, "a claim number never goes back");
    let commit = RunCommit {
        claims: vec![task.claim],
        events: vec![noted("done")],
        ..world.on(working.run, Seq(3))
    };
    done(world.commit(&who, commit).await);
    assert!(world.task(working.run, FIRST).await.is_none());
}

pub(crate) async fn a_row_that_is_written_over_has_no_owner(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let commit = RunCommit {
        operator: true,
        events: vec![noted("reset")],
        tasks: puts([activity(FIRST, "a", Seq(3))]),
        ..world.on(working.run, Seq(2))
    };
    done(world.commit(None, commit).await);
    let row = world.row(working.run, FIRST).await;
    assert_eq!((row.state, row.seq, row.attempt), (TaskState::Ready, Seq(3), None));
    let late = RunCommit { base: durably_store::Base::Head(Seq(3)), ..world.result_of(&working) };
    let answer = world.commit(&who, late).await;
    assert_eq!(answer, CommitAnswer::Fenced(vec![working.task.claim]));
    let mut call = world.claim_call(&who, 10);
    call.wants[0].any = vec![crate::world::activities("charge")];
    let tasks = world.claimed(call).await;
    assert_eq!(tasks.len(), 1);
    assert_eq!(tasks[0].claim.number, ClaimNumber(2));
}

pub(crate) async fn a_commit_carries_deliveries_to_other_runs(world: &World) {
    let (from, to, ended) = (world.begun([]).await, world.begun([]).await, world.begun([]).await);
    end(world, ended, Seq(2)).await;
    let targets = [to, ended, world.run_id(), to];
    let deliveries = targets.into_iter().enumerate().map(|(at, run)| {
        let id = format!("d{at}");
        Delivery { run, fact: signal(&id), id, claim: None }
    });
    let commit = RunCommit {
        events: vec![noted("x")],
        deliveries: deliveries.collect(),
        ..world.on(from, Seq(2))
    };
    let ended_before = world.snapshot().await.runs[&ended].clone();
    done(world.commit(None, commit.clone()).await);
    let unread = world.unread(to).await;
    let seen: Vec<_> = unread.iter().map(|entry| (entry.number, entry.id.as_str())).collect();
    assert_eq!(seen, [(1, "d0"), (2, "d3")]);
    assert_eq!(world.row(to, Place::TURN).await.state, TaskState::Ready);
    assert_eq!(world.snapshot().await.runs[&ended], ended_before, "dropped, and no error");
    assert_eq!(world.commit(None, commit).await, CommitAnswer::Conflict);
    assert_eq!(world.unread(to).await.len(), 2, "a commit that is refused delivers nothing");
}

pub(crate) async fn refusals_have_an_order(world: &World) {
    let who = world.worker("one").await;
    let held = world.held_with(&who, [activity(FIRST, "a", Seq(2))]).await;
    world.signal(held.run, "s").await;
    let ending = RunCommit {
        events: vec![completed()],
        summary: Some(summary(RunStatus::Completed)),
        ..world.on(held.run, Seq(1))
    };
    let gone = durably_kernel::Claim { place: FIRST, ..held.claim };
    let fenced = RunCommit { claims: vec![gone], ..ending.clone() };
    assert_eq!(world.commit(&who, fenced).await, CommitAnswer::Fenced(vec![gone]));
    assert_eq!(world.commit(&who, ending.clone()).await, CommitAnswer::Held);
    let late = RunCommit { holder: Some(held.claim), ..ending.clone() };
    assert_eq!(world.commit(&who, late.clone()).await, CommitAnswer::Conflict);
    let ends = RunCommit { base: durably_store::Base::Head(Seq(2)), ..late };
    assert_eq!(world.commit(&who, ends.clone()).await, CommitAnswer::EndConflict);
    done(world.commit(&who, RunCommit { inbox_used: 1, ..ends }).await);
}

pub(crate) async fn ending_over_newer_entries_is_a_conflict_and_changes_nothing(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held_with(&who, [timer(FIRST, "t", Seq(2), secs(9))]).await;
    world.signal(turn.run, "read").await;
    world.signal(turn.run, "newer").await;
    let ending = RunCommit {
        events: vec![completed()],
        summary: Some(summary(RunStatus::Completed)),
        inbox_used: 1,
        ..world.turn_of(&turn)
    };
    let before = world.snapshot().await;
    assert_eq!(world.commit(&who, ending.clone()).await, CommitAnswer::EndConflict);
    assert_same(&before, &world.snapshot().await);
    let operator = RunCommit { holder: None, operator: true, ..ending };
    assert_eq!(world.commit(None, operator).await, CommitAnswer::EndConflict);
    assert_same(&before, &world.snapshot().await);
}

pub(crate) async fn the_end_takes_every_row_that_nobody_has(world: &World) {
    let who = world.worker("one").await;
    let rows = [
        activity(FIRST, "a", Seq(2)),
        timer(Place(3), "t", Seq(2), secs(9)),
        durably_kernel::TaskPut { delay: Some(secs(9)), ..activity(Place(4), "w", Seq(2)) },
        activity(Place(5), "b", Seq(2)),
    ];
    let turn = world.held_with(&who, rows).await;
    assert_eq!(world.claim(&who, 1).await[0].claim.place, FIRST);
    let ending = RunCommit {
        events: vec![completed()],
        summary: Some(summary(RunStatus::Completed)),
        tasks: puts([activity(Place(6), "never", Seq(3))]),
        turn: TurnAfter::Keep,
        ..world.turn_of(&turn)
    };
    let committed = done(world.commit(&who, ending).await);
    assert_eq!((committed.turn, committed.unread), (None, vec![]));
    let rows = world.tasks(turn.run).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((rows[0].place, rows[0].state), (FIRST, TaskState::Cancelling));
    world.pass(secs(20));
    assert_eq!(world.sweep().await.delivered, 0);
    assert!(world.claim(&who, 10).await.is_empty());
}

pub(crate) async fn many_events_in_many_commits_come_back_in_order(world: &World) {
    let run = world.begun([]).await;
    let mut head = Seq(2);
    let mut expected: BTreeMap<u64, Event> = BTreeMap::new();
    for batch in 0..20_u64 {
        let events: Vec<Event> =
            (0..batch % 4 + 1).map(|n| noted(&format!("{batch}/{n}"))).collect();
        for event in &events {
            expected.insert(expected.len() as u64 + 3, event.clone());
        }
        let commit = RunCommit { events, ..world.on(run, head) };
        head = done(world.commit(None, commit).await).head;
    }
    let page = world.store.history(run, Seq(2), 1000).await.unwrap();
    let found: BTreeMap<u64, Event> =
        page.events.into_iter().map(|row| (row.seq.0, row.event)).collect();
    assert_eq!(found, expected);
}

pub(crate) async fn who_watches_a_run_sees_how_it_ended(world: &World) {
    let who = world.worker("one").await;
    let ends = |commit: RunCommit| RunCommit {
        events: vec![noted("last but one"), completed()],
        summary: Some(summary(RunStatus::Completed)),
        ..commit
    };
    let working = world.working(&who).await;
    let turn = world.held(&who).await;
    let free = world.begun([]).await;
    for commit in
        [ends(world.result_of(&working)), ends(world.turn_of(&turn)), ends(world.on(free, Seq(2)))]
    {
        let watch = world.store.hints().watch(commit.run);
        assert!(watch.ended().now_or_never().is_none());
        done(world.commit(&who, commit).await);
        let end = watch.ended().now_or_never().expect("the end is told with the answer");
        assert_eq!(*end, completed());
    }
}
