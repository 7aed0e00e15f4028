//! A whole simulation as data that a seed decides: engines, runs, faults, deeds. What is data can
//! be made smaller.

use crate::dice::Dice;
use crate::executor::Order;
use crate::outside::Strike;
use crate::plan::{Flavour, Plan, Planner, SIGNALS, Style};
use crate::program::Hosts;
use crate::store::{Blow, Faults, Kind, Outage, Rates};
use std::fmt;

/// How an engine is set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineSpec {
    /// What it hosts.
    pub hosts: Hosts,
    /// Activities at a time.
    pub slots: usize,
    /// Turns claimed at a time.
    pub turns_max: usize,
    /// Runs with inline steps at a time.
    pub inline_max: usize,
    /// Memory for cached programs.
    pub cache_bytes_max: usize,
    /// Between questions.
    pub ask_ms: u64,
    /// Between polls without work.
    pub poll_ceiling_ms: u64,
    /// For work under way at a stop.
    pub grace_ms: u64,
    /// For a turn.
    pub turn_deadline_ms: u64,
    /// Its durable functions are a bad build, which panics, until everything heals.
    pub broken: bool,
}

/// What makes repeated starts the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// An id of the caller's.
    ById,
    /// An idempotency key.
    ByKey,
    /// Nothing.
    Unknown,
}

/// A run of the scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunSpec {
    /// What it does.
    pub plan: Plan,
    /// What makes repeated starts the same.
    pub known: Known,
    /// Its own time-out.
    pub timeout_ms: Option<u64>,
    /// Its start is delayed.
    pub delay_ms: Option<u64>,
    /// Its tenant.
    pub tenant: &'static str,
    /// Its priority.
    pub priority: i32,
    /// A signal that goes with its start.
    pub signal: Option<usize>,
}

/// What somebody does from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// Starts a run, maybe again.
    Start {
        /// The run.
        run: usize,
        /// From within an engine, if it is up.
        via: Option<usize>,
    },
    /// Sends a signal to a run; the same id is the same signal.
    Signal {
        /// The run.
        run: usize,
        /// Which, by its index.
        name: usize,
        /// Its id.
        id: u64,
    },
    /// Cancels a run.
    Cancel(usize),
    /// Terminates a run.
    Terminate(usize),
    /// Shuts a run down.
    Shutdown(usize),
    /// Something happens to an engine.
    Strike(usize, Strike),
    /// An engine is stopped gracefully, and started again later.
    Stop(usize),
    /// The store's clock jumps.
    StepClock(u64),
}

/// A whole simulation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// Where all chance comes from.
    pub seed: u64,
    /// Who is polled next.
    pub order: Order,
    /// Between beats, of all engines.
    pub beat_ms: u64,
    /// A process without a beat for so long is gone.
    pub stale_ms: u64,
    /// The engines.
    pub engines: Vec<EngineSpec>,
    /// The runs.
    pub runs: Vec<RunSpec>,
    /// What goes wrong with the store.
    pub faults: Faults,
    /// Engines struck at a command.
    pub blows: Vec<Blow>,
    /// What happens when, in milliseconds.
    pub deeds: Vec<(u64, Deed)>,
    /// Everything heals then.
    pub heals_at_ms: u64,
    /// Every engine is restarted then.
    pub restart_all: bool,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn of(seed: u64) -> Scenario {
        let mut dice = Dice::new(seed);
        let beat_ms = dice.one(&[200, 500, 500, 1000, 5000]);
        let heals_at_ms = dice.one(&[3000, 10_000, 20_000, 40_000]);
        let mut scenario = Scenario {
            seed,
            order: dice.one(&[Order::Random, Order::Random, Order::Oldest, Order::Newest]),
            beat_ms,
            stale_ms: beat_ms * dice.one(&[3, 4, 12]),
            engines: engines(&mut dice),
            runs: runs(&mut dice),
            faults: Faults::none(),
            blows: Vec::new(),
            deeds: Vec::new(),
            heals_at_ms,
            restart_all: dice.chance(50),
        };
        let calm = dice.chance(12);
        scenario.deeds = deeds(&mut dice, &scenario, calm);
        if calm {
            scenario.restart_all = false;
            scenario.engines.iter_mut().for_each(|engine| engine.broken = false);
        } else {
            scenario.faults = faults(&mut dice, &scenario);
            scenario.blows = blows(&mut dice, scenario.engines.len());
        }
        scenario.faults.latency_ms_max = dice.one(&[0, 2, 2, 20]);
        scenario
    }

    /// Whether nothing goes wrong in it by itself.
    pub(crate) fn is_calm(&self) -> bool {
        let struck = |deed: &Deed| matches!(deed, Deed::Strike(..) | Deed::Stop(_));
        !self.restart_all
            && !self.engines.iter().any(|engine| engine.broken)
            && self.faults.rates.is_empty()
            && self.faults.outages.is_empty()
            && self.blows.is_empty()
            && !self.deeds.iter().any(|(_, deed)| struck(deed))
    }
}

