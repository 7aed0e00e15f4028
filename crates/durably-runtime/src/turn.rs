//! A run's task: gathers facts, decides turns, has them committed, drives inline steps.
//!
//! States: it may *hold* the run (the turn row's claim) or not. Without holding it, it decides
//! turns from outcomes of its own activities, as long as nobody else holds the run. Whenever a
//! decision is not committed, run and program are dropped and built again from the history.
//!
//! What happens if the process dies between any two lines here: the claims are swept, the facts
//! that were not committed happen again under new claims, and history has everything else.

use crate::cache::View;
use crate::committer::Verdict;
use crate::execute::checked;
use crate::hands::InHand;
use crate::host::{InlineStep, StepOutcome, panic_text};
use crate::mailbox::{Finished, Message};
use crate::persist::{FOR_EVER, persist};
use crate::shared::Shared;
use crate::worker::hand_back;
use durably_kernel::{
    ActivityId, Attempt, Claim, Code, Decision, Fact, Loss, LossCause, Offered, Run, RunId,
    RunStatus, Seq, TimeoutKind, Timestamp, Turn, TurnError,
};
use durably_store::{
    Base, ClaimedTask, ClaimedWork, CommitAnswer, Committed, Delivered, Delivery, HandBack, Held,
    InboxEntry, Returned, RunCommit, TurnAfter,
};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
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

/// An attempt of an inline step that was begun here.
#[derive(Clone, Debug)]
struct Begun {
    seq: Seq,
    started_at: Timestamp,
    deadline: Duration,
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
    /// Outcomes of inline steps.
    steps: Vec<Fact>,
    begun: BTreeMap<ActivityId, Begun>,
    /// Attempts begun here whose program was dropped: lost, to be recorded.
    dropped: BTreeMap<ActivityId, Begun>,
    end_conflicts: u32,
    pub(crate) setbacks: u32,
    draining: bool,
    /// The version that the start asked for; used by the first turn.
    pub(crate) version_asked: Option<u32>,
}

/// An end that met newer inbox entries so often commits anyway.
const END_CONFLICTS_MAX: u32 = 3;
/// Holders that were lost in a row without a commit: the run's own code may kill processes.
const HOLDERS_LOST_MAX: usize = 3;
/// A commit that lost so often without holding the run delivers its facts instead.
const SETBACKS_MAX: u32 = 2;
/// The store's deadline for a holder is later than the holder's own.
const DEADLINE_SLACK: Duration = Duration::from_secs(10);

