//! Commits whose answer was lost.

use crate::sample::{completed, done, noted, summary};
use crate::world::World;
use durably_kernel::{RunStatus, Seq};
use durably_store::{CommitAnswer, RunCommit};

pub(crate) async fn a_commit_is_found_by_its_id(world: &World) {
    let start = world.start_of(world.new_run());
    let (run, start_id) = (start.run, start.id);
    done(world.commit(None, start).await);
    let first = RunCommit { events: vec![noted("a"), noted("b")], ..world.on(run, Seq(1)) };
    let second = RunCommit { events: vec![noted("c")], ..world.on(run, Seq(3)) };
    let ids = [start_id, first.id, second.id];
    assert!(!world.store.look_up(run, first.id).await.unwrap(), "not before it is made");
    done(world.commit(None, first).await);
    done(world.commit(None, second).await);
    for id in ids {
        assert!(world.store.look_up(run, id).await.unwrap());
    }
    assert!(!world.store.look_up(run, world.commit_id()).await.unwrap());
}

pub(crate) async fn a_commit_is_found_in_its_own_run_alone(world: &World) {
    let (one, two) = (world.begun([]).await, world.begun([]).await);
    let commit = RunCommit { events: vec![noted("x")], ..world.on(one, Seq(2)) };
    let id = commit.id;
    done(world.commit(None, commit).await);
    assert!(!world.store.look_up(two, id).await.unwrap());
    assert!(!world.store.look_up(world.run_id(), id).await.unwrap());
}

/// Equal events are no proof: somebody else may have written the same.
pub(crate) async fn a_commit_that_was_refused_is_not_found(world: &World) {
    let run = world.begun([]).await;
    let commit = || RunCommit { events: vec![noted("same")], ..world.on(run, Seq(2)) };
    let (winner, loser) = (commit(), commit());
    let (won, lost) = (winner.id, loser.id);
    done(world.commit(None, winner).await);
    assert_eq!(world.commit(None, loser).await, CommitAnswer::Conflict);
    assert!(world.store.look_up(run, won).await.unwrap());
    assert!(!world.store.look_up(run, lost).await.unwrap());
}

pub(crate) async fn a_commit_is_found_after_the_end(world: &World) {
    let run = world.begun([]).await;
    let commit = RunCommit {
        events: vec![completed()],
        summary: Some(summary(RunStatus::Completed)),
        ..world.on(run, Seq(2))
    };
    let id = commit.id;
    done(world.commit(None, commit).await);
    assert!(world.store.look_up(run, id).await.unwrap());
}
