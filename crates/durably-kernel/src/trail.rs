//! The life of every task of a run, attempt by attempt, for people.
//!
//! History holds outcomes with the attempt's number, worker and start; here they become the steps
//! that one expects to read: queued, started, retrying, completed, and so on. What is still open
//! comes from the live rows.

use crate::event::{Attempt, Event};
use crate::fact::{Loss, LossCause};
use crate::failure::Failure;
use crate::id::WorkerId;
use crate::run::effective;
use crate::status::TaskState;
use crate::task::TaskKind;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One step in a task's life.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the variants say what they are")]
pub enum TrailStep {
    /// Asked for.
    Queued,
    /// An attempt began.
    Started { attempt: u32, worker: WorkerId },
    /// An attempt failed; another follows.
    Retrying { attempt: u32, error: Failure, in_ms: u64 },
    /// An attempt's worker died or stopped.
    Lost { attempt: u32, worker: WorkerId, died: bool },
    /// An attempt succeeded.
    Completed { attempt: u32 },
    /// It failed for good.
    Failed { attempt: Option<u32>, error: Failure, dead: bool },
    /// It is no longer wanted.
    Cancelled { reason: String },
    /// A timer runs.
    Sleeping { for_ms: u64 },
    /// A timer fired.
    Woken,
}

/// One entry of a trail.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TrailEntry {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: TrailStep,
}

/// The life of one task.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskTrail {
    /// The activity's, step's or timer's id.
    pub id: String,
    /// Activity or timer.
    pub kind: TaskKind,
    /// Its type; empty for a timer.
    pub name: String,
    /// What happened, in order.
    pub entries: Vec<TrailEntry>,
}

/// What a live row adds to the history.
#[derive(Clone, PartialEq, Debug)]
pub struct LiveTask {
    /// The activity's id.
    pub id: String,
    /// Where the row stands.
    pub state: TaskState,
    /// The attempt under way, if it is claimed.
    pub attempt: Option<Attempt>,
    /// Losses noted and not recorded yet.
    pub losses: Vec<Loss>,
}

/// The trails of all tasks, in the order in which they were asked for.
pub fn trail(events: &[Event], live: &[LiveTask]) -> Vec<TaskTrail> {
    let mut trails = Trails::default();
    for (_, event) in effective(events) {
        if let Some(at) = event.at() {
            trails.now = trails.now.max(at);
        }
        trails.take(event);
    }
    for task in live {
        let known = trails.attempts(&task.id);
        for loss in task.losses.iter().filter(|loss| !known.contains(&loss.attempt.number)) {
            trails.started(&task.id, &loss.attempt);
            trails.lost(&task.id, &loss.attempt, loss.cause == LossCause::Died, loss.lost_at);
        }
        if let Some(attempt) = task.attempt.as_ref().filter(|a| !known.contains(&a.number)) {
            trails.started(&task.id, attempt);
        }
    }
    trails.list
}

#[derive(Default)]
struct Trails {
    list: Vec<TaskTrail>,
    index: BTreeMap<(TaskKind, String), usize>,
    now: Timestamp,
}

impl Trails {
    fn open(&mut self, kind: TaskKind, id: &str, name: &str, step: TrailStep) {
        self.index.insert((kind, id.to_owned()), self.list.len());
        let entries = vec![TrailEntry { at: self.now, what: step }];
        self.list.push(TaskTrail { id: id.to_owned(), kind, name: name.to_owned(), entries });
    }

    fn add(&mut self, kind: TaskKind, id: &str, at: Timestamp, what: TrailStep) {
        if let Some(&index) = self.index.get(&(kind, id.to_owned())) {
            self.list[index].entries.push(TrailEntry { at, what });
        }
    }

    fn started(&mut self, id: &str, attempt: &Attempt) {
        let step = TrailStep::Started { attempt: attempt.number, worker: attempt.worker.clone() };
        self.add(TaskKind::Activity, id, attempt.started_at, step);
    }

    /// The attempts that the activity's trail has already.
    fn attempts(&self, id: &str) -> Vec<u32> {
        let Some(&index) = self.index.get(&(TaskKind::Activity, id.to_owned())) else {
            return vec![];
        };
        let number = |entry: &TrailEntry| match entry.what {
            TrailStep::Started { attempt, .. } => Some(attempt),
            _ => None,
        };
        self.list[index].entries.iter().filter_map(number).collect()
    }

    fn lost(&mut self, id: &str, attempt: &Attempt, died: bool, at: Timestamp) {
        let (attempt, worker) = (attempt.number, attempt.worker.clone());
        self.add(TaskKind::Activity, id, at, TrailStep::Lost { attempt, worker, died });
    }

    fn take(&mut self, event: &Event) {
        let now = self.now;
        match event {
            Event::ActivityScheduled { activity_id, activity_type, .. } => {
                let (id, name) = (activity_id.as_str(), activity_type.as_str());
                self.open(TaskKind::Activity, id, name, TrailStep::Queued);
            }
            Event::ActivityLost { activity_id, attempt, died, at } => {
                self.started(activity_id.as_str(), attempt);
                self.lost(activity_id.as_str(), attempt, *died, *at);
            }
            Event::ActivityCompleted { activity_id, attempt, at, .. } => {
                let id = activity_id.as_str();
                self.started(id, attempt);
                let step = TrailStep::Completed { attempt: attempt.number };
                self.add(TaskKind::Activity, id, *at, step);
            }
            Event::ActivityFailed {
                activity_id, error, retry_in_ms, attempt, dead, at, ..
            } => {
                let ended =
                    Ended { error: Failure::clone(error), retry_in_ms: *retry_in_ms, dead: *dead };
                self.failed(activity_id.as_str(), attempt.as_deref(), ended, *at);
            }
            Event::ActivityTimedOut {
                activity_id,
                timeout_type,
                retry_in_ms,
                attempt,
                dead,
                at,
                ..
            } => {
                let error = crate::admit::timeout_failure(*timeout_type);
                let ended = Ended { error, retry_in_ms: *retry_in_ms, dead: *dead };
                self.failed(activity_id.as_str(), attempt.as_deref(), ended, *at);
            }
            Event::ActivityCancelled { activity_id, reason } => {
                let step = TrailStep::Cancelled { reason: reason.clone() };
                self.add(TaskKind::Activity, activity_id.as_str(), now, step);
            }
            Event::TimerStarted { timer_id, duration_ms, .. } => {
                let step = TrailStep::Sleeping { for_ms: *duration_ms };
                self.open(TaskKind::Timer, timer_id.as_str(), "", step);
            }
            Event::TimerFired { timer_id, at } => {
                self.add(TaskKind::Timer, timer_id.as_str(), *at, TrailStep::Woken);
            }
            Event::TimerCancelled { timer_id } => {
                let step = TrailStep::Cancelled { reason: String::new() };
                self.add(TaskKind::Timer, timer_id.as_str(), now, step);
            }
            _ => {}
        }
    }

    fn failed(&mut self, id: &str, attempt: Option<&Attempt>, ended: Ended, at: Timestamp) {
        if let Some(attempt) = attempt {
            self.started(id, attempt);
        }
        let number = attempt.map(|attempt| attempt.number);
        let step = match ended.retry_in_ms {
            Some(in_ms) => {
                TrailStep::Retrying { attempt: number.unwrap_or(0), error: ended.error, in_ms }
            }
            None => TrailStep::Failed { attempt: number, error: ended.error, dead: ended.dead },
        };
        self.add(TaskKind::Activity, id, at, step);
    }
}

struct Ended {
    error: Failure,
    retry_in_ms: Option<u64>,
    dead: bool,
}
