//! One turn: the facts in order, what run and program make of them.

use crate::actor::{Actor, Begun, Hold};
use crate::host::panic_text;
use crate::worker::hand_back;
use durably_kernel::{
    ActivityId, Claim, Code, Decision, Fact, Loss, LossCause, Offered, Run, RunStatus, Seq, Turn,
    TurnError,
};
use durably_store::{HandBack, InboxEntry, Returned};
use std::panic::AssertUnwindSafe;

/// Holders that were lost in a row without a commit: the run's own code may kill processes.
const HOLDERS_LOST_MAX: usize = 3;

/// What a turn made of its facts.
pub(crate) struct Offers {
    pub(crate) decision: Decision,
    pub(crate) base: Seq,
    pub(crate) used: u64,
    pub(crate) unread_after_end: Vec<u64>,
    pub(crate) admitted: Vec<Claim>,
    pub(crate) late: Vec<Claim>,
    pub(crate) ended: bool,
}

impl Actor {
    /// One turn: load if needed, offer the facts, commit, act on the answer.
    pub(crate) async fn turn(&mut self) {
        let (lost, parked) =
            self.hold.as_ref().map_or((0, 0), |hold| (hold.deaths(), hold.parked_times));
        // Losses stay on a parked run's row, so that the next holder can record them.
        if lost >= HOLDERS_LOST_MAX * (parked as usize + 1) {
            let reason = format!("{lost} processes died in a row while they held this run");
            return self.park(Code::LOST, &reason).await;
        }
        if self.hold.is_none() && !self.hosts_the_workflow() {
            return self.deliver_outcomes().await;
        }
        if !self.prepare().await {
            return;
        }
        let Some(offers) = self.offer_all().await else { return };
        let holder = self.hold.is_some();
        if offers.decision.events.is_empty() && !holder {
            return self.nothing_admitted(&offers.late);
        }
        let eventless = offers.decision.events.is_empty() && offers.used == 0;
        let waits_on = holder && eventless && !self.begun.is_empty() && !self.draining;
        if let (true, Some(hold)) = (waits_on, &mut self.hold) {
            // Steps go on; there is nothing to tell the store.
            hold.owes_turn = false;
            self.steps.clear();
            self.confirm(&offers.late);
            return;
        }
        self.commit(offers).await;
    }

    fn hosts_the_workflow(&self) -> bool {
        self.outcomes.first().is_none_or(|finished| {
            let of = &finished.of;
            self.shared.registry.workflow(&of.workflow_type, of.version).is_some()
        })
    }

