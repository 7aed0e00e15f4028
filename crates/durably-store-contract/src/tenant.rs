//! Fair between tenants: in equal shares, at any depth.

use crate::sample::{FIRST, activity, done, secs};
use crate::world::{World, activities, turns};
use durably_kernel::{Place, Seq, TaskPut, Tenant, WorkerId};
use durably_store::{ClaimCall, Claimed, RunCommit, TurnAfter, Want};
use std::collections::BTreeMap;

async fn starts(world: &World, tenant: &str, count: usize) {
    let batch = (0..count).map(|_| world.start_of(world.new_for(tenant))).collect();
    for answer in world.commit_all(None, batch).await {
        done(answer);
    }
}

/// Claims so many, and says of which tenants they are, in order, and where to go on.
async fn serve(
    world: &World,
    who: &WorkerId,
    most: usize,
    cursor: Option<&str>,
) -> (Vec<String>, Option<Tenant>) {
    let call = ClaimCall { cursor: cursor.map(Tenant::from), ..world.claim_call(who, most) };
    match world.store.claim(call).await.unwrap() {
        Claimed::Tasks { tasks, cursor, .. } => {
            (tasks.iter().map(|task| task.run.identity.tenant.to_string()).collect(), cursor)
        }
        Claimed::Refused => panic!("the process is active"),
    }
}

fn count(served: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for tenant in served {
        *counts.entry(tenant.as_str()).or_default() += 1;
    }
    counts
}

pub(crate) async fn tenants_take_turns(world: &World) {
    let who = world.worker("one").await;
    for (tenant, runs) in [("a", 5), ("b", 3), ("c", 1)] {
        starts(world, tenant, runs).await;
    }
    let (served, cursor) = serve(world, &who, 7, None).await;
    assert_eq!(served, ["a", "b", "c", "a", "b", "a", "b"]);
    assert_eq!(cursor, Some("b".into()), "go on after the last one served");
    let (served, _) = serve(world, &who, 7, None).await;
    assert_eq!(served, ["a", "a"]);
}

