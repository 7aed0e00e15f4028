//! How a run's task gets run and program to the head of the history, and what it does if it
//! cannot.

use crate::actor::Actor;
use crate::actor::deliver_orphans;
use crate::cache::View;
use crate::committer::commit_in_group;
use crate::host::panic_text;
use crate::persist::{FOR_EVER, persist};
use crate::shared::Shared;
use crate::worker::hand_back;
use durably_kernel::{Code, Event, ReplayError, Run, RunId, Seq, replay};
use durably_store::{Base, HandBack, LoadCall, Loaded, Returned, RunCommit, RunView, TurnAfter};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Events in one page of a load.
const PAGE: usize = 10_000;
/// A run that cannot go on is tried again after this long, and then after twice as long each time.
const PARK_FIRST: Duration = Duration::from_secs(5);
/// No longer than this.
const PARK_MAX: Duration = Duration::from_secs(300);

impl Actor {
    /// Run and program are at hand, and the unread entries if we hold the run; false if there is
    /// nothing to decide with them now.
    pub(crate) async fn prepare(&mut self) -> bool {
        if self.view.is_some() && !self.look_for_unread {
            return true;
        }
        let after = self.view.as_ref().map_or(Seq(0), |view| view.run.head);
        let Some(mut loaded) = self.load(after).await else { return false };
        self.look_for_unread = false;
        if let Some(claim) = self.hold.as_ref().map(|hold| hold.claim) {
            if !loaded.standing.contains(&claim) {
                self.lose_hold();
                return false;
            }
            self.unread = std::mem::take(&mut loaded.unread);
        }
        if self.view.is_some() {
            if loaded.events.is_empty() {
                return true;
            }
            // Somebody, an operator, has changed the run under our hands.
            self.drop_program();
            return false;
        }
        if loaded.view.status.has_ended() {
            self.forget();
            return false;
        }
        self.rebuild(loaded).await
    }

    /// Everything after an event; pages are joined.
    async fn load(&mut self, after: Seq) -> Option<Loaded> {
        let mut joined: Option<Loaded> = None;
        loop {
            let after = Seq(after.0 + joined.as_ref().map_or(0, |all| all.events.len() as u64));
            let call = LoadCall {
                run: self.run,
                after,
                claims: self.hold.iter().map(|hold| hold.claim).collect(),
                who: Some(self.shared.who()),
                events_max: PAGE,
            };
            let shared = self.shared.clone();
            let ask = || shared.store.load(call.clone());
            match persist(shared.environment.as_ref(), FOR_EVER, ask).await {
                Ok(Some(mut page)) => {
                    shared.hear(page.now);
                    if let Some(mut all) = joined.take() {
                        all.events.append(&mut page.events);
                        page.events = all.events;
                    }
                    if !page.more {
                        return Some(page);
                    }
                    joined = Some(page);
                }
                Ok(None) => {
                    self.forget();
                    return None;
                }
                Err(error) => {
                    tracing::error!(%error, code = %error.code(), durable.workflow.id = %self.run,
                        "a run could not be loaded");
                    self.cannot_go_on(error.code(), &error.to_string()).await;
                    return None;
                }
            }
        }
    }

    /// Replays the history into fresh code.
    async fn rebuild(&mut self, loaded: Loaded) -> bool {
        let Some(first @ Event::WorkflowStarted { .. }) = loaded.events.first() else {
            self.cannot_go_on(Code::INVARIANT, "the history does not begin with a start").await;
            return false;
        };
        if loaded.events.len() == 1 {
            self.begin_view(&loaded.view, &first.clone());
            return self.view.is_some();
        }
        let (run, shared) = (&loaded.view, &self.shared);
        let Some((_, host)) = shared.registry.workflow(&run.workflow_type, run.version) else {
            self.not_hosted().await;
            return false;
        };
        let Event::WorkflowStarted { input, seed, .. } = first else { unreachable!("just seen") };
        let mut program = host.create(self.run, input, *seed);
        let replayed = std::panic::catch_unwind(AssertUnwindSafe(|| {
            replay(run.identity.clone(), program.as_mut(), &loaded.events)
        }));
        let (code, reason) = match replayed {
            Ok(Ok(run)) => {
                self.view = Some(View { run, program });
                self.at_head = true;
                return true;
            }
            Ok(Err(error)) => (code_of(&error), error.to_string()),
            Err(panic) => (Code::WORKFLOW_PANICKED, panic_text(&*panic)),
        };
        tracing::warn!(%code, reason, durable.workflow.id = %self.run, "a run cannot go on");
        self.cannot_go_on(code, &reason).await;
        false
    }

