//! The claims in this process's hands.
//!
//! An incarnation begins a claim at most once, however often answers name it: a claim that was let
//! go is remembered until every call is answered that was made before that, since its answer may
//! still name it.

use crate::execute::Granted;
use crate::slots::Slots;
use crate::token::{CancelReason, CancelToken};
use durably_kernel::{Claim, Payload, Place};
use durably_store::{ClaimedTask, Heartbeat};
use parking_lot::Mutex;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The last heartbeat of an attempt, until the next beat takes it along.
#[derive(Debug, Default)]
pub(crate) struct Pulse(Mutex<Felt>);

#[derive(Debug, Default)]
struct Felt {
    fresh: bool,
    details: Option<Payload>,
}

impl Pulse {
    pub(crate) fn beat(&self, details: Payload) {
        let mut felt = self.0.lock();
        felt.fresh = true;
        felt.details = Some(details);
    }

    /// Takes what is new; a beat that fails puts it back.
    fn take(&self) -> Option<Option<Payload>> {
        let mut felt = self.0.lock();
        std::mem::take(&mut felt.fresh).then(|| felt.details.clone())
    }

    fn refresh(&self) {
        self.0.lock().fresh = true;
    }

    pub(crate) fn last(&self) -> Option<Payload> {
        self.0.lock().details.clone()
    }
}

/// A claim in hand.
#[derive(Clone, Debug, Default)]
pub(crate) struct InHand {
    pub(crate) token: CancelToken,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) heartbeat: Option<Duration>,
    /// Being used up by a commit: only its answer says what became of it.
    pub(crate) committing: bool,
}

/// What this incarnation knows of a claim.
#[derive(Debug)]
enum Known {
    Held(InHand),
    /// Let go; remembered as long as an answer may still name it.
    Gone,
    /// Let go while the store still has it as ours: remembered for good.
    Abandoned,
}

#[derive(Debug, Default)]
struct Inner {
    claims: BTreeMap<Claim, Known>,
    /// Claims in hand; each stays there until its outcome is committed.
    held: usize,
    /// Turn rows among them.
    turns: usize,
    unconfirmed: Vec<ClaimedTask>,
    /// Claims let go, in order, each with the number of the next call at that time.
    gone: VecDeque<(u64, Claim)>,
    /// Calls under way whose answers may name claims.
    calls: BTreeSet<u64>,
    next_call: u64,
}

impl Inner {
    fn held(&self) -> impl Iterator<Item = (&Claim, &InHand)> {
        self.claims.iter().filter_map(|(claim, known)| match known {
            Known::Held(hand) => Some((claim, hand)),
            Known::Gone | Known::Abandoned => None,
        })
    }

    fn hand(&self, claim: &Claim) -> Option<&InHand> {
        match self.claims.get(claim) {
            Some(Known::Held(hand)) => Some(hand),
            Some(Known::Gone | Known::Abandoned) | None => None,
        }
    }

    fn take_up(&mut self, claim: Claim, in_hand: InHand) -> bool {
        let Entry::Vacant(unknown) = self.claims.entry(claim) else { return false };
        unknown.insert(Known::Held(in_hand));
        self.held += 1;
        self.turns += usize::from(claim.place == Place::TURN);
        true
    }

    fn let_go(&mut self, claim: &Claim) {
        let before = match self.claims.get_mut(claim) {
            Some(Known::Gone | Known::Abandoned) => return,
            // While a call is under way, which may be the one that used it up.
            Some(held) if !self.calls.is_empty() => Some(std::mem::replace(held, Known::Gone)),
            None if !self.calls.is_empty() => self.claims.insert(*claim, Known::Gone),
            Some(_) | None => self.claims.remove(claim),
        };
        self.no_longer_held(claim, before);
        if !self.calls.is_empty() {
            self.gone.push_back((self.next_call, *claim));
        }
    }

