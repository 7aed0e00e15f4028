//! Several engine processes on one database server.
#![allow(clippy::print_stdout, reason = "the counts are printed")]

mod common;

use common::check::{attempts_of, check};
use common::fleet::{Fleet, Process};
use common::work::{MANY, SINGLE};
use common::{database, start_all, until};
use durably::{Client, RunId, WorkerStatus};
use durably_testbed::Kind;

on_every_server!(
    three_processes_share_the_work_and_one_may_be_killed,
    two_hundred_workers_claim_nothing_twice
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
