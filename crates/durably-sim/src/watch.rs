//! What must hold of every run at any moment, looked at after every command that changed it.

use crate::plan::{Plan, Stage, Work};
use crate::program::{stage_of, work_of};
use durably_kernel::{Event, Place, Run, RunId, Seq, Timestamp};
use durably_store::check::{self, Found, RunShot, UNREAD_MAX};
use durably_store::{Answer, InboxEntry, RunView, Store};
use futures_util::FutureExt;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a run.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) plan: Plan,
    pub(crate) shot: RunShot,
    folded: Run,
    /// Which work an activity is.
    pub(crate) works: BTreeMap<String, u32>,
    /// Works that are over.
    ended: BTreeSet<u32>,
    /// Of them, those with an outcome of an attempt, and the number of that event. One that was
    /// given up or came too late may be in somebody's hands, about to begin.
    outcomes: BTreeMap<u32, Seq>,
    cancel_requested: bool,
}

/// All runs, as they were after the last change.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    runs: BTreeMap<RunId, Seen>,
    /// The highest claim number of a row.
    numbers: BTreeMap<(RunId, Place, Seq), u64>,
}

/// What a work that begins is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Began {
    /// A stage of the plan.
    Stage,
    /// What the plan does when it is cancelled.
    Compensation,
}

/// The answer of a memory store, which is always there at once.
pub(crate) fn at_once<T>(answer: Answer<'_, T>) -> T {
    answer.now_or_never().expect("the memory store answers at once").expect("and does not fail")
}

/// No history is longer.
const EVENTS_MAX: usize = 100_000;

impl Watch {
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&RunId, &Seen)> {
        self.runs.iter()
    }

    pub(crate) fn run(&self, run: RunId) -> Option<&Seen> {
        self.runs.get(&run)
    }

    /// Runs that have not ended.
    pub(crate) fn open(&self) -> Vec<RunId> {
        let open = |seen: &&Seen| !seen.shot.view.status.has_ended();
        self.runs.values().filter(open).map(|seen| seen.shot.view.identity.id).collect()
    }

    /// Looks at a run that a command has changed; gives the events that are new.
    pub(crate) fn look(
        &mut self,
        store: &dyn Store,
        run: RunId,
        now: Timestamp,
    ) -> Result<Vec<Event>, String> {
        let view = at_once(store.run(run)).ok_or("I21: an acknowledged run is not there")?;
        let known = self.runs.get(&run).map_or(Seq(0), |seen| seen.shot.view.head);
        let page = at_once(store.history(run, known, EVENTS_MAX));
        let events: Vec<Event> = page.events.iter().map(|row| row.event.clone()).collect();
        let (tasks, unread) = (at_once(store.tasks(run)), unread(store, &view));
        let old = match self.runs.get_mut(&run) {
            None => {
                let seen = Seen::new(view, page.events, tasks, unread)?;
                self.runs.insert(run, seen);
                None
            }
            Some(seen) => {
                seen.shot.history.extend(page.events);
                for event in &events {
                    let applied = seen.folded.apply(event);
                    applied.map_err(|broken| format!("I4: the history does not fold: {broken}"))?;
                }
                let old = std::mem::replace(&mut seen.shot.view, view);
                (seen.shot.tasks, seen.shot.unread) = (tasks, unread);
                Some(old)
            }
        };
        let seen = self.runs.get_mut(&run).expect("just put there");
        let first = seen.shot.history.len() - events.len();
        for (at, event) in events.iter().enumerate() {
            seen.note(event, Seq((first + at) as u64 + 1));
        }
        check(seen, now)?;
        if let Some(old) = old {
            same_as_before(&old, &seen.shot.view, events.is_empty())?;
        }
        for row in &seen.shot.tasks {
            let last = self.numbers.entry((run, row.place, row.seq)).or_default();
            if row.number < *last {
                return Err("I8: a claim number went back".to_owned());
            }
            *last = row.number;
        }
        Ok(events)
    }

    /// Whether a work may begin: it was asked for, has not ended, and all before it has.
    pub(crate) fn may_begin(
        &self,
        run: RunId,
        work: &Work,
        attempt: Option<u32>,
        zombie: bool,
    ) -> Result<Began, String> {
        let seen = self.runs.get(&run).ok_or("it begins before its run is stored")?;
        if !seen.works.values().any(|number| *number == work.number) {
            return Err("I22: it begins before the commit that asks for it".to_owned());
        }
        if let (Some(seq), false) = (seen.outcomes.get(&work.number), zombie) {
            return Err(format!(
                "I23: it begins (attempt {attempt:?}) though event {seq} says how it ended"
            ));
        }
        let Some(stage) = stage_of(&seen.plan, work.number) else {
            return match seen.cancel_requested {
                true => Ok(Began::Compensation),
                false => Err("it compensates what nobody cancelled".to_owned()),
            };
        };
        let before = &seen.plan.stages[..stage];
        match before.iter().all(|stage| seen.has_passed(stage)) {
            true => Ok(Began::Stage),
            false => Err("I22: it begins before what comes before it is recorded".to_owned()),
        }
    }
}

