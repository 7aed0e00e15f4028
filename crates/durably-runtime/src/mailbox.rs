//! One run, one mailbox: facts for a run that arrive while its commit is under way wait and go
//! into its next turn together. A run's task lives while there is something to do or its inline
//! steps are under way; its program then goes to the cache.

use crate::actor::Actor;
use crate::cache::View;
use crate::execute::{Granted, OfRun};
use crate::shared::Shared;
use durably_kernel::{Claim, Fact, RunId};
use durably_store::{ClaimedTask, InboxEntry};
use futures_util::FutureExt;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::Notify;

/// What a run's task is told.
pub(crate) enum Message {
    /// The turn row is ours: we hold the run.
    Turn(Box<ClaimedTask>),
    /// A start of ours has decided the first turn.
    Began(Box<Began>),
    /// An activity's attempt ended.
    Outcome(Box<Finished>),
    /// An activity's attempt went back to the queue.
    Returned,
    /// There may be unread inbox entries.
    Unread,
    /// The turn row is not ours any more.
    HoldLost(Claim),
    /// The engine drains: begin nothing.
    Drain,
    /// The grace is over: let go.
    Abandon,
    /// The engine has ended.
    Ended,
}

/// A run that was started here, with its work still to begin.
pub(crate) struct Began {
    /// The hold, where inline steps are to begin; it is in hand.
    pub(crate) hold: Option<Claim>,
    pub(crate) view: Option<View>,
    pub(crate) unread: Vec<InboxEntry>,
    pub(crate) granted: Vec<Granted>,
}

/// The outcome of an activity, under a claim of ours.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    pub(crate) claim: Claim,
    pub(crate) fact: Fact,
    pub(crate) of: OfRun,
}

#[derive(Default)]
struct Slot {
    queue: Vec<Message>,
    arrived: Arc<Notify>,
}

/// The mailboxes of the runs that have a task.
#[derive(Default)]
pub(crate) struct Mailboxes(Mutex<BTreeMap<RunId, Slot>>);

impl Mailboxes {
    /// Tells a run's task, which is begun if there is none.
    pub(crate) fn post(&self, shared: &Arc<Shared>, run: RunId, message: Message) {
        let mut slots = self.0.lock();
        if let Some(slot) = slots.get_mut(&run) {
            slot.queue.push(message);
            slot.arrived.notify_one();
            return;
        }
        let slot = Slot { queue: vec![message], arrived: Arc::new(Notify::new()) };
        let arrived = slot.arrived.clone();
        slots.insert(run, slot);
        drop(slots);
        let task = live(shared.clone(), run, arrived);
        shared.environment.spawn(Box::pin(task));
    }

    /// Tells a run's task, if there is one.
    pub(crate) fn tell(&self, run: RunId, message: Message) {
        if let Some(slot) = self.0.lock().get_mut(&run) {
            slot.queue.push(message);
            slot.arrived.notify_one();
        }
    }

    /// Tells every run's task.
    pub(crate) fn tell_all(&self, message: impl Fn() -> Message) {
        for slot in self.0.lock().values_mut() {
            slot.queue.push(message());
            slot.arrived.notify_one();
        }
    }

    pub(crate) fn take(&self, run: RunId) -> Vec<Message> {
        self.0.lock().get_mut(&run).map(|slot| std::mem::take(&mut slot.queue)).unwrap_or_default()
    }

    /// Closes the mailbox, unless something has arrived.
    fn close(&self, run: RunId) -> bool {
        let mut slots = self.0.lock();
        match slots.get(&run) {
            Some(slot) if !slot.queue.is_empty() => false,
            _ => {
                slots.remove(&run);
                true
            }
        }
    }
}

/// The life of a run's task.
async fn live(shared: Arc<Shared>, run: RunId, arrived: Arc<Notify>) {
    loop {
        let mut actor = Actor::new(shared.clone(), run, arrived.clone());
        let lived = AssertUnwindSafe(actor.live()).catch_unwind().await;
        if lived.is_err() {
            // A defect of ours: what the task had in hand goes back by itself, since beats no
            // longer name it.
            tracing::error!(durable.workflow.id = %run, "a run's task panicked; it begins anew");
            actor.drop_all();
        }
        actor.retire();
        if shared.mailboxes.close(run) || shared.ended.is_cancelled() {
            return;
        }
    }
}