    fn no_longer_held(&mut self, claim: &Claim, before: Option<Known>) {
        if let Some(Known::Held(_)) = before {
            self.held -= 1;
            self.turns -= usize::from(claim.place == Place::TURN);
        }
    }

    fn set_committing(&mut self, claims: &[Claim], committing: bool) {
        for claim in claims {
            if let Some(Known::Held(hand)) = self.claims.get_mut(claim) {
                hand.committing = committing;
            }
        }
    }

    /// A call begins whose answer may name claims.
    fn call(&mut self) -> u64 {
        let number = self.next_call;
        self.next_call += 1;
        self.calls.insert(number);
        number
    }

    /// Forgets what no answer can name any more.
    fn forget(&mut self) {
        let oldest = self.calls.first().copied().unwrap_or(self.next_call);
        while let Some((_, claim)) = self.gone.pop_front_if(|(next, _)| *next <= oldest) {
            if let Some(Known::Gone) = self.claims.get(&claim) {
                self.claims.remove(&claim);
            }
        }
    }
}

/// A call under way whose answer may name claims.
#[derive(Debug)]
pub(crate) struct Naming<'a> {
    hands: &'a Hands,
    number: u64,
}

impl Drop for Naming<'_> {
    fn drop(&mut self) {
        let mut inner = self.hands.inner.lock();
        inner.calls.remove(&self.number);
        inner.forget();
    }
}

/// Somebody waits for something to be let go; otherwise nobody is told.
#[derive(Debug)]
pub(crate) struct Waiting<'a>(&'a Hands);

impl<'a> Waiting<'a> {
    /// Ends when something is let go from now on.
    pub(crate) fn freed(&self) -> Notified<'a> {
        self.0.freed.notified()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The claims in hand.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    inner: Mutex<Inner>,
    slots: Slots,
    /// Something was let go.
    freed: Notify,
    waiting: AtomicUsize,
}

impl Hands {
    /// Takes a claim up; false if this incarnation has done so before.
    pub(crate) fn take_up(&self, claim: Claim, in_hand: InHand) -> bool {
        self.inner.lock().take_up(claim, in_hand)
    }

