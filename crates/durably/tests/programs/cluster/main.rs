//! Lets a real cluster fail over under load, and judges what became of the work. `scripts/cluster-test`
//! runs it.
//!
//! `cluster postgres` has a primary and a synchronous standby, `cluster galera` three nodes of
//! MariaDB. Three engine processes work on it and callers go on starting runs. Again and again the
//! server that is written to is killed, another one takes its place, and the killed one comes back.
//! Our processes are never restarted. At the end everything that was acknowledged must be there once.
//! `cluster postgres-behind` has a standby that nobody waits for: what is lost with the primary is
//! lost, and everything else must go on from where the standby is.
#![allow(clippy::print_stdout, reason = "people read what it prints")]
#![allow(clippy::disallowed_methods, reason = "clusters live in real time")]

#[path = "../../common/mod.rs"]
mod common;
mod load;
mod servers;
mod verdict;

use common::fleet::{Fleet, Process};
use durably::Client;
use load::Load;
use servers::{Replication, Servers};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use verdict::Case;

/// How often the server that is written to is killed.
const ROUNDS: usize = 2;
const PROCESSES: usize = 3;
const SLOTS: usize = 8;
/// Processes are alive all the time, so nobody needs to take their work away meanwhile.
const STALE_SECONDS: &str = "60";
/// Work goes on within this.
const STANDSTILL_MAX: Duration = Duration::from_secs(30);
/// Load between two events.
const STRETCH: Duration = Duration::from_secs(5);
/// So long a standby hears nothing, where it is to be behind.
const BEHIND: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> ExitCode {
    let servers = match std::env::args().nth(1).as_deref() {
        Some("postgres") => Servers::postgres(Replication::Synchronous),
        Some("postgres-behind") => Servers::postgres(Replication::Behind),
        Some("galera") => Servers::galera(),
        _ => {
            println!("usage: cluster postgres|postgres-behind|galera");
            return ExitCode::from(2);
        }
    };
    match rounds(servers).await {
        0 => {
            println!("passed");
            ExitCode::SUCCESS
        }
        wrong => {
            println!("FAILED: {wrong} of the lines above are wrong");
            ExitCode::FAILURE
        }
    }
}

/// Everything, under load; says how much is wrong.
async fn rounds(mut servers: Servers) -> u32 {
    let began = Instant::now();
    let say = |text: String| println!("{:6.1} s  {text}", began.elapsed().as_secs_f64());
    say(format!("{} are up", servers.names()));
    let url = servers.url();
    let fleet = Fleet::on(&url);
    let launch = |_| fleet.launch_with(SLOTS, |command| command.arg("-").arg(STALE_SECONDS));
    let launched: Vec<Process> = (0..PROCESSES).map(launch).collect();
    let processes: Vec<Process> = launched.into_iter().map(Process::ready).collect();
    let client = Client::connect(&url).await.unwrap();
    let load = Load::start(&client);
    load.reaches(100).await;
    say(format!("{PROCESSES} processes work, {} starts are acknowledged", load.count()));
    let mut wrong = 0;
    for _ in 0..if servers.lose() { 1 } else { ROUNDS } {
        tokio::time::sleep(STRETCH).await; // tidy: load goes on for a while
        if let Some(line) = servers.fall_behind(BEHIND) {
            say(line);
        }
        let (killed, acknowledged) = (Instant::now(), load.count());
        say(format!("{} is killed; {acknowledged} starts are acknowledged", servers.writer()));
        servers.fail_over();
        say(format!("{} is to take its place", servers.writer()));
        load.whole_run(&client).await;
        let standstill = killed.elapsed();
        say(format!("a run that was started since is completed: {standstill:.1?} after the kill"));
        if standstill > STANDSTILL_MAX {
            say(format!("WRONG: work stood still for more than {STANDSTILL_MAX:?}"));
            wrong += 1;
        }
        tokio::time::sleep(STRETCH).await; // tidy: load goes on for a while
        say(servers.rejoin());
        if let Some(line) = servers.watch(STRETCH) {
            say(line);
        }
    }
    let (starts, missed) = load.end().await;
    say(format!("{} starts were acknowledged, {missed} were missed by callers", starts.len()));
    load::all_completed(&client).await;
    say("all runs of the store are completed".to_owned());
    let (effects, by_process) = fleet.effects();
    processes.into_iter().for_each(Process::stop);
    say(format!("effects by process: {:?}", by_process.values().collect::<Vec<_>>()));
    let case = Case { client: &client, url: &url, acknowledged: &starts, effects: &effects };
    wrong
        + match servers.lose() {
            true => verdict::judge_loss(case).await,
            false => verdict::judge(case).await,
        }
}
