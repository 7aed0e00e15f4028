//! Several engine processes on one database server.
#![allow(clippy::print_stdout, reason = "the counts are printed")]
#![allow(clippy::disallowed_methods, reason = "processes are killed at real moments")]

mod common;

use common::check::{attempts_of, check};
use common::fleet::{Fleet, Process};
use common::work::{MANY, SINGLE};
use common::{database, start_all, until, until_some};
use durably::{Client, Event, RunId, Seq, WorkerStatus};
use durably_store::LeaderRow;
use durably_testbed::Kind;
use std::path::PathBuf;
use std::time::Duration;

on_every_server!(
    three_processes_share_the_work_and_one_may_be_killed,
    two_hundred_workers_claim_nothing_twice,
    clocks_that_are_an_hour_off_change_nothing,
    of_eight_that_open_a_new_store_at_once_one_may_be_killed,
    another_leads_when_the_leader_was_killed,
    a_leader_that_stops_hands_over_at_once,
);

async fn three_processes_share_the_work_and_one_may_be_killed(kind: Kind) {
    let database = database(kind);
    const RUNS: u32 = 200;
    let fleet = Fleet::on(database.url());
    let processes = fleet.ready(2, 8);
    let victim = fleet.launch_with(8, |command| command.arg("40")).ready();
    let client = Client::connect(database.url()).await.unwrap();
    let handles = start_all(&client, MANY, RUNS).await;
    // In the middle of it all: everybody has done something, and one has its hands full.
    until("all have done something", async || {
        let (_, by_process) = fleet.effects();
        by_process.len() == 3 && by_process[&victim.id()] > 40
    })
    .await;
    let killed = victim.id();
    victim.kill();
    let (_, at_the_kill) = fleet.effects();
    for handle in &handles {
        handle.result().await.unwrap();
    }
    let (effects, by_process) = fleet.effects();
    let runs: Vec<RunId> = handles.iter().map(|handle| handle.id()).collect();
    let checked = check(&client, &runs, &effects).await;
    println!("{checked:?}, by process {by_process:?}, at the kill {at_the_kill:?}");
    assert_eq!(checked.timers, RUNS as usize);
    assert!(checked.lost > 0, "a kill that hits nothing proves nothing");
    assert_eq!(by_process[&killed], at_the_kill[&killed]);
    for process in &processes {
        let (before, after) = (at_the_kill[&process.id()], by_process[&process.id()]);
        assert!(after > before, "{} did nothing after the kill", process.id());
    }
    processes.into_iter().for_each(Process::stop);
    let workers = client.workers().await.unwrap();
    let dead = workers.iter().filter(|worker| worker.status == WorkerStatus::Stale).count();
    assert!(dead >= 1, "{workers:?}");
    assert!(workers.iter().all(|worker| worker.status != WorkerStatus::Active), "{workers:?}");
}

async fn two_hundred_workers_claim_nothing_twice(kind: Kind) {
    let database = database(kind);
    const RUNS: u32 = 5_000;
    let fleet = Fleet::on(database.url());
    let client = Client::connect(database.url()).await.unwrap();
    let handles = start_all(&client, SINGLE, RUNS).await;
    let processes = fleet.ready(4, 50);
    for handle in &handles {
        handle.result().await.unwrap();
    }
    let (effects, by_process) = fleet.effects();
    println!("by process {by_process:?}");
    assert_eq!(by_process.len(), 4, "{by_process:?}");
    let attempts = attempts_of(&effects);
    assert_eq!(attempts.len(), RUNS as usize);
    assert_eq!(effects.len(), RUNS as usize, "nobody died, so nothing is done again");
    processes.into_iter().for_each(Process::stop);
}

/// The library that shows a process another time.
fn faketime() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap().map(|folder| folder.unwrap().path());
    let mut places = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
    places.find(|library| library.exists()).expect(
        "libfaketime is not installed: run ./scripts/test, which installs it, or install the \
         package libfaketime yourself",
    )
}