/// What a turn made of its facts.
struct Offers {
    decision: Decision,
    base: Seq,
    used: u64,
    unread_after_end: Vec<u64>,
    admitted: Vec<Claim>,
    late: Vec<Claim>,
    ended: bool,
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
            } else if self.hold.is_some() {
                self.wait().await;
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
            self.shared.hands.let_go(&finished.claim);
        }
        if let Some(hold) = self.hold.take() {
            self.shared.hands.let_go(&hold.claim);
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Turn(task) => self.hear_turn(*task),
            Message::Outcome(finished) => {
                self.outcomes.push(*finished);
                // Only who holds the run knows that nobody has changed it since it looked: the
                // event that scheduled this very activity may be somebody else's.
                self.at_head = self.hold.is_some();
            }
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

    /// Waits for messages, for inline steps, and for their deadlines.
    async fn wait(&mut self) {
        let environment = self.shared.environment.clone();
        let now = environment.monotonic();
        let earliest = self.begun.values().map(|begun| begun.deadline).min();
        let left = earliest.map_or(Duration::from_secs(3600), |at| at.saturating_sub(now));
        let Some(view) = self.view.as_mut() else { return };
        let program = &mut view.program;
        let polled = std::future::poll_fn(|cx| program.poll_steps(cx));
        tokio::select! {
            biased;
            () = self.arrived.notified() => {}
            outcome = polled => match outcome {
                Ok(outcome) => self.hear_step(outcome),
                Err(fault) => {
                    let error = TurnError::Fault(fault);
                    self.park(code_of(&error), &error.to_string()).await;
                }
            },
            () = environment.sleep(left) => self.time_steps_out(),
        }
    }

    fn attempt(&self, id: &ActivityId, begun: &Begun) -> Attempt {
        let activity = self.view.as_ref().and_then(|view| view.run.activities.get(id));
        Attempt {
            number: activity.map_or(0, |activity| activity.attempt),
            worker: self.shared.who(),
            started_at: begun.started_at,
        }
    }

    fn hear_step(&mut self, outcome: StepOutcome) {
        let Some(begun) = self.begun.get(&outcome.id).filter(|b| b.seq == outcome.seq) else {
            return;
        };
        let attempt = self.attempt(&outcome.id, begun);
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
            let attempt = Some(self.attempt(&activity_id, &begun));
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
        if facts.is_empty() {
            return;
        }
        let (shared, run) = (self.shared.clone(), self.run);
        self.shared.environment.spawn(Box::pin(async move {
            let batch: Vec<Delivery> = facts.iter().map(|fact| orphan(run, fact)).collect();
            let call = || shared.store.deliver(batch.clone());
            if let Err(error) = persist(shared.environment.as_ref(), FOR_EVER, call).await {
                tracing::warn!(%error, "the result of an inline step could not be delivered");
            }
        }));
    }

    /// One turn: load if needed, offer the facts, commit, act on the answer.
    async fn turn(&mut self) {
        let (lost, parked) =
            self.hold.as_ref().map_or((0, 0), |hold| (hold.losses.len(), hold.parked_times));
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
        self.drop_late(&offers.late);
        let holder = self.hold.is_some();
        if offers.decision.events.is_empty() && !holder {
            return self.nothing_admitted().await;
        }
        let eventless = offers.decision.events.is_empty() && offers.used == 0;
        let waits_on = holder && eventless && !self.begun.is_empty() && !self.draining;
        if let (true, Some(hold)) = (waits_on, &mut self.hold) {
            // Steps go on; there is nothing to tell the store.
            hold.owes_turn = false;
            return;
        }
        self.commit(offers).await;
    }

    fn hosts_the_workflow(&self) -> bool {
        self.outcomes.first().is_none_or(|finished| {
            let run = &finished.run;
            self.shared.registry.workflow(&run.workflow_type, run.version).is_some()
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
        let mut facts: Vec<(Source, Fact)> = Vec::new();
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

    /// Attempts of inline steps that nobody will finish.
    fn lost_steps<'a>(&'a self, run: &'a Run, hold: &'a Hold) -> impl Iterator<Item = Fact> + 'a {
        run.under_way().filter_map(move |(id, activity, seq)| {
            let reported = self.steps.iter().any(|fact| names(fact, id, seq));
            let here = self.begun.get(id).is_some_and(|begun| begun.seq == seq);
            if reported || here {
                return None;
            }
            let loss = match self.dropped.get(id).filter(|begun| begun.seq == seq) {
                Some(begun) => Loss {
                    attempt: Attempt {
                        number: activity.attempt,
                        worker: self.shared.who(),
                        started_at: begun.started_at,
                    },
                    lost_at: self.shared.clock.now(self.shared.environment.as_ref()),
                    cause: LossCause::Stopped,
                },
                None => {
                    let mut loss = hold.losses.first()?.clone();
                    loss.attempt.number = activity.attempt;
                    loss
                }
            };
            Some(Fact::InlineLost { activity_id: id.clone(), seq, loss })
        })
    }

    /// Outcomes that a view at the run's head refuses are of no use: their rows are let go.
    fn drop_late(&mut self, late: &[Claim]) {
        if !self.at_head {
            return;
        }
        for claim in late {
            self.outcomes.retain(|finished| finished.claim != *claim);
            hand_back(&self.shared, HandBack { claim: *claim, how: Returned::Confirmed });
        }
    }

    /// An outcome is refused only by a view at the head: otherwise load first.
    async fn nothing_admitted(&mut self) {
        if !self.at_head {
            self.drop_program();
        }
    }

    async fn commit(&mut self, offers: Offers) {
        let commit = self.run_commit(&offers);
        let mut claims = offers.admitted.clone();
        claims.extend(self.hold.as_ref().map(|hold| hold.claim));
        let id = commit.id;
        self.shared.hands.set_committing(&claims, true);
        let verdict = self.shared.commit(commit).await;
        self.shared.hands.set_committing(&claims, false);
        match verdict {
            Verdict::Answer(CommitAnswer::Committed(committed)) => {
                self.committed(*committed, &offers);
            }
            Verdict::Answer(answer) => self.refused(answer).await,
            Verdict::Ambiguous => self.look_up(id, &offers).await,
            Verdict::Failed(error) => {
                tracing::error!(%error, code = %error.code(), durable.workflow.id = %self.run,
                    "a turn could not be committed");
                self.set_back().await;
            }
        }
    }

    fn run_commit(&self, offers: &Offers) -> RunCommit {
        let view = self.view.as_ref().expect("decided with it");
        let base = Base::Head(offers.base);
        let mut commit =
            RunCommit::empty(self.shared.commit_id(), self.run, base).with(offers.decision.clone());
        commit.holder = self.hold.as_ref().map(|hold| hold.claim);
        commit.claims = offers.admitted.clone();
        commit.inbox_used = offers.used;
        commit.unread = offers.unread_after_end.clone();
        commit.summary = Some(view.run.summary(view.program.waits()));
        commit.end_anyway = self.end_conflicts >= END_CONFLICTS_MAX;
        commit.turn = self.turn_after(&view.run);
        let longest =
            view.run.under_way().map(|(_, activity, _)| activity.options.longest_attempt());
        commit.turn_deadline = longest
            .min()
            .map_or(self.shared.settings.turn_deadline, |first| first + DEADLINE_SLACK);
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

    fn committed(&mut self, committed: Committed, offers: &Offers) {
        self.shared.clock.hear(self.shared.environment.as_ref(), committed.now);
        (self.end_conflicts, self.setbacks) = (0, 0);
        self.settle_claims(&offers.admitted);
        self.steps.clear();
        self.dropped.clear();
        self.unread = committed.unread;
        self.look_for_unread = false;
        self.settle_hold(committed.turn);
        self.at_head = self.hold.is_some();
        if offers.ended {
            self.begun.clear();
            self.view = None;
            return;
        }
        self.give_up_unwanted();
        if self.hold.is_some() && !self.draining {
            self.begin_steps();
        }
    }

    pub(crate) fn settle_claims(&mut self, used: &[Claim]) {
        self.outcomes.retain(|finished| !used.contains(&finished.claim));
        for claim in used {
            self.shared.hands.let_go(claim);
        }
    }

    fn settle_hold(&mut self, turn: Option<Claim>) {
        match (turn, &mut self.hold) {
            (Some(claim), Some(hold)) if hold.claim == claim => {
                hold.losses.clear();
                hold.owes_turn = false;
                hold.parked_times = 0;
            }
            (Some(claim), _) => {
                let in_hand = InHand {
                    token: Default::default(),
                    pulse: Default::default(),
                    heartbeat: None,
                    committing: false,
                };
                // Seen before only if a beat named it and it was let go since.
                if self.shared.hands.take_up(claim, in_hand) {
                    self.hold =
                        Some(Hold { claim, losses: vec![], owes_turn: false, parked_times: 0 });
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
    fn begin_steps(&mut self) {
        let Some(view) = &mut self.view else { return };
        let environment = self.shared.environment.as_ref();
        let (now, started_at) = (environment.monotonic(), self.shared.clock.now(environment));
        let steps: Vec<(ActivityId, Seq, Duration)> = view
            .run
            .under_way()
            .map(|(id, activity, seq)| (id.clone(), seq, activity.options.longest_attempt()))
            .collect();
        for (id, seq, longest) in steps {
            self.begun.entry(id.clone()).or_insert_with(|| {
                view.program.begin(InlineStep { id, seq });
                Begun { seq, started_at, deadline: now + longest }
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
                self.settle_claims(&claims);
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
    async fn look_up(&mut self, id: durably_kernel::CommitId, offers: &Offers) {
        self.drop_program();
        if let Some(hold) = &mut self.hold {
            hold.owes_turn = true;
        }
        let shared = self.shared.clone();
        let call = || shared.store.look_up(self.run, id);
        match persist(shared.environment.as_ref(), FOR_EVER, call).await {
            Ok(true) => {
                self.settle_claims(&offers.admitted);
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
                Delivered::Ended(_) => {
                    hand_back(&shared, HandBack { claim: finished.claim, how: Returned::Confirmed })
                }
                Delivered::Entry(_) | Delivered::Unknown | Delivered::Fenced => {
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

/// The id of an outcome's delivery: one for each claim.
fn outcome_id(claim: &Claim) -> String {
    format!("outcome:{}:{}:{}", claim.place, claim.seq, claim.number)
}

/// The delivery of an inline step's result whose program was dropped.
fn orphan(run: RunId, fact: &Fact) -> Delivery {
    let id = match fact {
        Fact::ActivityCompleted { activity_id, seq, .. }
        | Fact::ActivityFailed { activity_id, seq, .. }
        | Fact::ActivityTimedOut { activity_id, seq, .. } => format!("inline:{activity_id}:{seq}"),
        other => format!("inline:{}", other.name()),
    };
    Delivery { run, id, fact: fact.clone(), claim: None }
}

fn code_of(error: &TurnError) -> Code {
    match error {
        TurnError::Fault(durably_kernel::Fault::Panicked { .. }) => Code::WORKFLOW_PANICKED,
        TurnError::Fault(durably_kernel::Fault::ForeignAwait { .. }) => Code::FOREIGN_AWAIT,
        TurnError::Broken(_) => Code::INVARIANT,
    }
}
