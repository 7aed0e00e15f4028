//! Leadership: one at a time, by the store's clock, and in terms.

use crate::sample::secs;
use crate::snapshot::assert_same;
use crate::world::World;
use durably_kernel::WorkerId;
use durably_store::{LeadCall, Led, Term};
use std::sync::Arc;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(6);
const MILLI: Duration = Duration::from_millis(1);

async fn lead(world: &World, who: &WorkerId) -> Led {
    let call = LeadCall { who: who.clone(), lease: LEASE };
    world.store.lead(call).await.expect("lead")
}

fn leads(term: u64) -> Led {
    Led::Leads { term: Term(term), left: LEASE }
}

fn follows(left: Duration) -> Led {
    Led::Follows { left }
}

pub(crate) async fn the_first_to_ask_leads_and_others_follow(world: &World) {
    let (one, two) = (world.worker("one").await, world.worker("two").await);
    let row = world.store.leader().await.unwrap();
    assert_eq!((row.who, row.term), (None, Term(0)), "nobody has led yet");
    assert_eq!(lead(world, &one).await, leads(1));
    world.pass(secs(1));
    assert_eq!(lead(world, &two).await, follows(secs(5)));
    let row = world.store.leader().await.unwrap();
    assert_eq!((row.who, row.term, row.lease), (Some(one), Term(1), LEASE));
    assert_eq!(row.renewed_at.after(secs(1)), world.now());
}

pub(crate) async fn who_asks_again_in_time_goes_on_in_its_term(world: &World) {
    let (one, two) = (world.worker("one").await, world.worker("two").await);
    lead(world, &one).await;
    for _ in 0..5 {
        world.pass(LEASE - MILLI);
        assert_eq!(lead(world, &two).await, follows(MILLI));
        assert_eq!(lead(world, &one).await, leads(1), "also where an answer was lost");
    }
}

pub(crate) async fn a_lease_that_is_over_is_taken_over_in_a_new_term(world: &World) {
    let (one, two) = (world.worker("one").await, world.worker("two").await);
    lead(world, &one).await;
    world.pass(LEASE);
    assert_eq!(lead(world, &two).await, leads(2));
    assert_eq!(lead(world, &one).await, follows(LEASE), "one that stood still learns of it");
    world.pass(LEASE);
    assert_eq!(lead(world, &one).await, leads(3));
}

pub(crate) async fn one_that_comes_late_begins_a_new_term_itself(world: &World) {
    let one = world.worker("one").await;
    lead(world, &one).await;
    world.pass(LEASE);
    assert_eq!(lead(world, &one).await, leads(2));
}

pub(crate) async fn one_that_leaves_hands_over_at_once(world: &World) {
    let (one, two) = (world.worker("one").await, world.worker("two").await);
    lead(world, &one).await;
    world.store.leave(two.clone()).await.unwrap();
    assert_eq!(world.store.leader().await.unwrap().who, Some(one.clone()), "another one left");
    let three = world.worker("three").await;
    assert_eq!(lead(world, &three).await, follows(LEASE));
    world.store.leave(one.clone()).await.unwrap();
    let row = world.store.leader().await.unwrap();
    assert_eq!((row.who, row.term), (None, Term(1)));
    assert_eq!(lead(world, &one).await, follows(Duration::ZERO), "it has left");
    assert_eq!(lead(world, &three).await, leads(2));
}

pub(crate) async fn one_that_drains_goes_on_and_does_not_begin(world: &World) {
    let (one, two) = (world.worker("one").await, world.worker("two").await);
    lead(world, &one).await;
    for who in [&one, &two] {
        world.store.drain(who.clone()).await.unwrap();
    }
    world.pass(secs(3));
    assert_eq!(lead(world, &one).await, leads(1));
    world.pass(LEASE);
    let before = world.snapshot().await;
    for who in [&one, &two] {
        assert_eq!(lead(world, who).await, follows(Duration::ZERO));
    }
    assert_same(&before, &world.snapshot().await);
}

pub(crate) async fn who_is_gone_or_unknown_does_not_lead(world: &World) {
    let (stale, stopped) = (world.worker("stale").await, world.worker("stopped").await);
    world.store.leave(stopped.clone()).await.unwrap();
    lead(world, &stale).await;
    world.pass(secs(61));
    assert_eq!(world.sweep().await.dead, 1);
    let before = world.snapshot().await;
    for who in [stale, stopped, "nobody".into()] {
        assert_eq!(lead(world, &who).await, follows(Duration::ZERO), "{who}");
    }
    assert_same(&before, &world.snapshot().await);
}

pub(crate) async fn a_clock_that_was_set_back_keeps_nobody_out(world: &World) {
    let (one, two) = (world.worker("one").await, world.worker("two").await);
    world.pass(secs(3600));
    lead(world, &one).await;
    world.clock.set(World::START);
    assert_eq!(lead(world, &two).await, leads(2), "instead of waiting for an hour");
    assert_eq!(lead(world, &one).await, follows(LEASE));
}

pub(crate) async fn of_many_that_ask_at_once_one_leads(world: &World) {
    let mut handles = Vec::new();
    for number in 0..4 {
        handles.push((world.worker(&format!("w{number}")).await, world.other_handle().await));
    }
    let handles = Arc::new(handles);
    for round in 1..=5 {
        let asked = handles
            .iter()
            .map(|(who, store)| store.lead(LeadCall { who: who.clone(), lease: LEASE }));
        let answers = futures_util::future::try_join_all(asked).await.expect("lead");
        let leading = answers.iter().filter(|led| **led == leads(round));
        assert_eq!(leading.count(), 1, "{answers:?}");
        let following = answers.iter().filter(|led| **led == follows(LEASE));
        assert_eq!(following.count(), handles.len() - 1, "{answers:?}");
        world.pass(LEASE);
    }
}
