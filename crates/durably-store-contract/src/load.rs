//! Reading a run for a turn.

use crate::sample::{FIRST, activity, done, noted, pinned, secs, started};
use crate::world::World;
use durably_kernel::{Place, Seq};
use durably_store::{LoadCall, RunCommit};

pub(crate) async fn a_run_is_loaded_with_all_that_a_turn_needs(world: &World) {
    let who = world.worker("one").await;
    let turn = world.held_with(&who, [activity(FIRST, "a", Seq(2))]).await;
    let task = world.claim_one(&who).await;
    world.signal(turn.run, "a").await;
    world.signal(turn.run, "b").await;
    world.pass(secs(2));
    let gone = durably_kernel::Claim { place: Place(7), ..turn.claim };
    let call = LoadCall {
        claims: vec![task.claim, gone, turn.claim],
        who: Some(who),
        ..world.load_call(turn.run)
    };
    let loaded = world.load(call).await;
    assert_eq!(loaded.view, world.view(turn.run).await);
    assert_eq!((loaded.events, loaded.more), (vec![started(), pinned()], false));
    let unread: Vec<_> = loaded.unread.iter().map(|e| (e.number, e.id.as_str())).collect();
    assert_eq!(unread, [(1, "a"), (2, "b")]);
    assert_eq!(loaded.standing, [task.claim, turn.claim], "in the order asked");
    assert_eq!(loaded.now, world.now());
}

pub(crate) async fn an_unknown_run_is_none(world: &World) {
    let call = world.load_call(world.run_id());
    assert_eq!(world.store.load(call).await.unwrap(), None);
}

pub(crate) async fn events_are_loaded_in_pages(world: &World) {
    let run = world.begun([]).await;
    let mut all = vec![started(), pinned()];
    for commit in 0..6_u64 {
        let events: Vec<_> = (0..3).map(|n| noted(&format!("{commit}/{n}"))).collect();
        all.extend(events.clone());
        let commit = RunCommit { events, ..world.on(run, Seq(2 + 3 * commit)) };
        done(world.commit(None, commit).await);
    }
    for events_max in [1, 2, 3, 7, 20, 1000] {
        let (mut found, mut pages) = (Vec::new(), 0);
        loop {
            let after = Seq(found.len() as u64);
            let call = LoadCall { after, events_max, ..world.load_call(run) };
            let loaded = world.load(call).await;
            assert!(loaded.events.len() <= events_max);
            found.extend(loaded.events);
            pages += 1;
            if !loaded.more {
                break;
            }
        }
        assert_eq!(found, all, "{events_max} at a time");
        assert_eq!(pages, 20_usize.div_ceil(events_max), "no empty page at the end");
    }
}

pub(crate) async fn only_newer_events_are_loaded(world: &World) {
    let run = world.begun([]).await;
    let events = vec![noted("c"), noted("d")];
    done(world.commit(None, RunCommit { events, ..world.on(run, Seq(2)) }).await);
    for (after, expected) in [(1, 3), (2, 2), (3, 1), (4, 0), (9, 0)] {
        let loaded = world.load(LoadCall { after: Seq(after), ..world.load_call(run) }).await;
        assert_eq!((loaded.events.len(), loaded.more), (expected, false), "after {after}");
        assert_eq!(loaded.view.head, Seq(4));
    }
}

pub(crate) async fn a_load_hands_out_a_bounded_part_of_the_inbox(world: &World) {
    let run = world.begun([]).await;
    for n in 1..=130 {
        world.signal(run, &format!("s{n}")).await;
    }
    let loaded = world.load(world.load_call(run)).await;
    assert_eq!(loaded.view.inbox_last, 130);
    assert_eq!((loaded.unread.len(), loaded.unread[99].number), (100, 100));
}
