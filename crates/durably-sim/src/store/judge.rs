//! Looks at what a command has done, and counts what is of interest. Faults count only when they
//! took effect.

use super::faults::{Fate, Kind};
use crate::outside::Outside;
use crate::tally;
use durably_kernel::{DeadLetterKind, Event, FailureKind, RunId, Seq, TimeoutKind};
use durably_store::{
    BeatAnswer, CallId, Claimed, CommitAnswer, Delivered, Delivery, Loaded, RunCommit, Swept,
    TurnAfter,
};
use std::collections::BTreeSet;

/// What one end of the line has seen.
pub(super) struct Judge {
    engine: Option<usize>,
    /// Calls whose answer was lost though they took tasks.
    claims_lost: BTreeSet<CallId>,
    /// Runs whose commit met a conflict.
    conflicts: BTreeSet<RunId>,
    /// Runs that this process has committed to.
    committed: BTreeSet<RunId>,
    registered: bool,
    refused: bool,
}

/// A command that was not done.
pub(super) fn not_done(outside: &Outside, kind: Kind, fate: &Fate) {
    if (kind, *fate) == (Kind::Commit, Fate::LostBefore) {
        outside.saw(tally::LOST_BEFORE_COMMIT);
    }
}

impl Judge {
    pub(super) fn new(engine: Option<usize>) -> Judge {
        Judge {
            engine,
            claims_lost: BTreeSet::new(),
            conflicts: BTreeSet::new(),
            committed: BTreeSet::new(),
            registered: false,
            refused: false,
        }
    }

    /// Looks at runs that may have changed.
    pub(super) fn look_at(&self, outside: &Outside, runs: &[RunId]) {
        let now = outside.store_now();
        for run in runs {
            let looked = outside.watch.lock().look(outside.store.as_ref(), *run, now);
            match looked {
                Ok(events) => events.iter().for_each(|event| count(outside, *run, event)),
                Err(broken) => outside.violated(format!("run {run}: {broken}")),
            }
        }
    }

    pub(super) fn look_at_open(&self, outside: &Outside) {
        let open = outside.watch.lock().open();
        self.look_at(outside, &open);
    }

    pub(super) fn registered(&mut self, outside: &Outside) {
        if std::mem::replace(&mut self.registered, true) {
            outside.saw(tally::INCARNATION);
        }
        self.refused = false;
        self.look_at_open(outside);
    }

    pub(super) fn committed(
        &mut self,
        outside: &Outside,
        batch: &[RunCommit],
        answers: &[CommitAnswer],
        fate: &Fate,
    ) {
        for (commit, answer) in batch.iter().zip(answers) {
            outside.trace.note("answer", &[number(answer)], || {
                let events: Vec<&str> = commit.events.iter().map(Event::name).collect();
                format!("  {} {events:?} {:?}: {answer:?}", commit.run, commit.turn)
            });
            match answer {
                CommitAnswer::Committed(committed) => {
                    match fate {
                        Fate::LostAfter => outside.saw(tally::LOST_AFTER_COMMIT),
                        Fate::Astray { .. } => outside.saw(tally::ASTRAY_COMMIT),
                        _ => {}
                    }
                    if !committed.eager.is_empty() {
                        outside.saw(tally::EAGER);
                    }
                    if matches!(commit.turn, TurnAfter::Park { .. }) {
                        outside.saw(tally::PARKED);
                    }
                    if self.conflicts.remove(&commit.run) {
                        outside.saw(tally::DECIDED_AGAIN);
                    }
                    self.committed.insert(commit.run);
                    self.look_at(outside, &[commit.run]);
                }
                CommitAnswer::Conflict => {
                    self.conflicts.insert(commit.run);
                    outside.saw(tally::CONFLICT);
                }
                CommitAnswer::EndConflict => outside.saw(tally::END_CONFLICT),
                CommitAnswer::Fenced(_) => outside.saw(tally::FENCED),
                CommitAnswer::Held => outside.saw(tally::HELD),
                CommitAnswer::Exists { .. } => outside.saw(tally::EXISTED),
                CommitAnswer::Unknown => {
                    outside.violated(format!("run {}: a commit for an unknown run", commit.run));
                }
            }
        }
    }

    /// Those of engines count: operators look up on a way of their own.
    pub(super) fn looked_up(&self, outside: &Outside, found: bool) {
        if self.engine.is_some() {
            outside.saw(if found { tally::FOUND } else { tally::NOT_FOUND });
        }
    }

    pub(super) fn claimed(
        &mut self,
        outside: &Outside,
        id: CallId,
        claimed: &Claimed,
        fate: &Fate,
    ) {
        let Claimed::Tasks { tasks, .. } = claimed else {
            self.process_refused(outside);
            return;
        };
        outside.trace.note("claimed", &[tasks.len() as u64], || {
            let claims: Vec<_> = tasks.iter().map(|task| task.claim).collect();
            if claims.is_empty() { String::new() } else { format!("  claimed {claims:?}") }
        });
        if !tasks.is_empty() {
            if self.claims_lost.remove(&id) {
                outside.saw(tally::TAKEN_UP_AGAIN);
            }
            if matches!(fate, Fate::LostAfter | Fate::Astray { .. }) {
                outside.saw(tally::CLAIM_ANSWER_LOST);
                self.claims_lost.insert(id);
            }
        }
        let runs: Vec<RunId> = tasks.iter().map(|task| task.claim.run).collect();
        self.look_at(outside, &runs);
    }

