//! The ledger of B2: no step begins before what scheduled it, and the step before it, are
//! committed.
//!
//! Handlers note a tick as they begin. A store around the store notes one when it was told that a
//! commit is in the database, before the engine hears of it: by the answer to the commit, or by one
//! that hands out a task which that commit has put there. So a step whose tick is smaller began on
//! something that could still have been lost.

use super::flows::step_id;
use super::watched::Watch;
use durably_kernel::{ActivityId, Event, RunId};
use durably_store::{ClaimedTask, ClaimedWork, CommitAnswer, RunCommit};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// When something happened, in order.
type Tick = u64;

/// What is noted of a step.
#[derive(Clone, Debug, Default)]
struct Entry {
    /// Its scheduling was acknowledged.
    scheduled: Option<Tick>,
    /// A handler began.
    began: Vec<Tick>,
    /// Its outcome was acknowledged.
    completed: Option<Tick>,
}

#[derive(Debug, Default)]
struct Book {
    last: Tick,
    steps: BTreeMap<(RunId, ActivityId), Entry>,
    /// What commits that are not answered yet would write.
    flying: BTreeMap<RunId, Vec<Noted>>,
}

impl Book {
    fn tick(&mut self) -> Tick {
        self.last += 1;
        self.last
    }
}

/// Notes what happens to steps.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Book>);

/// What the ledger shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Audit {
    /// Steps that began.
    pub(super) steps: usize,
    /// What should not have happened, a line for each.
    pub(super) violations: Vec<String>,
}

impl Ledger {
    /// A handler begins.
    pub(super) fn began(&self, run: RunId, step: u32) {
        let mut book = self.0.lock();
        let tick = book.tick();
        book.steps.entry((run, step_id(step).into())).or_default().began.push(tick);
    }

    /// Events of a run are in the store; the first sign of it counts.
    fn committed(&self, run: RunId, steps: Vec<Noted>) {
        let mut book = self.0.lock();
        let tick = book.tick();
        for step in steps {
            match step {
                Noted::Scheduled(id) => {
                    book.steps.entry((run, id)).or_default().scheduled.get_or_insert(tick);
                }
                Noted::Completed(id) => {
                    book.steps.entry((run, id)).or_default().completed.get_or_insert(tick);
                }
            }
        }
    }

    /// Looks at every step of so many runs.
    pub(super) fn audit(&self, runs: usize, steps: u32) -> Audit {
        let book = self.0.lock();
        let mut audit = Audit { steps: 0, violations: Vec::new() };
        let mut numbers: BTreeMap<RunId, u32> = BTreeMap::new();
        for (run, _) in book.steps.keys() {
            *numbers.entry(*run).or_default() += 1;
        }
        if numbers.len() != runs {
            audit.violations.push(format!("{} runs of {runs} were seen", numbers.len()));
        }
        for run in numbers.keys() {
            for number in 1..=steps {
                let entry = |number| book.steps.get(&(*run, ActivityId::from(step_id(number))));
                let before = (number > 1).then(|| entry(number - 1).cloned().unwrap_or_default());
                let this = entry(number).cloned().unwrap_or_default();
                let wrong = judge(before.as_ref(), &this);
                audit.violations.extend(wrong.map(|wrong| format!("{run} step {number}: {wrong}")));
                audit.steps += this.began.len();
            }
        }
        audit
    }
}

impl Watch for Ledger {
    fn sent(&self, batch: &[RunCommit]) {
        let mut book = self.0.lock();
        for commit in batch {
            book.flying.insert(commit.run, noted(&commit.events));
        }
    }

    fn answered(&self, batch: &[RunCommit], answers: &[CommitAnswer]) {
        for (commit, answer) in batch.iter().zip(answers) {
            if let CommitAnswer::Committed(_) = answer {
                self.committed(commit.run, noted(&commit.events));
            }
        }
    }

    /// The commit that put the task there is in the database.
    fn handed_out(&self, tasks: &[ClaimedTask]) {
        for task in tasks {
            let ClaimedWork::Activity(activity) = &task.work else { continue };
            let run = task.claim.run;
            let flying = self.0.lock().flying.get(&run).cloned().unwrap_or_default();
            if flying.contains(&Noted::Scheduled(activity.id.clone())) {
                self.committed(run, flying);
            }
        }
    }
}

/// What is wrong with a step, given the one before it.
fn judge(before: Option<&Entry>, this: &Entry) -> Option<&'static str> {
    let [began] = this.began[..] else { return Some("it did not begin exactly once") };
    let is_before = |tick: Option<Tick>| tick.is_some_and(|tick| tick < began);
    if !is_before(this.scheduled) {
        return Some("it began before its scheduling was committed");
    }
    if before.is_some_and(|before| !is_before(before.completed)) {
        return Some("it began before the outcome of the step before it was committed");
    }
    match this.completed {
        Some(_) => None,
        None => Some("its outcome was not committed"),
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Noted {
    Scheduled(ActivityId),
    Completed(ActivityId),
}

fn noted(events: &[Event]) -> Vec<Noted> {
    let note = |event: &Event| match event {
        Event::ActivityScheduled { activity_id, .. } => Some(Noted::Scheduled(activity_id.clone())),
        Event::ActivityCompleted { activity_id, .. } => Some(Noted::Completed(activity_id.clone())),
        _ => None,
    };
    events.iter().filter_map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId(uuid::Uuid::nil());

    fn schedule(ledger: &Ledger, step: u32) {
        ledger.committed(RUN, vec![Noted::Scheduled(step_id(step).into())]);
    }

    fn complete(ledger: &Ledger, step: u32) {
        ledger.committed(RUN, vec![Noted::Completed(step_id(step).into())]);
    }

    fn violations(ledger: &Ledger) -> String {
        ledger.audit(1, 2).violations.join("; ")
    }

    #[test]
    fn steps_in_order_are_fine() {
        let ledger = Ledger::default();
        for step in [1, 2] {
            schedule(&ledger, step);
            ledger.began(RUN, step);
            complete(&ledger, step);
        }
        assert_eq!(ledger.audit(1, 2), Audit { steps: 2, violations: vec![] });
        assert_eq!(ledger.audit(2, 2).violations, ["1 runs of 2 were seen"]);
    }

    #[test]
    fn a_step_that_begins_before_a_commit_is_found() {
        let early = Ledger::default();
        schedule(&early, 1);
        early.began(RUN, 1);
        schedule(&early, 2);
        early.began(RUN, 2);
        complete(&early, 1);
        complete(&early, 2);
        assert!(violations(&early).contains("step 2: it began before the outcome"));

        let unscheduled = Ledger::default();
        unscheduled.began(RUN, 1);
        schedule(&unscheduled, 1);
        complete(&unscheduled, 1);
        assert!(violations(&unscheduled).contains("step 1: it began before its scheduling"));
        assert!(violations(&unscheduled).contains("step 2: it did not begin exactly once"));
    }

    #[test]
    fn a_step_without_an_outcome_is_found() {
        let ledger = Ledger::default();
        schedule(&ledger, 1);
        ledger.began(RUN, 1);
        assert!(violations(&ledger).contains("step 1: its outcome was not committed"));
    }
}
