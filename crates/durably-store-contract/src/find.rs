//! Reads for people.

use crate::sample::{
    CHARGE, FIRST, ORDER, activity, completed, done, noted, puts, secs, summary, timer,
};
use crate::world::{World, activities, turns};
use durably_kernel::{Place, RunId, RunStatus, Seq};
use durably_store::{Examined, Registration, RunCommit, RunQuery, WorkerStatus};

async fn runs(world: &World, query: RunQuery) -> Vec<RunId> {
    let views = world.store.runs(query).await.unwrap();
    views.into_iter().map(|view| view.identity.id).collect()
}

pub(crate) async fn an_unknown_run_is_none(world: &World) {
    let run = world.run_id();
    assert_eq!(world.store.run(run).await.unwrap(), None);
    assert!(world.tasks(run).await.is_empty());
    let page = world.store.history(run, Seq(0), 10).await.unwrap();
    assert!(page.events.is_empty() && !page.more);
}

pub(crate) async fn runs_are_listed_newest_first(world: &World) {
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(world.start(world.new_run()).await);
    }
    all.reverse();
    assert_eq!(runs(world, RunQuery::default()).await, all);
    let views = world.store.runs(RunQuery::default()).await.unwrap();
    assert_eq!(views[0], world.view(all[0]).await, "as one run by itself");
}

/// By id, which carries the time of birth; not by the order of commits.
pub(crate) async fn the_order_is_that_of_ids(world: &World) {
    let (older, newer) = (world.new_run(), world.new_run());
    let expected = [newer.identity.id, older.identity.id];
    world.start(newer).await;
    world.start(older).await;
    assert_eq!(runs(world, RunQuery::default()).await, expected);
}

pub(crate) async fn runs_are_listed_in_pages(world: &World) {
    let mut all = Vec::new();
    for _ in 0..7 {
        all.push(world.start(world.new_run()).await);
    }
    all.reverse();
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = runs(world, RunQuery { before, most: 3, ..RunQuery::default() }).await;
        assert!(page.len() <= 3);
        let Some(last) = page.last() else { break };
        before = Some(*last);
        found.extend(page);
    }
    assert_eq!(found, all);
    assert!(runs(world, RunQuery { most: 0, ..RunQuery::default() }).await.is_empty());
}

async fn end(world: &World, run: RunId, status: RunStatus) {
    let commit = RunCommit {
        events: vec![completed()],
        summary: Some(summary(status)),
        ..world.on(run, Seq(2))
    };
    done(world.commit(None, commit).await);
}

pub(crate) async fn filters_narrow_and_work_together(world: &World) {
    let mut made = Vec::new();
    for (tenant, workflow) in [("a", "x"), ("a", "y"), ("b", "x"), ("A", "x"), ("a", "x")] {
        let mut new = world.new_for(tenant);
        new.workflow_type = workflow.into();
        made.push(world.begun_as(new, []).await);
    }
    end(world, made[0], RunStatus::Completed).await;
    end(world, made[2], RunStatus::Failed).await;
    let all = RunQuery::default;
    let of = |indices: &[usize]| -> Vec<RunId> { indices.iter().map(|at| made[*at]).collect() };
    let query = RunQuery { tenant: Some("a".into()), ..all() };
    assert_eq!(runs(world, query).await, of(&[4, 1, 0]));
    let query = RunQuery { workflow_type: Some("x".into()), ..all() };
    assert_eq!(runs(world, query).await, of(&[4, 3, 2, 0]));
    let query = RunQuery { statuses: vec![RunStatus::Running], ..all() };
    assert_eq!(runs(world, query).await, of(&[4, 3, 1]));
    let statuses = vec![RunStatus::Completed, RunStatus::Failed];
    let query = RunQuery { statuses: statuses.clone(), ..all() };
    assert_eq!(runs(world, query).await, of(&[2, 0]));
    let query = RunQuery {
        tenant: Some("a".into()),
        workflow_type: Some("x".into()),
        before: Some(made[4]),
        statuses,
        ..all()
    };
    assert_eq!(runs(world, query).await, of(&[0]));
    let query = RunQuery { tenant: Some("c".into()), ..all() };
    assert!(runs(world, query).await.is_empty());
}

pub(crate) async fn a_run_is_found_by_its_key(world: &World) {
    let mut keyed = world.new_run();
    keyed.check.key = Some("k 1".into());
    let run = world.start(keyed).await;
    world.start(world.new_run()).await;
    let query = |key: &str| RunQuery { idempotency_key: Some(key.into()), ..RunQuery::default() };
    assert_eq!(runs(world, query("k 1")).await, [run]);
    assert!(runs(world, query("K 1")).await.is_empty());
    assert_eq!(world.view(run).await.idempotency_key.as_deref(), Some("k 1"));
}

pub(crate) async fn a_history_is_read_in_pages(world: &World) {
    let run = world.begun([]).await;
    let events: Vec<_> = (0..8).map(|n| noted(&n.to_string())).collect();
    done(world.commit(None, RunCommit { events, ..world.on(run, Seq(2)) }).await);
    for most in [1, 3, 4, 5, 10] {
        let (mut seqs, mut pages) = (Vec::new(), 0);
        loop {
            let after = Seq(seqs.last().copied().unwrap_or(0));
            let page = world.store.history(run, after, most).await.unwrap();
            seqs.extend(page.events.iter().map(|row| row.seq.0));
            pages += 1;
            if !page.more {
                break;
            }
        }
        assert_eq!(seqs, (1..=10).collect::<Vec<_>>());
        assert_eq!(pages, 10_usize.div_ceil(most), "{most} at a time");
    }
}

