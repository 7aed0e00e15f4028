//! Campaigns of the simulator: `cargo run --release -p durably-sim -- --seeds 10000`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to its terminal")]

use clap::Parser;
use durably_sim::{
    Campaign, Keep, Report, SEEDS_FOR_ALL, Scenario, campaign, corpus, quiet_planned_panics,
    shrink, simulate,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::process::ExitCode;

/// Attacks the engine with random programs, faults and crashes. Every seed is a simulation of its
/// own, and the same seed is always the same simulation.
#[derive(Parser, Debug)]
#[command(name = "durably-sim", version, max_term_width = 100)]
struct Command {
    /// How many seeds to play, for example 10000.
    #[arg(long, value_name = "N", default_value_t = 1000,
        value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first of them, for example 1.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    from: u64,
    /// Plays first the seeds that once failed.
    #[arg(long)]
    corpus: bool,
    /// Plays this one seed, for example 4711.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from", "corpus"])]
    seed: Option<u64>,
    /// Prints everything that happens in that one seed.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Says which seed failed and why, without looking for a smaller form of it.
    #[arg(long, conflicts_with = "trace")]
    brief: bool,
    /// Threads; each simulation stays on one.
    #[arg(long, value_name = "N", default_value_t = 2,
        value_parser = clap::value_parser!(u64).range(1..=64))]
    threads: u64,
}

fn main() -> ExitCode {
    let command = Command::parse();
    quiet_planned_panics();
    let held = match command.seed {
        Some(seed) => one(seed, &command),
        None => many(&command),
    };
    match held {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Plays one seed; says whether everything held.
fn one(seed: u64, command: &Command) -> bool {
    let scenario = Scenario::of(seed);
    if !command.trace {
        let report = simulate(&scenario, Keep::Hash);
        print_one(&report);
        if report.violation.is_some() {
            explain(&report, command.brief);
        }
        return report.violation.is_none();
    }
    println!("{scenario}\n");
    let report = simulate(&scenario, Keep::All);
    report.lines.iter().for_each(|line| println!("{line}"));
    print_one(&report);
    report.violation.is_none()
}

fn print_one(report: &Report) {
    let Report { seed, hash, polls, lasted, effects, .. } = report;
    println!("seed {seed}: {polls} polls, {effects} effects, {lasted:?} of virtual time");
    println!("trace {hash:016x}");
    for (what, times) in report.tally.rows().into_iter().filter(|(_, times)| *times > 0) {
        println!("{times:>10}  {what}");
    }
    match &report.violation {
        Some(violation) => println!("VIOLATED {violation}"),
        None => println!("everything held"),
    }
}

/// Plays many seeds; says whether everything held.
fn many(command: &Command) -> bool {
    for seed in corpus().into_iter().filter(|_| command.corpus) {
        if let Some(failure) = campaign(seed..seed + 1, 1, |_| {}).failure {
            explain(&failure, command.brief);
            return false;
        }
    }
    let upto = command.from.saturating_add(command.seeds);
    let bar = bar(upto - command.from);
    let played = campaign(command.from..upto, command.threads as usize, |_| bar.inc(1));
    bar.finish_and_clear();
    summary(&played);
    if let Some(failure) = &played.failure {
        explain(failure, command.brief);
        return false;
    }
    let never = played.tally.never();
    if played.seeds >= SEEDS_FOR_ALL && !never.is_empty() {
        println!("\nnever met in {} seeds: {}", played.seeds, never.join(", "));
        println!("a campaign that does not meet them proves nothing about them");
        return false;
    }
    true
}

fn bar(seeds: u64) -> ProgressBar {
    // Drawn only where somebody sees it.
    let bar = ProgressBar::with_draw_target(Some(seeds), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} seeds, {per_sec}, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn summary(played: &Campaign) {
    let Campaign { seeds, lasted, polls, effects, .. } = played;
    let hours = lasted.as_secs_f64() / 3600.0;
    println!("{seeds} seeds, {polls} polls, {effects} effects, {hours:.1} hours of virtual time");
    for (what, times) in played.tally.rows() {
        println!("{times:>10}  {what}");
    }
}

/// How to repeat a failure, and the smallest form of it that was found.
fn explain(failure: &Report, brief: bool) {
    let seed = failure.seed;
    println!("\nseed {seed} FAILED: {}", failure.violation.as_deref().unwrap_or_default());
    println!("repeat it: cargo run --release -p durably-sim -- --seed {seed} --trace");
    if brief {
        return;
    }
    let Some(shrunk) = shrink(&Scenario::of(seed)) else {
        println!("it does not fail again: that is a defect of the simulator");
        return;
    };
    println!("\nthe smallest form found in {} tries:\n{}", shrunk.tries, shrunk.scenario);
    println!("\nthe end of what happened in it:");
    shrunk.report.lines.iter().for_each(|line| println!("{line}"));
    println!("\n{}", shrunk.report.violation.as_deref().unwrap_or_default());
}
