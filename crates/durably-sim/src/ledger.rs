//! The world outside: what the work of runs has really done. It survives every crash.

use durably_kernel::RunId;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// One beginning of a piece of work.
#[derive(Clone, Debug)]
pub(crate) struct Effect {
    /// Which engine of the scenario.
    pub(crate) engine: usize,
    /// The attempt that it was told, for activities.
    pub(crate) attempt: Option<u32>,
    pub(crate) began: Duration,
    /// What it came to, if it came to an end.
    pub(crate) ended: Option<Result<String, String>>,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Effect { engine, attempt, began, ended } = self;
        write!(f, "in engine {engine} at {began:?}")?;
        match attempt {
            Some(attempt) => write!(f, " (attempt {attempt}, {ended:?})"),
            None => write!(f, " ({ended:?})"),
        }
    }
}

/// All effects, by run and number of the work, in the order of their beginning.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    effects: BTreeMap<(RunId, u32), Vec<Effect>>,
}

impl Ledger {
    /// Notes that work begins; says which beginning it is, from 1.
    pub(crate) fn begin(&mut self, run: RunId, work: u32, effect: Effect) -> u32 {
        let effects = self.effects.entry((run, work)).or_default();
        effects.push(effect);
        effects.len() as u32
    }

    pub(crate) fn end(
        &mut self,
        run: RunId,
        work: u32,
        beginning: u32,
        result: Result<String, String>,
    ) {
        if let Some(effects) = self.effects.get_mut(&(run, work)) {
            effects[beginning as usize - 1].ended = Some(result);
        }
    }

    pub(crate) fn of(&self, run: RunId, work: u32) -> &[Effect] {
        self.effects.get(&(run, work)).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn len(&self) -> usize {
        self.effects.values().map(Vec::len).sum()
    }
}
