//! What a plan comes to, given what happened: a second, plain reading of the plan.

use crate::plan::{Plan, SIGNALS, Stage, Work};
use crate::program::{entry, heard, work_of};
use durably_kernel::{Event, FailureKind};
use std::collections::BTreeMap;

/// What a plan comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// It ends with this.
    Output(Vec<String>),
    /// It fails.
    Fails(FailureKind),
    /// It has not come to an end.
    Unfinished,
}

type End = Result<String, FailureKind>;

/// What the history says about the parts of a plan, with the numbers of the events.
#[derive(Default)]
struct Told {
    ends: BTreeMap<u32, (usize, End)>,
    fired: Vec<usize>,
    signals: BTreeMap<String, Vec<(usize, String)>>,
}

fn told(events: &[Event]) -> Told {
    let mut works = BTreeMap::new();
    let mut told = Told::default();
    for (at, event) in events.iter().enumerate() {
        let (id, end) = match event {
            Event::ActivityScheduled { activity_id, .. } => {
                works.extend(work_of(event).map(|work| (activity_id.clone(), work)));
                continue;
            }
            Event::ActivityCompleted { activity_id, result, .. } => {
                (activity_id, Ok(result.decode().unwrap_or_default()))
            }
            Event::ActivityFailed { activity_id, error, will_retry: false, .. } => {
                (activity_id, Err(error.kind))
            }
            Event::ActivityTimedOut { activity_id, will_retry: false, .. } => {
                (activity_id, Err(FailureKind::TimedOut))
            }
            Event::TimerFired { .. } => {
                told.fired.push(at);
                continue;
            }
            Event::SignalReceived { signal, .. } => {
                let says = signal.payload.decode().unwrap_or_default();
                told.signals.entry(signal.signal_type.clone()).or_default().push((at, says));
                continue;
            }
            _ => continue,
        };
        if let Some(work) = works.get(id) {
            told.ends.insert(*work, (at, end));
        }
    }
    told
}

/// What a plan comes to.
pub(crate) fn expected(plan: &Plan, events: &[Event]) -> Expected {
    let told = told(events);
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut entries, mut at) = (Vec::new(), 0);
    for stage in &plan.stages {
        match stage {
            Stage::All(works) => {
                let ends = works.iter().map(|work| told.ends.get(&work.number));
                let Some(ends) = ends.collect::<Option<Vec<_>>>() else {
                    return Expected::Unfinished;
                };
                for (work, (ended, end)) in works.iter().zip(ends) {
                    at = at.max(*ended);
                    if let Some(kind) = fatal(work, end) {
                        return Expected::Fails(kind);
                    }
                    entries.push(entry(work.number, end));
                }
            }
            Stage::First(works) => {
                let ends =
                    works.iter().filter_map(|work| Some((told.ends.get(&work.number)?, work)));
                let Some(((ended, end), work)) = ends.min_by_key(|((ended, _), _)| *ended) else {
                    return Expected::Unfinished;
                };
                at = *ended;
                if let Some(kind) = fatal(work, end) {
                    return Expected::Fails(kind);
                }
                entries.push(entry(work.number, end));
            }
            Stage::Sleep { .. } => {
                let Some(fired) = told.fired.iter().find(|fired| **fired > at) else {
                    return Expected::Unfinished;
                };
                at = *fired;
                entries.push("slept".to_owned());
            }
            Stage::Signal { name, timeout_ms } => {
                let name = SIGNALS[*name];
                let count = taken.entry(name).or_default();
                let signal = told.signals.get(name).and_then(|all| all.get(*count));
                let fired = told.fired.iter().find(|fired| **fired > at);
                let fired = fired.filter(|_| timeout_ms.is_some());
                match (signal, fired) {
                    (Some((came, says)), fired) if fired.is_none_or(|fired| came < fired) => {
                        *count += 1;
                        at = at.max(*came);
                        entries.push(heard(name, Some(says)));
                    }
                    (_, Some(fired)) => {
                        at = *fired;
                        entries.push(heard(name, None));
                    }
                    (_, None) => return Expected::Unfinished,
                }
            }
        }
    }
    Expected::Output(entries)
}

/// A failure that the plan does not tolerate.
fn fatal(work: &Work, end: &End) -> Option<FailureKind> {
    match end {
        Err(kind) if !work.tolerated => Some(*kind),
        _ => None,
    }
}
