//! The commits of which there are most: an outcome with the next task at its place, an inline step
//! of a holder, and either of them as the run's last. A store may have a short way for them; what
//! makes any commit lose makes these lose as well.

use crate::fence::wrong;
use crate::sample::{FIRST, activity, completed, done, noted, puts, running, secs, summary};
use crate::snapshot::assert_same;
use crate::world::{Turn, Working, World};
use durably_kernel::{Place, RunStatus, Seq, TaskState};
use durably_store::{Base, CommitAnswer, RunCommit, TurnAfter};

/// An outcome that goes on at the same place, and one that ends the run.
fn outcomes(world: &World, working: &Working) -> [RunCommit; 2] {
    let Seq(head) = working.head;
    let next = RunCommit {
        tasks: puts([activity(FIRST, "b", Seq(head + 1))]),
        eager: [FIRST].into(),
        ..world.result_of(working)
    };
    [next, ends(world.result_of(working))]
}

/// A holder's step that goes on, and one that ends the run.
fn steps(world: &World, turn: &Turn) -> [RunCommit; 2] {
    let keeps = RunCommit { turn: TurnAfter::Keep, ..world.turn_of(turn) };
    [keeps, ends(world.turn_of(turn))]
}

fn ends(commit: RunCommit) -> RunCommit {
    RunCommit { events: vec![completed()], summary: Some(summary(RunStatus::Completed)), ..commit }
}

pub(crate) async fn an_outcome_with_any_part_of_its_claim_wrong_is_fenced(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    let (one, twin) = (world.working(&who).await, world.working(&who).await);
    let before = world.snapshot().await;
    for commit in outcomes(world, &one) {
        for (what, claim) in wrong(one.task.claim, twin.run) {
            let commit = RunCommit { claims: vec![claim], ..commit.clone() };
            let answer = world.commit(&who, commit).await;
            assert_eq!(answer, CommitAnswer::Fenced(vec![claim]), "{what}");
            assert_same(&before, &world.snapshot().await);
        }
        for who in [None, Some(&other)] {
            let answer = world.commit(who, commit.clone()).await;
            assert_eq!(answer, CommitAnswer::Fenced(vec![one.task.claim]), "{who:?}");
            assert_same(&before, &world.snapshot().await);
        }
    }
    for (working, commit) in [&one, &twin].into_iter().zip([0, 1]) {
        let commit = outcomes(world, working)[commit].clone();
        assert_eq!(done(world.commit(&who, commit).await).head, Seq(3));
    }
}

pub(crate) async fn a_step_with_any_part_of_its_claim_wrong_is_fenced(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    let (one, twin) = (world.held(&who).await, world.held(&who).await);
    let before = world.snapshot().await;
    for commit in steps(world, &one) {
        for (what, claim) in wrong(one.claim, twin.run) {
            let commit = RunCommit { holder: Some(claim), ..commit.clone() };
            let answer = world.commit(&who, commit).await;
            assert_eq!(answer, CommitAnswer::Fenced(vec![claim]), "{what}");
            assert_same(&before, &world.snapshot().await);
        }
        for who in [None, Some(&other)] {
            let answer = world.commit(who, commit.clone()).await;
            assert_eq!(answer, CommitAnswer::Fenced(vec![one.claim]), "{who:?}");
            assert_same(&before, &world.snapshot().await);
        }
    }
    for (turn, commit) in [&one, &twin].into_iter().zip([0, 1]) {
        let commit = steps(world, turn)[commit].clone();
        assert_eq!(done(world.commit(&who, commit).await).head, Seq(3));
    }
}

pub(crate) async fn a_step_on_another_head_is_a_conflict(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let turn = world.held(&who).await;
    let before = world.snapshot().await;
    for commit in outcomes(world, &working).into_iter().chain(steps(world, &turn)) {
        for head in [1, 3] {
            let commit = RunCommit { base: Base::Head(Seq(head)), ..commit.clone() };
            assert_eq!(world.commit(&who, commit).await, CommitAnswer::Conflict);
            assert_same(&before, &world.snapshot().await);
        }
    }
}

pub(crate) async fn an_outcome_beside_a_holder_is_held(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    let turn = world.held_with(&other, [activity(FIRST, "a", Seq(2))]).await;
    let task = world.claim_one(&who).await;
    let working = Working { run: turn.run, head: turn.head, task };
    let before = world.snapshot().await;
    for commit in outcomes(world, &working) {
        assert_eq!(world.commit(&who, commit).await, CommitAnswer::Held);
        assert_same(&before, &world.snapshot().await);
    }
}

pub(crate) async fn a_step_hears_of_unread_entries(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let turn = world.held(&who).await;
    for run in [working.run, turn.run] {
        world.signal(run, "s").await;
    }
    let [goes_on, last] = outcomes(world, &working);
    assert_eq!(world.commit(&who, last).await, CommitAnswer::EndConflict);
    let committed = done(world.commit(&who, goes_on).await);
    assert_eq!((committed.turn, committed.unread, committed.eager.len()), (None, vec![], 1));
    assert_eq!(world.row(working.run, Place::TURN).await.state, TaskState::Ready);
    let [keeps, last] = steps(world, &turn);
    assert_eq!(world.commit(&who, last).await, CommitAnswer::EndConflict);
    let committed = done(world.commit(&who, keeps).await);
    assert_eq!((committed.turn, committed.unread.len()), (Some(turn.claim), 1));
}