impl Seen {
    fn new(
        view: RunView,
        history: Vec<durably_store::EventRow>,
        tasks: Vec<durably_store::TaskRow>,
        unread: Vec<InboxEntry>,
    ) -> Result<Seen, String> {
        let first = history.first().ok_or("I1: a run without events")?;
        let Event::WorkflowStarted { input, .. } = &first.event else {
            return Err("I1: event 1 is no start".to_owned());
        };
        let plan = input.decode().map_err(|error| format!("the input is no plan: {error}"))?;
        let events: Vec<Event> = history.iter().map(|row| row.event.clone()).collect();
        let folded = Run::fold(view.identity.clone(), &events)
            .map_err(|broken| format!("I4: the history does not fold: {broken}"))?;
        let shot = RunShot { view, history, tasks, unread };
        let (works, ended, outcomes) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Ok(Seen { plan, shot, folded, works, ended, outcomes, cancel_requested: false })
    }

    fn note(&mut self, event: &Event, seq: Seq) {
        match event {
            Event::ActivityScheduled { activity_id, .. } => {
                if let Some(work) = work_of(event) {
                    self.works.insert(activity_id.to_string(), work);
                }
            }
            Event::ActivityCompleted { activity_id, .. }
            | Event::ActivityFailed { activity_id, will_retry: false, .. }
            | Event::ActivityTimedOut { activity_id, will_retry: false, .. }
            | Event::ActivityCancelled { activity_id, .. } => {
                let Some(work) = self.works.get(activity_id.as_str()) else { return };
                self.ended.insert(*work);
                let outcome =
                    matches!(event, Event::ActivityCompleted { .. } | Event::ActivityFailed { .. });
                if outcome {
                    self.outcomes.insert(*work, seq);
                }
            }
            Event::WorkflowCancelRequested { .. } => self.cancel_requested = true,
            _ => {}
        }
    }

    /// The history as the kernel has it.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.shot.history.iter().map(|row| row.event.clone()).collect()
    }

    /// Whether an activity is a step of a function.
    pub(crate) fn is_inline(&self, id: &durably_kernel::ActivityId) -> bool {
        let work = self.works.get(id.as_str()).and_then(|number| self.plan.work(*number));
        work.is_some_and(|work| work.activity.is_none())
    }

    fn has_passed(&self, stage: &Stage) -> bool {
        let ended = |work: &Work| self.ended.contains(&work.number);
        match stage {
            Stage::All(works) => works.iter().all(ended),
            Stage::First(works) => works.iter().any(ended),
            Stage::Sleep { .. } | Stage::Signal { .. } => true,
        }
    }
}

fn unread(store: &dyn Store, view: &RunView) -> Vec<InboxEntry> {
    if view.inbox_last == view.inbox_used {
        return Vec::new();
    }
    at_once(store.inbox(view.identity.id, view.inbox_used, UNREAD_MAX))
}

fn check(seen: &Seen, now: Timestamp) -> Result<(), String> {
    let mut found = Found::new();
    check::stored(&seen.shot, &mut found);
    check::told(&seen.shot, &seen.folded, now, &mut found);
    match found.first() {
        None => Ok(()),
        Some(broken) => Err(broken.to_string()),
    }
}

fn same_as_before(old: &RunView, new: &RunView, no_events: bool) -> Result<(), String> {
    let rules = [
        (old.identity == new.identity, "I27: a run changed its tenant or queue"),
        (old.head <= new.head, "I2: the head went back"),
        (old.inbox_last <= new.inbox_last, "I14: inbox numbers went back"),
        (old.inbox_used <= new.inbox_used, "I14: an entry was used up twice"),
        (!old.status.has_ended() || (no_events && old == new), "I28: an ended run changed"),
    ];
    match rules.iter().find(|(holds, _)| !holds) {
        Some((_, broken)) => Err((*broken).to_owned()),
        None => Ok(()),
    }
}