    /// A call begins whose answer may name claims.
    pub(crate) fn naming(&self) -> Naming<'_> {
        Naming { hands: self, number: self.inner.lock().call() }
    }

    /// A commit begins that uses claims up, and whose answer may name others.
    pub(crate) fn committing(&self, claims: &[Claim], holder: &[Claim]) -> Naming<'_> {
        let mut inner = self.inner.lock();
        inner.set_committing(claims, true);
        inner.set_committing(holder, true);
        Naming { hands: self, number: inner.call() }
    }

    /// A commit was answered: what it used up goes, what it kept is settled, and of what it granted
    /// stays what this incarnation has not taken up before: a beat may have been faster.
    pub(crate) fn exchange(&self, used: &[Claim], kept: &[Claim], granted: &mut Vec<Granted>) {
        if used.is_empty() && kept.is_empty() && granted.is_empty() {
            return;
        }
        let mut inner = self.inner.lock();
        used.iter().for_each(|claim| inner.let_go(claim));
        inner.set_committing(kept, false);
        granted.retain(|one| inner.take_up(one.claim, one.in_hand.clone()));
        drop(inner);
        self.tell_freed();
    }

    /// The claim is used up, or not ours any more.
    pub(crate) fn let_go(&self, claim: &Claim) {
        self.inner.lock().let_go(claim);
        self.tell_freed();
    }

    /// The claim is ours, but nobody here will ever use it: it goes back when beats do not name it.
    pub(crate) fn abandon(&self, claim: &Claim) {
        let mut inner = self.inner.lock();
        let before = inner.claims.insert(*claim, Known::Abandoned);
        inner.no_longer_held(claim, before);
        drop(inner);
        self.tell_freed();
    }

    /// Whoever holds the answer is told when something is let go.
    pub(crate) fn waiting(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Waiting(self)
    }

    fn tell_freed(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.freed.notify_waiters();
        }
    }

    pub(crate) fn begin_executing(&self) {
        self.slots.begin();
    }

    pub(crate) fn end_executing(&self) {
        self.slots.end();
        self.tell_freed();
    }

    /// Keeps slots for activities that may begin: as many as are free, at most so many.
    pub(crate) fn reserve(&self, wanted: usize, slots: usize) -> usize {
        self.slots.keep(wanted, slots)
    }

    /// Kept slots are not needed any more, or their activities begin now.
    pub(crate) fn release(&self, kept: usize) {
        self.slots.release(kept);
    }

    pub(crate) fn executing(&self) -> usize {
        self.slots.executing()
    }

    /// Turn rows in hand.
    pub(crate) fn turns(&self) -> usize {
        self.inner.lock().turns
    }

    pub(crate) fn is_empty(&self) -> bool {
        let inner = self.inner.lock();
        inner.held == 0 && inner.unconfirmed.is_empty()
    }

    pub(crate) fn claims(&self) -> Vec<Claim> {
        let inner = self.inner.lock();
        let unconfirmed = inner.unconfirmed.iter().map(|task| task.claim);
        inner.held().map(|(claim, _)| *claim).chain(unconfirmed).collect()
    }

    /// The claims that only their holder decides about: not those that a commit is using up.
    pub(crate) fn settled(&self) -> Vec<Claim> {
        let inner = self.inner.lock();
        inner.held().filter(|(_, hand)| !hand.committing).map(|(claim, _)| *claim).collect()
    }

    pub(crate) fn is_settled(&self, claim: &Claim) -> bool {
        self.inner.lock().hand(claim).is_some_and(|hand| !hand.committing)
    }

    pub(crate) fn set_committing(&self, claims: &[Claim], committing: bool) {
        self.inner.lock().set_committing(claims, committing);
    }

    pub(crate) fn cancel(&self, claim: &Claim, reason: CancelReason) {
        let token = self.inner.lock().hand(claim).map(|hand| hand.token.clone());
        if let Some(token) = token {
            token.cancel(reason);
        }
    }

    pub(crate) fn cancel_all(&self, reason: CancelReason) {
        let tokens: Vec<CancelToken> =
            self.inner.lock().held().map(|(_, hand)| hand.token.clone()).collect();
        for token in tokens {
            token.cancel(reason);
        }
    }

    pub(crate) fn heartbeats(&self) -> Vec<Heartbeat> {
        let inner = self.inner.lock();
        let taken = inner.held().filter_map(|(claim, hand)| {
            hand.pulse.take().map(|details| Heartbeat { claim: *claim, details })
        });
        taken.collect()
    }

    /// A beat failed: what it carried goes with the next one.
    pub(crate) fn refresh(&self, heartbeats: &[Heartbeat]) {
        let inner = self.inner.lock();
        for heartbeat in heartbeats {
            if let Some(hand) = inner.hand(&heartbeat.claim) {
                hand.pulse.refresh();
            }
        }
    }

    /// The shortest heartbeat time-out in hand.
    pub(crate) fn shortest_heartbeat(&self) -> Option<Duration> {
        self.inner.lock().held().filter_map(|(_, hand)| hand.heartbeat).min()
    }

    pub(crate) fn add_unconfirmed(&self, tasks: Vec<ClaimedTask>) {
        self.slots.take(tasks.len());
        self.inner.lock().unconfirmed.extend(tasks);
    }

    /// Takes the tasks whose claims a beat has named.
    pub(crate) fn take_unconfirmed(&self, named: &[Claim]) -> Vec<ClaimedTask> {
        let mut inner = self.inner.lock();
        let all = std::mem::take(&mut inner.unconfirmed);
        let (taken, kept): (Vec<_>, _) =
            all.into_iter().partition(|task| named.contains(&task.claim));
        inner.unconfirmed = kept;
        self.slots.release(taken.len());
        taken
    }
}
