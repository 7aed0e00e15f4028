//! Claims: only what a process can execute, repeatable, refused where it is not active.

use crate::sample::{
    CHARGE, FIRST, ORDER, activity, done, json, noted, pinned, running, secs, summary,
};
use crate::snapshot::assert_same;
use crate::world::{Turn, World, activities, turns};
use durably_kernel::{
    ActivityOptions, Claim, ClaimNumber, Place, Retry, RunStatus, Seq, TaskPut, TaskState, WorkerId,
};
use durably_store::{
    ClaimCall, Claimed, ClaimedTask, ClaimedWork, HandBack, Returned, RunCommit, TurnAfter, Want,
};
use std::sync::Arc;

fn claims(tasks: &[ClaimedTask]) -> Vec<Claim> {
    let mut claims: Vec<Claim> = tasks.iter().map(|task| task.claim).collect();
    claims.sort();
    claims
}

pub(crate) async fn an_activity_comes_with_all_that_is_needed(world: &World) {
    let who = world.worker("one").await;
    let options = ActivityOptions {
        retry: Some(Retry::default()),
        start_to_close: Some(secs(7)),
        heartbeat: Some(secs(3)),
        key: Some("k".into()),
        ..ActivityOptions::default()
    };
    let put = TaskPut {
        input: Some(json(r#"{"b":1.0,"a":[1e2,  "\u00e9"],"b":2}"#)),
        options: Some(Arc::new(options.clone())),
        details: Some(json("5")),
        attempt: 2,
        ..activity(Place(4), "a b", Seq(2))
    };
    let run = world.begun([put.clone()]).await;
    world.pass(secs(1));
    let task = world.claim_one(&who).await;
    assert_eq!(task.claim, Claim { run, place: Place(4), seq: Seq(2), number: ClaimNumber(1) });
    assert_eq!(*task.run, world.view(run).await);
    let ClaimedWork::Activity(work) = task.work else { panic!("an activity") };
    assert_eq!((work.id.as_str(), work.activity_type.as_str()), ("a b", CHARGE));
    assert_eq!((Some(work.input), (*work.options).clone()), (put.input, options));
    assert_eq!((work.details, work.losses), (put.details, vec![]));
    assert_eq!((work.attempt.number, work.attempt.started_at), (3, world.now()));
    assert_eq!(work.attempt.worker, who);
    let row = world.row(run, Place(4)).await;
    assert_eq!((row.state, row.number, row.attempts), (TaskState::Claimed, 1, 3));
    assert_eq!(row.attempt, Some(work.attempt));
}

pub(crate) async fn a_turn_comes_with_its_unread_inbox(world: &World) {
    let who = world.worker("one").await;
    let run = world.begun([]).await;
    world.signal(run, "a").await;
    world.signal(run, "b").await;
    let task = world.claim_one(&who).await;
    assert_eq!((task.run.inbox_last, task.run.head), (2, Seq(2)));
    let ClaimedWork::Turn { unread, first, losses } = task.work else { panic!("a turn") };
    let seen: Vec<_> = unread.iter().map(|entry| (entry.number, entry.id.as_str())).collect();
    assert_eq!(seen, [(1, "a"), (2, "b")]);
    assert_eq!((first, losses), (None, vec![]), "event 1 is for first turns");
}

pub(crate) async fn a_task_is_claimed_once(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    world.begun([activity(FIRST, "a", Seq(2))]).await;
    assert_eq!(world.claim(&who, 5).await.len(), 1);
    assert!(world.claim(&who, 5).await.is_empty());
    assert!(world.claim(&other, 5).await.is_empty());
}

pub(crate) async fn only_ready_tasks_are_claimed(world: &World) {
    let who = world.worker("one").await;
    let put = TaskPut { delay: Some(secs(5)), ..activity(FIRST, "later", Seq(2)) };
    let run = world.begun([put, crate::sample::timer(Place(2), "t", Seq(2), secs(5))]).await;
    assert!(world.claim(&who, 5).await.is_empty());
    world.pass(secs(5));
    assert!(world.claim(&who, 5).await.is_empty(), "becoming ready is the sweep's");
    world.sweep().await;
    let tasks = world.claim(&who, 5).await;
    let places: Vec<_> = tasks.iter().map(|task| (task.claim.run, task.claim.place)).collect();
    assert_eq!(places.len(), 2);
    assert!(places.contains(&(run, FIRST)) && places.contains(&(run, Place::TURN)));
}

pub(crate) async fn a_repeat_of_a_call_gives_the_same_tasks(world: &World) {
    let who = world.worker("one").await;
    for _ in 0..5 {
        world.begun([activity(FIRST, "a", Seq(2))]).await;
    }
    let call = world.claim_call(&who, 3);
    let tasks = world.claimed(call.clone()).await;
    assert_eq!(tasks.len(), 3);
    let before = world.snapshot().await;
    let again = world.claimed(call.clone()).await;
    assert_eq!(claims(&again), claims(&tasks));
    for task in &again {
        assert!(tasks.contains(task), "the same in every respect");
    }
    assert_same(&before, &world.snapshot().await);
    let rest = world.claim(&who, 10).await;
    assert_eq!(rest.len(), 2, "another call gets others");
}

pub(crate) async fn a_repeat_leaves_out_what_is_used_up(world: &World) {
    let who = world.worker("one").await;
    for _ in 0..3 {
        world.begun([activity(FIRST, "a", Seq(2))]).await;
    }
    let call = world.claim_call(&who, 2);
    let tasks = world.claimed(call.clone()).await;
    let commit = RunCommit {
        claims: vec![tasks[0].claim],
        events: vec![noted("done")],
        ..world.on(tasks[0].claim.run, Seq(2))
    };
    done(world.commit(&who, commit).await);
    assert_eq!(claims(&world.claimed(call).await), [tasks[1].claim]);
}

pub(crate) async fn a_call_id_is_of_one_process(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    world.begun([activity(FIRST, "a", Seq(2))]).await;
    world.begun([activity(FIRST, "a", Seq(2))]).await;
    let call = world.claim_call(&who, 1);
    let tasks = world.claimed(call.clone()).await;
    let others = world.claimed(ClaimCall { who: other, ..call }).await;
    assert_ne!(claims(&tasks), claims(&others));
}

pub(crate) async fn a_process_that_is_not_active_is_refused(world: &World) {
    let run = world.begun([activity(FIRST, "a", Seq(2))]).await;
    let drained = world.worker("drained").await;
    world.store.drain(drained.clone()).await.unwrap();
    let stopped = world.worker("stopped").await;
    world.store.leave(stopped.clone()).await.unwrap();
    let stale = world.worker("stale").await;
    world.pass(secs(61));
    world.sweep().await;
    let before = world.snapshot().await;
    for who in [drained, stopped, stale, WorkerId::from("nobody")] {
        let answer = world.store.claim(world.claim_call(&who, 1)).await.unwrap();
        assert_eq!(answer, Claimed::Refused, "{who}");
    }
    assert_same(&before, &world.snapshot().await);
    let fresh = world.worker("fresh").await;
    assert_eq!(world.claim_one(&fresh).await.claim.run, run);
}

pub(crate) async fn only_tasks_of_its_queues_are_claimed(world: &World) {
    let who = world.worker("one").await;
    for queue in ["default", "slow", "Slow", "slow "] {
        let put = TaskPut { queue: queue.into(), ..activity(FIRST, queue, Seq(2)) };
        world.begun([put]).await;
    }
    let call = |queues: &[&str]| ClaimCall {
        queues: queues.iter().map(|queue| (*queue).into()).collect(),
        ..world.claim_call(&who, 10)
    };
    assert!(world.claimed(call(&["other"])).await.is_empty());
    assert!(world.claimed(call(&[])).await.is_empty());
    let tasks = world.claimed(call(&["slow", "other"])).await;
    assert_eq!(targets(&tasks), ["slow"]);
    let mut rest = targets(&world.claimed(call(&["slow ", "Slow", "default"])).await);
    rest.sort();
    assert_eq!(rest, ["Slow", "default", "slow "]);
}

fn targets(tasks: &[ClaimedTask]) -> Vec<String> {
    let id = |task: &ClaimedTask| match &task.work {
        ClaimedWork::Activity(work) => work.id.to_string(),
        ClaimedWork::Turn { .. } => "turn".to_owned(),
    };
    tasks.iter().map(id).collect()
}

pub(crate) async fn a_run_of_a_queue_waits_in_that_queue(world: &World) {
    let who = world.worker("one").await;
    let mut new = world.new_run();
    new.identity.queue = "slow".into();
    let run = world.start(new).await;
    assert!(world.claim(&who, 1).await.is_empty());
    assert_eq!(world.row(run, Place::TURN).await.queue.as_str(), "slow");
    let queues = vec!["slow".into()];
    let tasks = world.claimed(ClaimCall { queues, ..world.claim_call(&who, 1) }).await;
    assert_eq!(tasks.len(), 1);
}

pub(crate) async fn only_types_that_it_hosts_are_claimed(world: &World) {
    let who = world.worker("one").await;
    for name in [CHARGE, "Charge", "charge ", ORDER] {
        let put = TaskPut { name: name.into(), ..activity(FIRST, name, Seq(2)) };
        world.begun([put]).await;
    }
    let call = |any: Vec<_>| ClaimCall {
        wants: vec![Want { any, most: 10 }],
        ..world.claim_call(&who, 0)
    };
    assert!(world.claimed(call(vec![])).await.is_empty());
    assert!(world.claimed(call(vec![turns(ORDER, 1), turns(CHARGE, 1)])).await.is_empty());
    let tasks = world.claimed(call(vec![activities(CHARGE)])).await;
    assert_eq!(targets(&tasks), [CHARGE]);
    let any = vec![activities(ORDER), activities("Charge"), activities("unknown")];
    let mut tasks = targets(&world.claimed(call(any)).await);
    tasks.sort();
    assert_eq!(tasks, ["Charge", ORDER], "of an activity, though a workflow has the name as well");
}

fn hosting(world: &World, who: &WorkerId, version: u32) -> ClaimCall {
    let wants = vec![Want { any: vec![turns(ORDER, version)], most: 10 }];
    ClaimCall { wants, ..world.claim_call(who, 0) }
}

pub(crate) async fn a_run_without_a_version_is_claimed_by_any_host_of_its_type(world: &World) {
    let who = world.worker("one").await;
    let run = world.start(world.new_run()).await;
    assert!(world.claim(&who, 0).await.is_empty());
    let tasks = world.claimed(hosting(world, &who, 7)).await;
    assert_eq!(tasks.len(), 1);
    assert_eq!(tasks[0].claim.run, run);
}

pub(crate) async fn a_pinned_run_is_claimed_by_its_version_alone(world: &World) {
    let who = world.worker("one").await;
    let run = world.start(world.new_run()).await;
    let task = world.claimed(hosting(world, &who, 2)).await.remove(0);
    let first = RunCommit {
        events: vec![pinned()],
        summary: Some(durably_kernel::Summary { version: Some(2), ..running() }),
        turn: TurnAfter::Return,
        ..world.turn_of(&Turn { run, head: Seq(1), claim: task.claim })
    };
    done(world.commit(&who, first).await);
    for version in [1, 3, 0] {
        let tasks = world.claimed(hosting(world, &who, version)).await;
        assert!(tasks.is_empty(), "version {version}");
    }
    let task = world.claimed(hosting(world, &who, 2)).await.remove(0);
    let turn = Turn { run, head: Seq(2), claim: task.claim };
    let commit = RunCommit { summary: None, ..world.turn_of(&turn) };
    done(world.commit(&who, commit).await);
    world.signal(run, "s").await;
    assert!(world.claimed(hosting(world, &who, 1)).await.is_empty(), "a later turn row as well");
    assert_eq!(world.claimed(hosting(world, &who, 2)).await.len(), 1);
}

pub(crate) async fn a_version_asked_for_is_claimed_by_it_alone(world: &World) {
    let who = world.worker("one").await;
    let mut new = world.new_run();
    new.version = Some(3);
    world.start(new).await;
    assert!(world.claimed(hosting(world, &who, 2)).await.is_empty());
    assert_eq!(world.claimed(hosting(world, &who, 3)).await.len(), 1);
}

pub(crate) async fn each_want_has_a_bound_of_its_own(world: &World) {
    let who = world.worker("one").await;
    for _ in 0..4 {
        let run = world.begun([activity(FIRST, "a", Seq(2))]).await;
        world.signal(run, "s").await;
    }
    let wants = vec![
        Want { any: vec![activities(CHARGE)], most: 1 },
        Want { any: vec![turns(ORDER, 1)], most: 3 },
        Want { any: vec![turns(ORDER, 1), activities(CHARGE)], most: 0 },
    ];
    let call = ClaimCall { wants, ..world.claim_call(&who, 0) };
    let tasks = targets(&world.claimed(call).await);
    assert_eq!(tasks, ["a", "turn", "turn", "turn"]);
}

pub(crate) async fn a_task_fits_one_want_only(world: &World) {
    let who = world.worker("one").await;
    world.begun([activity(FIRST, "a", Seq(2))]).await;
    let want = Want { any: vec![activities(CHARGE), activities(CHARGE)], most: 5 };
    let call = ClaimCall { wants: vec![want.clone(), want], ..world.claim_call(&who, 0) };
    assert_eq!(world.claimed(call).await.len(), 1);
}

pub(crate) async fn the_attempt_counts_starts(world: &World) {
    let who = world.worker("one").await;
    let mut working = world.working(&who).await;
    for attempt in 1..=4 {
        let ClaimedWork::Activity(work) = &working.task.work else { panic!("an activity") };
        assert_eq!(work.attempt.number, attempt);
        assert_eq!(working.task.claim.number, ClaimNumber(u64::from(attempt)));
        assert_eq!(world.row(working.run, FIRST).await.attempts, attempt);
        let back = HandBack { claim: working.task.claim, how: Returned::Stopped };
        world.store.hand_back(who.clone(), vec![back]).await.unwrap();
        assert_eq!(world.row(working.run, FIRST).await.attempts, attempt, "not counted twice");
        working.task = world.claim_one(&who).await;
    }
}

pub(crate) async fn tasks_of_an_ended_run_are_not_claimed(world: &World) {
    let who = world.worker("one").await;
    let run = world.begun([activity(FIRST, "a", Seq(2))]).await;
    world.signal(run, "s").await;
    let commit = RunCommit {
        events: vec![noted("end")],
        summary: Some(summary(RunStatus::Failed)),
        inbox_used: 1,
        ..world.on(run, Seq(2))
    };
    done(world.commit(None, commit).await);
    assert!(world.claim(&who, 10).await.is_empty());
}

pub(crate) async fn a_claim_says_the_stores_time(world: &World) {
    let who = world.worker("one").await;
    world.pass(secs(3));
    let answer = world.store.claim(world.claim_call(&who, 1)).await.unwrap();
    let Claimed::Tasks { tasks, cursor, now } = answer else { panic!("active") };
    assert_eq!((tasks, cursor, now), (vec![], None, world.now()));
    assert_eq!(world.store.now().await.unwrap(), world.now());
}