fn engines(dice: &mut Dice) -> Vec<EngineSpec> {
    let count = dice.one(&[1, 2, 2, 3, 4]);
    let mut engines: Vec<EngineSpec> = (0..count).map(|_| engine(dice)).collect();
    // Together they host everything.
    let first = &mut engines[0].hosts;
    (first.machine, first.function) = (true, true);
    let last = engines.last_mut().expect("at least one");
    last.hosts.activities = [true; 3];
    engines
}

fn engine(dice: &mut Dice) -> EngineSpec {
    EngineSpec {
        hosts: Hosts {
            machine: dice.chance(80),
            function: dice.chance(80),
            activities: [dice.chance(75), dice.chance(75), dice.chance(75)],
        },
        slots: dice.one(&[1, 2, 10]),
        turns_max: dice.one(&[1, 3, 64]),
        inline_max: dice.one(&[1, 3, 256]),
        cache_bytes_max: dice.one(&[0, 5000, 64 * 1024 * 1024]),
        ask_ms: dice.one(&[200, 1000]),
        poll_ceiling_ms: dice.one(&[200, 1000, 3000]),
        grace_ms: dice.one(&[1, 500, 5000]),
        turn_deadline_ms: dice.one(&[3000, 20_000, 70_000]),
        broken: dice.chance(8),
    }
}

fn runs(dice: &mut Dice) -> Vec<RunSpec> {
    let flavour = Flavour::random(dice);
    let count = dice.one(&[1, 1, 2, 3, 4, 6]);
    let functions = dice.one(&[0, 50, 50, 100]);
    (0..count)
        .map(|number| {
            let style = if dice.chance(functions) { Style::Function } else { Style::Machine };
            RunSpec {
                plan: Planner::new(dice, &flavour).plan(number, style),
                known: dice.one(&[Known::ById, Known::ByKey, Known::Unknown]),
                timeout_ms: dice.chance(8).then(|| dice.one(&[200, 4000, 15_000])),
                delay_ms: dice.chance(10).then(|| dice.one(&[100, 3000])),
                tenant: dice.one(&["acme", "globex", "default"]),
                priority: dice.one(&[0, 0, 0, 5]),
                signal: dice.chance(10).then(|| dice.below(SIGNALS.len() as u64) as usize),
            }
        })
        .collect()
}

fn deeds(dice: &mut Dice, scenario: &Scenario, calm: bool) -> Vec<(u64, Deed)> {
    let (count, upto) = (scenario.runs.len(), scenario.heals_at_ms * 2 / 3);
    let mut deeds = Vec::new();
    for run in 0..count {
        let at = 100 + dice.below(upto / 3 + 1);
        let engines = scenario.engines.len() as u64;
        let via = |dice: &mut Dice| dice.chance(50).then(|| dice.below(engines) as usize);
        deeds.push((at, Deed::Start { run, via: via(dice) }));
        if dice.chance(20) {
            deeds.push((at + dice.below(2000), Deed::Start { run, via: via(dice) }));
        }
    }
    let orders = if dice.chance(60) { dice.below(6) } else { 0 };
    for _ in 0..orders {
        let run = dice.below(count as u64) as usize;
        let deed = match dice.below(10) {
            0..6 => Deed::Signal {
                run,
                name: dice.below(SIGNALS.len() as u64) as usize,
                id: dice.below(4),
            },
            6 | 7 => Deed::Cancel(run),
            8 => Deed::Terminate(run),
            _ => Deed::Shutdown(run),
        };
        deeds.push((dice.below(upto), deed));
    }
    // Many at once meet each other, and the ends of runs.
    if dice.chance(12) {
        let (run, from) = (dice.below(count as u64) as usize, dice.below(upto));
        for id in 0..dice.within(5, 25) {
            let name = dice.below(SIGNALS.len() as u64) as usize;
            deeds.push((from + dice.below(400), Deed::Signal { run, name, id: 100 + id }));
        }
    }
    if !calm {
        let strikes = if dice.chance(55) { dice.within(1, 4) } else { 0 };
        for _ in 0..strikes {
            let engine = dice.below(scenario.engines.len() as u64) as usize;
            let deed = match dice.below(10) {
                0..6 => Deed::Strike(engine, strike(dice)),
                6..9 => Deed::Stop(engine),
                _ => Deed::StepClock(dice.one(&[500, 10_000, 120_000])),
            };
            deeds.push((dice.below(upto), deed));
        }
    }
    deeds.sort_by_key(|(at, _)| *at);
    deeds
}