    pub(super) fn loaded(
        &self,
        outside: &Outside,
        run: RunId,
        after: Seq,
        loaded: &Option<Loaded>,
    ) {
        let whole = loaded.as_ref().is_some_and(|loaded| loaded.view.head > Seq(1));
        if after == Seq(0) && whole && self.engine.is_some() && self.committed.contains(&run) {
            outside.saw(tally::REPLAYED);
        }
    }

    pub(super) fn delivered(&self, outside: &Outside, batch: &[Delivery], answers: &[Delivered]) {
        for (delivery, answer) in batch.iter().zip(answers) {
            let run = delivery.run;
            outside.trace.note("delivered", &[], || {
                format!("  {run} {} {}: {answer:?}", delivery.id, delivery.fact.name())
            });
            match answer {
                Delivered::Entry(_) => self.look_at(outside, &[run]),
                Delivered::Ended(_) if delivery.id.starts_with("signal:") => {
                    outside.saw(tally::SIGNAL_TO_ENDED);
                }
                Delivered::Fenced => outside.saw(tally::FENCED),
                Delivered::Ended(_) => {}
                Delivered::Unknown => {
                    outside.violated(format!("run {run}: a delivery to an unknown run"));
                }
            }
        }
    }

    fn process_refused(&mut self, outside: &Outside) {
        if !std::mem::replace(&mut self.refused, true) {
            outside.saw(tally::ZOMBIE);
        }
    }

    pub(super) fn beaten(&mut self, outside: &Outside, answer: &BeatAnswer) {
        let BeatAnswer::Alive { lost, unnamed, .. } = answer else {
            return self.process_refused(outside);
        };
        outside.tally.lock().saw_times(tally::CLAIM_LOST, lost.len() as u64);
        outside.tally.lock().saw_times(tally::TAKEN_UP_AGAIN, unnamed.len() as u64);
        self.look_at_open(outside);
    }

    pub(super) fn swept(&self, outside: &Outside, swept: &Swept) {
        outside.tally.lock().saw_times(tally::DECLARED_DEAD, swept.dead as u64);
        if swept.ready + swept.delivered + swept.returned > 0 {
            outside.trace.note("swept", &[], || format!("  {swept:?}"));
            let all: Vec<RunId> = outside.watch.lock().runs().map(|(run, _)| *run).collect();
            self.look_at(outside, &all);
        }
    }
}

fn number(answer: &CommitAnswer) -> u64 {
    match answer {
        CommitAnswer::Committed(committed) => 10 + committed.head.0,
        CommitAnswer::Conflict => 1,
        CommitAnswer::EndConflict => 2,
        CommitAnswer::Fenced(_) => 3,
        CommitAnswer::Held => 4,
        CommitAnswer::Unknown => 5,
        CommitAnswer::Exists { .. } => 6,
    }
}

fn count(outside: &Outside, run: RunId, event: &Event) {
    outside.trace.note(event.name(), &[run.0.as_u128() as u64], || {
        format!("  {run} + {}", serde_json::to_string(event).unwrap_or_default())
    });
    let what = match event {
        Event::WorkflowCompleted { .. } => tally::COMPLETED,
        Event::WorkflowFailed { .. } => tally::FAILED,
        Event::WorkflowCancelled { .. } => tally::CANCELLED,
        Event::WorkflowTerminated { .. } => tally::TERMINATED,
        Event::WorkflowTimedOut { .. } => tally::TIMED_OUT_RUN,
        Event::ActivityTimedOut { timeout_type, .. } => match timeout_type {
            TimeoutKind::ScheduleToStart => tally::TIMED_OUT_START,
            TimeoutKind::StartToClose => tally::TIMED_OUT_CLOSE,
            TimeoutKind::Heartbeat => tally::TIMED_OUT_HEARTBEAT,
            TimeoutKind::ScheduleToClose => tally::TIMED_OUT_TOTAL,
            TimeoutKind::Run => tally::TIMED_OUT_RUN,
        },
        Event::ActivityFailed { error, .. } if error.kind == FailureKind::Panicked => {
            tally::PANICKED
        }
        Event::ActivityFailed { error, .. } if error.kind == FailureKind::Lost => {
            tally::LOST_FOR_GOOD
        }
        Event::ActivityFailed { will_retry: true, .. } => tally::RETRIED,
        Event::ActivityLost { activity_id, .. } => {
            match outside.watch.lock().run(run).is_some_and(|seen| seen.is_inline(activity_id)) {
                true => tally::INLINE_LOST,
                false => tally::ACTIVITY_LOST,
            }
        }
        _ => return,
    };
    outside.saw(what);
}

/// Counts the dead letters of a store.
pub(crate) fn count_letters(outside: &Outside, kinds: impl Iterator<Item = DeadLetterKind>) {
    for kind in kinds {
        outside.saw(match kind {
            DeadLetterKind::Activity => tally::DEAD_LETTER,
            DeadLetterKind::Unread => tally::UNREAD_LETTER,
        });
    }
}
