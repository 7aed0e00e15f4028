//! What the sequences reached: a comparison of what never happens compares nothing.

use super::command::{Command, Reply};
use durably_kernel::{Place, RunStatus, TaskChange, TaskKind};
use durably_store::{
    Base, BeatAnswer, Claimed, ClaimedWork, CommitAnswer, Committed, Delivered, InboxEntry, Led,
    RunCommit, Term, TurnAfter,
};
use std::collections::BTreeMap;

/// How often each thing of interest was seen.
#[derive(Default)]
pub(super) struct Tally(BTreeMap<&'static str, usize>);

/// All that the fixed seeds must reach.
const REACHED: [&str; 51] = [
    // Facts that a holder was given.
    "ActivityCompleted",
    "ActivityFailed",
    "ActivityTimedOut",
    "ActivityLost",
    "RetryDue",
    "TimerFired",
    "RunTimedOut",
    "CancelRequested",
    // Answers.
    "committed",
    "conflict",
    "end conflict",
    "fenced",
    "held",
    "unknown run",
    "exists",
    "exists, other input",
    "turn kept",
    "turn kept with unread",
    "begun eagerly",
    "not begun, though asked for",
    "turn taken by a non-holder",
    "turn not taken, though asked for",
    "a start that decides",
    "a start that ends",
    "a start that keeps its turn",
    "parked",
    "operator",
    "a batch of two",
    "delivered",
    "delivered to an ended run",
    "delivered to nobody",
    "delivered under a lost claim",
    "claim refused",
    "activity claimed",
    "turn claimed",
    "first turn claimed",
    "claimed after a loss",
    "claimed with details",
    "beat refused",
    "beat: lost",
    "beat: cancelling",
    "beat: unnamed",
    "beat: unread",
    "sweep: ready",
    "sweep: delivered",
    "sweep: returned",
    "sweep: dead",
    "looked up",
    "leads",
    "leads after others",
    "follows",
];

impl Tally {
    fn saw(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    fn saw_if(&mut self, holds: bool, what: &'static str) {
        if holds {
            self.saw(what);
        }
    }

    fn saw_entries(&mut self, entries: &[InboxEntry]) {
        for entry in entries {
            self.saw(entry.fact.name());
        }
    }

    /// Takes note of a command and its answer.
    pub(super) fn count(&mut self, command: &Command, reply: &Reply) {
        match (command, reply) {
            (Command::Commit(_, batch), Reply::Committed(answers)) => {
                self.saw_if(batch.len() > 1, "a batch of two");
                for (commit, answer) in batch.iter().zip(answers) {
                    self.count_commit(commit, answer);
                }
            }
            (_, Reply::Delivered(answers)) => {
                for answer in answers {
                    self.saw(match answer {
                        Delivered::Entry(_) => "delivered",
                        Delivered::Ended(_) => "delivered to an ended run",
                        Delivered::Unknown => "delivered to nobody",
                        Delivered::Fenced => "delivered under a lost claim",
                    });
                }
            }
            (_, Reply::Claimed(claimed)) => self.count_claim(claimed),
            (_, Reply::Beaten(BeatAnswer::Refused)) => self.saw("beat refused"),
            (_, Reply::Beaten(BeatAnswer::Alive { lost, cancelling, unnamed, unread, .. })) => {
                self.saw_if(!lost.is_empty(), "beat: lost");
                self.saw_if(!cancelling.is_empty(), "beat: cancelling");
                self.saw_if(!unnamed.is_empty(), "beat: unnamed");
                self.saw_if(!unread.is_empty(), "beat: unread");
            }
            (_, Reply::Swept(swept)) => {
                self.saw_if(swept.ready > 0, "sweep: ready");
                self.saw_if(swept.delivered > 0, "sweep: delivered");
                self.saw_if(swept.returned > 0, "sweep: returned");
                self.saw_if(swept.dead > 0, "sweep: dead");
            }
            (_, Reply::Led(led)) => {
                let term = match led {
                    Led::Leads { term, .. } => Some(*term),
                    Led::Follows { .. } => None,
                };
                self.saw(if term.is_some() { "leads" } else { "follows" });
                self.saw_if(term > Some(Term(1)), "leads after others");
            }
            (_, Reply::Found(true)) => self.saw("looked up"),
            _ => {}
        }
    }

    fn count_commit(&mut self, commit: &RunCommit, answer: &CommitAnswer) {
        self.saw(match answer {
            CommitAnswer::Committed(_) => "committed",
            CommitAnswer::Conflict => "conflict",
            CommitAnswer::EndConflict => "end conflict",
            CommitAnswer::Fenced(_) => "fenced",
            CommitAnswer::Held => "held",
            CommitAnswer::Unknown => "unknown run",
            CommitAnswer::Exists { same: true, .. } => "exists",
            CommitAnswer::Exists { same: false, .. } => "exists, other input",
        });
        if let CommitAnswer::Committed(committed) = answer {
            self.saw_if(committed.turn.is_some(), "turn kept");
            self.saw_if(!committed.unread.is_empty(), "turn kept with unread");
            self.saw_entries(&committed.unread);
            self.saw_if(commit.operator, "operator");
            self.count_begun(commit, committed);
            let parks = matches!(commit.turn, TurnAfter::Park { .. }) && commit.holder.is_some();
            self.saw_if(parks, "parked");
        }
    }

    fn count_begun(&mut self, commit: &RunCommit, committed: &Committed) {
        let fits = |place: &Place| match commit.tasks.get(place) {
            Some(TaskChange::Put(put)) => put.kind == TaskKind::Activity && put.delay.is_none(),
            _ => false,
        };
        let status = commit.summary.as_ref().map(|summary| summary.status);
        let ended = status.is_some_and(RunStatus::has_ended);
        let asked = commit.eager.iter().filter(|place| fits(place)).count();
        self.saw_if(!committed.eager.is_empty(), "begun eagerly");
        self.saw_if(!ended && asked > committed.eager.len(), "not begun, though asked for");
        if matches!(commit.base, Base::New(_)) {
            self.saw_if(status.is_some(), "a start that decides");
            self.saw_if(ended, "a start that ends");
            self.saw_if(committed.turn.is_some(), "a start that keeps its turn");
        }
        if commit.turn == TurnAfter::Keep && commit.holder.is_none() && !ended {
            self.saw(match committed.turn {
                Some(_) => "turn taken by a non-holder",
                None => "turn not taken, though asked for",
            });
        }
    }

    fn count_claim(&mut self, claimed: &Claimed) {
        let Claimed::Tasks { tasks, .. } = claimed else {
            return self.saw("claim refused");
        };
        for task in tasks {
            match &task.work {
                ClaimedWork::Turn { first, losses, unread } => {
                    self.saw_entries(unread);
                    self.saw("turn claimed");
                    self.saw_if(first.is_some(), "first turn claimed");
                    self.saw_if(!losses.is_empty(), "claimed after a loss");
                }
                ClaimedWork::Activity(work) => {
                    self.saw("activity claimed");
                    self.saw_if(!work.losses.is_empty(), "claimed after a loss");
                    self.saw_if(work.details.is_some(), "claimed with details");
                }
            }
        }
    }

    /// Everything was seen at least once.
    pub(super) fn check(&self) {
        let never: Vec<_> = REACHED.iter().filter(|what| !self.0.contains_key(**what)).collect();
        assert!(never.is_empty(), "the fixed seeds never reach {never:?}; seen: {:?}", self.0);
    }
}
