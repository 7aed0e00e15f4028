//! What a turn decided is committed, and what the store answers is acted on.

use crate::actor::{Actor, Begun, Hold};
use crate::committer::Verdict;
use crate::committer::commit_in_group;
use crate::eager::Eager;
use crate::execute::OfRun;
use crate::hands::InHand;
use crate::host::InlineStep;
use crate::persist::{FOR_EVER, persist};
use crate::turn::Offers;
use crate::worker::hand_back;
use durably_kernel::{ActivityId, Claim, CommitId, Run, Seq};
use durably_store::{
    Base, CommitAnswer, Committed, Delivered, Delivery, HandBack, Held, Returned, RunCommit,
    TurnAfter,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// An end that met newer inbox entries so often commits anyway.
const END_CONFLICTS_MAX: u32 = 3;
/// A commit that lost so often without holding the run delivers its facts instead.
const SETBACKS_MAX: u32 = 2;
/// A commit that the store refused so often parks the run.
const FAILURES_MAX: u32 = 5;

impl Actor {
    pub(crate) async fn commit(&mut self, mut offers: Offers) {
        let mut commit = self.run_commit(&mut offers);
        let eager = Eager::choose(&self.shared, &mut commit);
        let held = self.hold.as_ref().map(|hold| hold.claim);
        let id = commit.id;
        let sent = self.shared.environment.monotonic();
        let shared = self.shared.clone();
        let naming = shared.hands.committing(&offers.admitted, held.as_slice());
        let verdict = commit_in_group(&shared, commit).await;
        let answered = self.shared.environment.monotonic();
        let took = answered.saturating_sub(sent);
        let late = self.shared.settings.is_late(took, None);
        match verdict {
            Verdict::Answer(CommitAnswer::Committed(committed)) => {
                shared.clock.hear(committed.now, answered);
                let view = self.view.as_ref().expect("decided with it");
                let mut granted = eager.granted(&OfRun::of(&view.run), &committed, took);
                shared.hands.exchange(&offers.admitted, held.as_slice(), &mut granted);
                self.committed(*committed, &offers, late);
                self.begin_granted(granted);
                drop(naming);
            }
            lost => {
                shared.hands.set_committing(&offers.admitted, false);
                shared.hands.set_committing(held.as_slice(), false);
                self.not_committed(lost, id, &offers).await;
            }
        }
    }

    async fn not_committed(&mut self, verdict: Verdict, id: CommitId, offers: &Offers) {
        match verdict {
            Verdict::Answer(answer) => self.refused(answer).await,
            Verdict::Ambiguous => self.look_up(id, offers).await,
            Verdict::Failed(error) => {
                tracing::error!(%error, code = %error.code(), durable.workflow.id = %self.run,
                    "a turn could not be committed");
                match self.hold.is_some() && self.setbacks >= FAILURES_MAX {
                    true => self.park(error.code(), &error.to_string()).await,
                    false => self.set_back().await,
                }
            }
        }
    }

    fn run_commit(&self, offers: &mut Offers) -> RunCommit {
        let view = self.view.as_ref().expect("decided with it");
        let base = Base::Head(offers.base);
        let decision = std::mem::take(&mut offers.decision);
        let id = self.shared.commit_id(view.run.now);
        let mut commit = RunCommit::empty(id, self.run, base).with(decision);
        commit.holder = self.hold.as_ref().map(|hold| hold.claim);
        commit.claims = offers.admitted.clone();
        commit.inbox_used = offers.used;
        commit.unread = offers.unread_after_end.clone();
        commit.summary = Some(view.run.summary(view.program.waits()));
        commit.end_anyway = self.end_conflicts >= END_CONFLICTS_MAX;
        commit.turn = self.turn_after(&view.run);
        commit.turn_deadline = self.shared.settings.hold_deadline(&view.run);
        commit
    }

    fn turn_after(&self, run: &Run) -> TurnAfter {
        if run.under_way().next().is_none() {
            return TurnAfter::Release;
        }
        let under_way_here =
            run.under_way().any(|(id, _, seq)| self.begun.get(id).is_some_and(|b| b.seq == seq));
        match self.draining && !under_way_here {
            true => TurnAfter::Return,
            false => TurnAfter::Keep,
        }
    }

    fn committed(&mut self, committed: Committed, offers: &Offers, late: bool) {
        (self.end_conflicts, self.setbacks) = (0, 0);
        self.outcomes.retain(|finished| !offers.admitted.contains(&finished.claim));
        // A commit that landed proves that the view was at the head.
        self.confirm(&offers.late);
        self.steps.clear();
        self.dropped.clear();
        self.unread = committed.unread;
        self.look_for_unread = false;
        self.settle_hold(committed.turn, late);
        self.at_head = self.hold.is_some();
        if offers.ended {
            self.begun.clear();
            self.view = None;
            return;
        }
        self.give_up_unwanted();
        match &mut self.hold {
            // The row may have been taken back meanwhile: nothing begins before that is known.
            Some(hold) if late => (hold.owes_turn, self.look_for_unread) = (true, true),
            Some(_) if !self.draining => self.begin_steps(),
            Some(_) | None => {}
        }
    }

    pub(crate) fn settle_claims(&mut self, used: &[Claim]) {
        self.outcomes.retain(|finished| !used.contains(&finished.claim));
        for claim in used {
            self.shared.hands.let_go(claim);
        }
    }

    fn settle_hold(&mut self, turn: Option<Claim>, late: bool) {
        match (turn, &mut self.hold) {
            (Some(claim), Some(hold)) if hold.claim == claim => {
                hold.losses.clear();
                hold.owes_turn = false;
                hold.parked_times = 0;
            }
            // The row may have been taken back meanwhile: a beat reports it, if it is ours.
            (Some(_), _) if late => self.hold = None,
            (Some(claim), _) => {
                // Seen before only if a beat named it and it was let go since.
                if self.shared.hands.take_up(claim, InHand::default()) {
                    self.hold = Some(Hold::fresh(claim));
                }
            }
            (None, Some(hold)) => {
                self.shared.hands.let_go(&hold.claim);
                self.hold = None;
            }
            (None, None) => {}
        }
    }

    /// Steps that the run no longer wants end here.
    fn give_up_unwanted(&mut self) {
        if self.begun.is_empty() {
            return;
        }
        let Some(view) = &mut self.view else { return };
        let wanted: BTreeMap<ActivityId, Seq> =
            view.run.under_way().map(|(id, _, seq)| (id.clone(), seq)).collect();
        self.begun.retain(|id, begun| {
            let keep = wanted.get(id) == Some(&begun.seq);
            if !keep {
                view.program.give_up(id);
            }
            keep
        });
    }

    /// What the committed history asks for begins now, and not before.
    pub(crate) fn begin_steps(&mut self) {
        let Some(view) = &mut self.view else { return };
        let environment = self.shared.environment.as_ref();
        let (now, started_at) = (environment.monotonic(), self.shared.clock.now(environment));
        let steps: Vec<(ActivityId, Seq, u32, Duration)> = view
            .run
            .under_way()
            .map(|(id, activity, seq)| {
                (id.clone(), seq, activity.attempt, activity.options.longest_attempt())
            })
            .collect();
        for (id, seq, number, longest) in steps {
            self.begun.entry(id.clone()).or_insert_with(|| {
                view.program.begin(InlineStep { id, seq });
                Begun { seq, number, started_at, deadline: now + longest }
            });
        }
    }

    async fn refused(&mut self, answer: CommitAnswer) {
        match answer {
            CommitAnswer::Committed(_) => unreachable!("handled by the caller"),
            CommitAnswer::Conflict => self.set_back().await,
            CommitAnswer::EndConflict => {
                self.drop_program();
                match self.hold.is_some() {
                    true => self.end_conflicts += 1,
                    // Whoever reads those entries decides with our facts as well.
                    false => self.deliver_outcomes().await,
                }
            }
            CommitAnswer::Fenced(claims) => {
                self.drop_program();
                // A row that is cancelling waits for this; one that is not ours is left alone.
                let fenced = |claim: &&Claim| self.outcomes.iter().any(|f| f.claim == **claim);
                let outcomes: Vec<Claim> = claims.iter().filter(fenced).copied().collect();
                self.confirm(&outcomes);
                if self.hold.as_ref().is_some_and(|hold| claims.contains(&hold.claim)) {
                    self.lose_hold();
                }
            }
            CommitAnswer::Held => {
                self.drop_program();
                self.deliver_outcomes().await;
            }
            CommitAnswer::Unknown | CommitAnswer::Exists { .. } => self.forget(),
        }
    }

    /// Somebody was faster, or the store failed: build anew; without the hold, and after a second
    /// time, leave it to whoever holds the run next.
    async fn set_back(&mut self) {
        self.drop_program();
        self.setbacks += 1;
        if self.hold.is_none() && self.setbacks >= SETBACKS_MAX {
            return self.deliver_outcomes().await;
        }
        let jitter = self.shared.environment.random() % (10 << self.setbacks.min(7));
        self.shared.environment.sleep(Duration::from_millis(jitter)).await;
    }

    /// A commit whose answer was lost is looked up by its id, never guessed.
    async fn look_up(&mut self, id: CommitId, offers: &Offers) {
        self.drop_program();
        if let Some(hold) = &mut self.hold {
            hold.owes_turn = true;
        }
        let shared = self.shared.clone();
        let call = || shared.store.look_up(self.run, id);
        match persist(shared.environment.as_ref(), FOR_EVER, call).await {
            Ok(true) => {
                if let Some(hold) = &mut self.hold {
                    hold.losses.clear();
                    hold.parked_times = 0;
                }
                self.settle_claims(&offers.admitted);
                self.confirm(&offers.late);
                self.steps.clear();
                self.unread.clear();
                if offers.ended {
                    self.forget();
                }
            }
            Ok(false) => {}
            Err(error) => {
                tracing::error!(%error, "a lost commit could not be looked up");
                self.set_back().await;
            }
        }
    }

    /// Outcomes go to the inbox: whoever holds the run decides with them.
    pub(crate) async fn deliver_outcomes(&mut self) {
        let who = self.shared.who();
        let batch: Vec<Delivery> = self
            .outcomes
            .iter()
            .map(|finished| Delivery {
                run: self.run,
                id: outcome_id(&finished.claim),
                fact: finished.fact.clone(),
                claim: Some(Held { who: who.clone(), claim: finished.claim }),
            })
            .collect();
        let shared = self.shared.clone();
        let call = || shared.store.deliver(batch.clone());
        let answers = match persist(shared.environment.as_ref(), FOR_EVER, call).await {
            Ok(answers) => answers,
            Err(error) => {
                // Deliveries are repeated, not looked up: the same id is delivered once.
                tracing::warn!(%error, "outcomes could not be delivered, trying again");
                shared.environment.sleep(Duration::from_millis(200)).await;
                return;
            }
        };
        self.setbacks = 0;
        for (finished, answer) in std::mem::take(&mut self.outcomes).into_iter().zip(answers) {
            match answer {
                Delivered::Ended(_) | Delivered::Fenced => {
                    hand_back(&shared, HandBack { claim: finished.claim, how: Returned::Confirmed })
                }
                Delivered::Entry(_) | Delivered::Unknown => {
                    shared.hands.let_go(&finished.claim);
                }
            }
        }
    }

    /// Nothing of the run is ours to do any more.
    pub(crate) fn forget(&mut self) {
        self.drop_program();
        self.dropped.clear();
        self.steps.clear();
        self.unread.clear();
        for finished in std::mem::take(&mut self.outcomes) {
            hand_back(&self.shared, HandBack { claim: finished.claim, how: Returned::Confirmed });
        }
        if let Some(hold) = self.hold.take() {
            self.shared.hands.let_go(&hold.claim);
        }
    }
}

/// The id of an outcome's delivery: one for each claim.
fn outcome_id(claim: &Claim) -> String {
    format!("outcome:{}:{}:{}", claim.place, claim.seq, claim.number)
}
