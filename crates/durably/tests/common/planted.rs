//! A memory store with planted faults.
#![allow(dead_code, reason = "each test file uses a part of it")]

use durably_kernel::{CommitId, RunId, Seq, Timestamp, WorkerId};
use durably_store::memory::MemoryStore;
use durably_store::{
    Answer, AskAnswer, Beat, BeatAnswer, ClaimCall, Claimed, CommitAnswer, DeadLetterRow,
    Delivered, Delivery, Examined, HandBack, Hints, HistoryPage, InboxEntry, LeadCall, LeaderRow,
    Led, LoadCall, Loaded, Registration, RunCommit, RunQuery, RunView, Store, StoreError,
    SweepCall, Swept, TaskRow, Term, WorkerRow,
};
use std::sync::Arc;
use std::time::Duration;

/// What goes wrong with a command.
pub(crate) enum Fault {
    None,
    /// It is not carried out, and the caller knows.
    Unavailable,
    /// It is not carried out and never will be.
    Refused,
    /// It is not carried out, and the caller does not know.
    LostBefore,
    /// It is carried out, and the caller does not know.
    LostAfter,
    /// It is carried out so much later.
    Late(Duration),
    /// A defect: whoever called is unwound.
    Panic,
}

/// A command that is about to be carried out.
pub(crate) enum Call<'a> {
    Commit(&'a [RunCommit]),
    /// Another one that changes something.
    Change(&'static str),
    /// One that only reads: it fails by not being available.
    Read(&'static str),
}

type Plan = Box<dyn Fn(&MemoryStore, Call<'_>) -> Fault + Send + Sync>;

/// A memory store whose commands fail as planned.
pub(crate) struct Planted {
    inner: MemoryStore,
    plan: Plan,
    /// Whoever asks leads.
    all_lead: bool,
}

impl Planted {
    pub(crate) fn new(
        plan: impl Fn(&MemoryStore, Call<'_>) -> Fault + Send + Sync + 'static,
    ) -> Planted {
        Planted { inner: MemoryStore::new(), plan: Box::new(plan), all_lead: false }
    }

    /// Whoever asks is told that it leads.
    pub(crate) fn where_all_lead() -> Planted {
        Planted { all_lead: true, ..Planted::new(|_, _| Fault::None) }
    }

    fn carry_out<'a, T: Send + 'a>(
        &'a self,
        operation: &'static str,
        fault: Fault,
        call: impl FnOnce(&'a MemoryStore) -> Answer<'a, T> + Send + 'a,
    ) -> Answer<'a, T> {
        let problem = || "planted".to_owned();
        let lost = StoreError::Ambiguous { operation, problem: problem() };
        match fault {
            Fault::None => call(&self.inner),
            Fault::Unavailable => {
                let (problem, retry_after) = (problem(), None);
                let error = StoreError::Unavailable { operation, problem, retry_after };
                Box::pin(std::future::ready(Err(error)))
            }
            Fault::Refused => {
                let error = StoreError::Refused { operation, problem: problem() };
                Box::pin(std::future::ready(Err(error)))
            }
            Fault::Late(delay) => Box::pin(async move {
                #[allow(clippy::disallowed_methods, reason = "it takes real time")]
                tokio::time::sleep(delay).await; // tidy: a slow store is the point
                call(&self.inner).await
            }),
            Fault::Panic => panic!("{operation}: {}", problem()),
            Fault::LostBefore => Box::pin(std::future::ready(Err(lost))),
            Fault::LostAfter => {
                let answer = call(&self.inner);
                Box::pin(async move {
                    answer.await?;
                    Err(lost)
                })
            }
        }
    }

    fn change<'a, T: Send + 'a>(
        &'a self,
        operation: &'static str,
        call: impl FnOnce(&'a MemoryStore) -> Answer<'a, T> + Send + 'a,
    ) -> Answer<'a, T> {
        self.carry_out(operation, (self.plan)(&self.inner, Call::Change(operation)), call)
    }

    fn read<'a, T: Send + 'a>(
        &'a self,
        operation: &'static str,
        call: impl FnOnce(&'a MemoryStore) -> Answer<'a, T> + Send + 'a,
    ) -> Answer<'a, T> {
        let fault = match (self.plan)(&self.inner, Call::Read(operation)) {
            fault @ (Fault::None | Fault::Panic | Fault::Late(_)) => fault,
            Fault::Unavailable | Fault::Refused | Fault::LostBefore | Fault::LostAfter => {
                Fault::Unavailable
            }
        };
        self.carry_out(operation, fault, call)
    }
}

impl Store for Planted {
    fn kind(&self) -> &'static str {
        "planted"
    }
    fn hints(&self) -> &Hints {
        self.inner.hints()
    }
    fn batches(&self) -> usize {
        self.inner.batches()
    }
    fn now(&self) -> Answer<'_, Timestamp> {
        self.read("now", |store| store.now())
    }
    fn register(&self, registration: Registration) -> Answer<'_, Timestamp> {
        self.inner.register(registration)
    }
    fn drain(&self, who: WorkerId) -> Answer<'_, ()> {
        self.inner.drain(who)
    }
    fn leave(&self, who: WorkerId) -> Answer<'_, ()> {
        self.inner.leave(who)
    }
    fn commit(
        &self,
        who: Option<WorkerId>,
        batch: Arc<Vec<RunCommit>>,
    ) -> Answer<'_, Vec<CommitAnswer>> {
        let fault = (self.plan)(&self.inner, Call::Commit(&batch));
        self.carry_out("commit", fault, move |store| store.commit(who, batch))
    }
    fn look_up(&self, run: RunId, commit: CommitId) -> Answer<'_, bool> {
        self.read("look_up", move |store| store.look_up(run, commit))
    }
    fn claim(&self, call: ClaimCall) -> Answer<'_, Claimed> {
        self.change("claim", move |store| store.claim(call))
    }
    fn load(&self, call: LoadCall) -> Answer<'_, Option<Loaded>> {
        self.read("load", move |store| store.load(call))
    }
    fn deliver(&self, batch: Vec<Delivery>) -> Answer<'_, Vec<Delivered>> {
        self.change("deliver", move |store| store.deliver(batch))
    }
    fn hand_back(&self, who: WorkerId, batch: Vec<HandBack>) -> Answer<'_, ()> {
        self.change("hand_back", move |store| store.hand_back(who, batch))
    }
    fn beat(&self, beat: Beat) -> Answer<'_, BeatAnswer> {
        self.change("beat", move |store| store.beat(beat))
    }
    fn ask(&self, who: WorkerId) -> Answer<'_, AskAnswer> {
        self.read("ask", move |store| store.ask(who))
    }
    fn sweep(&self, call: SweepCall) -> Answer<'_, Swept> {
        self.change("sweep", move |store| store.sweep(call))
    }
    fn lead(&self, call: LeadCall) -> Answer<'_, Led> {
        if self.all_lead {
            let led = Led::Leads { term: Term(1), left: call.lease };
            return Box::pin(std::future::ready(Ok(led)));
        }
        self.change("lead", move |store| store.lead(call))
    }
    fn run(&self, run: RunId) -> Answer<'_, Option<RunView>> {
        self.read("run", move |store| store.run(run))
    }
    fn runs(&self, query: RunQuery) -> Answer<'_, Vec<RunView>> {
        self.read("runs", move |store| store.runs(query))
    }
    fn history(&self, run: RunId, after: Seq, most: usize) -> Answer<'_, HistoryPage> {
        self.read("history", move |store| store.history(run, after, most))
    }
    fn tasks(&self, run: RunId) -> Answer<'_, Vec<TaskRow>> {
        self.read("tasks", move |store| store.tasks(run))
    }
    fn inbox(&self, run: RunId, after: u64, most: usize) -> Answer<'_, Vec<InboxEntry>> {
        self.read("inbox", move |store| store.inbox(run, after, most))
    }
    fn dead_letters(&self, run: Option<RunId>, most: usize) -> Answer<'_, Vec<DeadLetterRow>> {
        self.read("dead_letters", move |store| store.dead_letters(run, most))
    }
    fn workers(&self) -> Answer<'_, Vec<WorkerRow>> {
        self.read("workers", |store| store.workers())
    }
    fn leader(&self) -> Answer<'_, LeaderRow> {
        self.read("leader", move |store| store.leader())
    }
    fn examine(&self, from: RunId, most: usize) -> Answer<'_, Vec<Examined>> {
        self.read("examine", move |store| store.examine(from, most))
    }
}
