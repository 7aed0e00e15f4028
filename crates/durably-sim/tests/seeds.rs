//! A few thousand seeds, and those that once failed.

use durably_sim::{Report, SEEDS_FOR_ALL, Scenario, campaign, corpus, shrink};
use std::ops::Range;

/// Fails with all that is needed to repeat and understand it.
fn explain(failure: &Report) -> ! {
    let seed = failure.seed;
    let violation = failure.violation.as_deref().unwrap_or_default();
    let smallest = shrink(&Scenario::of(seed)).map_or_else(String::new, |shrunk| {
        let from = shrunk.report.lines.len().saturating_sub(60);
        format!("{}\n\n{}", shrunk.scenario, shrunk.report.lines[from..].join("\n"))
    });
    panic!(
        "seed {seed}: {violation}\nrepeat it: cargo run --release -p durably-sim -- --seed {seed} \
         --trace\n\nthe smallest form found:\n{smallest}"
    );
}

/// Plays seeds: everything holds, and together they meet everything that they should.
fn play(seeds: Range<u64>) {
    let played = campaign(seeds, 1, |_| {});
    if let Some(failure) = &played.failure {
        explain(failure);
    }
    let never = played.tally.never();
    assert!(played.seeds < SEEDS_FOR_ALL || never.is_empty(), "never met: {never:?}");
}

#[test]
fn seeds_of_the_first_part_hold() {
    play(1..601);
}

#[test]
fn seeds_of_the_second_part_hold() {
    play(10_001..10_601);
}

#[test]
fn seeds_of_the_third_part_hold() {
    play(20_001..20_601);
}

#[test]
fn seeds_of_the_fourth_part_hold() {
    play(30_001..30_601);
}

#[test]
fn seeds_that_once_failed_hold() {
    for seed in corpus() {
        play(seed..seed + 1);
    }
}
