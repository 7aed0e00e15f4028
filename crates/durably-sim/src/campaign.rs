//! Many seeds, on as many threads as there are cores; each simulation stays on one.

use crate::scenario::Scenario;
use crate::tally::Tally;
use crate::trace::Keep;
use crate::world::{Report, simulate};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What came of many seeds.
#[derive(Clone, Debug, Default)]
pub struct Campaign {
    /// Seeds that were played.
    pub seeds: u64,
    /// The first that failed, by its number.
    pub failure: Option<Report>,
    /// What was met, in all of them.
    pub tally: Tally,
    /// Virtual time, of all of them.
    pub lasted: Duration,
    /// Polls, of all of them.
    pub polls: u64,
    /// Effects, of all of them.
    pub effects: u64,
}

impl Campaign {
    fn add(&mut self, report: Report) {
        self.seeds += 1;
        self.tally.add(&report.tally);
        self.lasted += report.lasted;
        self.polls += report.polls;
        self.effects += report.effects as u64;
        let first = self.failure.as_ref().is_none_or(|failure| report.seed < failure.seed);
        if report.violation.is_some() && first {
            self.failure = Some(report);
        }
    }
}

/// The seeds that once failed.
pub fn corpus() -> Vec<u64> {
    let lines = include_str!("../corpus.txt").lines();
    let seeds = lines.map(|line| line.split('#').next().unwrap_or_default().trim());
    let number = |seed: &str| seed.parse().expect("corpus.txt: a seed, then # and what was wrong");
    seeds.filter(|seed| !seed.is_empty()).map(number).collect()
}

/// Plays seeds until all are played or one fails. `played` hears of every one.
pub fn campaign(
    seeds: std::ops::Range<u64>,
    threads: usize,
    played: impl Fn(&Report) + Sync,
) -> Campaign {
    quiet_planned_panics();
    let (next, failed) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
    let sum = Mutex::new(Campaign::default());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while !failed.load(Ordering::SeqCst) {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= seeds.end {
                        return;
                    }
                    let report = simulate(&Scenario::of(seed), Keep::Hash);
                    if report.violation.is_some() {
                        failed.store(true, Ordering::SeqCst);
                    }
                    played(&report);
                    sum.lock().add(report);
                }
            });
        }
    });
    sum.into_inner()
}

/// Panics that a plan wants are not reported; all others are.
pub fn quiet_planned_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let planned = panic.payload().downcast_ref::<&str>();
            if planned != Some(&crate::outside::PLANNED_PANIC) {
                usual(panic);
            }
        }));
    });
}
