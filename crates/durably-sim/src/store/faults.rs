//! What goes wrong between a process and the store, and how often.

use crate::dice::Dice;
use std::time::Duration;

/// A kind of command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// `register`.
    Register,
    /// `drain` and `leave`.
    Leave,
    /// `commit`.
    Commit,
    /// `look_up`.
    LookUp,
    /// `claim`.
    Claim,
    /// `load`.
    Load,
    /// `deliver`.
    Deliver,
    /// `hand_back`.
    HandBack,
    /// `beat`.
    Beat,
    /// `ask`.
    Ask,
    /// `sweep`.
    Sweep,
    /// `lead`.
    Lead,
    /// Everything else that reads.
    Read,
}

impl Kind {
    pub(crate) const ALL: [Kind; 13] = [
        Kind::Register,
        Kind::Leave,
        Kind::Commit,
        Kind::LookUp,
        Kind::Claim,
        Kind::Load,
        Kind::Deliver,
        Kind::HandBack,
        Kind::Beat,
        Kind::Ask,
        Kind::Sweep,
        Kind::Lead,
        Kind::Read,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Register => "register",
            Kind::Leave => "leave",
            Kind::Commit => "commit",
            Kind::LookUp => "look_up",
            Kind::Claim => "claim",
            Kind::Load => "load",
            Kind::Deliver => "deliver",
            Kind::HandBack => "hand_back",
            Kind::Beat => "beat",
            Kind::Ask => "ask",
            Kind::Sweep => "sweep",
            Kind::Lead => "lead",
            Kind::Read => "read",
        }
    }

    /// A read's answer is not ambiguous: it is asked again.
    fn reads(self) -> bool {
        matches!(self, Kind::LookUp | Kind::Load | Kind::Ask | Kind::Read)
    }
}

/// How often in a thousand each thing goes wrong with a kind of command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rates {
    /// It is not done, and the caller knows.
    pub unavailable: u64,
    /// It is not done, and the caller does not know.
    pub lost_before: u64,
    /// It is done, and the caller does not know.
    pub lost_after: u64,
    /// The caller gives up waiting, and it is done later.
    pub astray: u64,
    /// It takes long before it is done.
    pub late_before: u64,
    /// Its answer takes long.
    pub late_after: u64,
    /// The store refuses it for good; commits only.
    pub refused: u64,
}

/// For a while nothing gets through, of one process or of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// The engine; none is everybody.
    pub engine: Option<usize>,
    /// From then.
    pub from_ms: u64,
    /// For so long.
    pub for_ms: u64,
}

/// All that goes wrong with the line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Faults {
    /// By kind of command.
    pub rates: Vec<(Kind, Rates)>,
    /// Hints that are lost.
    pub hints_lost_percent: u64,
    /// Every command takes up to so long.
    pub latency_ms_max: u64,
    /// The longest that something comes late.
    pub late_ms_max: u64,
    /// Times in which nothing gets through.
    pub outages: Vec<Outage>,
}

/// What becomes of one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Fine { before: Duration, after: Duration },
    Unavailable,
    Refused,
    LostBefore,
    LostAfter,
    Astray { before: Duration },
}

impl Fate {
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Fate::Fine { .. } | Fate::LostAfter | Fate::Astray { .. } => true,
            Fate::Unavailable | Fate::Refused | Fate::LostBefore => false,
        }
    }

    /// How long it takes before and after it takes effect.
    pub(crate) fn delays(&self) -> (Duration, Duration) {
        let a_moment = Duration::from_millis(1);
        match self {
            Fate::Fine { before, after } => (*before, *after),
            Fate::Astray { before } => (*before, Duration::ZERO),
            Fate::Unavailable | Fate::Refused | Fate::LostBefore | Fate::LostAfter => {
                (a_moment, Duration::ZERO)
            }
        }
    }

    pub(crate) fn number(&self) -> u64 {
        let (before, after) = self.delays();
        let kind = match self {
            Fate::Fine { .. } => 0,
            Fate::Unavailable => 1,
            Fate::Refused => 2,
            Fate::LostBefore => 3,
            Fate::LostAfter => 4,
            Fate::Astray { .. } => 5,
        };
        kind + 10 * (before.as_micros() as u64 + 1_000_000 * after.as_micros() as u64)
    }
}

impl Faults {
    /// Nothing goes wrong.
    pub(crate) fn none() -> Faults {
        Faults {
            rates: Vec::new(),
            hints_lost_percent: 0,
            latency_ms_max: 2,
            late_ms_max: 0,
            outages: Vec::new(),
        }
    }

    /// What becomes of a command.
    pub(crate) fn fate(
        &self,
        dice: &mut Dice,
        kind: Kind,
        engine: Option<usize>,
        now: Duration,
        healed: bool,
    ) -> Fate {
        let most = if healed { 2 } else { self.latency_ms_max };
        let before = Duration::from_micros(dice.below(most * 1000 + 1));
        let after = Duration::from_micros(dice.below(most * 1000 + 1));
        let fine = Fate::Fine { before, after };
        if healed {
            return fine;
        }
        if self.is_out(engine, now) {
            return Fate::Unavailable;
        }
        let Some((_, rates)) = self.rates.iter().find(|(of, _)| *of == kind) else { return fine };
        let roll = dice.below(1000);
        let mut upto = 0;
        let mut falls = |rate: u64| {
            upto += rate;
            roll < upto
        };
        if falls(rates.unavailable) {
            return Fate::Unavailable;
        }
        if falls(rates.late_before) {
            return Fate::Fine { before: self.long(dice), after };
        }
        if falls(rates.late_after) {
            return Fate::Fine { before, after: self.long(dice) };
        }
        if kind.reads() {
            return fine;
        }
        if falls(rates.lost_before) {
            return Fate::LostBefore;
        }
        if falls(rates.lost_after) {
            return Fate::LostAfter;
        }
        if falls(rates.astray) {
            return Fate::Astray { before: self.long(dice) };
        }
        if falls(rates.refused) && kind == Kind::Commit {
            return Fate::Refused;
        }
        fine
    }

    fn is_out(&self, engine: Option<usize>, now: Duration) -> bool {
        let now = now.as_millis() as u64;
        self.outages.iter().any(|out| {
            let concerns = out.engine.is_none() || out.engine == engine;
            concerns && (out.from_ms..out.from_ms + out.for_ms).contains(&now)
        })
    }

    fn long(&self, dice: &mut Dice) -> Duration {
        let most = self.late_ms_max.max(1);
        let ms = match dice.below(4) {
            0 => dice.below(20),
            1 => dice.below(500),
            2 => dice.below(most / 4 + 1),
            _ => dice.below(most),
        };
        Duration::from_millis(ms + 1)
    }
}
