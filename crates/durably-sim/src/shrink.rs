//! Makes a scenario that fails smaller: takes things out as long as it fails in the same way.

use crate::scenario::Scenario;
use crate::trace::Keep;
use crate::world::{Report, simulate};

/// So many smaller scenarios are tried.
const TRIES_MAX: usize = 600;

/// A small scenario that fails.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The scenario.
    pub scenario: Scenario,
    /// What came of it, with the last lines.
    pub report: Report,
    /// How many were tried.
    pub tries: usize,
}

/// Makes a failing scenario smaller; none if it does not fail.
pub fn shrink(scenario: &Scenario) -> Option<Shrunk> {
    shrink_by(scenario, |scenario| simulate(scenario, Keep::Hash).violation)
}

/// As [`shrink`], by a judgement of choice: it says what is wrong with a scenario.
pub fn shrink_by(
    scenario: &Scenario,
    judge: impl Fn(&Scenario) -> Option<String>,
) -> Option<Shrunk> {
    let violation = judge(scenario)?;
    let (best, kind) = (scenario.clone(), kind(&violation));
    let mut search = Search { best, kind, tries: 0, judge };
    loop {
        let before = search.best.clone();
        search.parts();
        search.plans();
        search.settings();
        if search.best == before || search.tries >= TRIES_MAX {
            break;
        }
    }
    let report = simulate(&search.best, Keep::Tail);
    Some(Shrunk { scenario: search.best, report, tries: search.tries })
}

/// The violated invariant, without what differs from run to run.
fn kind(violation: &str) -> String {
    let words = violation.split_whitespace();
    let plain = words.filter(|word| !word.chars().any(|c| c.is_ascii_digit()) || is_rule(word));
    plain.take(8).collect::<Vec<_>>().join(" ")
}

fn is_rule(word: &str) -> bool {
    word.starts_with('I') && word.ends_with(':')
}

struct Search<J> {
    best: Scenario,
    kind: String,
    tries: usize,
    judge: J,
}

impl<J: Fn(&Scenario) -> Option<String>> Search<J> {
    /// Takes a smaller scenario if it fails in the same way.
    fn improve(&mut self, change: impl FnOnce(&mut Scenario)) -> bool {
        if self.tries >= TRIES_MAX {
            return false;
        }
        let mut smaller = self.best.clone();
        change(&mut smaller);
        if smaller == self.best {
            return false;
        }
        self.tries += 1;
        let violation = (self.judge)(&smaller);
        let same = violation.is_some_and(|violation| kind(&violation) == self.kind);
        if same {
            self.best = smaller;
        }
        same
    }

    /// Takes every element of a list out that is not needed.
    fn thin<T>(&mut self, list: fn(&mut Scenario) -> &mut Vec<T>, least: usize) {
        let mut at = 0;
        loop {
            let length = list(&mut self.best).len();
            if at >= length || length <= least {
                return;
            }
            if !self.improve(|scenario| drop(list(scenario).remove(at))) {
                at += 1;
            }
        }
    }

    fn parts(&mut self) {
        self.improve(|scenario| scenario.faults.rates.clear());
        self.improve(|scenario| scenario.blows.clear());
        self.thin(|scenario| &mut scenario.faults.rates, 0);
        self.thin(|scenario| &mut scenario.faults.outages, 0);
        self.thin(|scenario| &mut scenario.blows, 0);
        self.thin(|scenario| &mut scenario.deeds, 1);
        self.improve(|scenario| scenario.faults.hints_lost_percent = 0);
        for engine in (1..self.best.engines.len()).rev() {
            self.improve(|scenario| without_engine(scenario, engine));
        }
        for at in 0..self.best.deeds.len() {
            self.improve(|scenario| {
                if let crate::scenario::Deed::Start { via, .. } = &mut scenario.deeds[at].1 {
                    *via = None;
                }
            });
        }
        self.faults();
    }

    /// Takes single faults out of the rates.
    fn faults(&mut self) {
        let fields: [fn(&mut crate::store::Rates) -> &mut u64; 7] = [
            |rates| &mut rates.unavailable,
            |rates| &mut rates.lost_before,
            |rates| &mut rates.lost_after,
            |rates| &mut rates.astray,
            |rates| &mut rates.late_before,
            |rates| &mut rates.late_after,
            |rates| &mut rates.refused,
        ];
        for at in 0..self.best.faults.rates.len() {
            for field in fields {
                self.improve(|scenario| *field(&mut scenario.faults.rates[at].1) = 0);
            }
        }
    }

    fn plans(&mut self) {
        for run in 0..self.best.runs.len() {
            let mut stage = 0;
            while stage < self.best.runs[run].plan.stages.len() {
                let more_than_one = self.best.runs[run].plan.stages.len() > 1;
                let gone = more_than_one
                    && self.improve(|scenario| {
                        scenario.runs[run].plan.stages.remove(stage);
                    });
                if !gone {
                    stage += 1;
                }
            }
            self.improve(|scenario| scenario.runs[run].plan.compensation = None);
            self.improve(|scenario| scenario.runs[run].signal = None);
            self.improve(|scenario| scenario.runs[run].delay_ms = None);
            self.improve(|scenario| scenario.runs[run].timeout_ms = None);
            self.works(run);
        }
    }

    fn works(&mut self, run: usize) {
        use crate::plan::Stage;
        for stage in 0..self.best.runs[run].plan.stages.len() {
            let (Stage::All(works) | Stage::First(works)) = &self.best.runs[run].plan.stages[stage]
            else {
                continue;
            };
            for at in (0..works.len()).rev() {
                let take = |scenario: &mut Scenario| {
                    let stage = &mut scenario.runs[run].plan.stages[stage];
                    if let Stage::All(works) | Stage::First(works) = stage {
                        if works.len() > 1 {
                            works.remove(at);
                        } else {
                            works[0].shots.clear();
                        }
                    }
                };
                self.improve(take);
            }
        }
    }

    fn settings(&mut self) {
        self.improve(|scenario| scenario.order = crate::executor::Order::Oldest);
        self.improve(|scenario| scenario.faults.latency_ms_max = 0);
        self.improve(|scenario| scenario.restart_all = false);
        for engine in 0..self.best.engines.len() {
            self.improve(|scenario| scenario.engines[engine].cache_bytes_max = 64 * 1024 * 1024);
            self.improve(|scenario| scenario.engines[engine].broken = false);
            self.improve(|scenario| scenario.engines[engine].slots = 10);
            self.improve(|scenario| scenario.engines[engine].turns_max = 64);
            self.improve(|scenario| scenario.engines[engine].inline_max = 256);
        }
    }
}

/// The scenario without an engine; the first then hosts everything.
fn without_engine(scenario: &mut Scenario, engine: usize) {
    use crate::scenario::Deed;
    scenario.engines.remove(engine);
    scenario.engines[0].hosts.activities = [true; 3];
    let gone = |at: usize| at >= scenario.engines.len();
    scenario.deeds.retain(|(_, deed)| match deed {
        Deed::Strike(at, _) | Deed::Stop(at) => !gone(*at),
        _ => true,
    });
    for (_, deed) in &mut scenario.deeds {
        if let Deed::Start { via, .. } = deed {
            *via = via.filter(|at| !gone(*at));
        }
    }
    scenario.blows.retain(|blow| !gone(blow.engine));
    scenario.faults.outages.retain(|out| !out.engine.is_some_and(gone));
}