fn strike(dice: &mut Dice) -> Strike {
    match dice.chance(50) {
        true => Strike::Crash,
        false => Strike::Pause { ms: dice.one(&[50, 1000, 5000, 20_000]) },
    }
}

fn blows(dice: &mut Dice, engines: usize) -> Vec<Blow> {
    let count = if dice.chance(60) { dice.within(1, 5) } else { 0 };
    (0..count)
        .map(|_| Blow {
            engine: dice.below(engines as u64) as usize,
            command: dice.within(1, 150),
            after: dice.chance(50),
            strike: strike(dice),
        })
        .collect()
}

fn faults(dice: &mut Dice, scenario: &Scenario) -> Faults {
    let mut faults = Faults::none();
    let percent = dice.one(&[0, 20, 50, 100]);
    // Swarm: each seed has other faults, and leaves others out.
    let with: Vec<bool> = (0..7).map(|_| dice.chance(50)).collect();
    for kind in Kind::ALL {
        if !dice.chance(percent) {
            continue;
        }
        let scale = dice.one(&[5, 20, 60, 150]);
        let rate = |at: usize| if with[at] { scale } else { 0 };
        let rates = Rates {
            unavailable: rate(0),
            lost_before: rate(1),
            lost_after: rate(2),
            astray: rate(3),
            late_before: rate(4),
            late_after: rate(5),
            refused: rate(6) / 2,
        };
        faults.rates.push((kind, rates));
    }
    faults.hints_lost_percent = dice.one(&[0, 0, 20, 100]);
    faults.late_ms_max = dice.one(&[50, 2000, 10_000, 90_000]);
    let outages = if dice.chance(20) { dice.within(1, 2) } else { 0 };
    for _ in 0..outages {
        let engine = dice.chance(70).then(|| dice.below(scenario.engines.len() as u64) as usize);
        let (from_ms, for_ms) = (dice.below(scenario.heals_at_ms), dice.one(&[300, 3000, 15_000]));
        faults.outages.push(Outage { engine, from_ms, for_ms });
    }
    faults
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scenario { seed, order, beat_ms, stale_ms, heals_at_ms, restart_all, .. } = self;
        writeln!(f, "seed {seed}: {order:?}, beat {beat_ms} ms, stale after {stale_ms} ms")?;
        writeln!(f, "heals at {heals_at_ms} ms, restarts all: {restart_all}")?;
        for (number, engine) in self.engines.iter().enumerate() {
            writeln!(f, "engine {number}: {engine:?}")?;
        }
        let starts = |run: &&RunSpec| {
            let starts =
                |deed: &Deed| matches!(deed, Deed::Start { run: r, .. } if *r == run.plan.number);
            self.deeds.iter().any(|(_, deed)| starts(deed))
        };
        for run in self.runs.iter().filter(starts) {
            writeln!(f, "run {}: {run:?}", run.plan.number)?;
        }
        for (at, deed) in &self.deeds {
            writeln!(f, "at {at} ms: {deed:?}")?;
        }
        for blow in &self.blows {
            writeln!(f, "{blow:?}")?;
        }
        let Faults { rates, hints_lost_percent, latency_ms_max, late_ms_max, outages } =
            &self.faults;
        for (kind, rates) in rates {
            writeln!(f, "{kind:?}: {rates:?}")?;
        }
        for outage in outages {
            writeln!(f, "{outage:?}")?;
        }
        write!(
            f,
            "hints lost {hints_lost_percent} %, latency up to {latency_ms_max} ms, \
             late by up to {late_ms_max} ms"
        )
    }
}
