//! A run: the fold of its events, nothing else.

use crate::event::Event;
use crate::failure::{Failure, FailureKind};
use crate::id::{
    ActivityId, ActivityType, Place, Queue, RunId, Seq, Tenant, TimerId, WorkflowType,
};
use crate::invariant::Broken;
use crate::options::ActivityOptions;
use crate::payload::Payload;
use crate::program::Waits;
use crate::retry::Retry;
use crate::status::RunStatus;
use crate::task::Summary;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a run is known by; it never changes and stands in the run's row, not in its history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunIdentity {
    /// The run.
    pub id: RunId,
    /// Whom it is for.
    pub tenant: Tenant,
    /// Where its tasks wait.
    pub queue: Queue,
    /// Its tasks' priority.
    pub priority: i32,
}

/// How far an open activity is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Has a task row, or an outcome that waits in the inbox.
    Queued,
    /// Inline: an attempt is under way, begun by the event with this number.
    UnderWay(Seq),
    /// Inline: waits for its backoff at this place, since the event with this number.
    Backoff(Place, Seq),
}

/// An activity without an outcome so far.
#[derive(Clone, PartialEq, Debug)]
pub struct Activity {
    /// Its code.
    pub activity_type: ActivityType,
    /// What it gets.
    pub input: Payload,
    /// How it is executed.
    pub options: Arc<ActivityOptions>,
    /// The event that scheduled it.
    pub scheduled: Seq,
    /// When that was.
    pub scheduled_at: Timestamp,
    /// The event that scheduled or last re-queued it: the fence of its task row.
    pub queued: Seq,
    /// How far it is.
    pub phase: Phase,
    /// Its task row; none for an inline step.
    pub place: Option<Place>,
    /// The row of its schedule-to-start time-out.
    pub start_place: Option<Place>,
    /// The row of its schedule-to-close time-out.
    pub close_place: Option<Place>,
    /// Attempts begun, as far as recorded.
    pub attempt: u32,
    /// Of them, failed.
    pub failures: u32,
    /// Attempts in a row that met contention.
    pub contentions: u32,
    /// Of them, lost by deaths of workers.
    pub deaths: u32,
    /// Every error so far, oldest first; bounded.
    pub errors: Vec<Failure>,
}

impl Activity {
    /// Whether a failure of this kind uses an attempt: contention does not, so often in a row.
    pub(crate) fn uses_attempt(&self, kind: FailureKind) -> bool {
        kind != FailureKind::Contention || self.contentions >= Retry::CONTENTIONS_MAX
    }
}

/// A timer that has not fired.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timer {
    /// The event that started it.
    pub started: Seq,
    /// Its row.
    pub place: Place,
}

/// The last error of a run and when it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LastError {
    /// The error.
    pub error: Failure,
    /// When.
    pub at: Timestamp,
}

/// Rows in use. A place is given out again only when its row is surely gone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Places {
    highest: u32,
    free: BTreeSet<Place>,
}

impl Places {
    /// The smallest free places, in order.
    fn next(&self) -> impl Iterator<Item = Place> + '_ {
        self.free.iter().copied().chain((self.highest + 1..).map(Place))
    }

    /// Whether the place was free. No history skips one, since the smallest free is taken.
    fn occupy(&mut self, place: Place) -> bool {
        let fresh = Some(place.0) == self.highest.checked_add(1);
        if fresh {
            self.highest = place.0;
        }
        fresh || self.free.remove(&place)
    }

    fn release(&mut self, place: Place) -> bool {
        place.0 <= self.highest && self.free.insert(place)
    }
}

