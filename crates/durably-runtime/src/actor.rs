//! A run's task: gathers facts, decides turns, has them committed, drives inline steps.
//!
//! States: it may *hold* the run (the turn row's claim) or not. Without holding it, it decides
//! turns from outcomes of its own activities, as long as nobody else holds the run. Whenever a
//! decision is not committed, run and program are dropped and built again from the history.
//!
//! What happens if the process dies between any two lines here: the claims are swept, the facts
//! that were not committed happen again under new claims, and history has everything else.

use crate::cache::View;
use crate::execute::{Begun as Started, Granted, checked};
use crate::host::{HostedProgram, StepOutcome};
use crate::mailbox::{Began, Finished, Message};
use crate::persist::{FOR_EVER, persist};
use crate::shared::Shared;
use crate::turn::code_of;
use crate::worker::begin_taken_up;
use durably_kernel::{
    ActivityId, Attempt, Claim, Fact, Fault, Loss, LossCause, RunId, Seq, TimeoutKind, Timestamp,
    TurnError,
};
use durably_store::{ClaimedTask, ClaimedWork, Delivery, InboxEntry};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;

/// The turn row is ours.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) claim: Claim,
    /// Holders lost since the last commit.
    pub(crate) losses: Vec<Loss>,
    /// Nothing was committed under it yet, or something must be.
    pub(crate) owes_turn: bool,
    /// How often in a row the run was parked.
    pub(crate) parked_times: u32,
}

impl Hold {
    /// A hold that a commit of ours gave us.
    pub(crate) fn fresh(claim: Claim) -> Hold {
        Hold { claim, losses: vec![], owes_turn: false, parked_times: 0 }
    }

    /// How many holders died since the last commit; graceful stops are free.
    pub(crate) fn deaths(&self) -> usize {
        self.losses.iter().filter(|loss| loss.cause == LossCause::Died).count()
    }
}

/// An attempt of an inline step that was begun here.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    pub(crate) seq: Seq,
    pub(crate) number: u32,
    pub(crate) started_at: Timestamp,
    pub(crate) deadline: Duration,
}

/// A run's task.
pub(crate) struct Actor {
    pub(crate) shared: Arc<Shared>,
    pub(crate) run: RunId,
    arrived: Arc<Notify>,
    pub(crate) view: Option<View>,
    /// The view is known to be at the run's head.
    pub(crate) at_head: bool,
    pub(crate) hold: Option<Hold>,
    /// Unread entries; meaningful while holding.
    pub(crate) unread: Vec<InboxEntry>,
    pub(crate) look_for_unread: bool,
    pub(crate) outcomes: Vec<Finished>,
    /// Activities under way here that a commit of ours has begun: the program waits for them with us.
    pub(crate) executing: usize,
    /// Outcomes of inline steps.
    pub(crate) steps: Vec<Fact>,
    pub(crate) begun: BTreeMap<ActivityId, Begun>,
    /// Attempts begun here whose program was dropped: lost, to be recorded.
    pub(crate) dropped: BTreeMap<ActivityId, Begun>,
    pub(crate) end_conflicts: u32,
    pub(crate) setbacks: u32,
    pub(crate) draining: bool,
    /// The version that the start asked for; used by the first turn.
    pub(crate) version_asked: Option<u32>,
}

impl Actor {
    pub(crate) fn new(shared: Arc<Shared>, run: RunId, arrived: Arc<Notify>) -> Actor {
        let view = shared.cache.lock().take(run);
        let draining = shared.is_draining();
        Actor {
            shared,
            run,
            arrived,
            view,
            at_head: false,
            hold: None,
            unread: Vec::new(),
            look_for_unread: false,
            outcomes: Vec::new(),
            executing: 0,
            steps: Vec::new(),
            begun: BTreeMap::new(),
            dropped: BTreeMap::new(),
            end_conflicts: 0,
            setbacks: 0,
            draining,
            version_asked: None,
        }
    }

    /// Lives until there is nothing to do.
    pub(crate) async fn live(&mut self) {
        while !self.shared.ended.is_cancelled() {
            for message in self.shared.mailboxes.take(self.run) {
                self.hear(message);
            }
            if self.has_work() {
                self.turn().await;
            } else if !self.begun.is_empty() {
                self.drive_steps().await;
            } else if self.hold.is_some() || self.executing > 0 {
                self.arrived.notified().await;
            } else {
                return;
            }
        }
    }

    /// The program goes to the cache.
    pub(crate) fn retire(&mut self) {
        let idle = self.begun.is_empty();
        if let Some(view) = self.view.take().filter(|view| idle && !view.run.status.has_ended()) {
            self.shared.cache.lock().put(view);
        }
    }

