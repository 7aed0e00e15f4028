//! The one-second question: which claims stand.

use crate::sample::{FIRST, done, noted, secs};
use crate::snapshot::assert_same;
use crate::world::World;
use durably_kernel::{Seq, TaskChange};
use durably_store::{AskAnswer, RunCommit};

pub(crate) async fn an_answer_names_what_stands_and_what_is_cancelled(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    let (kept, cancelled) = (world.working(&who).await, world.working(&who).await);
    world.working(&other).await;
    let turn = world.held(&who).await;
    let quiet = world.held(&who).await;
    world.signal(turn.run, "s").await;
    let commit = RunCommit {
        events: vec![noted("cancelled")],
        tasks: [(FIRST, TaskChange::Cancel(FIRST))].into(),
        ..world.on(cancelled.run, Seq(2))
    };
    done(world.commit(None, commit).await);
    let mut answer = world.store.ask(who).await.unwrap();
    answer.standing.sort();
    let mut standing = vec![kept.task.claim, turn.claim, quiet.claim];
    standing.sort();
    assert_eq!(answer.standing, standing);
    assert_eq!(answer.cancelling, [cancelled.task.claim]);
    assert_eq!(answer.unread, [turn.run]);
    assert!(answer.active);
}

pub(crate) async fn a_question_is_no_beat(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let before = world.snapshot().await;
    for _ in 0..5 {
        world.pass(secs(12));
        let answer = world.store.ask(who.clone()).await.unwrap();
        assert_eq!(answer.standing, [working.task.claim]);
    }
    assert_same(&before, &world.snapshot().await);
    world.pass(secs(1));
    assert_eq!(world.sweep().await.dead, 1);
    let answer = world.store.ask(who).await.unwrap();
    assert_eq!(answer, AskAnswer::default());
}

pub(crate) async fn nobody_has_nothing(world: &World) {
    world.held(&world.worker("one").await).await;
    assert_eq!(world.store.ask("nobody".into()).await.unwrap(), AskAnswer::default());
    let stopped = world.worker("stopped").await;
    world.store.leave(stopped.clone()).await.unwrap();
    assert_eq!(world.store.ask(stopped).await.unwrap(), AskAnswer::default());
}