pub(crate) async fn rows_of_a_run_are_listed_by_place(world: &World) {
    let rows = [11, 2, 7].map(|n| timer(Place(n), "t", Seq(2), secs(9)));
    let run = world.begun(rows).await;
    world.begun([activity(FIRST, "of another run", Seq(2))]).await;
    world.signal(run, "s").await;
    let places: Vec<_> = world.tasks(run).await.iter().map(|row| row.place.0).collect();
    assert_eq!(places, [0, 2, 7, 11]);
    let commit = RunCommit {
        events: vec![noted("x")],
        tasks: puts([activity(Place(3), "a", Seq(3))]),
        ..world.on(run, Seq(2))
    };
    done(world.commit(None, commit).await);
    let places: Vec<_> = world.tasks(run).await.iter().map(|row| row.place.0).collect();
    assert_eq!(places, [0, 2, 3, 7, 11]);
}

pub(crate) async fn processes_are_listed_newest_first(world: &World) {
    let registration = Registration {
        group: "pool".into(),
        queues: vec!["fast".into(), "a b".into()],
        can: vec![turns(ORDER, 2), activities(CHARGE), turns("x", 1)],
        capacity: 33,
        host: "höst".into(),
        version: "2.0".into(),
        ..world.registration("zebra")
    };
    let began = world.store.register(registration.clone()).await.unwrap();
    assert_eq!(began, world.now());
    world.worker("ant").await;
    world.pass(secs(1));
    world.worker("bee").await;
    let workers = world.store.workers().await.unwrap();
    let names: Vec<_> = workers.iter().map(|worker| worker.who.as_str()).collect();
    assert_eq!(names, ["bee", "ant", "zebra"]);
    let row = &workers[2];
    assert_eq!((row.status, row.load, row.capacity), (WorkerStatus::Active, 0, 33));
    assert_eq!(
        (&row.group, &row.host, &row.version),
        (&"pool".into(), &"höst".into(), &"2.0".into())
    );
    assert_eq!((&row.queues, &row.can), (&registration.queues, &registration.can));
    assert_eq!((row.started_at, row.beat_at), (began, began));
    assert_eq!(workers[0].started_at, world.now());
}

/// Used-up entries are listed too.
pub(crate) async fn an_inbox_is_read_in_pages(world: &World) {
    let run = world.begun([]).await;
    for n in 1..=5 {
        world.signal(run, &format!("s{n}")).await;
    }
    let commit = RunCommit { events: vec![noted("x")], inbox_used: 2, ..world.on(run, Seq(2)) };
    done(world.commit(None, commit).await);
    let unread = world.unread(run).await;
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let page = world.store.inbox(run, after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        after = last.number;
        found.extend(page);
    }
    let ids: Vec<&str> = found.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["s1", "s2", "s3", "s4", "s5"]);
    assert_eq!(found[2..], unread);
    assert!(world.store.inbox(world.run_id(), 0, 9).await.unwrap().is_empty());
}

pub(crate) async fn what_the_tables_hold_is_counted_by_id(world: &World) {
    let mut keyed = world.new_for("a");
    keyed.check.key = Some("k".into());
    let empty = Examined {
        run: keyed.identity.id,
        known: true,
        commits: 1,
        events: 2,
        tasks: 0,
        foreign_tasks: 0,
        entries: 0,
        last_entry: 0,
        letters: 0,
        same_key: 0,
    };
    let plain = world.begun_as(keyed, []).await;
    let mut keyed = world.new_for("b");
    keyed.check.key = Some("k".into());
    let rows = [1, 2].map(|n| timer(Place(n), "t", Seq(2), secs(9)));
    let busy = world.begun_as(keyed, rows).await;
    for n in 1..=3 {
        world.signal(busy, &format!("s{n}")).await;
    }
    let events = (0..4).map(|n| noted(&n.to_string())).collect();
    done(world.commit(None, RunCommit { events, ..world.on(busy, Seq(2)) }).await);
    let dead = world.begun([]).await;
    world.signal(dead, "s").await;
    let commit = RunCommit {
        operator: true,
        end_anyway: true,
        events: vec![noted("terminated")],
        summary: Some(summary(RunStatus::Terminated)),
        ..world.on(dead, Seq(2))
    };
    done(world.commit(None, commit).await);
    let expected = [
        empty,
        Examined { run: busy, commits: 2, events: 6, tasks: 3, entries: 3, last_entry: 3, ..empty },
        Examined {
            run: dead,
            commits: 2,
            events: 3,
            entries: 1,
            last_entry: 1,
            letters: 1,
            ..empty
        },
    ];
    assert_eq!(world.store.examine(plain, 10).await.unwrap(), expected);
    assert_eq!(world.store.examine(busy, 1).await.unwrap(), expected[1..2]);
    assert_eq!(world.store.examine(RunId(uuid::Uuid::nil()), 2).await.unwrap(), expected[..2]);
    assert!(world.store.examine(RunId(uuid::Uuid::max()), 2).await.unwrap().is_empty());
}
