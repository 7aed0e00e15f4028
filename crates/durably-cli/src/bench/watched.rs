//! A store around a store, for those who want to know what passes through.

use durably_kernel::{CommitId, RunId, Seq, Timestamp, WorkerId};
use durably_store::{
    Answer, AskAnswer, Beat, BeatAnswer, ClaimCall, Claimed, ClaimedTask, CommitAnswer,
    DeadLetterRow, Delivered, Delivery, Examined, HandBack, Hints, HistoryPage, InboxEntry,
    LeadCall, LeaderRow, Led, LoadCall, Loaded, Registration, RunCommit, RunQuery, RunView, Store,
    SweepCall, Swept, TaskRow, WorkerRow,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Is told what passes through, before the engine hears of it.
pub(super) trait Watch: Send + Sync {
    /// Commits are on their way.
    fn sent(&self, _batch: &[RunCommit]) {}
    /// The store has answered.
    fn answered(&self, _batch: &[RunCommit], _answers: &[CommitAnswer]) {}
    /// The store handed tasks out, to a claim or with the answer to a beat.
    fn handed_out(&self, _tasks: &[ClaimedTask]) {}
    /// A claim took these, and took so long.
    fn claimed(&self, _tasks: &[ClaimedTask], _took: Duration) {}
}

/// A store that tells somebody what it was asked and what it answered.
pub(super) struct Watched {
    pub(super) inner: Arc<dyn Store>,
    pub(super) by: Arc<dyn Watch>,
}

impl Store for Watched {
    fn batches(&self) -> usize {
        self.inner.batches()
    }

    fn commit(
        &self,
        who: Option<WorkerId>,
        batch: Arc<Vec<RunCommit>>,
    ) -> Answer<'_, Vec<CommitAnswer>> {
        self.by.sent(&batch);
        let answers = self.inner.commit(who, batch.clone());
        Box::pin(async move {
            let answers = answers.await?;
            self.by.answered(&batch, &answers);
            Ok(answers)
        })
    }

    fn kind(&self) -> &'static str {
        self.inner.kind()
    }
    fn hints(&self) -> &Hints {
        self.inner.hints()
    }
    fn now(&self) -> Answer<'_, Timestamp> {
        self.inner.now()
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
    fn look_up(&self, run: RunId, commit: CommitId) -> Answer<'_, bool> {
        self.inner.look_up(run, commit)
    }
    fn claim(&self, call: ClaimCall) -> Answer<'_, Claimed> {
        let answer = self.inner.claim(call);
        Box::pin(async move {
            let called = Instant::now();
            let answer = answer.await?;
            if let Claimed::Tasks { tasks, .. } = &answer {
                self.by.handed_out(tasks);
                self.by.claimed(tasks, called.elapsed());
            }
            Ok(answer)
        })
    }
    fn load(&self, call: LoadCall) -> Answer<'_, Option<Loaded>> {
        self.inner.load(call)
    }
    fn deliver(&self, batch: Vec<Delivery>) -> Answer<'_, Vec<Delivered>> {
        self.inner.deliver(batch)
    }
    fn hand_back(&self, who: WorkerId, batch: Vec<HandBack>) -> Answer<'_, ()> {
        self.inner.hand_back(who, batch)
    }
    fn beat(&self, beat: Beat) -> Answer<'_, BeatAnswer> {
        let answer = self.inner.beat(beat);
        Box::pin(async move {
            let answer = answer.await?;
            if let BeatAnswer::Alive { unnamed, .. } = &answer {
                self.by.handed_out(unnamed);
            }
            Ok(answer)
        })
    }
    fn ask(&self, who: WorkerId) -> Answer<'_, AskAnswer> {
        self.inner.ask(who)
    }
    fn sweep(&self, call: SweepCall) -> Answer<'_, Swept> {
        self.inner.sweep(call)
    }
    fn lead(&self, call: LeadCall) -> Answer<'_, Led> {
        self.inner.lead(call)
    }
    fn run(&self, run: RunId) -> Answer<'_, Option<RunView>> {
        self.inner.run(run)
    }
    fn runs(&self, query: RunQuery) -> Answer<'_, Vec<RunView>> {
        self.inner.runs(query)
    }
    fn history(&self, run: RunId, after: Seq, most: usize) -> Answer<'_, HistoryPage> {
        self.inner.history(run, after, most)
    }
    fn tasks(&self, run: RunId) -> Answer<'_, Vec<TaskRow>> {
        self.inner.tasks(run)
    }
    fn dead_letters(&self, run: Option<RunId>, most: usize) -> Answer<'_, Vec<DeadLetterRow>> {
        self.inner.dead_letters(run, most)
    }
    fn workers(&self) -> Answer<'_, Vec<WorkerRow>> {
        self.inner.workers()
    }
    fn inbox(&self, run: RunId, after: u64, most: usize) -> Answer<'_, Vec<InboxEntry>> {
        self.inner.inbox(run, after, most)
    }
    fn leader(&self) -> Answer<'_, LeaderRow> {
        self.inner.leader()
    }
    fn examine(&self, from: RunId, most: usize) -> Answer<'_, Vec<Examined>> {
        self.inner.examine(from, most)
    }
}