pub(crate) async fn the_next_claim_goes_on_after_the_cursor(world: &World) {
    let who = world.worker("one").await;
    for tenant in ["a", "b", "c"] {
        starts(world, tenant, 3).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    for _ in 0..9 {
        let at: Option<Tenant> = cursor.take();
        let (served, next) = serve(world, &who, 1, at.as_ref().map(Tenant::as_str)).await;
        seen.extend(served);
        cursor = next;
    }
    assert_eq!(seen, ["a", "b", "c", "a", "b", "c", "a", "b", "c"]);
    let (served, next) = serve(world, &who, 1, Some("b")).await;
    assert_eq!((served.len(), next), (0, Some("b".into())), "it stays where nothing is taken");
}

pub(crate) async fn a_cursor_need_not_be_a_tenant(world: &World) {
    let who = world.worker("one").await;
    for tenant in ["a", "c"] {
        starts(world, tenant, 2).await;
    }
    assert_eq!(serve(world, &who, 1, Some("b")).await.0, ["c"]);
    assert_eq!(serve(world, &who, 1, Some("z")).await.0, ["a"], "round to the first");
    assert_eq!(serve(world, &who, 5, Some("c")).await.0, ["a", "c"]);
}

pub(crate) async fn one_task_behind_thousands_is_claimed_within_one_round(world: &World) {
    let who = world.worker("one").await;
    let other = world.worker("two").await;
    for _ in 0..4 {
        starts(world, "b", 500).await;
    }
    starts(world, "a", 1).await;
    starts(world, "c", 1).await;
    let (served, _) = serve(world, &who, 3, Some("a")).await;
    assert_eq!(count(&served), BTreeMap::from([("a", 1), ("b", 1), ("c", 1)]));
    starts(world, "c", 1).await;
    let (served, cursor) = serve(world, &other, 1, Some("a")).await;
    assert_eq!(served, ["b"]);
    let cursor = cursor.expect("somebody was served");
    let (served, _) = serve(world, &other, 1, Some(cursor.as_str())).await;
    assert_eq!(served, ["c"], "from any process, in claims of one");
}

pub(crate) async fn shares_are_equal_at_any_depth(world: &World) {
    let who = world.worker("one").await;
    for (tenant, runs) in [("a", 30), ("b", 60), ("c", 15), ("d", 200)] {
        starts(world, tenant, runs).await;
    }
    let (served, _) = serve(world, &who, 40, None).await;
    assert_eq!(count(&served), BTreeMap::from([("a", 10), ("b", 10), ("c", 10), ("d", 10)]));
    let (served, _) = serve(world, &who, 50, None).await;
    let counts = count(&served);
    assert_eq!(counts["c"], 5, "all that it had");
    assert!([counts["a"], counts["b"], counts["d"]].iter().all(|n| *n == 15), "{counts:?}");
}

pub(crate) async fn having_been_idle_is_no_credit(world: &World) {
    let who = world.worker("one").await;
    starts(world, "b", 40).await;
    let (served, cursor) = serve(world, &who, 20, None).await;
    assert_eq!(served.len(), 20);
    starts(world, "a", 20).await;
    let at = cursor.as_ref().map(Tenant::as_str);
    let (served, _) = serve(world, &who, 10, at).await;
    assert_eq!(count(&served), BTreeMap::from([("a", 5), ("b", 5)]));
}

pub(crate) async fn a_tenant_with_more_kinds_of_work_has_no_larger_share(world: &World) {
    let who = world.worker("one").await;
    for n in 0..6 {
        for (tenant, name) in [("a", "x"), ("a", "y"), ("b", "x")] {
            let queue = if n % 2 == 0 { "default" } else { "second" };
            let put =
                TaskPut { name: name.into(), queue: queue.into(), ..activity(FIRST, "a", Seq(2)) };
            world.begun_as(world.new_for(tenant), [put]).await;
        }
    }
    let call = ClaimCall {
        queues: vec!["default".into(), "second".into()],
        wants: vec![Want { any: vec![activities("x"), activities("y")], most: 8 }],
        ..world.claim_call(&who, 0)
    };
    let tasks = world.claimed(call).await;
    let served: Vec<_> = tasks.iter().map(|task| task.run.identity.tenant.to_string()).collect();
    assert_eq!(served, ["a", "b", "a", "b", "a", "b", "a", "b"]);
}

pub(crate) async fn wants_go_on_where_the_one_before_stopped(world: &World) {
    let who = world.worker("one").await;
    for tenant in ["a", "b", "c"] {
        for _ in 0..2 {
            let run = world.begun_as(world.new_for(tenant), [activity(FIRST, "x", Seq(2))]).await;
            world.signal(run, "s").await;
        }
    }
    let wants = vec![
        Want { any: vec![activities("charge")], most: 2 },
        Want { any: vec![turns("order", 1)], most: 2 },
    ];
    let call = ClaimCall { wants, ..world.claim_call(&who, 0) };
    let tasks = world.claimed(call).await;
    let served: Vec<_> = tasks.iter().map(|task| task.run.identity.tenant.as_str()).collect();
    assert_eq!(served, ["a", "b", "c", "a"]);
}

pub(crate) async fn within_a_tenant_the_oldest_comes_first(world: &World) {
    let who = world.worker("one").await;
    let mut runs = Vec::new();
    for n in 0..6 {
        let tenant = if n % 2 == 0 { "a" } else { "b" };
        runs.push(world.start(world.new_for(tenant)).await);
    }
    let tasks = world.claim(&who, 6).await;
    let order: Vec<_> = tasks.iter().map(|task| task.claim.run).collect();
    assert_eq!(order, runs);
}

/// Ids say when a run was made; the order is that of becoming ready.
pub(crate) async fn becoming_ready_decides_the_order_not_the_age(world: &World) {
    let who = world.worker("one").await;
    let late = RunCommit {
        turn: TurnAfter::Want { delay: Some(secs(1)) },
        ..world.start_of(world.new_run())
    };
    let old = late.run;
    done(world.commit(None, late).await);
    let young = world.start(world.new_run()).await;
    world.pass(secs(1));
    world.sweep().await;
    let tasks = world.claim(&who, 2).await;
    let order: Vec<_> = tasks.iter().map(|task| task.claim.run).collect();
    assert_eq!(order, [young, old]);
}

pub(crate) async fn tenants_are_told_apart_exactly(world: &World) {
    let who = world.worker("one").await;
    let tenants = ["a", "A", "a ", " a", "ä", "a\u{308}", "😀", "b"];
    for tenant in tenants {
        starts(world, tenant, 2).await;
    }
    let (served, _) = serve(world, &who, tenants.len(), None).await;
    let counts = count(&served);
    assert_eq!(counts.len(), tenants.len(), "each once: {served:?}");
    let mut sorted = tenants.to_vec();
    sorted.sort_unstable();
    assert_eq!(served, sorted, "in the order of their bytes");
}

pub(crate) async fn places_of_one_run_are_tasks_of_its_tenant(world: &World) {
    let who = world.worker("one").await;
    let puts = (1..=4).map(|n| activity(Place(n), &format!("a{n}"), Seq(2)));
    world.begun_as(world.new_for("wide"), puts).await;
    world.begun_as(world.new_for("small"), [activity(FIRST, "a", Seq(2))]).await;
    let (served, _) = serve(world, &who, 3, None).await;
    assert_eq!(served, ["small", "wide", "wide"]);
}
