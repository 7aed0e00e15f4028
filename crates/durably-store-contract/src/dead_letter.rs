//! Work that was given up, kept for people.

use crate::sample::{FIRST, cancel, completed, done, json, noted, secs, signal, summary, timer};
use crate::world::{Turn, World};
use durably_kernel::{
    DeadLetter, DeadLetterKind, Fact, Failure, FailureKind, Place, RunId, RunStatus, Seq, Signal,
    WorkerId,
};
use durably_store::{CommitAnswer, DeadLetterRow, RunCommit};

async fn letters(world: &World, run: impl Into<Option<RunId>>) -> Vec<DeadLetterRow> {
    world.store.dead_letters(run.into(), 100).await.unwrap()
}

fn ids(letters: &[DeadLetterRow]) -> Vec<&str> {
    letters.iter().map(|letter| letter.activity_id.as_str()).collect()
}

fn ending(world: &World, turn: &Turn) -> RunCommit {
    RunCommit {
        events: vec![completed()],
        summary: Some(summary(RunStatus::Completed)),
        ..world.turn_of(turn)
    }
}

/// A held run with these inbox entries.
async fn with_entries(world: &World, who: &WorkerId, facts: Vec<Fact>) -> Turn {
    let turn = world.held(who).await;
    for (at, fact) in facts.into_iter().enumerate() {
        world.deliver(turn.run, &format!("e{}", at + 1), fact).await;
    }
    turn
}

