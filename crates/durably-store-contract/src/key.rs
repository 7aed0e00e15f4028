//! Starts that are repeated: the same id or key gives the same run.

use crate::sample::{completed, done, noted, secs, signal, summary};
use crate::snapshot::assert_same;
use crate::world::World;
use durably_kernel::{RunId, RunStatus, Seq};
use durably_store::{CommitAnswer, Delivery, NewRun, RunCommit};

fn keyed(world: &World, key: &str) -> NewRun {
    let mut new = world.new_run();
    new.check.key = Some(key.to_owned());
    new
}

fn exists(run: RunId, same: bool) -> CommitAnswer {
    CommitAnswer::Exists { run, same }
}

pub(crate) async fn the_same_id_is_the_same_run(world: &World) {
    let commit = world.start_of(world.new_run());
    let run = commit.run;
    done(world.commit(None, commit.clone()).await);
    let before = world.snapshot().await;
    world.pass(secs(1));
    assert_eq!(world.commit(None, commit).await, exists(run, true));
    assert_same(&before, &world.snapshot().await);
}

pub(crate) async fn the_same_key_is_the_same_run(world: &World) {
    let run = world.start(keyed(world, "k")).await;
    let before = world.snapshot().await;
    let mut again = world.start_of(keyed(world, "k"));
    let other = again.run;
    let fact = signal("s");
    again.deliveries.push(Delivery { run: other, id: "s".into(), fact, claim: None });
    assert_eq!(world.commit(None, again).await, exists(run, true));
    assert_same(&before, &world.snapshot().await);
    assert_eq!(world.store.run(other).await.unwrap(), None);
}

pub(crate) async fn another_input_or_workflow_under_a_key_is_told(world: &World) {
    let run = world.start(keyed(world, "k")).await;
    let mut input = keyed(world, "k");
    input.check.input_hash = "another".into();
    assert_eq!(world.commit(None, world.start_of(input)).await, exists(run, false));
    let mut workflow = keyed(world, "k");
    workflow.workflow_type = "other".into();
    assert_eq!(world.commit(None, world.start_of(workflow)).await, exists(run, false));
    let mut same_id = world.new_run();
    same_id.identity.id = run;
    same_id.check.input_hash = "another".into();
    assert_eq!(world.commit(None, world.start_of(same_id)).await, exists(run, false));
    assert_eq!(world.snapshot().await.runs.len(), 1);
}

pub(crate) async fn a_key_is_of_one_tenant(world: &World) {
    let mut other = keyed(world, "k");
    other.identity.tenant = "other".into();
    let (one, two) = (world.start(keyed(world, "k")).await, world.start(other.clone()).await);
    assert_ne!(one, two);
    other.identity.id = world.run_id();
    assert_eq!(world.commit(None, world.start_of(other)).await, exists(two, true));
}

pub(crate) async fn without_a_key_every_start_is_a_run(world: &World) {
    for _ in 0..3 {
        world.start(world.new_run()).await;
    }
    assert_eq!(world.snapshot().await.runs.len(), 3);
}

pub(crate) async fn keys_are_compared_exactly(world: &World) {
    let long = "k".repeat(255);
    let longer = format!("{}x", "k".repeat(254));
    let keys =
        ["k", "K", "k ", " k", "k\t", "ḱ", "k\u{301}", "😀", "k😀", "'k'", "k%", &long, &longer];
    let mut runs = Vec::new();
    for key in keys {
        runs.push(world.start(keyed(world, key)).await);
    }
    for (key, run) in keys.into_iter().zip(&runs) {
        let answer = world.commit(None, world.start_of(keyed(world, key))).await;
        assert_eq!(answer, exists(*run, true), "{key:?}");
        assert_eq!(world.view(*run).await.idempotency_key.as_deref(), Some(key));
    }
}

pub(crate) async fn a_key_is_known_after_the_run_has_ended(world: &World) {
    let run = world.start(keyed(world, "k")).await;
    let commit = RunCommit {
        events: vec![completed()],
        summary: Some(summary(RunStatus::Completed)),
        ..world.on(run, Seq(1))
    };
    done(world.commit(None, commit).await);
    let answer = world.commit(None, world.start_of(keyed(world, "k"))).await;
    assert_eq!(answer, exists(run, true));
}

pub(crate) async fn one_key_twice_in_a_batch_is_one_run(world: &World) {
    let batch: Vec<_> =
        ["a", "b", "a"].iter().map(|key| world.start_of(keyed(world, key))).collect();
    let runs: Vec<_> = batch.iter().map(|commit| commit.run).collect();
    let answers = world.commit_all(None, batch).await;
    assert!(matches!(answers[0], CommitAnswer::Committed(_)));
    assert!(matches!(answers[1], CommitAnswer::Committed(_)));
    assert_eq!(answers[2], exists(runs[0], true));
    assert_eq!(world.snapshot().await.runs.len(), 2);
}

pub(crate) async fn a_refused_start_takes_no_key(world: &World) {
    let first = world.start(keyed(world, "one")).await;
    let mut clash = keyed(world, "two");
    clash.identity.id = first;
    let answer = world.commit(None, world.start_of(clash)).await;
    assert_eq!(answer, exists(first, true));
    let fresh = world.start(keyed(world, "two")).await;
    assert_ne!(fresh, first);
}

pub(crate) async fn a_known_run_may_have_gone_on(world: &World) {
    let new = keyed(world, "k");
    let run = world.start(new.clone()).await;
    let commit = RunCommit { events: vec![noted("x")], ..world.on(run, Seq(1)) };
    done(world.commit(None, commit).await);
    assert_eq!(world.commit(None, world.start_of(new)).await, exists(run, true));
    assert_eq!(world.view(run).await.head, Seq(2), "a repeat does not begin it again");
}
