//! A write that names a claim which no longer stands changes nothing.

use crate::sample::{FIRST, activity, done, noted, puts};
use crate::snapshot::assert_same;
use crate::world::{Turn, Working, World};
use durably_kernel::{Claim, ClaimNumber, Place, RunId, Seq, TaskState, WorkerId};
use durably_store::{
    Beat, BeatAnswer, CommitAnswer, Delivered, HandBack, Heartbeat, Held, Returned, RunCommit,
    TurnAfter,
};

/// The claim with each of its parts wrong in turn. `twin` is another run with an equal row.
pub(crate) fn wrong(claim: Claim, twin: RunId) -> [(&'static str, Claim); 6] {
    let number = |number| Claim { number: ClaimNumber(number), ..claim };
    let seq = |seq| Claim { seq: Seq(seq), ..claim };
    [
        ("run", Claim { run: twin, ..claim }),
        ("place", Claim { place: Place(claim.place.0 + 1), ..claim }),
        ("older event", seq(claim.seq.0 - 1)),
        ("newer event", seq(claim.seq.0 + 1)),
        ("older number", number(claim.number.0 - 1)),
        ("newer number", number(claim.number.0 + 1)),
    ]
}

struct Twins {
    who: WorkerId,
    other: WorkerId,
    one: Working,
    two: Working,
}

/// Two runs whose rows are equal in place, event, number and owner: only the run tells the claims
/// apart. Another process is there as well.
async fn twins(world: &World) -> Twins {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    let one = world.working(&who).await;
    let two = world.working(&who).await;
    assert_eq!(Claim { run: one.run, ..two.task.claim }, one.task.claim);
    Twins { who, other, one, two }
}

async fn held_twins(world: &World, who: &WorkerId) -> (Turn, Turn) {
    let (one, two) = (world.held(who).await, world.held(who).await);
    assert_eq!(Claim { run: one.run, ..two.claim }, one.claim);
    (one, two)
}

pub(crate) async fn a_commit_with_any_part_of_a_claim_wrong_is_fenced(world: &World) {
    let twins = twins(world).await;
    let before = world.snapshot().await;
    for (what, claim) in wrong(twins.one.task.claim, twins.two.run) {
        let commit = RunCommit { claims: vec![claim], ..world.result_of(&twins.one) };
        let answer = world.commit(&twins.who, commit).await;
        assert_eq!(answer, CommitAnswer::Fenced(vec![claim]), "{what}");
        assert_same(&before, &world.snapshot().await);
    }
    for who in [None, Some(&twins.other), Some(&WorkerId::from("one "))] {
        let answer = world.commit(who, world.result_of(&twins.one)).await;
        assert_eq!(answer, CommitAnswer::Fenced(vec![twins.one.task.claim]), "{who:?}");
        assert_same(&before, &world.snapshot().await);
    }
    done(world.commit(&twins.who, world.result_of(&twins.one)).await);
}

pub(crate) async fn a_holder_with_any_part_of_its_claim_wrong_is_fenced(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    let (turn, twin) = held_twins(world, &who).await;
    let before = world.snapshot().await;
    for (what, claim) in wrong(turn.claim, twin.run) {
        let commit = RunCommit { holder: Some(claim), ..world.turn_of(&turn) };
        let answer = world.commit(&who, commit).await;
        assert_eq!(answer, CommitAnswer::Fenced(vec![claim]), "{what}");
        assert_same(&before, &world.snapshot().await);
    }
    for who in [None, Some(&other)] {
        let answer = world.commit(who, world.turn_of(&turn)).await;
        assert_eq!(answer, CommitAnswer::Fenced(vec![turn.claim]), "{who:?}");
        assert_same(&before, &world.snapshot().await);
    }
    done(world.commit(&who, world.turn_of(&turn)).await);
}

pub(crate) async fn a_delivery_with_any_part_of_its_claim_wrong_is_fenced(world: &World) {
    let twins = twins(world).await;
    let good = world.outcome_of(&twins.who, &twins.one);
    let mut bad: Vec<_> = wrong(twins.one.task.claim, twins.two.run)
        .map(|(what, claim)| (what, Held { who: twins.who.clone(), claim }))
        .into();
    let claim = twins.one.task.claim;
    bad.push(("incarnation", Held { who: twins.other.clone(), claim }));
    let before = world.snapshot().await;
    for (what, held) in bad {
        let delivery = durably_store::Delivery { claim: Some(held), ..good.clone() };
        assert_eq!(world.deliver_one(delivery).await, Delivered::Fenced, "{what}");
        assert_same(&before, &world.snapshot().await);
    }
    assert_eq!(world.deliver_one(good).await, Delivered::Entry(1));
}

pub(crate) async fn a_load_says_which_claims_stand(world: &World) {
    let twins = twins(world).await;
    let claim = twins.one.task.claim;
    let mut claims: Vec<Claim> = wrong(claim, twins.two.run).map(|(_, claim)| claim).into();
    claims.insert(3, claim);
    let call = |who: Option<&WorkerId>| durably_store::LoadCall {
        claims: claims.clone(),
        who: who.cloned(),
        ..world.load_call(twins.one.run)
    };
    assert_eq!(world.load(call(Some(&twins.who))).await.standing, [claim]);
    assert_eq!(world.load(call(Some(&twins.other))).await.standing, []);
    assert_eq!(world.load(call(None)).await.standing, []);
}

pub(crate) async fn a_hand_back_with_any_part_of_the_claim_wrong_is_ignored(world: &World) {
    let twins = twins(world).await;
    world.store.hand_back(twins.who.clone(), back(twins.two.task.claim)).await.unwrap();
    let before = world.snapshot().await;
    for (_, claim) in wrong(twins.one.task.claim, twins.two.run) {
        world.store.hand_back(twins.who.clone(), back(claim)).await.unwrap();
    }
    world.store.hand_back(twins.other.clone(), back(twins.one.task.claim)).await.unwrap();
    assert_same(&before, &world.snapshot().await);
}

fn back(claim: Claim) -> Vec<HandBack> {
    vec![HandBack { claim, how: Returned::Unstarted }]
}

pub(crate) async fn a_beat_names_every_claim_that_is_lost(world: &World) {
    let twins = twins(world).await;
    let claim = twins.one.task.claim;
    // The claim of the twin stands: only what is wrong in place, event or number is lost.
    let lost: Vec<Claim> = wrong(claim, twins.two.run)[1..].iter().map(|(_, c)| *c).collect();
    let mut named = lost.clone();
    named.extend([claim, twins.two.task.claim]);
    let details = Some(crate::sample::json("1"));
    let heartbeats =
        lost.iter().map(|claim| Heartbeat { claim: *claim, details: details.clone() }).collect();
    let beat =
        Beat { who: twins.who.clone(), number: world.draw(), load: 1, claims: named, heartbeats };
    let BeatAnswer::Alive { lost: found, cancelling, unnamed, .. } =
        world.store.beat(beat).await.unwrap()
    else {
        panic!("the process is active");
    };
    assert_eq!((found, cancelling, unnamed), (lost, vec![], vec![]));
    assert_eq!(world.row(twins.one.run, FIRST).await.details, None, "no heartbeat was its own");
    let BeatAnswer::Alive { lost, .. } = world.beat(&twins.other, &[claim]).await else {
        panic!("the process is active");
    };
    assert_eq!(lost, [claim], "another process has it");
}

pub(crate) async fn all_claims_are_checked_before_anything_is_written(world: &World) {
    let who = world.worker("one").await;
    let rows = [1, 2, 3].map(|n| activity(Place(n), &format!("a{n}"), Seq(2)));
    let turn = world.held_with(&who, rows).await;
    let tasks = world.claim(&who, 3).await;
    let claims: Vec<Claim> = tasks.iter().map(|task| task.claim).collect();
    world.store.hand_back(who.clone(), back(claims[1])).await.unwrap();
    let before = world.snapshot().await;
    let commit = RunCommit { claims: claims.clone(), ..world.turn_of(&turn) };
    let answer = world.commit(&who, commit.clone()).await;
    assert_eq!(answer, CommitAnswer::Fenced(vec![claims[1]]), "those that are gone, no others");
    assert_same(&before, &world.snapshot().await);
    world.store.hand_back(who.clone(), back(turn.claim)).await.unwrap();
    let CommitAnswer::Fenced(mut gone) = world.commit(&who, commit).await else {
        panic!("fenced");
    };
    gone.sort();
    assert_eq!(gone, [turn.claim, claims[1]]);
    let commit = RunCommit {
        claims: vec![claims[0], claims[2]],
        events: vec![noted("both")],
        ..world.on(turn.run, Seq(2))
    };
    done(world.commit(&who, commit).await);
    assert!(world.task(turn.run, Place(1)).await.is_none());
    assert!(world.task(turn.run, Place(3)).await.is_none());
    assert_eq!(world.row(turn.run, Place(2)).await.state, TaskState::Ready);
}

/// The same worker with an earlier claim of its own (T7).
pub(crate) async fn an_earlier_claim_of_the_same_worker_is_fenced(world: &World) {
    let who = world.worker("one").await;
    let first = world.working(&who).await;
    world.store.hand_back(who.clone(), back(first.task.claim)).await.unwrap();
    let second = Working { task: world.claim_one(&who).await, ..first };
    assert_eq!(second.task.claim.number, ClaimNumber(2));
    let old = Claim { number: ClaimNumber(1), ..second.task.claim };
    let commit = RunCommit { claims: vec![old], ..world.result_of(&second) };
    assert_eq!(world.commit(&who, commit).await, CommitAnswer::Fenced(vec![old]));
    done(world.commit(&who, world.result_of(&second)).await);
}

pub(crate) async fn a_claim_is_used_up_once(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    let claim = working.task.claim;
    done(world.commit(&who, world.result_of(&working)).await);
    let again = RunCommit {
        claims: vec![claim],
        events: vec![noted("again")],
        ..world.on(working.run, Seq(3))
    };
    let before = world.snapshot().await;
    assert_eq!(world.commit(&who, again).await, CommitAnswer::Fenced(vec![claim]));
    assert_eq!(
        world.deliver_one(world.outcome_of(&who, &working)).await,
        Delivered::Fenced,
        "delivered after it was committed"
    );
    assert_same(&before, &world.snapshot().await);
}

/// The row is there again under the same place and number, scheduled by another event.
pub(crate) async fn a_claim_of_an_earlier_task_at_the_same_place_is_fenced(world: &World) {
    let who = world.worker("one").await;
    let working = world.working(&who).await;
    done(world.commit(&who, world.result_of(&working)).await);
    let commit = RunCommit {
        events: vec![noted("next")],
        tasks: puts([activity(FIRST, "b", Seq(4))]),
        ..world.on(working.run, Seq(3))
    };
    done(world.commit(&who, commit).await);
    let task = world.claim_one(&who).await;
    assert_eq!((task.claim.place, task.claim.seq), (FIRST, Seq(4)));
    let old = Claim { number: task.claim.number, ..working.task.claim };
    let commit = RunCommit {
        claims: vec![old],
        events: vec![noted("old")],
        ..world.on(working.run, Seq(4))
    };
    assert_eq!(world.commit(&who, commit).await, CommitAnswer::Fenced(vec![old]));
    assert_eq!(world.row(working.run, FIRST).await.state, TaskState::Claimed);
}

pub(crate) async fn a_turn_claim_is_fenced_once_it_was_returned(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held(&who).await;
    let back = RunCommit { turn: TurnAfter::Return, ..world.turn_of(&turn) };
    assert_eq!(done(world.commit(&who, back).await).turn, None);
    let late = RunCommit { base: durably_store::Base::Head(Seq(3)), ..world.turn_of(&turn) };
    assert_eq!(world.commit(&who, late).await, CommitAnswer::Fenced(vec![turn.claim]));
    let task = world.claim_one(&who).await;
    assert_eq!((task.claim.run, task.claim.seq), (turn.run, turn.claim.seq));
    assert!(task.claim.number > turn.claim.number);
}
