//! Commits that the kernel decides, as a worker would make them.

use super::dice::Dice;
use super::flow::Flow;
use super::generate::{Hand, Work};
use crate::sample::{json, secs};
use durably_kernel::{
    Attempt, Claim, Decision, Fact, Failure, FailureKind, Loss, LossCause, Moment, Offered,
    Program, Run, Summary, Timestamp, Turn, WorkerId,
};
use durably_store::{ClaimedActivity, InboxEntry, Loaded, RunCommit, TurnAfter};

/// What a turn is made of.
pub(super) struct Facts<'a> {
    pub(super) dice: &'a mut Dice,
    pub(super) now: Timestamp,
    pub(super) who: &'a WorkerId,
    /// The version of the code in the worker's hands.
    pub(super) version: u32,
    /// The turn row's claim, where the worker holds the run.
    pub(super) holder: Option<&'a Hand>,
    /// Outcomes of activities in the worker's hands.
    pub(super) results: Vec<Hand>,
}

/// A turn that was taken, to be put into a commit.
pub(super) struct Taken {
    pub(super) decision: Decision,
    pub(super) summary: Summary,
    pub(super) turn: TurnAfter,
    pub(super) inbox_used: u64,
    pub(super) unread: Vec<u64>,
}

impl Taken {
    pub(super) fn into_commit(self, commit: RunCommit) -> RunCommit {
        RunCommit {
            summary: Some(self.summary),
            turn: self.turn,
            inbox_used: self.inbox_used,
            unread: self.unread,
            ..commit.with(self.decision)
        }
    }
}

impl Facts<'_> {
    /// Takes a turn of a run that has not ended.
    pub(super) fn take(&mut self, loaded: &Loaded) -> Taken {
        let identity = loaded.view.identity.clone();
        let mut run = Run::fold(identity, &loaded.events).expect("a history folds");
        self.take_run(&mut run, &loaded.unread, loaded.view.version)
    }

    /// Takes a turn with entries of the inbox; only a holder reads them.
    pub(super) fn take_run(
        &mut self,
        run: &mut Run,
        inbox: &[InboxEntry],
        asked: Option<u32>,
    ) -> Taken {
        let mut program = Flow::of(run.seed);
        let moment = Moment { now: self.now, random: self.dice.draw() };
        let lost = self.lost_steps(run);
        let mut turn = Turn::new(run, moment);
        if turn.run().version.is_none() {
            let version = asked.unwrap_or(self.version);
            offer(&mut turn, &mut program, &Fact::Begin { version });
        }
        for fact in &lost {
            offer(&mut turn, &mut program, fact);
        }
        let (mut inbox_used, mut unread) = (0, Vec::new());
        let read = match self.holder {
            Some(_) if !inbox.is_empty() => self.dice.upto(inbox.len()),
            _ => 0,
        };
        for entry in &inbox[..read] {
            inbox_used = entry.number;
            if offer(&mut turn, &mut program, &entry.fact) == Offered::AfterEnd {
                unread.push(entry.number);
            }
        }
        let mut outcomes = self.step_outcomes(turn.run(), &lost);
        for hand in &self.results {
            if let Work::Activity(work) = &hand.work {
                outcomes.push(outcome(self.dice, work, hand.claim));
            }
        }
        for fact in &outcomes {
            offer(&mut turn, &mut program, fact);
        }
        let busy = turn.run().under_way().next().is_some();
        let after = match busy {
            true if self.dice.chance(90) => TurnAfter::Keep,
            false if self.dice.chance(90) => TurnAfter::Release,
            _ => TurnAfter::Return,
        };
        let decision = turn.finish();
        let summary = run.summary(program.waits());
        Taken { decision, summary, turn: after, inbox_used, unread }
    }

    /// Steps under way that an earlier holder will not finish.
    fn lost_steps(&mut self, run: &Run) -> Vec<Fact> {
        let Some(Hand { work: Work::Turn { lost: true }, .. }) = self.holder else {
            return Vec::new();
        };
        let facts = run.under_way().map(|(id, activity, seq)| Fact::InlineLost {
            activity_id: id.clone(),
            seq,
            loss: Loss {
                attempt: self.attempt(activity.attempt),
                lost_at: self.now,
                cause: LossCause::Died,
            },
        });
        facts.collect()
    }

    fn attempt(&self, number: u32) -> Attempt {
        Attempt { number, worker: self.who.clone(), started_at: self.now }
    }

    /// Some of the steps under way have ended.
    fn step_outcomes(&mut self, run: &Run, lost: &[Fact]) -> Vec<Fact> {
        if self.holder.is_none() || !lost.is_empty() {
            return Vec::new();
        }
        let steps: Vec<_> =
            run.under_way().map(|(id, step, seq)| (id.clone(), step.attempt, seq)).collect();
        let ended = self.dice.some(&steps, 60);
        let facts = ended.into_iter().map(|(activity_id, number, seq)| {
            let (attempt, losses) = (self.attempt(number), Vec::new());
            match self.dice.chance(60) {
                true => {
                    let result = json("true");
                    Fact::ActivityCompleted { activity_id, seq, attempt, result, losses }
                }
                false => {
                    let (error, details) = (failure(self.dice), None);
                    Fact::ActivityFailed { activity_id, seq, attempt, error, details, losses }
                }
            }
        });
        facts.collect()
    }
}

fn offer(turn: &mut Turn<'_>, program: &mut Flow, fact: &Fact) -> Offered {
    turn.offer(program, fact).unwrap_or_else(|error| panic!("{fact:?}: {error}"))
}

fn failure(dice: &mut Dice) -> Failure {
    let kinds = [FailureKind::Retryable, FailureKind::Retryable, FailureKind::Permanent];
    Failure::new(dice.one(&kinds), "no answer")
}

/// The outcome of an attempt in a worker's hands.
pub(super) fn outcome(dice: &mut Dice, work: &ClaimedActivity, claim: Claim) -> Fact {
    let (activity_id, seq, attempt) = (work.id.clone(), claim.seq, work.attempt.clone());
    let losses = work.losses.clone();
    match dice.chance(60) {
        true => {
            Fact::ActivityCompleted { activity_id, seq, attempt, result: json(r#""x""#), losses }
        }
        false => {
            let details = dice.chance(30).then(|| json("[7]"));
            let error = failure(dice);
            Fact::ActivityFailed { activity_id, seq, attempt, error, details, losses }
        }
    }
}

/// A park, after one of those delays.
pub(super) fn park(dice: &mut Dice) -> TurnAfter {
    TurnAfter::Park {
        delay: dice.one(&[secs(5), secs(10), secs(300)]),
        code: durably_kernel::Code::DIVERGED.to_string(),
        reason: format!("reason {}", dice.below(3)),
    }
}