    /// The view of a run without a turn so far.
    pub(crate) fn begin_view(&mut self, run: &RunView, first: &Event) {
        let Some((_, host)) = self.shared.registry.workflow(&run.workflow_type, run.version) else {
            return;
        };
        let Event::WorkflowStarted { input, seed, .. } = first else { return };
        let program = host.create(self.run, input, *seed);
        if let Ok(begun) = Run::begin(run.identity.clone(), first) {
            self.version_asked = run.version;
            self.view = Some(View { run: begun, program });
            self.at_head = true;
        }
    }

    /// Another process hosts this workflow.
    async fn not_hosted(&mut self) {
        if let Some(hold) = self.hold.take() {
            hand_back(&self.shared, HandBack { claim: hold.claim, how: Returned::Unstarted });
        }
        self.deliver_outcomes().await;
    }

    /// Who does not hold the run does not park it: it delivers its facts, and the next holder
    /// parks.
    pub(crate) async fn cannot_go_on(&mut self, code: Code, reason: &str) {
        match self.hold.is_some() {
            true => self.park(code, reason).await,
            false => {
                self.drop_program();
                self.deliver_outcomes().await;
            }
        }
    }

    /// The run waits, with a reason that people can read; nothing of it is lost.
    pub(crate) async fn park(&mut self, code: Code, reason: &str) {
        let facts = self.unsettled_steps();
        self.drop_program();
        self.dropped.clear();
        let Some(hold) = self.hold.take() else { return };
        if !facts.is_empty() {
            deliver_orphans(self.shared.clone(), self.run, facts).await;
        }
        tracing::warn!(%code, reason, durable.workflow.id = %self.run, "a run is parked");
        let claim = hold.claim;
        if let Some(head) = head_now(self.shared.clone(), self.run).await {
            let delay = PARK_MAX.min(PARK_FIRST * 2u32.pow(hold.parked_times.min(6)));
            let id = self.shared.commit_id(self.shared.moment().now);
            let mut commit = RunCommit::empty(id, self.run, Base::Head(head));
            commit.holder = Some(claim);
            let (code, reason) = (code.to_string(), reason.to_owned());
            commit.turn = TurnAfter::Park { delay, code, reason };
            // Whatever the answer: if the claim still stood, the run is parked; if not, somebody
            // else holds it. A lost answer is repaired by the row's deadline.
            self.shared.hands.set_committing(&[claim], true);
            let _ = commit_in_group(&self.shared, commit).await;
        }
        self.shared.hands.let_go(&claim);
        self.unread.clear();
        if !self.outcomes.is_empty() {
            self.deliver_outcomes().await;
        }
    }
}

async fn head_now(shared: Arc<Shared>, run: RunId) -> Option<Seq> {
    let call = || shared.store.run(run);
    let found = persist(shared.environment.as_ref(), FOR_EVER, call).await;
    found.ok().flatten().map(|run| run.head)
}

fn code_of(error: &ReplayError) -> Code {
    match error {
        ReplayError::Diverged(_) => Code::DIVERGED,
        ReplayError::Fault(fault) => fault.code(),
        ReplayError::Broken(_) => Code::INVARIANT,
    }
}
