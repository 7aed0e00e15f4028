//! The state machine that does what its plan says.

use super::{Call, Entries, activity, heard, settle, with_options};
use crate::plan::{Plan, SIGNALS, Stage, Work};
use durably::{Action, Actions, Failure, Output, Retry, Signal, SignalRef, Workflow};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The state machine.
pub(super) struct Machine {
    plan: Plan,
    at: usize,
    /// How the works of the present stage ended, in that order.
    ended: Vec<(u32, Result<String, Failure>)>,
    buffered: BTreeMap<String, VecDeque<String>>,
    entries: Entries,
    cancelling: Option<String>,
}

impl Workflow for Machine {
    const TYPE: &'static str = "machine";
    type Input = Plan;
    type Output = Entries;

    fn new(plan: Plan) -> Machine {
        let (ended, buffered, entries) = (Vec::new(), BTreeMap::new(), Entries::new());
        Machine { plan, at: 0, ended, buffered, entries, cancelling: None }
    }

    fn on_start(&mut self) -> Actions<Machine> {
        let mut actions = Vec::new();
        self.begin_stage(&mut actions);
        Ok(actions)
    }

    fn on_activity_completed(&mut self, id: &str, result: &Output) -> Actions<Machine> {
        let result = result.decode::<String>()?;
        self.work_ended(id, Ok(result))
    }

    fn on_activity_failed(&mut self, id: &str, failure: &Failure) -> Actions<Machine> {
        self.work_ended(id, Err(failure.clone()))
    }

    fn on_timer_fired(&mut self, _id: &str) -> Actions<Machine> {
        let mut actions = Vec::new();
        if self.cancelling.is_some() {
            return Ok(actions);
        }
        match &self.plan.stages[self.at] {
            Stage::Sleep { .. } => self.entries.push("slept".to_owned()),
            Stage::Signal { name, .. } => self.entries.push(heard(SIGNALS[*name], None)),
            Stage::All(_) | Stage::First(_) => return Ok(actions),
        }
        self.next_stage(&mut actions);
        Ok(actions)
    }

    fn on_signal(&mut self, signal: &Signal) -> Actions<Machine> {
        let mut actions = Vec::new();
        for name in SIGNALS {
            if let Some(says) = signal.of::<String>(SignalRef::new(name))? {
                self.buffered.entry(name.to_owned()).or_default().push_back(says);
            }
        }
        if self.cancelling.is_none() {
            self.take_signal(&mut actions);
        }
        Ok(actions)
    }

    fn on_cancel(&mut self, reason: &str) -> Actions<Machine> {
        let Some(work) = self.plan.compensation.clone() else {
            return Ok(vec![Action::cancelled(reason)]);
        };
        self.cancelling = Some(reason.to_owned());
        let mut actions = Vec::new();
        if let Stage::All(works) | Stage::First(works) = &self.plan.stages[self.at] {
            actions.extend(works.iter().map(|work| Action::cancel_activity(id_of(work))));
        }
        actions.push(Action::cancel_timer(self.timer()));
        actions.push(ask(&work));
        Ok(actions)
    }
}

fn id_of(work: &Work) -> String {
    format!("w{}", work.number)
}

fn ask(work: &Work) -> Action<Machine> {
    let index = work.activity.expect("a state machine has no steps");
    let asked = Action::activity(id_of(work), activity(index), &Call { work: work.clone() });
    with_options!(asked, work).into()
}

impl Machine {
    fn timer(&self) -> String {
        format!("t{}", self.at)
    }

    fn begin_stage(&mut self, actions: &mut Vec<Action<Machine>>) {
        let Some(stage) = self.plan.stages.get(self.at) else {
            return actions.push(Action::complete(&self.entries));
        };
        match stage {
            Stage::All(works) | Stage::First(works) => actions.extend(works.iter().map(ask)),
            Stage::Sleep { ms } => {
                actions.push(Action::timer(self.timer(), Duration::from_millis(*ms)));
            }
            Stage::Signal { name, timeout_ms } => {
                let waiting = self.buffered.get(SIGNALS[*name]).is_some_and(|b| !b.is_empty());
                if let (Some(ms), false) = (timeout_ms, waiting) {
                    actions.push(Action::timer(self.timer(), Duration::from_millis(*ms)));
                }
                self.take_signal(actions);
            }
        }
    }

    fn next_stage(&mut self, actions: &mut Vec<Action<Machine>>) {
        self.ended.clear();
        self.at += 1;
        self.begin_stage(actions);
    }

    /// Goes on if the signal that is waited for is there.
    fn take_signal(&mut self, actions: &mut Vec<Action<Machine>>) {
        let Some(Stage::Signal { name, .. }) = self.plan.stages.get(self.at) else { return };
        let name = SIGNALS[*name];
        let Some(says) = self.buffered.get_mut(name).and_then(VecDeque::pop_front) else { return };
        actions.push(Action::cancel_timer(self.timer()));
        self.entries.push(heard(name, Some(&says)));
        self.next_stage(actions);
    }

    fn work_ended(&mut self, id: &str, result: Result<String, Failure>) -> Actions<Machine> {
        let number: u32 = id.trim_start_matches('w').parse()?;
        if let Some(reason) = &self.cancelling {
            let is_last = self.plan.compensation.as_ref().is_some_and(|w| w.number == number);
            let end = is_last.then(|| Action::cancelled(reason.clone()));
            return Ok(end.into_iter().collect());
        }
        self.ended.push((number, result));
        let (works, all) = match &self.plan.stages[self.at] {
            Stage::All(works) => (works.clone(), true),
            Stage::First(works) => (works.clone(), false),
            Stage::Sleep { .. } | Stage::Signal { .. } => return Ok(vec![]),
        };
        let mut actions = Vec::new();
        if all && self.ended.len() < works.len() {
            return Ok(actions);
        }
        // In the order of the plan, as the function has them.
        self.ended.sort_by_key(|(number, _)| *number);
        if let Err(failure) = settle(&works, &self.ended, &mut self.entries) {
            return Ok(vec![Action::fail(failure)]);
        }
        for work in works.iter().filter(|work| work.number != number && !all) {
            actions.push(Action::cancel_activity(id_of(work)));
        }
        self.next_stage(&mut actions);
        Ok(actions)
    }
}
