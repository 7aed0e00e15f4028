//! The claims in this process's hands.
//!
//! An incarnation begins a claim at most once, however often answers name it: what was taken up is
//! remembered for a while after it is let go.

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
#[derive(Clone, Debug)]
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
    seen: BTreeSet<Claim>,
    seen_order: VecDeque<Claim>,
}

/// The claims in hand.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    inner: Mutex<Inner>,
    /// Something was let go.
    pub(crate) freed: Notify,
}

/// So many claims are remembered after they were let go.
const SEEN_MAX: usize = 20_000;

impl Hands {
    /// Takes a claim up; false if this incarnation has done so before.
    pub(crate) fn take_up(&self, claim: Claim, in_hand: InHand) -> bool {
        let mut inner = self.inner.lock();
        if !inner.seen.insert(claim) {
            return false;
        }
        inner.seen_order.push_back(claim);
        let full = inner.seen_order.len() > SEEN_MAX;
        if let Some(oldest) = inner.seen_order.pop_front_if(|_| full) {
            inner.seen.remove(&oldest);
        }
        inner.held.insert(claim, in_hand);
        true
    }

    pub(crate) fn let_go(&self, claim: &Claim) {
        self.inner.lock().held.remove(claim);
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

    pub(crate) fn executing(&self) -> usize {
        self.inner.lock().executing
    }

    /// Turn rows in hand.
    pub(crate) fn turns(&self) -> usize {
        self.inner.lock().held.keys().filter(|claim| claim.place == Place::TURN).count()
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

    /// Claims that wait for a beat to confirm them.
    pub(crate) fn unconfirmed(&self) -> usize {
        self.inner.lock().unconfirmed.len()
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