/// A run as its events tell it.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// What it is known by.
    pub identity: RunIdentity,
    /// Its workflow.
    pub workflow_type: WorkflowType,
    /// The version of its code, once pinned.
    pub version: Option<u32>,
    /// The last event's number.
    pub head: Seq,
    /// Where it stands.
    pub status: RunStatus,
    /// Where its random numbers come from.
    pub seed: u64,
    /// When its last fact was recorded.
    pub now: Timestamp,
    /// Activities without an outcome.
    pub activities: BTreeMap<ActivityId, Activity>,
    /// Timers that run.
    pub timers: BTreeMap<TimerId, Timer>,
    /// Why it was asked to end, if it was.
    pub cancel_requested: Option<String>,
    /// It ends once what is under way is done.
    pub shutting_down: bool,
    /// Retries so far.
    pub retries: u32,
    /// The last error.
    pub last_error: Option<Box<LastError>>,
    activity_ids: BTreeSet<ActivityId>,
    timer_ids: BTreeSet<TimerId>,
    places: Places,
}

/// So many errors of one activity are kept for its dead letter.
const ERRORS_MAX: usize = 50;

impl Run {
    /// The run that event 1 begins.
    pub fn begin(identity: RunIdentity, first: &Event) -> Result<Run, Broken> {
        let Event::WorkflowStarted { workflow_type, seed, timeout_ms, at, .. } = first else {
            return Err(Broken::new(format!("event 1 is {}, not a start", first.name())));
        };
        let mut places = Places::default();
        if timeout_ms.is_some() {
            places.occupy(Place(1));
        }
        Ok(Run {
            identity,
            workflow_type: workflow_type.clone(),
            version: None,
            head: Seq(1),
            status: RunStatus::Pending,
            seed: *seed,
            now: *at,
            activities: BTreeMap::new(),
            timers: BTreeMap::new(),
            cancel_requested: None,
            shutting_down: false,
            retries: 0,
            last_error: None,
            activity_ids: BTreeSet::new(),
            timer_ids: BTreeSet::new(),
            places,
        })
    }

    /// The run that a whole history tells, resets honoured.
    pub fn fold(identity: RunIdentity, events: &[Event]) -> Result<Run, Broken> {
        let mut kept = effective(events).into_iter();
        let (_, first) = kept.next().ok_or_else(|| Broken::new("a run without events"))?;
        let mut run = Run::begin(identity, first)?;
        for (seq, event) in kept {
            run.head = Seq(seq.0 - 1);
            run.apply(event)?;
        }
        run.head = Seq(events.len() as u64);
        Ok(run)
    }

    /// Takes the next event in.
    pub fn apply(&mut self, event: &Event) -> Result<(), Broken> {
        self.status = self.status.after(event).map_err(|illegal| {
            Broken::new(format!("run {} at {}: {illegal}", self.identity.id, self.head))
        })?;
        self.head = self.head.next();
        if let Some(at) = event.at() {
            self.now = self.now.max(at);
        }
        self.take_in(event)?;
        self.check()
    }

