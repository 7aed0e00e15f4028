//! The simulator itself: it repeats what it did, makes failures small, and refuses nonsense.

use durably_sim::{Deed, Keep, Scenario, shrink_by, simulate};
use std::process::{Command, Output};

fn command(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_durably-sim")).args(arguments).output().expect("it runs")
}

#[test]
fn a_seed_is_always_the_same_simulation() {
    durably_sim::quiet_planned_panics();
    for seed in 1..40 {
        let scenario = Scenario::of(seed);
        let (one, two) = (simulate(&scenario, Keep::Hash), simulate(&scenario, Keep::Tail));
        assert_eq!(one.hash, two.hash, "seed {seed} was not the same twice");
        assert_eq!(one.tally, two.tally, "seed {seed}");
    }
}

#[test]
fn a_seed_is_the_same_simulation_in_every_process() {
    let (one, two) = (command(&["--seed", "7"]), command(&["--seed", "7"]));
    assert!(one.status.success(), "{one:?}");
    let text = String::from_utf8_lossy(&one.stdout);
    assert!(text.contains("trace "), "{text}");
    assert_eq!(text, String::from_utf8_lossy(&two.stdout));
}

#[test]
fn seeds_differ() {
    let hash = |seed| simulate(&Scenario::of(seed), Keep::Hash).hash;
    assert_ne!(hash(1), hash(2));
}

/// Held to be wrong here: that a run is cancelled.
fn nobody_is_cancelled(scenario: &Scenario) -> Option<String> {
    let cancelled = simulate(scenario, Keep::Hash).tally.times("runs cancelled");
    (cancelled > 0).then(|| "a run was cancelled".to_owned())
}

#[test]
fn what_fails_is_made_small() {
    durably_sim::quiet_planned_panics();
    let wrong = |seed: &u64| {
        let scenario = Scenario::of(*seed);
        // Also without faults: otherwise some of them are needed, and stay.
        let mut calm = scenario.clone();
        (calm.faults.rates, calm.faults.outages, calm.blows) = Default::default();
        let cancels = |scenario| nobody_is_cancelled(scenario).is_some();
        scenario.engines.len() > 1 && cancels(&scenario) && cancels(&calm)
    };
    let seed = (1..500).find(wrong).expect("one of them cancels a run");
    let shrunk = shrink_by(&Scenario::of(seed), nobody_is_cancelled).expect("it fails");
    let small = shrunk.scenario;
    assert_eq!(nobody_is_cancelled(&small).as_deref(), Some("a run was cancelled"), "{small}");
    assert!(small.faults.rates.is_empty() && small.blows.is_empty(), "seed {seed}: {small}");
    let needed =
        |deed: &Deed| matches!(deed, Deed::Start { .. } | Deed::Cancel(_) | Deed::Shutdown(_));
    assert!(small.deeds.iter().all(|(_, deed)| needed(deed)), "seed {seed}: {small}");
    assert_eq!(small.deeds.len(), 2, "seed {seed}: {small}");
    assert_eq!(small.engines.len(), 1, "seed {seed}: {small}");
}

#[test]
fn seeds_that_are_no_numbers_are_refused() {
    for arguments in [["--seeds", "many"], ["--seed", "x"], ["--from", "1.5"], ["--seeds", "0"]] {
        let output = command(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(arguments[0]) && output.stdout.is_empty(), "{text}");
    }
}