pub(crate) async fn a_dead_letter_of_a_commit_is_kept(world: &World) {
    let run = world.begun([]).await;
    let errors = vec![
        Failure::new(FailureKind::Retryable, "first\n\u{1F4A3}").code("E1"),
        Failure { retry_after_ms: Some(4), ..Failure::new(FailureKind::RateLimited, "second") },
    ];
    let letter = DeadLetter {
        kind: DeadLetterKind::Activity,
        activity_id: "charge#2".into(),
        activity_type: "charge".into(),
        input: json(r#"{"b":1.0, "b":2}"#),
        attempts: 3,
        errors,
    };
    world.pass(secs(4));
    let commit = RunCommit {
        events: vec![noted("failed")],
        dead_letters: vec![letter.clone()],
        ..world.on(run, Seq(2))
    };
    done(world.commit(None, commit).await);
    let found = letters(world, run).await;
    assert_eq!(found.len(), 1);
    let row = &found[0];
    assert_eq!((row.run, row.kind, row.dead_at), (run, letter.kind, world.now()));
    assert_eq!(
        (&row.activity_id, &row.activity_type),
        (&letter.activity_id, &letter.activity_type)
    );
    assert_eq!((row.attempts, &row.errors), (3, &letter.errors));
    assert_eq!(row.input.text(), letter.input.text());
}

pub(crate) async fn dead_letters_are_listed_newest_first(world: &World) {
    let (one, two) = (world.begun([]).await, world.begun([]).await);
    let letter = |id: &str| DeadLetter {
        kind: DeadLetterKind::Activity,
        activity_id: id.into(),
        activity_type: "charge".into(),
        input: json("null"),
        attempts: 1,
        errors: vec![],
    };
    for (run, names) in [(one, ["a", "b"]), (two, ["c", "d"])] {
        let commit = RunCommit {
            events: vec![noted("failed")],
            dead_letters: names.map(letter).to_vec(),
            ..world.on(run, Seq(2))
        };
        done(world.commit(None, commit).await);
    }
    let all = letters(world, None).await;
    assert_eq!(ids(&all), ["d", "c", "b", "a"]);
    assert!(all.windows(2).all(|pair| pair[0].id > pair[1].id), "ids grow with time");
    assert_eq!(ids(&letters(world, one).await), ["b", "a"]);
    let some = world.store.dead_letters(None, 3).await.unwrap();
    assert_eq!(ids(&some), ["d", "c", "b"]);
    assert!(letters(world, world.run_id()).await.is_empty());
}

pub(crate) async fn entries_read_after_the_end_become_dead_letters(world: &World) {
    let who = world.worker("one").await;
    let turn = with_entries(world, &who, vec![signal("a"), signal("b"), signal("c")]).await;
    let commit = RunCommit { inbox_used: 3, unread: vec![2, 3], ..ending(world, &turn) };
    done(world.commit(&who, commit).await);
    let found = letters(world, turn.run).await;
    assert_eq!(ids(&found), ["e3", "e2"]);
    for row in &found {
        assert_eq!((row.kind, row.attempts), (DeadLetterKind::Unread, 0));
        assert_eq!(row.activity_type, "approval");
        assert_eq!(row.input, json(r#"{"by":"hand"}"#));
        assert_eq!(row.errors.len(), 1);
        assert_eq!(row.errors[0].code.as_deref(), Some(durably_kernel::Code::RUN_ENDED.as_str()));
    }
}

pub(crate) async fn ending_anyway_makes_newer_signals_dead_letters(world: &World) {
    let who = world.worker("one").await;
    let facts = vec![signal("a"), signal("b"), signal("c"), signal("d")];
    let turn = with_entries(world, &who, facts).await;
    let commit = RunCommit { inbox_used: 2, unread: vec![2], ..ending(world, &turn) };
    assert_eq!(world.commit(&who, commit.clone()).await, CommitAnswer::EndConflict);
    assert!(letters(world, None).await.is_empty(), "a commit that is refused leaves none");
    done(world.commit(&who, RunCommit { end_anyway: true, ..commit }).await);
    assert_eq!(ids(&letters(world, turn.run).await), ["e4", "e3", "e2"]);
    let view = world.view(turn.run).await;
    assert_eq!((view.inbox_last, view.inbox_used), (4, 4), "nothing is left unread");
    assert_eq!(view.status, RunStatus::Completed);
}

pub(crate) async fn only_signals_become_dead_letters(world: &World) {
    let who = world.worker("one").await;
    let fired = Fact::TimerFired { timer_id: "t".into(), seq: Seq(2) };
    let facts = vec![cancel(), fired.clone(), signal("s"), Fact::RunTimedOut {}, fired];
    let turn = with_entries(world, &who, facts).await;
    let commit =
        RunCommit { inbox_used: 2, unread: vec![1, 2], end_anyway: true, ..ending(world, &turn) };
    done(world.commit(&who, commit).await);
    assert_eq!(ids(&letters(world, turn.run).await), ["e3"]);
}

pub(crate) async fn ending_anyway_over_nothing_newer_leaves_none(world: &World) {
    let who = world.worker("one").await;
    let turn = with_entries(world, &who, vec![signal("a")]).await;
    let commit = RunCommit { inbox_used: 1, end_anyway: true, ..ending(world, &turn) };
    done(world.commit(&who, commit).await);
    assert!(letters(world, None).await.is_empty());
}

pub(crate) async fn going_on_leaves_newer_signals_in_the_inbox(world: &World) {
    let who = world.worker("one").await;
    let turn = with_entries(world, &who, vec![signal("a"), signal("b")]).await;
    let commit = RunCommit { inbox_used: 1, end_anyway: true, ..world.turn_of(&turn) };
    done(world.commit(&who, commit).await);
    assert!(letters(world, None).await.is_empty());
    assert_eq!(world.unread(turn.run).await.len(), 1);
}

pub(crate) async fn an_operator_that_ends_a_run_keeps_its_signals(world: &World) {
    let run = world.begun([timer(FIRST, "t", Seq(2), secs(50))]).await;
    let odd = Fact::Signal(Signal {
        id: "x".into(),
        signal_type: "odd type ".into(),
        payload: json(r#"[1.50, {"a":1,"a":2}]"#),
        sent_at: durably_kernel::Timestamp(0),
    });
    world.deliver(run, "signal:x", odd).await;
    let commit = RunCommit {
        operator: true,
        end_anyway: true,
        events: vec![noted("terminated")],
        summary: Some(summary(RunStatus::Terminated)),
        ..world.on(run, Seq(2))
    };
    done(world.commit(None, commit).await);
    let found = letters(world, run).await;
    assert_eq!(ids(&found), ["signal:x"]);
    assert_eq!(found[0].activity_type, "odd type ");
    assert_eq!(found[0].input.text(), r#"[1.50, {"a":1,"a":2}]"#);
    assert!(world.task(run, Place::TURN).await.is_none());
}