    fn take_in(&mut self, event: &Event) -> Result<(), Broken> {
        match event {
            Event::WorkflowStarted { .. } | Event::WorkflowReset { .. } => {
                return Err(Broken::new(format!("{} is taken in by a fold only", event.name())));
            }
            Event::VersionPinned { version, .. } => self.version = Some(*version),
            Event::WorkflowFailed { error } => self.note_error(error),
            Event::WorkflowCompleted { .. }
            | Event::WorkflowCancelled { .. }
            | Event::WorkflowTerminated { .. }
            | Event::WorkflowTimedOut { .. }
            | Event::SignalReceived { .. }
            | Event::ChildWorkflowStarted { .. }
            | Event::ChildWorkflowCompleted { .. }
            | Event::ChildWorkflowFailed { .. } => {}
            Event::WorkflowCancelRequested { reason, .. } => {
                self.cancel_requested = Some(reason.clone());
            }
            Event::WorkflowShutdownRequested { .. } => self.shutting_down = true,
            Event::ActivityScheduled { .. } => self.take_scheduled(event)?,
            Event::ActivityCompleted { activity_id, .. } => {
                let activity = self.close_activity(activity_id)?;
                self.release_rows(&activity, true)?;
            }
            Event::ActivityFailed { .. } | Event::ActivityTimedOut { .. } => {
                self.take_failure(event)?;
            }
            Event::ActivityCancelled { activity_id, .. } => {
                let activity = self.close_activity(activity_id)?;
                // Its worker may still be busy with it: the task's own place is not given out again.
                self.release_rows(&activity, false)?;
            }
            Event::ActivityLost { activity_id, attempt, died, .. } => {
                let seq = self.head;
                let activity = self.open_activity(activity_id)?;
                activity.deaths += u32::from(*died);
                activity.attempt = activity.attempt.max(attempt.number);
                if let Phase::UnderWay(_) = activity.phase {
                    activity.phase = Phase::UnderWay(seq);
                    activity.attempt += 1;
                }
            }
            Event::ActivityRetryDue { activity_id, .. } => self.take_retry_due(activity_id)?,
            Event::TimerStarted { timer_id, place, .. } => {
                if !self.timer_ids.insert(timer_id.clone()) {
                    return Err(Broken::new(format!("timer {timer_id} is started twice")));
                }
                self.occupy(*place)?;
                let timer = Timer { started: self.head, place: *place };
                self.timers.insert(timer_id.clone(), timer);
            }
            Event::TimerFired { timer_id, .. } | Event::TimerCancelled { timer_id } => {
                let timer = self.timers.remove(timer_id).ok_or_else(|| {
                    Broken::new(format!("{} of {timer_id}, which is not open", event.name()))
                })?;
                self.release(timer.place)?;
            }
        }
        Ok(())
    }

    fn take_scheduled(&mut self, event: &Event) -> Result<(), Broken> {
        let Event::ActivityScheduled {
            activity_id,
            activity_type,
            input,
            options,
            inline,
            place,
            start_place,
            close_place,
        } = event
        else {
            unreachable!("called for scheduling events only");
        };
        if !self.activity_ids.insert(activity_id.clone()) {
            return Err(Broken::new(format!("activity {activity_id} is scheduled twice")));
        }
        if *inline != place.is_none() {
            return Err(Broken::new(format!(
                "activity {activity_id}: a place or inline, not both"
            )));
        }
        for place in [place, start_place, close_place].into_iter().flatten() {
            self.occupy(*place)?;
        }
        let activity = Activity {
            activity_type: activity_type.clone(),
            input: input.clone(),
            options: options.clone(),
            scheduled: self.head,
            scheduled_at: self.now,
            queued: self.head,
            phase: if *inline { Phase::UnderWay(self.head) } else { Phase::Queued },
            place: *place,
            start_place: *start_place,
            close_place: *close_place,
            attempt: u32::from(*inline),
            failures: 0,
            contentions: 0,
            deaths: 0,
            errors: Vec::new(),
        };
        self.activities.insert(activity_id.clone(), activity);
        Ok(())
    }

    fn take_failure(&mut self, event: &Event) -> Result<(), Broken> {
        let (activity_id, error, will_retry, place, attempt) = match event {
            Event::ActivityFailed { activity_id, error, will_retry, place, attempt, .. } => {
                (activity_id, Failure::clone(error), *will_retry, *place, attempt)
            }
            Event::ActivityTimedOut {
                activity_id,
                timeout_type,
                will_retry,
                place,
                attempt,
                ..
            } => {
                let error = crate::admit::timeout_failure(*timeout_type);
                (activity_id, error, *will_retry, *place, attempt)
            }
            _ => unreachable!("called for failures only"),
        };
        self.note_error(&error.clone().from_origin(activity_id.as_str()));
        if !will_retry {
            let activity = self.close_activity(activity_id)?;
            return self.release_rows(&activity, true);
        }
        self.retries += 1;
        let seq = self.head;
        let activity = self.open_activity(activity_id)?;
        let counts = activity.uses_attempt(error.kind);
        activity.contentions = if counts { 0 } else { activity.contentions + 1 };
        activity.failures += u32::from(counts);
        activity.attempt = activity.attempt.max(attempt.as_ref().map_or(0, |a| a.number));
        activity.queued = seq;
        if activity.errors.len() == ERRORS_MAX {
            activity.errors.remove(0);
        }
        activity.errors.push(error);
        match (activity.place, place) {
            (Some(_), None) => {}
            (None, Some(place)) => {
                activity.phase = Phase::Backoff(place, seq);
                self.occupy(place)?;
            }
            _ => {
                return Err(Broken::new(format!("{activity_id}: backoff at a wrong place")));
            }
        }
        Ok(())
    }