pub(crate) async fn the_last_step_takes_every_row(world: &World) {
    let who = world.worker("one").await;
    let second = activity(Place(2), "b", Seq(2));
    let run = world.begun([activity(FIRST, "a", Seq(2)), second.clone()]).await;
    let task = world.claim_one(&who).await;
    let working = Working { run, head: Seq(2), task };
    let [_, last] = outcomes(world, &working);
    done(world.commit(&who, last).await);
    assert!(world.tasks(run).await.is_empty());
    let turn = world.held_with(&who, [second]).await;
    assert_eq!(world.claim_one(&who).await.claim.place, Place(2));
    let [_, last] = steps(world, &turn);
    assert_eq!(done(world.commit(&who, last).await).turn, None);
    let states: Vec<_> = world.tasks(turn.run).await.iter().map(|row| row.state).collect();
    assert_eq!(states, [TaskState::Cancelling], "it is in somebody's hands");
    let view = world.view(turn.run).await;
    assert_eq!((view.status, view.ended_at), (RunStatus::Completed, Some(world.now())));
}

pub(crate) async fn a_step_unparks_the_run(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held(&who).await;
    let (code, reason) = ("DURABLY-D001".to_owned(), "no code".to_owned());
    let park = TurnAfter::Park { delay: secs(5), code, reason };
    done(world.commit(&who, RunCommit { turn: park, ..world.turn_of(&turn) }).await);
    world.pass(secs(5));
    world.sweep().await;
    let claim = world.claim_one(&who).await.claim;
    assert!(world.view(turn.run).await.parked.is_some());
    let [keeps, _] = steps(world, &Turn { claim, head: Seq(3), ..turn });
    done(world.commit(&who, keeps).await);
    assert_eq!(world.view(turn.run).await.parked, None);
}

pub(crate) async fn a_step_records_the_losses_before(world: &World) {
    let dead = world.worker("dead").await;
    let turn = world.held(&dead).await;
    world.pass(secs(61));
    assert_eq!(world.sweep().await.dead, 1);
    let who = world.worker("one").await;
    let claim = world.claim_one(&who).await.claim;
    assert_eq!(world.row(turn.run, Place::TURN).await.losses.len(), 1);
    let [keeps, _] = steps(world, &Turn { claim, ..turn });
    done(world.commit(&who, keeps).await);
    assert_eq!(world.row(turn.run, Place::TURN).await.losses, []);
}

pub(crate) async fn a_repeated_claim_does_not_find_the_next_task(world: &World) {
    let who = world.worker("one").await;
    let run = world.begun([activity(FIRST, "a", Seq(2))]).await;
    let call = world.claim_call(&who, 1);
    let task = world.claimed(call.clone()).await.remove(0);
    assert_eq!(world.claimed(call.clone()).await.len(), 1, "a lost answer");
    let [next, _] = outcomes(world, &Working { run, head: Seq(2), task });
    assert_eq!(done(world.commit(&who, next).await).eager.len(), 1);
    assert!(world.claimed(call).await.is_empty());
}

pub(crate) async fn what_a_task_said_last_stays_with_it_alone(world: &World) {
    let who = world.worker("one").await;
    for (id, stays) in [("a", true), ("b", false)] {
        let working = world.working(&who).await;
        let heartbeats = vec![durably_store::Heartbeat {
            claim: working.task.claim,
            details: Some(crate::sample::json("7")),
        }];
        let claims = vec![working.task.claim];
        let beat = durably_store::Beat {
            who: who.clone(),
            number: world.draw(),
            load: 1,
            claims,
            heartbeats,
        };
        world.store.beat(beat).await.unwrap();
        let [next, _] = outcomes(world, &working);
        let next = RunCommit {
            tasks: puts([activity(FIRST, id, Seq(3))]),
            events: vec![noted("retry")],
            summary: Some(running()),
            ..next
        };
        done(world.commit(&who, next).await);
        assert_eq!(world.row(working.run, FIRST).await.details.is_some(), stays, "{id}");
    }
}

pub(crate) async fn a_kept_turn_is_lost_by_the_last_step_that_moved_its_deadline(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held(&who).await;
    let due = async || world.sweep().await.next_due;
    assert_eq!(due().await, Some(secs(70)));
    let step = |head, deadline| RunCommit {
        turn: TurnAfter::Keep,
        turn_deadline: secs(deadline),
        base: Base::Head(Seq(head)),
        ..world.turn_of(&turn)
    };
    world.pass(std::time::Duration::from_millis(999));
    done(world.commit(&who, step(2, 70)).await);
    assert_eq!(due().await, Some(std::time::Duration::from_millis(69_001)), "not worth a write");
    world.pass(std::time::Duration::from_millis(1));
    done(world.commit(&who, step(3, 70)).await);
    assert_eq!(due().await, Some(secs(70)));
    done(world.commit(&who, step(4, 30)).await);
    assert_eq!(due().await, Some(secs(30)), "an earlier one counts at once");
}