    /// After a panic: nothing in memory can be trusted.
    pub(crate) fn drop_all(&mut self) {
        self.view = None;
        for finished in self.outcomes.drain(..) {
            self.shared.hands.abandon(&finished.claim);
        }
        if let Some(hold) = self.hold.take() {
            self.shared.hands.abandon(&hold.claim);
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Turn(task) => self.hear_turn(*task),
            Message::Began(began) => self.hear_began(*began),
            Message::Outcome(finished) => {
                self.executing = self.executing.saturating_sub(1);
                self.outcomes.push(*finished);
                // Only who holds the run knows that nobody has changed it since it looked: the
                // event that scheduled this very activity may be somebody else's.
                self.at_head = self.hold.is_some();
            }
            Message::Returned => self.executing = self.executing.saturating_sub(1),
            // Whoever woke us tells the rest by other means.
            Message::Ended => {}
            Message::Unread => self.look_for_unread = self.hold.is_some(),
            Message::HoldLost(claim) => {
                if self.hold.as_ref().is_some_and(|hold| hold.claim == claim) {
                    self.lose_hold();
                }
            }
            Message::Drain => {
                self.draining = true;
                if let (Some(hold), true) = (&mut self.hold, self.begun.is_empty()) {
                    hold.owes_turn = true;
                }
            }
            Message::Abandon => {
                self.draining = true;
                if let Some(hold) = &mut self.hold {
                    hold.owes_turn = true;
                }
                self.drop_program();
            }
        }
    }

    fn hear_turn(&mut self, task: ClaimedTask) {
        let ClaimedWork::Turn { unread, first, losses } = task.work else {
            unreachable!("a turn's claim is about a turn");
        };
        if self.hold.is_some() {
            // Our earlier claim was taken back, and this process was given the row again.
            self.lose_hold();
        }
        let fits = self.view.as_ref().is_some_and(|view| view.run.head == task.run.head);
        if !fits {
            self.drop_program();
        }
        self.at_head = fits;
        if let (None, Some(first)) = (&self.view, first) {
            self.begin_view(&task.run, &first);
        }
        let parked_times = task.run.parked.as_ref().map_or(0, |parked| parked.times);
        self.hold = Some(Hold { claim: task.claim, losses, owes_turn: true, parked_times });
        self.unread = unread;
    }

    /// A start of ours has decided the first turn.
    fn hear_began(&mut self, began: Began) {
        let Began { hold, view, unread, granted } = began;
        if let Some(claim) = hold {
            let mut hold = Hold::fresh(claim);
            hold.owes_turn = self.draining;
            (self.hold, self.view, self.unread) = (Some(hold), view, unread);
            self.at_head = true;
            if !self.draining {
                self.begin_steps();
            }
        } else if self.view.is_none() {
            self.view = view;
        }
        self.begin_granted(granted);
    }

    /// One activity alone may be done in our own task: the run has nothing else to do meanwhile.
    pub(crate) fn begin_granted(&mut self, granted: Vec<Granted>) {
        let alone = granted.len() == 1 && self.begun.is_empty();
        for one in granted {
            match begin_taken_up(&self.shared, one, alone) {
                Started::Not => {}
                Started::UnderWay => self.executing += 1,
                Started::Done(finished) => {
                    self.outcomes.push(*finished);
                    self.at_head = self.hold.is_some();
                }
            }
        }
    }

    fn has_work(&self) -> bool {
        let holder = self.hold.as_ref().is_some_and(|hold| {
            hold.owes_turn
                || !self.unread.is_empty()
                || !self.steps.is_empty()
                || self.look_for_unread
                || self.view.is_none()
        });
        holder || !self.outcomes.is_empty()
    }

    /// Hears what inline steps bring, or a message, or that one of them takes too long.
    async fn drive_steps(&mut self) {
        let Some(view) = self.view.as_mut() else { return };
        let program = view.program.as_mut();
        let now = std::future::poll_fn(|cx| Poll::Ready(poll_all_steps(program, cx))).await;
        let brought = match now {
            Poll::Ready(brought) => Some(brought),
            Poll::Pending => self.wait_for_steps().await,
        };
        let Some((outcomes, fault)) = brought else { return };
        outcomes.into_iter().for_each(|outcome| self.hear_step(outcome));
        if let Some(fault) = fault {
            let error = TurnError::Fault(fault);
            self.park(code_of(&error), &error.to_string()).await;
        }
    }

    async fn wait_for_steps(&mut self) -> Option<Brought> {
        let environment = self.shared.environment.clone();
        let now = environment.monotonic();
        let earliest = self.begun.values().map(|begun| begun.deadline).min();
        let left = earliest.map_or(Duration::from_secs(3600), |at| at.saturating_sub(now));
        let program = self.view.as_mut()?.program.as_mut();
        let polled = std::future::poll_fn(|cx| poll_all_steps(program, cx));
        tokio::select! {
            biased;
            () = self.arrived.notified() => None,
            brought = polled => Some(brought),
            () = environment.sleep(left) => {
                self.time_steps_out();
                None
            }
        }
    }

