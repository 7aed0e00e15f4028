//! A task's row, and the only ways in which it changes.

use super::state::State;
use crate::command::CallId;
use durably_kernel::{
    ActivityOptions, Attempt, Claim, ClaimNumber, Loss, LossCause, Payload, Place, Queue, RunId,
    Seq, TaskKind, TaskMove, TaskPut, TaskState, Timestamp, WorkerId,
};
use std::sync::Arc;
use std::time::Duration;

/// A live task.
#[derive(Clone, Debug)]
pub struct Row {
    /// Where it stands within its run.
    pub place: Place,
    /// What it is.
    pub kind: TaskKind,
    /// What it is claimed by: an activity's or a workflow's type; for a time-out its kind.
    pub name: Arc<str>,
    /// The activity's or timer's id.
    pub target: Arc<str>,
    /// For a time-out: the row of the activity it watches.
    pub watched: Option<Place>,
    /// The event that scheduled or re-queued it; for a turn row a counter.
    pub seq: Seq,
    /// Grows with each claim.
    pub number: ClaimNumber,
    /// Where it stands.
    pub state: TaskState,
    /// When it became ready, among all rows; meaningful while it is ready.
    pub order: u64,
    /// When it is due, while it waits.
    pub due: Option<Timestamp>,
    /// Where it waits for a worker.
    pub queue: Queue,
    /// Higher first.
    pub priority: i32,
    /// 0 where any host of the type will do.
    pub version: u32,
    /// The first turn of a run: comes after the tasks of started runs.
    pub fresh: bool,
    /// Attempts begun.
    pub attempt: u32,
    /// Of them, lost by deaths of workers.
    pub deaths: u32,
    /// Attempts lost since the last event about it.
    pub losses: Vec<Loss>,
    /// What an activity gets.
    pub input: Option<Payload>,
    /// How an activity is executed.
    pub options: Option<Arc<ActivityOptions>>,
    /// What its last attempt said in a heartbeat.
    pub details: Option<Payload>,
    /// Who has it, if somebody has.
    pub owner: Option<Owner>,
    /// What has to be written of it.
    pub mark: Mark,
}

/// What has to be written of a row that is kept elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// Nothing: it is as it was read.
    Same,
    /// Who has it, its state and its times; what it is about is as it was read.
    Changed,
    /// All of it.
    New,
}

/// Who has a row, and until when.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The process.
    pub who: WorkerId,
    /// The claim call that took it.
    pub call: Option<CallId>,
    /// Since when.
    pub claimed_at: Timestamp,
    /// It is lost after this.
    pub deadline: Timestamp,
    /// How often it is to be heard of.
    pub heartbeat: Option<Duration>,
    /// It has to be heard of by then.
    pub heartbeat_by: Option<Timestamp>,
    /// Beats that did not name the claim.
    pub unnamed: u32,
}

impl Row {
    /// A row that is not there yet.
    pub(crate) fn put(put: &TaskPut, old: Option<&Row>) -> Row {
        let same = old.filter(|old| old.kind == put.kind && old.target == put.target);
        Row {
            place: put.place,
            kind: put.kind,
            name: put.name.clone(),
            target: put.target.clone(),
            watched: put.watched,
            seq: put.seq,
            number: old.map_or(ClaimNumber(0), |old| old.number),
            state: TaskState::Waiting,
            order: 0,
            due: None,
            queue: put.queue.clone(),
            priority: put.priority,
            version: 0,
            fresh: false,
            attempt: put.attempt,
            deaths: put.deaths,
            losses: Vec::new(),
            input: put.input.clone(),
            options: put.options.clone(),
            details: put.details.clone().or_else(|| same.and_then(|old| old.details.clone())),
            owner: None,
            mark: Mark::New,
        }
    }

    pub(crate) fn claim(&self, run: RunId) -> Claim {
        Claim { run, place: self.place, seq: self.seq, number: self.number }
    }

    pub(crate) fn is_owned_by(&self, who: &WorkerId) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.who == *who)
    }

    /// Whether this very claim of this very process stands.
    pub(crate) fn stands(&self, run: RunId, claim: &Claim, who: &WorkerId) -> bool {
        self.state == TaskState::Claimed && self.is_owned_by(who) && self.claim(run) == *claim
    }

    /// Moves it; a move that is not in the kernel's table is a defect of ours.
    pub(crate) fn go(&mut self, step: TaskMove) {
        let next = self.state.after(step).expect("the caller knows the row's state");
        self.state = next.expect("moves that end a row remove it instead");
    }

    /// Whoever begins the row's activity, and until when.
    pub(crate) fn owner_of(&self, who: &WorkerId, now: Timestamp) -> Owner {
        let longest = self.options.as_ref().map_or_else(
            || ActivityOptions::default().longest_attempt(),
            |options| options.longest_attempt(),
        );
        let mut owner = State::owner(who, now, longest);
        owner.heartbeat = self.options.as_ref().and_then(|options| options.heartbeat);
        owner.heartbeat_by = owner.heartbeat.map(|heartbeat| now.after(heartbeat));
        owner
    }

    pub(crate) fn take(&mut self, owner: Owner) {
        self.go(TaskMove::Claim);
        self.number = self.number.next();
        if self.kind == TaskKind::Activity {
            self.attempt += 1;
        }
        self.due = None;
        self.owner = Some(owner);
    }

    /// The attempt under way.
    pub(crate) fn attempt_now(&self) -> Option<Attempt> {
        let owner = self.owner.as_ref()?;
        Some(Attempt {
            number: self.attempt,
            worker: owner.who.clone(),
            started_at: owner.claimed_at,
        })
    }

    /// Notes that the attempt under way is lost.
    pub(crate) fn note_loss(&mut self, cause: LossCause, now: Timestamp) {
        if let Some(attempt) = self.attempt_now() {
            self.deaths += u32::from(cause == LossCause::Died);
            self.losses.push(Loss { attempt, lost_at: now, cause });
        }
    }

    pub(crate) fn most_deaths(&self) -> u32 {
        self.options.as_ref().map_or(ActivityOptions::DEATHS_MAX, |options| options.most_deaths())
    }
}
