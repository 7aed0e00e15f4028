//! Tasks that are no longer wanted.

use crate::sample::{FIRST, activity, completed, done, json, noted, running, secs, summary, timer};
use crate::snapshot::assert_same;
use crate::world::{Working, World};
use durably_kernel::{Place, RunId, RunStatus, Seq, TaskChange, TaskPut, TaskState};
use durably_store::{Base, CommitAnswer, Delivered, HandBack, Heartbeat, Returned, RunCommit};

async fn change(world: &World, run: RunId, head: u64, change: TaskChange) {
    let place = match &change {
        TaskChange::Put(put) => put.place,
        TaskChange::Delete(place) | TaskChange::Cancel(place) => *place,
    };
    let commit = RunCommit {
        events: vec![noted("changed")],
        tasks: [(place, change)].into(),
        summary: Some(running()),
        ..world.on(run, Seq(head))
    };
    done(world.commit(None, commit).await);
}

pub(crate) async fn a_task_that_nobody_has_goes_at_once(world: &World) {
    let later = TaskPut { delay: Some(secs(9)), ..activity(Place(2), "b", Seq(2)) };
    let rows = [activity(FIRST, "a", Seq(2)), later, timer(Place(3), "t", Seq(2), secs(9))];
    let run = world.begun(rows).await;
    for (head, place) in [(2, 1), (3, 2), (4, 3)] {
        change(world, run, head, TaskChange::Cancel(Place(place))).await;
        assert!(world.task(run, Place(place)).await.is_none());
    }
}

pub(crate) async fn a_claimed_task_becomes_cancelling_and_accepts_no_result(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    change(world, working.run, 2, TaskChange::Cancel(FIRST)).await;
    let row = world.row(working.run, FIRST).await;
    assert_eq!((row.state, row.number), (TaskState::Cancelling, working.task.claim.number.0));
    assert_eq!(row.attempt.expect("still in its hands").worker, who);
    let before = world.snapshot().await;
    let claim = working.task.claim;
    let result = RunCommit { base: Base::Head(Seq(3)), ..world.result_of(&working) };
    assert_eq!(world.commit(&who, result).await, CommitAnswer::Fenced(vec![claim]));
    let outcome = world.outcome_of(&who, &working);
    assert_eq!(world.deliver_one(outcome).await, Delivered::Fenced);
    let call = durably_store::LoadCall {
        claims: vec![claim],
        who: Some(who.clone()),
        ..world.load_call(working.run)
    };
    assert_eq!(world.load(call).await.standing, []);
    assert!(world.claim(&who, 5).await.is_empty());
    assert_same(&before, &world.snapshot().await);
}

pub(crate) async fn cancelling_twice_is_cancelling_once(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    change(world, working.run, 2, TaskChange::Cancel(FIRST)).await;
    let row = world.row(working.run, FIRST).await;
    change(world, working.run, 3, TaskChange::Cancel(FIRST)).await;
    assert_eq!(world.row(working.run, FIRST).await, row);
}

pub(crate) async fn a_deletion_takes_a_task_whatever_its_state(world: &World) {
    let who = world.worker("one").await;
    for cancelled in [true, false] {
        let working = world.working(&who).await;
        if cancelled {
            change(world, working.run, 2, TaskChange::Cancel(FIRST)).await;
        }
        let head = 2 + u64::from(cancelled);
        change(world, working.run, head, TaskChange::Delete(FIRST)).await;
        assert!(world.tasks(working.run).await.is_empty());
        let answer = world.beat(&who, &[working.task.claim]).await;
        let durably_store::BeatAnswer::Alive { lost, .. } = answer else { panic!("alive") };
        assert_eq!(lost, [working.task.claim]);
    }
}

pub(crate) async fn the_end_of_a_run_leaves_cancelling_tasks_only(world: &World) {
    let who = world.worker("one").await;
    let rows = [1, 2, 3].map(|n| activity(Place(n), &format!("a{n}"), Seq(2)));
    let run = world.begun(rows).await;
    let tasks = world.claim(&who, 2).await;
    assert_eq!(tasks.len(), 2);
    change(world, run, 2, TaskChange::Cancel(tasks[0].claim.place)).await;
    let commit = RunCommit {
        events: vec![completed()],
        summary: Some(summary(RunStatus::Cancelled)),
        ..world.on(run, Seq(3))
    };
    done(world.commit(None, commit).await);
    let states: Vec<_> = world.tasks(run).await.iter().map(|row| (row.place, row.state)).collect();
    let cancelling = TaskState::Cancelling;
    assert_eq!(states, [(Place(1), cancelling), (Place(2), cancelling)]);
    let answer = world.store.ask(who.clone()).await.unwrap();
    assert_eq!((answer.standing.len(), answer.cancelling.len()), (0, 2));
    for task in &tasks {
        let outcome = durably_store::Delivery {
            id: task.claim.place.to_string(),
            ..world.outcome_of(&who, &Working { run, head: Seq(4), task: task.clone() })
        };
        assert_eq!(
            world.deliver_one(outcome).await,
            Delivered::Ended(RunStatus::Cancelled),
            "its result is of no use"
        );
        let back = HandBack { claim: task.claim, how: Returned::Confirmed };
        world.store.hand_back(who.clone(), vec![back]).await.unwrap();
    }
    assert!(world.tasks(run).await.is_empty());
}

/// A place is only put anew once its row is gone, except by an operator.
pub(crate) async fn a_cancelling_row_that_is_put_anew_is_a_new_task(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    change(world, working.run, 2, TaskChange::Cancel(FIRST)).await;
    let put = activity(FIRST, "b", Seq(4));
    change(world, working.run, 3, TaskChange::Put(Box::new(put))).await;
    let row = world.row(working.run, FIRST).await;
    assert_eq!((row.state, row.target.as_str(), row.attempt), (TaskState::Ready, "b", None));
    let back = HandBack { claim: working.task.claim, how: Returned::Confirmed };
    world.store.hand_back(who.clone(), vec![back]).await.unwrap();
    let beat = durably_store::Beat {
        who: who.clone(),
        number: world.draw(),
        load: 0,
        claims: vec![],
        heartbeats: vec![Heartbeat { claim: working.task.claim, details: Some(json("1")) }],
    };
    world.store.beat(beat).await.unwrap();
    let row = world.row(working.run, FIRST).await;
    assert_eq!((row.state, row.details), (TaskState::Ready, None), "the old claim is nothing");
    let task = world.claim_one(&who).await;
    assert!(task.claim.number > working.task.claim.number);
}
