//! A turn: facts go in, the workflow's code answers with actions, one decision comes out.
//!
//! The run is changed in place while facts are offered. A decision that is then not committed
//! makes run and program worthless: whoever holds them drops both and folds again.

use crate::action::Action;
use crate::admit::admit;
use crate::decide::{decide, end, own_actions};
use crate::effect::effects;
use crate::event::{Event, Reach};
use crate::fact::Fact;
use crate::failure::{Failure, FailureKind};
use crate::id::{Place, RunId, Seq, WorkflowType};
use crate::invariant::Broken;
use crate::payload::Payload;
use crate::program::{Fault, Heard, Program};
use crate::run::{Activity, Phase, Run};
use crate::task::{DeadLetter, DeadLetterKind, TaskChange};
use crate::time::{Timestamp, to_millis};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time and randomness of a turn; both end up in its events.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The store's time, as far as known.
    pub now: Timestamp,
    /// Random bits.
    pub random: u64,
}

impl Moment {
    /// Random bits that differ between the events of a turn.
    pub(crate) fn random_for(self, seq: Seq) -> u64 {
        // splitmix64: a full mix of two words.
        let mut z = self.random ^ seq.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// What a turn changes: to be committed whole or not at all.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decision {
    /// Events to append, in order.
    pub events: Vec<Event>,
    /// At most one change for each place.
    pub tasks: BTreeMap<Place, TaskChange>,
    /// Work that was given up.
    pub dead_letters: Vec<DeadLetter>,
}

impl Decision {
    /// The start of a run: event 1 and, with a time-out, its row.
    pub fn start(start: Start) -> Decision {
        let event = Event::WorkflowStarted {
            workflow_type: start.workflow_type,
            input: start.input,
            seed: start.seed,
            timeout_ms: start.timeout.map(to_millis),
            at: start.at,
        };
        let mut decision = Decision::default();
        decision.change(effects(None, &event, Seq(1)));
        decision.events.push(event);
        decision
    }

    fn change(&mut self, changes: Vec<TaskChange>) {
        for change in changes {
            let place = match &change {
                TaskChange::Put(put) => put.place,
                TaskChange::Delete(place) | TaskChange::Cancel(place) => *place,
            };
            // A row that this very turn would have put is simply not put.
            let unborn = matches!(self.tasks.get(&place), Some(TaskChange::Put(_)));
            let change = match change {
                TaskChange::Cancel(place) if unborn => TaskChange::Delete(place),
                change => change,
            };
            self.tasks.insert(place, change);
        }
    }
}

/// What a run starts with.
#[derive(Clone, Debug)]
pub struct Start {
    /// Its workflow.
    pub workflow_type: WorkflowType,
    /// Its input.
    pub input: Payload,
    /// Where its random numbers come from.
    pub seed: u64,
    /// When it starts.
    pub at: Timestamp,
    /// Its own time-out.
    pub timeout: Option<Duration>,
}

/// What became of a fact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offered {
    /// It is recorded.
    Admitted,
    /// It is late or a repeat: it changes nothing.
    Late,
    /// The run had ended before it.
    AfterEnd,
}

/// A turn that cannot go on: nothing of it may be committed, the run is parked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TurnError {
    /// The workflow's code could not take an event.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// An invariant did not hold.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// A turn under way.
#[derive(Debug)]
pub struct Turn<'r> {
    run: &'r mut Run,
    moment: Moment,
    decision: Decision,
}

impl<'r> Turn<'r> {
    /// Begins a turn of a run.
    pub fn new(run: &'r mut Run, moment: Moment) -> Turn<'r> {
        Turn { run, moment, decision: Decision::default() }
    }

    /// The run as it is by now.
    pub fn run(&self) -> &Run {
        self.run
    }

    /// Offers a fact to the run and, if the code is to hear of it, to its program.
    pub fn offer(&mut self, program: &mut dyn Program, fact: &Fact) -> Result<Offered, TurnError> {
        if self.run.status.has_ended() {
            return Ok(Offered::AfterEnd);
        }
        let events = admit(self.run, fact, self.moment);
        if events.is_empty() {
            return Ok(Offered::Late);
        }
        for event in events {
            self.record(event)?;
            let event = self.decision.events.last().expect("just recorded");
            for action in consequences(self.run, program, event)? {
                for event in decide(self.run, action) {
                    self.record(event)?;
                }
            }
        }
        Ok(Offered::Admitted)
    }

    fn record(&mut self, event: Event) -> Result<(), Broken> {
        let seq = self.run.head.next();
        self.decision.dead_letters.extend(dead_letter(self.run, &event));
        self.decision.change(effects(Some(self.run), &event, seq));
        self.run.apply(&event)?;
        self.decision.events.push(event);
        Ok(())
    }

    /// What is to be committed.
    pub fn finish(self) -> Decision {
        self.decision
    }
}

/// What follows from an event that was just folded in: the kernel's own answer, or the code's.
pub(crate) fn consequences(
    run: &Run,
    program: &mut dyn Program,
    event: &Event,
) -> Result<Vec<Action>, Fault> {
    if let Some(own) = own_actions(run, event) {
        return Ok(own);
    }
    match event.reach() {
        Reach::Heard => program.react(Heard { run, seq: run.head }, event),
        Reach::Noted | Reach::Decided => Ok(vec![]),
    }
}

/// Ends a run at once: no code runs.
pub fn terminate(run: &mut Run, reason: &str, moment: Moment) -> Result<Decision, Broken> {
    let at = run.now.max(moment.now);
    let last = Event::WorkflowTerminated { reason: reason.to_owned(), at };
    // Before the first turn there is nothing to give up, and no event but the end may come.
    let events = end(run, reason, last);
    let mut turn = Turn::new(run, moment);
    for event in events {
        turn.record(event)?;
    }
    Ok(turn.finish())
}

/// The dead letter that a final failure leaves, if its attempts were used up.
fn dead_letter(run: &Run, event: &Event) -> Option<DeadLetter> {
    let (id, error, attempt) = match event {
        Event::ActivityFailed { activity_id, error, dead: true, attempt, .. } => {
            (activity_id, Failure::clone(error), attempt)
        }
        Event::ActivityTimedOut { activity_id, timeout_type, dead: true, attempt, .. } => {
            (activity_id, crate::admit::timeout_failure(*timeout_type), attempt)
        }
        _ => return None,
    };
    let activity: &Activity = run.activities.get(id)?;
    // The last loss of an inline step began an attempt that nobody executes.
    let unused = error.kind == FailureKind::Lost && matches!(activity.phase, Phase::UnderWay(_));
    let begun = activity.attempt - u32::from(unused);
    let mut errors = activity.errors.clone();
    errors.push(error);
    Some(DeadLetter {
        kind: DeadLetterKind::Activity,
        activity_id: id.clone(),
        activity_type: activity.activity_type.to_string(),
        input: activity.input.clone(),
        attempts: begun.max(attempt.as_ref().map_or(0, |a| a.number)),
        errors,
    })
}

impl Run {
    /// The run's id.
    pub fn id(&self) -> RunId {
        self.identity.id
    }
}
