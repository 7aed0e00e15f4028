//! The claims in this process's hands.
//!
//! An incarnation begins a claim at most once, however often answers name it: a claim that was let
//! go is remembered until every call is answered that was made before that, since its answer may
//! still name it.

use crate::token::{CancelReason, CancelToken};
use durably_kernel::{Claim, Payload, Place};
use durably_store::{ClaimedTask, Heartbeat};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

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

#[derive(Debug, Default)]
struct Inner {
    held: BTreeMap<Claim, InHand>,
    /// Activities under way; a claim stays in hand until its outcome is committed.
    executing: usize,
    unconfirmed: Vec<ClaimedTask>,
    /// Slots kept for what may begin.
    reserved: usize,
    turns: usize,
    /// Claims let go, in order, each with the number of the next call at that time.
    gone: VecDeque<(u64, Claim)>,
    gone_claims: BTreeSet<Claim>,
    /// Claims let go while the store still has them as ours.
    abandoned: BTreeSet<Claim>,
    /// Calls under way whose answers may name claims.
    calls: BTreeSet<u64>,
    next_call: u64,
}

impl Inner {
    fn remove(&mut self, claim: &Claim) {
        if self.held.remove(claim).is_some() {
            self.turns -= usize::from(claim.place == Place::TURN);
        }
    }

    /// Forgets what no answer can name any more.
    fn forget(&mut self) {
        let oldest = self.calls.first().copied().unwrap_or(self.next_call);
        while let Some((_, claim)) = self.gone.pop_front_if(|(next, _)| *next <= oldest) {
            self.gone_claims.remove(&claim);
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

/// The claims in hand.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    inner: Mutex<Inner>,
    /// Something was let go.
    pub(crate) freed: Notify,
}

impl Hands {
    /// Takes a claim up; false if this incarnation has done so before.
    pub(crate) fn take_up(&self, claim: Claim, in_hand: InHand) -> bool {
        let mut inner = self.inner.lock();
        let known = inner.held.contains_key(&claim)
            || inner.gone_claims.contains(&claim)
            || inner.abandoned.contains(&claim);
        if known {
            return false;
        }
        inner.turns += usize::from(claim.place == Place::TURN);
        inner.held.insert(claim, in_hand);
        true
    }

    /// A call begins whose answer may name claims.
    pub(crate) fn naming(&self) -> Naming<'_> {
        let mut inner = self.inner.lock();
        let number = inner.next_call;
        inner.next_call += 1;
        inner.calls.insert(number);
        Naming { hands: self, number }
    }

    /// The claim is used up, or not ours any more.
    pub(crate) fn let_go(&self, claim: &Claim) {
        let mut inner = self.inner.lock();
        inner.remove(claim);
        if !inner.calls.is_empty() && inner.gone_claims.insert(*claim) {
            let next = inner.next_call;
            inner.gone.push_back((next, *claim));
        }
        drop(inner);
        self.freed.notify_waiters();
    }

    /// The claim is ours, but nobody here will ever use it: it goes back when beats do not name it.
    pub(crate) fn abandon(&self, claim: &Claim) {
        let mut inner = self.inner.lock();
        inner.remove(claim);
        inner.abandoned.insert(*claim);
        drop(inner);
        self.freed.notify_waiters();
    }

    pub(crate) fn begin_executing(&self) {
        self.inner.lock().executing += 1;
    }

    pub(crate) fn end_executing(&self) {
        let mut inner = self.inner.lock();
        inner.executing = inner.executing.saturating_sub(1);
        drop(inner);
        self.freed.notify_waiters();
    }

    /// Keeps slots for activities that may begin: as many as are free, at most so many.
    pub(crate) fn reserve(&self, wanted: usize, slots: usize) -> usize {
        if wanted == 0 {
            return 0;
        }
        let mut inner = self.inner.lock();
        let taken = inner.executing + inner.unconfirmed.len() + inner.reserved;
        let kept = wanted.min(slots.saturating_sub(taken));
        inner.reserved += kept;
        kept
    }

    /// Kept slots are not needed any more, or their activities begin now.
    pub(crate) fn release(&self, kept: usize) {
        if kept > 0 {
            let mut inner = self.inner.lock();
            inner.reserved = inner.reserved.saturating_sub(kept);
        }
    }

    pub(crate) fn executing(&self) -> usize {
        self.inner.lock().executing
    }

    /// Turn rows in hand.
    pub(crate) fn turns(&self) -> usize {
        self.inner.lock().turns
    }

    pub(crate) fn is_empty(&self) -> bool {
        let inner = self.inner.lock();
        inner.held.is_empty() && inner.unconfirmed.is_empty()
    }

    pub(crate) fn claims(&self) -> Vec<Claim> {
        let inner = self.inner.lock();
        let unconfirmed = inner.unconfirmed.iter().map(|task| task.claim);
        inner.held.keys().copied().chain(unconfirmed).collect()
    }

    /// The claims that only their holder decides about: not those that a commit is using up.
    pub(crate) fn settled(&self) -> Vec<Claim> {
        let inner = self.inner.lock();
        inner.held.iter().filter(|(_, hand)| !hand.committing).map(|(claim, _)| *claim).collect()
    }

    pub(crate) fn is_settled(&self, claim: &Claim) -> bool {
        self.inner.lock().held.get(claim).is_some_and(|hand| !hand.committing)
    }

    pub(crate) fn set_committing(&self, claims: &[Claim], committing: bool) {
        let mut inner = self.inner.lock();
        for claim in claims {
            if let Some(hand) = inner.held.get_mut(claim) {
                hand.committing = committing;
            }
        }
    }

    pub(crate) fn cancel(&self, claim: &Claim, reason: CancelReason) {
        let token = self.inner.lock().held.get(claim).map(|hand| hand.token.clone());
        if let Some(token) = token {
            token.cancel(reason);
        }
    }

    pub(crate) fn cancel_all(&self, reason: CancelReason) {
        let tokens: Vec<CancelToken> =
            self.inner.lock().held.values().map(|hand| hand.token.clone()).collect();
        for token in tokens {
            token.cancel(reason);
        }
    }

    pub(crate) fn heartbeats(&self) -> Vec<Heartbeat> {
        let inner = self.inner.lock();
        let taken = inner.held.iter().filter_map(|(claim, hand)| {
            hand.pulse.take().map(|details| Heartbeat { claim: *claim, details })
        });
        taken.collect()
    }

    /// A beat failed: what it carried goes with the next one.
    pub(crate) fn refresh(&self, heartbeats: &[Heartbeat]) {
        let inner = self.inner.lock();
        for heartbeat in heartbeats {
            if let Some(hand) = inner.held.get(&heartbeat.claim) {
                hand.pulse.refresh();
            }
        }
    }

    /// The shortest heartbeat time-out in hand.
    pub(crate) fn shortest_heartbeat(&self) -> Option<Duration> {
        self.inner.lock().held.values().filter_map(|hand| hand.heartbeat).min()
    }

    pub(crate) fn add_unconfirmed(&self, tasks: Vec<ClaimedTask>) {
        self.inner.lock().unconfirmed.extend(tasks);
    }

    /// Takes the tasks whose claims a beat has named.
    pub(crate) fn take_unconfirmed(&self, named: &[Claim]) -> Vec<ClaimedTask> {
        let mut inner = self.inner.lock();
        let all = std::mem::take(&mut inner.unconfirmed);
        let (taken, kept) = all.into_iter().partition(|task| named.contains(&task.claim));
        inner.unconfirmed = kept;
        taken
    }
}