async fn clocks_that_are_an_hour_off_change_nothing(kind: Kind) {
    const RUNS: u32 = 60;
    const HOUR: i64 = 3_600_000;
    let (database, library) = (database(kind), faketime());
    let fleet = Fleet::on(database.url());
    let launched = ["+3600", "+0", "-3600"].map(|seconds| {
        fleet.launch_with(4, |command| {
            let command = command.env("LD_PRELOAD", &library).env("FAKETIME", seconds);
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        })
    });
    let processes = launched.map(Process::ready);
    let client = Client::connect(database.url()).await.unwrap();
    let before = client.store().now().await.unwrap().0;
    assert!(processes[0].clock() > before + HOUR / 2, "its clock is ahead");
    assert!(processes[2].clock() < before - HOUR / 2, "its clock is behind");
    let handles = start_all(&client, MANY, RUNS).await;
    for handle in &handles {
        handle.result().await.unwrap();
    }
    let after = client.store().now().await.unwrap().0;
    let (effects, by_process) = fleet.effects();
    let runs: Vec<RunId> = handles.iter().map(|handle| handle.id()).collect();
    let checked = check(&client, &runs, &effects).await;
    println!("{checked:?}, by process {by_process:?}");
    assert_eq!((checked.lost, checked.timers, by_process.len()), (0, RUNS as usize, 3));
    for handle in &handles {
        for row in handle.history(Seq(0), 1000).await.unwrap().events {
            if let Event::TimerFired { at, .. } | Event::ActivityCompleted { at, .. } = row.event {
                assert!((before..=after).contains(&at.0), "{}: {before} {at:?} {after}", row.seq.0);
            }
        }
    }
    processes.into_iter().for_each(Process::stop);
}

async fn of_eight_that_open_a_new_store_at_once_one_may_be_killed(kind: Kind) {
    for moment in [20, 60] {
        let database = database(kind);
        let fleet = Fleet::on(database.url());
        let mut processes: Vec<Process> = (0..8).map(|_| fleet.launch(2)).collect();
        std::thread::sleep(Duration::from_millis(moment)); // tidy: a kill at some moment is the point
        processes.swap_remove(0).kill();
        let processes: Vec<Process> = processes.into_iter().map(Process::ready).collect();
        let client = Client::connect(database.url()).await.unwrap();
        let handles = start_all(&client, MANY, 10).await;
        for handle in &handles {
            handle.result().await.unwrap();
        }
        let runs: Vec<RunId> = handles.iter().map(|handle| handle.id()).collect();
        check(&client, &runs, &fleet.effects().0).await;
        processes.into_iter().for_each(Process::stop);
    }
}

/// Which of the processes leads, and the row that says so.
async fn leader(client: &Client, processes: &[Process]) -> (usize, LeaderRow) {
    until_some("one of them leads", async || {
        let row = client.store().leader().await.unwrap();
        // An incarnation is called host-pid-random.
        let pid: u32 = row.who.as_ref()?.as_str().rsplit('-').nth(1)?.parse().ok()?;
        Some((processes.iter().position(|process| process.id() == pid)?, row))
    })
    .await
}

async fn another_leads_when_the_leader_was_killed(kind: Kind) {
    let database = database(kind);
    let fleet = Fleet::on(database.url());
    let mut processes = fleet.ready(3, 2);
    let client = Client::connect(database.url()).await.unwrap();
    while processes.len() > 1 {
        let (at, _) = leader(&client, &processes).await;
        processes.swap_remove(at).kill();
        let last = client.store().leader().await.unwrap();
        let (_, next) = leader(&client, &processes).await;
        // All by the database's clock, whatever the processes' clocks and the machine's load are.
        if next.term > last.term {
            assert!(next.renewed_at >= last.renewed_at.after(last.lease), "{last:?} {next:?}");
        }
        println!("{last:?}, then {next:?}");
    }
    processes.into_iter().for_each(Process::stop);
    let row = client.store().leader().await.unwrap();
    assert_eq!(row.who, None, "the last one has left");
    let terms = row.term.0;
    assert!(terms >= 3, "three have led, one after the other: {terms}");
}

async fn a_leader_that_stops_hands_over_at_once(kind: Kind) {
    let database = database(kind);
    let fleet = Fleet::on(database.url());
    let mut processes = fleet.ready(2, 2);
    let client = Client::connect(database.url()).await.unwrap();
    let (at, before) = leader(&client, &processes).await;
    processes.swap_remove(at).stop();
    let row = client.store().leader().await.unwrap();
    assert_ne!(row.who, before.who, "it has let go");
    let (_, row) = leader(&client, &processes).await;
    assert!(row.term > before.term, "{before:?} {row:?}");
    processes.into_iter().for_each(Process::stop);
}
