//! What a random workflow does: data that it gets as its input, and that the oracle knows.

use crate::dice::Dice;
use serde::{Deserialize, Serialize};

/// The types of activities; an engine hosts some of them.
pub(crate) const ACTIVITIES: [&str; 3] = ["alpha", "beta", "gamma"];
/// The signals that plans wait for.
pub(crate) const SIGNALS: [&str; 2] = ["red", "green"];

/// How the workflow is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Style {
    /// A state machine.
    Machine,
    /// A durable function.
    Function,
}

/// What one beginning of a piece of work comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Shot {
    /// It is done.
    Done,
    /// It fails, and may be tried again.
    Retryable,
    /// It fails for good.
    Permanent,
    /// It panics.
    Panics,
    /// The other side wants a pause.
    RateLimited,
    /// Somebody else writes to the same data.
    Contention,
    /// It does not come to an end by itself.
    Hangs,
}

/// A piece of work: an activity, or a step inside of a function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Work {
    /// Its number within the plan.
    pub number: u32,
    /// The type of the activity, by its index; none is a step of a function.
    pub activity: Option<usize>,
    /// What its beginnings come to, in their order; after the last all are done.
    pub shots: Vec<Shot>,
    /// How long each takes.
    pub takes_ms: u64,
    /// Attempts of its policy.
    pub attempts: u32,
    /// Delay between attempts.
    pub backoff_ms: u64,
    /// Start-to-close.
    pub timeout_ms: Option<u64>,
    /// Heartbeat time-out; the work beats three times as often.
    pub heartbeat_ms: Option<u64>,
    /// Schedule-to-start.
    pub start_ms: Option<u64>,
    /// Schedule-to-close.
    pub deadline_ms: Option<u64>,
    /// How many deaths it survives.
    pub deaths_max: Option<u32>,
    /// It ends early when it is no longer wanted.
    pub heeds: bool,
    /// The plan goes on if it fails.
    pub tolerated: bool,
}

impl Work {
    /// What a beginning comes to, counted from 1.
    pub(crate) fn shot(&self, beginning: u32) -> Shot {
        self.shots.get(beginning as usize - 1).copied().unwrap_or(Shot::Done)
    }
}

/// A part of a plan; parts come one after the other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Stage {
    /// All of these, side by side.
    All(Vec<Work>),
    /// The first of these; the others are given up.
    First(Vec<Work>),
    /// A timer.
    Sleep {
        /// How long.
        ms: u64,
    },
    /// A signal.
    Signal {
        /// Its name, by its index.
        name: usize,
        /// For so long at most.
        timeout_ms: Option<u64>,
    },
}

/// What a workflow does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Which run of the scenario it is.
    pub number: usize,
    /// How it is written.
    pub style: Style,
    /// Its parts.
    pub stages: Vec<Stage>,
    /// What it does when it is cancelled, before it ends.
    pub compensation: Option<Work>,
}

impl Plan {
    /// Every piece of work.
    pub(crate) fn works(&self) -> impl Iterator<Item = &Work> {
        let staged = self.stages.iter().flat_map(|stage| match stage {
            Stage::All(works) | Stage::First(works) => works.as_slice(),
            Stage::Sleep { .. } | Stage::Signal { .. } => &[],
        });
        staged.chain(&self.compensation)
    }

    pub(crate) fn work(&self, number: u32) -> Option<&Work> {
        self.works().find(|work| work.number == number)
    }
}

/// Which features the plans of a scenario have.
#[derive(Clone, Debug)]
pub(crate) struct Flavour {
    failures: bool,
    timeouts: bool,
    signals: bool,
    sleeps: bool,
    wide: bool,
    inline: u64,
    slow: bool,
}

impl Flavour {
    pub(crate) fn random(dice: &mut Dice) -> Flavour {
        Flavour {
            failures: dice.chance(60),
            timeouts: dice.chance(40),
            signals: dice.chance(45),
            sleeps: dice.chance(45),
            wide: dice.chance(50),
            inline: dice.one(&[0, 50, 50, 100]),
            slow: dice.chance(30),
        }
    }
}

/// Makes plans.
pub(crate) struct Planner<'a> {
    pub(crate) dice: &'a mut Dice,
    pub(crate) flavour: &'a Flavour,
    works: u32,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(dice: &'a mut Dice, flavour: &'a Flavour) -> Planner<'a> {
        Planner { dice, flavour, works: 0 }
    }

    pub(crate) fn plan(mut self, number: usize, style: Style) -> Plan {
        let count = self.dice.one(&[1, 2, 2, 3, 3, 4, 6]);
        let stages = (0..count).map(|_| self.stage(style)).collect();
        let compensation = self.dice.chance(30).then(|| {
            let mut work = self.work(style);
            work.tolerated = true;
            work
        });
        Plan { number, style, stages, compensation }
    }

    fn stage(&mut self, style: Style) -> Stage {
        let flavour = self.flavour;
        match self.dice.below(10) {
            0 if flavour.sleeps => Stage::Sleep { ms: self.dice.one(&[1, 50, 400, 3000, 9000]) },
            1 | 2 if flavour.signals => Stage::Signal {
                name: self.dice.below(SIGNALS.len() as u64) as usize,
                timeout_ms: self.dice.chance(50).then(|| self.dice.one(&[50, 1000, 5000])),
            },
            3 | 4 if flavour.wide => Stage::All(self.works(style)),
            5 if flavour.wide => Stage::First(self.works(style)),
            _ => Stage::All(vec![self.work(style)]),
        }
    }

    fn works(&mut self, style: Style) -> Vec<Work> {
        let count = self.dice.one(&[2, 2, 3, 5]);
        (0..count).map(|_| self.work(style)).collect()
    }

    fn work(&mut self, style: Style) -> Work {
        self.works += 1;
        let (flavour, number) = (self.flavour, self.works);
        let dice = &mut *self.dice;
        let inline = style == Style::Function && dice.chance(flavour.inline);
        let mut shots = Vec::new();
        while flavour.failures && shots.len() < 4 && dice.chance(35) {
            shots.push(dice.one(&[
                Shot::Retryable,
                Shot::Retryable,
                Shot::Permanent,
                Shot::Panics,
                Shot::RateLimited,
                Shot::Contention,
                Shot::Hangs,
            ]));
        }
        let takes_ms = match flavour.slow {
            true => dice.one(&[0, 100, 1500, 4000]),
            false => dice.one(&[0, 0, 2, 30, 300]),
        };
        let timed = flavour.timeouts && dice.chance(50);
        let hangs = shots.contains(&Shot::Hangs);
        Work {
            number,
            activity: (!inline).then(|| dice.below(ACTIVITIES.len() as u64) as usize),
            shots,
            takes_ms,
            attempts: dice.one(&[1, 2, 3, 4]),
            backoff_ms: dice.one(&[0, 10, 200, 2000]),
            timeout_ms: (timed || hangs).then(|| dice.one(&[20, 500, 3000, 8000])),
            heartbeat_ms: (timed && !inline && dice.chance(40)).then(|| dice.one(&[600, 3000])),
            start_ms: (timed && !inline && dice.chance(30)).then(|| dice.one(&[100, 2000, 10_000])),
            deadline_ms: (timed && dice.chance(30)).then(|| dice.one(&[100, 2000, 10_000])),
            deaths_max: dice.chance(30).then(|| dice.within(1, 2) as u32),
            heeds: dice.chance(70),
            tolerated: dice.chance(70),
        }
    }
}
