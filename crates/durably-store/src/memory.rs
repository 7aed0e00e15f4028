//! The store in memory: plain code under one lock, obviously right, gone with the process. It is
//! the model that other stores are compared with.

use crate::answer::{
    AskAnswer, BeatAnswer, Claimed, CommitAnswer, Delivered, InboxEntry, Led, Loaded, RunView,
    Swept,
};
use crate::clock::Clock;
use crate::command::{
    Beat, ClaimCall, Delivery, HandBack, LeadCall, LoadCall, Registration, RunCommit, SweepCall,
};
use crate::find::{DeadLetterRow, Examined, HistoryPage, LeaderRow, RunQuery, TaskRow, WorkerRow};
use crate::hint::Hints;
use crate::port::{Answer, Store};
use crate::rows::State;
use durably_kernel::{CommitId, RunId, Seq, Timestamp, WorkerId};
use parking_lot::Mutex;
use std::sync::Arc;

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    clock: Clock,
    hints: Hints,
}

impl MemoryStore {
    /// An empty store on the host's clock.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// An empty store on a clock of choice.
    pub fn with_clock(clock: Clock) -> MemoryStore {
        MemoryStore { clock, ..MemoryStore::default() }
    }

    /// One command: atomic under the lock; hints go out after it.
    fn command<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut State, Timestamp) -> T + Send,
    ) -> Answer<'_, T> {
        let now = self.clock.host_now();
        let mut state = self.state.lock();
        let answer = act(&mut state, now);
        debug_assert!(state.is_whole(), "the index differs from the rows");
        let hints = std::mem::take(&mut state.hints);
        drop(state);
        self.hints.give_all(&hints);
        Box::pin(std::future::ready(Ok(answer)))
    }
}

impl Store for MemoryStore {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn hints(&self) -> &Hints {
        &self.hints
    }

    fn now(&self) -> Answer<'_, Timestamp> {
        self.command(|_, now| now)
    }

    fn register(&self, registration: Registration) -> Answer<'_, Timestamp> {
        self.command(move |state, now| state.register(registration, now))
    }

    fn drain(&self, who: WorkerId) -> Answer<'_, ()> {
        self.command(move |state, _| state.drain(&who))
    }

    fn leave(&self, who: WorkerId) -> Answer<'_, ()> {
        self.command(move |state, now| state.leave(&who, now))
    }

    fn commit(
        &self,
        who: Option<WorkerId>,
        batch: Arc<Vec<RunCommit>>,
    ) -> Answer<'_, Vec<CommitAnswer>> {
        self.command(move |state, now| {
            let who = who.map(|who| state.committer(who, &batch));
            let commit = |commit| {
                let answer = state.commit(who.as_ref(), commit, now);
                if matches!(answer, CommitAnswer::Committed(_)) {
                    state.record(commit, now);
                }
                answer
            };
            batch.iter().map(commit).collect()
        })
    }

    fn look_up(&self, run: RunId, commit: CommitId) -> Answer<'_, bool> {
        self.command(move |state, _| state.look_up(run, commit))
    }

    fn claim(&self, call: ClaimCall) -> Answer<'_, Claimed> {
        self.command(move |state, now| state.claim(&call, now))
    }

    fn load(&self, call: LoadCall) -> Answer<'_, Option<Loaded>> {
        self.command(move |state, now| state.load(&call, now))
    }

    fn deliver(&self, batch: Vec<Delivery>) -> Answer<'_, Vec<Delivered>> {
        self.command(move |state, now| {
            batch.into_iter().map(|delivery| state.deliver(delivery, now)).collect()
        })
    }

    fn hand_back(&self, who: WorkerId, batch: Vec<HandBack>) -> Answer<'_, ()> {
        self.command(move |state, now| {
            for back in batch {
                state.hand_back(&who, back, now);
            }
        })
    }

    fn beat(&self, beat: Beat) -> Answer<'_, BeatAnswer> {
        self.command(move |state, now| state.beat(&beat, now))
    }

    fn ask(&self, who: WorkerId) -> Answer<'_, AskAnswer> {
        self.command(move |state, _| state.ask(&who))
    }

    fn sweep(&self, call: SweepCall) -> Answer<'_, Swept> {
        self.command(move |state, now| state.sweep(&call, now))
    }

    fn lead(&self, call: LeadCall) -> Answer<'_, Led> {
        self.command(move |state, now| state.lead(&call, now))
    }

    fn run(&self, run: RunId) -> Answer<'_, Option<RunView>> {
        self.command(move |state, _| state.view(run))
    }

    fn runs(&self, query: RunQuery) -> Answer<'_, Vec<RunView>> {
        self.command(move |state, _| state.views(&query))
    }

    fn history(&self, run: RunId, after: Seq, most: usize) -> Answer<'_, HistoryPage> {
        self.command(move |state, _| state.history(run, after, most))
    }

    fn tasks(&self, run: RunId) -> Answer<'_, Vec<TaskRow>> {
        self.command(move |state, _| state.task_rows(run))
    }

    fn inbox(&self, run: RunId, after: u64, most: usize) -> Answer<'_, Vec<InboxEntry>> {
        self.command(move |state, _| state.entries(run, after, most))
    }

    fn dead_letters(&self, run: Option<RunId>, most: usize) -> Answer<'_, Vec<DeadLetterRow>> {
        self.command(move |state, _| state.dead_letter_rows(run, most))
    }

    fn workers(&self) -> Answer<'_, Vec<WorkerRow>> {
        self.command(|state, _| state.worker_rows())
    }

    fn leader(&self) -> Answer<'_, LeaderRow> {
        self.command(|state, _| state.leader.clone())
    }

    fn examine(&self, from: RunId, most: usize) -> Answer<'_, Vec<Examined>> {
        self.command(move |state, _| state.examine(from, most))
    }
}