    fn take_retry_due(&mut self, id: &ActivityId) -> Result<(), Broken> {
        let seq = self.head;
        let activity = self.open_activity(id)?;
        let Phase::Backoff(place, _) = activity.phase else {
            return Err(Broken::new(format!("{id} is due again without a backoff")));
        };
        activity.phase = Phase::UnderWay(seq);
        activity.attempt += 1;
        self.release(place)
    }

    fn note_error(&mut self, error: &Failure) {
        self.last_error = Some(Box::new(LastError { error: error.clone(), at: self.now }));
    }

    fn open_activity(&mut self, id: &ActivityId) -> Result<&mut Activity, Broken> {
        self.activities.get_mut(id).ok_or_else(|| Broken::new(format!("activity {id} is not open")))
    }

    fn close_activity(&mut self, id: &ActivityId) -> Result<Activity, Broken> {
        self.activities.remove(id).ok_or_else(|| Broken::new(format!("activity {id} is not open")))
    }

    fn release_rows(&mut self, activity: &Activity, own: bool) -> Result<(), Broken> {
        let backoff = match activity.phase {
            Phase::Backoff(place, _) => Some(place),
            Phase::Queued | Phase::UnderWay(_) => None,
        };
        let own = if own { activity.place } else { None };
        for place in
            [own, activity.start_place, activity.close_place, backoff].into_iter().flatten()
        {
            self.release(place)?;
        }
        Ok(())
    }

    fn occupy(&mut self, place: Place) -> Result<(), Broken> {
        match place != Place::TURN && self.places.occupy(place) {
            true => Ok(()),
            false => Err(Broken::new(format!("place {place} is not free"))),
        }
    }

    fn release(&mut self, place: Place) -> Result<(), Broken> {
        match self.places.release(place) {
            true => Ok(()),
            false => Err(Broken::new(format!("place {place} is free already"))),
        }
    }

    /// The smallest free places, in order.
    pub fn free_places(&self) -> impl Iterator<Item = Place> + '_ {
        self.places.next()
    }

    /// Whether the run ever had an activity of this id.
    pub fn knows_activity(&self, id: &ActivityId) -> bool {
        self.activity_ids.contains(id)
    }

    /// Whether the run ever had a timer of this id.
    pub fn knows_timer(&self, id: &TimerId) -> bool {
        self.timer_ids.contains(id)
    }

    /// Inline steps whose attempt is under way: id and the event that began it.
    pub fn under_way(&self) -> impl Iterator<Item = (&ActivityId, &Activity, Seq)> {
        self.activities.iter().filter_map(|(id, activity)| match activity.phase {
            Phase::UnderWay(began) => Some((id, activity, began)),
            Phase::Queued | Phase::Backoff(..) => None,
        })
    }

    /// What people see of the run.
    pub fn summary(&self, waits: Waits) -> Summary {
        Summary {
            status: self.status,
            version: self.version,
            waits,
            retries: self.retries,
            last_error: self.last_error.clone(),
        }
    }
}

/// The events that count, with their numbers: a reset takes back what came after its target.
pub fn effective(events: &[Event]) -> Vec<(Seq, &Event)> {
    let mut kept: Vec<(Seq, &Event)> = Vec::with_capacity(events.len());
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::WorkflowReset { to, .. } => kept.retain(|(seq, _)| seq <= to),
            _ => kept.push((Seq(at as u64 + 1), event)),
        }
    }
    kept
}
