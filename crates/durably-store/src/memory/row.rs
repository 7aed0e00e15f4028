//! A task's row, and the only ways in which it changes.

use super::state::State;
use crate::command::CallId;
use durably_kernel::{
    ActivityOptions, Attempt, Claim, ClaimNumber, Loss, LossCause, Payload, Place, Queue, RunId,
    Seq, TaskKind, TaskMove, TaskPut, TaskState, Timestamp, WorkerId,
};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) place: Place,
    pub(super) kind: TaskKind,
    pub(super) name: Arc<str>,
    pub(super) target: Arc<str>,
    pub(super) watched: Option<Place>,
    pub(super) seq: Seq,
    pub(super) number: ClaimNumber,
    pub(super) state: TaskState,
    /// When it became ready, among all rows; meaningful while it is ready.
    pub(super) order: u64,
    pub(super) due: Option<Timestamp>,
    pub(super) queue: Queue,
    pub(super) priority: i32,
    /// 0 where any host of the type will do.
    pub(super) version: u32,
    /// The first turn of a run: comes after the tasks of started runs.
    pub(super) fresh: bool,
    pub(super) attempt: u32,
    pub(super) deaths: u32,
    pub(super) losses: Vec<Loss>,
    pub(super) input: Option<Payload>,
    pub(super) options: Option<Arc<ActivityOptions>>,
    pub(super) details: Option<Payload>,
    pub(super) owner: Option<Owner>,
}

/// Who has a row, and until when.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) who: WorkerId,
    pub(super) call: Option<CallId>,
    pub(super) claimed_at: Timestamp,
    pub(super) deadline: Timestamp,
    pub(super) heartbeat: Option<Duration>,
    pub(super) heartbeat_by: Option<Timestamp>,
    /// Beats that did not name the claim.
    pub(super) unnamed: u32,
}

impl Row {
    /// A row that is not there yet.
    pub(super) fn put(put: &TaskPut, old: Option<&Row>) -> Row {
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
        }
    }

    pub(super) fn claim(&self, run: RunId) -> Claim {
        Claim { run, place: self.place, seq: self.seq, number: self.number }
    }

    pub(super) fn is_owned_by(&self, who: &WorkerId) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.who == *who)
    }

    /// Whether this very claim of this very process stands.
    pub(super) fn stands(&self, run: RunId, claim: &Claim, who: &WorkerId) -> bool {
        self.state == TaskState::Claimed && self.is_owned_by(who) && self.claim(run) == *claim
    }

    /// Moves it; a move that is not in the kernel's table is a defect of ours.
    pub(super) fn go(&mut self, step: TaskMove) {
        let next = self.state.after(step).expect("the caller knows the row's state");
        self.state = next.expect("moves that end a row remove it instead");
    }

    /// Whoever begins the row's activity, and until when.
    pub(super) fn owner_of(&self, who: &WorkerId, now: Timestamp) -> Owner {
        let longest = self.options.as_ref().map_or_else(
            || ActivityOptions::default().longest_attempt(),
            |options| options.longest_attempt(),
        );
        let mut owner = State::owner(who, now, longest);
        owner.heartbeat = self.options.as_ref().and_then(|options| options.heartbeat);
        owner.heartbeat_by = owner.heartbeat.map(|heartbeat| now.after(heartbeat));
        owner
    }

    pub(super) fn take(&mut self, owner: Owner) {
        self.go(TaskMove::Claim);
        self.number = self.number.next();
        if self.kind == TaskKind::Activity {
            self.attempt += 1;
        }
        self.due = None;
        self.owner = Some(owner);
    }

    /// The attempt under way.
    pub(super) fn attempt_now(&self) -> Option<Attempt> {
        let owner = self.owner.as_ref()?;
        Some(Attempt {
            number: self.attempt,
            worker: owner.who.clone(),
            started_at: owner.claimed_at,
        })
    }

    /// Notes that the attempt under way is lost.
    pub(super) fn note_loss(&mut self, cause: LossCause, now: Timestamp) {
        if let Some(attempt) = self.attempt_now() {
            self.deaths += u32::from(cause == LossCause::Died);
            self.losses.push(Loss { attempt, lost_at: now, cause });
        }
    }

    pub(super) fn most_deaths(&self) -> u32 {
        self.options.as_ref().map_or(ActivityOptions::DEATHS_MAX, |options| options.most_deaths())
    }
}