    pub(crate) fn attempt(&self, begun: &Begun) -> Attempt {
        let (number, started_at) = (begun.number, begun.started_at);
        Attempt { number, worker: self.shared.who(), started_at }
    }

    fn hear_step(&mut self, outcome: StepOutcome) {
        let Some(begun) = self.begun.get(&outcome.id).filter(|b| b.seq == outcome.seq) else {
            return;
        };
        let attempt = self.attempt(begun);
        let (activity_id, seq) = (outcome.id, outcome.seq);
        let result = outcome.result.and_then(|result| checked("step output", result));
        self.begun.remove(&activity_id);
        self.steps.push(match result {
            Ok(result) => {
                Fact::ActivityCompleted { activity_id, seq, attempt, result, losses: vec![] }
            }
            Err(error) => {
                let losses = vec![];
                Fact::ActivityFailed { activity_id, seq, attempt, error, details: None, losses }
            }
        });
    }

    fn time_steps_out(&mut self) {
        let now = self.shared.environment.monotonic();
        let late: Vec<ActivityId> = self
            .begun
            .iter()
            .filter(|(_, begun)| begun.deadline <= now)
            .map(|(id, _)| id.clone())
            .collect();
        for activity_id in late {
            let Some(begun) = self.begun.remove(&activity_id) else { continue };
            let attempt = Some(self.attempt(&begun));
            if let Some(view) = &mut self.view {
                view.program.give_up(&activity_id);
            }
            self.steps.push(Fact::ActivityTimedOut {
                activity_id,
                seq: begun.seq,
                timeout: TimeoutKind::StartToClose,
                attempt,
                details: None,
                losses: vec![],
            });
        }
    }

    /// The program reacted to what was not committed, or is not wanted any more.
    pub(crate) fn drop_program(&mut self) {
        self.view = None;
        self.at_head = false;
        self.dropped.append(&mut self.begun);
    }

    /// Somebody else holds the run by now. What our inline steps produced is delivered; what they
    /// have not finished is for the next holder to record as lost.
    pub(crate) fn lose_hold(&mut self) {
        if let Some(hold) = self.hold.take() {
            self.shared.hands.let_go(&hold.claim);
        }
        self.drop_program();
        self.dropped.clear();
        self.unread.clear();
        self.look_for_unread = false;
        let facts: Vec<Fact> = self.steps.drain(..).collect();
        if !facts.is_empty() {
            let orphans = deliver_orphans(self.shared.clone(), self.run, facts);
            self.shared.environment.spawn(Box::pin(orphans));
        }
    }
}

/// What inline steps have brought, and what keeps the program from going on.
type Brought = (Vec<StepOutcome>, Option<Fault>);

/// Ready with all that inline steps have brought by now, so that it goes into one turn.
fn poll_all_steps(program: &mut dyn HostedProgram, cx: &mut Context<'_>) -> Poll<Brought> {
    let mut outcomes = Vec::new();
    loop {
        match program.poll_steps(cx) {
            Poll::Ready(Ok(outcome)) => outcomes.push(outcome),
            Poll::Ready(Err(fault)) => return Poll::Ready((outcomes, Some(fault))),
            Poll::Pending if outcomes.is_empty() => return Poll::Pending,
            Poll::Pending => return Poll::Ready((outcomes, None)),
        }
    }
}

/// What became of inline steps whose program was dropped goes to the inbox.
pub(crate) async fn deliver_orphans(shared: Arc<Shared>, run: RunId, facts: Vec<Fact>) {
    let batch: Vec<Delivery> = facts.iter().map(|fact| orphan(run, fact)).collect();
    let call = || shared.store.deliver(batch.clone());
    while let Err(error) = persist(shared.environment.as_ref(), FOR_EVER, call).await {
        // Deliveries are repeated, not looked up: the same id is delivered once.
        tracing::warn!(%error, "the result of an inline step could not be delivered");
        shared.environment.sleep(shared.settings.poll_ceiling).await;
        if shared.ended.is_cancelled() {
            return;
        }
    }
}

/// The delivery of an inline step's result whose program was dropped.
fn orphan(run: RunId, fact: &Fact) -> Delivery {
    let id = match fact {
        Fact::ActivityCompleted { activity_id, seq, .. }
        | Fact::ActivityFailed { activity_id, seq, .. }
        | Fact::ActivityTimedOut { activity_id, seq, .. } => format!("inline:{activity_id}:{seq}"),
        Fact::InlineLost { activity_id, seq, .. } => format!("inline-lost:{activity_id}:{seq}"),
        other => format!("inline:{}", other.name()),
    };
    Delivery { run, id, fact: fact.clone(), claim: None }
}