    /// Facts in order: losses, the beginning, inbox entries, own outcomes, inline outcomes.
    async fn offer_all(&mut self) -> Option<Offers> {
        let facts = self.facts();
        let moment = self.shared.moment();
        let view = self.view.as_mut().expect("prepared before");
        let base = view.run.head;
        let offered = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let mut turn = Turn::new(&mut view.run, moment);
            let mut fates = Vec::with_capacity(facts.len());
            for (source, fact) in &facts {
                fates.push((*source, turn.offer(view.program.as_mut(), fact)?));
            }
            Ok::<_, TurnError>((turn.finish(), fates))
        }));
        let (decision, fates) = match offered {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => {
                self.cannot_go_on(code_of(&error), &error.to_string()).await;
                return None;
            }
            Err(panic) => {
                self.cannot_go_on(Code::INVARIANT, &panic_text(&*panic)).await;
                return None;
            }
        };
        let ended = self.view.as_ref().is_some_and(|view| view.run.status.has_ended());
        let mut offers = Offers {
            decision,
            base,
            used: 0,
            unread_after_end: Vec::new(),
            admitted: Vec::new(),
            late: Vec::new(),
            ended,
        };
        for (source, fate) in fates {
            match (source, fate) {
                (Source::Inbox(number), Offered::AfterEnd) => {
                    offers.used = offers.used.max(number);
                    offers.unread_after_end.push(number);
                }
                (Source::Inbox(number), _) => offers.used = offers.used.max(number),
                (Source::Own(claim), Offered::Admitted) => offers.admitted.push(claim),
                (Source::Own(claim), _) => offers.late.push(claim),
                (Source::Inner, _) => {}
            }
        }
        Some(offers)
    }

    fn facts(&self) -> Vec<(Source, Fact)> {
        let view = self.view.as_ref().expect("prepared before");
        let some = 1 + self.unread.len() + self.outcomes.len() + self.steps.len();
        let mut facts: Vec<(Source, Fact)> = Vec::with_capacity(some);
        if let Some(hold) = &self.hold {
            facts.extend(self.lost_steps(&view.run, hold).map(|fact| (Source::Inner, fact)));
            if view.run.status == RunStatus::Pending {
                facts.extend(self.beginning(&view.run));
            }
            let entries = self.unread.iter();
            facts.extend(entries.map(|entry| (Source::Inbox(entry.number), entry.fact.clone())));
        }
        let own = self.outcomes.iter();
        facts.extend(own.map(|finished| (Source::Own(finished.claim), finished.fact.clone())));
        if self.hold.is_some() {
            facts.extend(self.steps.iter().map(|fact| (Source::Inner, fact.clone())));
        }
        facts
    }

    /// A run that is given up before its first turn ends without its code; otherwise the version
    /// of the code that is here is pinned.
    fn beginning(&self, run: &Run) -> Option<(Source, Fact)> {
        let gives_up = |entry: &&InboxEntry| {
            matches!(entry.fact, Fact::CancelRequested { .. } | Fact::RunTimedOut {})
        };
        if let Some(entry) = self.unread.iter().find(gives_up) {
            return Some((Source::Inner, entry.fact.clone()));
        }
        let asked = self.shared.registry.workflow(&run.workflow_type, self.version_asked);
        asked.map(|(version, _)| (Source::Inner, Fact::Begin { version }))
    }

    /// What is known of inline steps that were begun here: outcomes, and attempts that are lost
    /// since their program is dropped.
    pub(crate) fn unsettled_steps(&mut self) -> Vec<Fact> {
        let mut facts: Vec<Fact> = self.steps.drain(..).collect();
        // The run in memory is no guide here: it may hold what was not committed.
        let lost = self.begun.iter().chain(&self.dropped).filter_map(|(id, begun)| {
            let reported = facts.iter().any(|fact| names(fact, id, begun.seq));
            let (activity_id, loss) = (id.clone(), self.own_loss(begun));
            (!reported).then_some(Fact::InlineLost { activity_id, seq: begun.seq, loss })
        });
        let lost: Vec<Fact> = lost.collect();
        facts.extend(lost);
        facts
    }

    /// An attempt that was begun here and dropped.
    fn own_loss(&self, begun: &Begun) -> Loss {
        Loss {
            attempt: self.attempt(begun),
            lost_at: self.shared.clock.now(self.shared.environment.as_ref()),
            cause: LossCause::Stopped,
        }
    }

    /// Attempts of inline steps that nobody will finish.
    fn lost_steps<'a>(&'a self, run: &'a Run, hold: &'a Hold) -> impl Iterator<Item = Fact> + 'a {
        let none = hold.losses.is_empty() && self.dropped.is_empty();
        let open = run.under_way().filter(move |_| !none);
        open.filter_map(move |(id, activity, seq)| {
            // A result that waits in the inbox is better than another attempt.
            let waiting = self.unread.iter().map(|entry| &entry.fact);
            let reported = self.steps.iter().chain(waiting).any(|fact| names(fact, id, seq));
            let here = self.begun.get(id).is_some_and(|begun| begun.seq == seq);
            if reported || here {
                return None;
            }
            let loss = match self.dropped.get(id).filter(|begun| begun.seq == seq) {
                Some(begun) => self.own_loss(begun),
                None => {
                    let mut loss = hold.losses.first()?.clone();
                    loss.attempt.number = activity.attempt;
                    loss
                }
            };
            Some(Fact::InlineLost { activity_id: id.clone(), seq, loss })
        })
    }

    /// An outcome is refused only by a view at the head: otherwise load first.
    fn nothing_admitted(&mut self, late: &[Claim]) {
        match self.at_head {
            true => self.confirm(late),
            false => self.drop_program(),
        }
    }

    /// Outcomes that the run does not want, as the store's own history shows: their rows are let
    /// go.
    pub(crate) fn confirm(&mut self, late: &[Claim]) {
        for claim in late {
            self.outcomes.retain(|finished| finished.claim != *claim);
            hand_back(&self.shared, HandBack { claim: *claim, how: Returned::Confirmed });
        }
    }
}

/// Where a fact comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    Inbox(u64),
    Own(Claim),
    Inner,
}

fn names(fact: &Fact, id: &ActivityId, began: Seq) -> bool {
    match fact {
        Fact::ActivityCompleted { activity_id, seq, .. }
        | Fact::ActivityFailed { activity_id, seq, .. }
        | Fact::ActivityTimedOut { activity_id, seq, .. } => activity_id == id && *seq == began,
        _ => false,
    }
}

pub(crate) fn code_of(error: &TurnError) -> Code {
    match error {
        TurnError::Fault(fault) => fault.code(),
        TurnError::Broken(_) => Code::INVARIANT,
    }
}
