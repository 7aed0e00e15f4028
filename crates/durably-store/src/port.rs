//! The port itself.

use crate::answer::{
    AskAnswer, BeatAnswer, Claimed, CommitAnswer, Delivered, InboxEntry, Led, Loaded, RunView,
    Swept,
};
use crate::command::{
    Beat, ClaimCall, Delivery, HandBack, LeadCall, LoadCall, Registration, RunCommit, SweepCall,
};
use crate::error::StoreError;
use crate::find::{DeadLetterRow, Examined, HistoryPage, LeaderRow, RunQuery, TaskRow, WorkerRow};
use crate::hint::Hints;
use durably_kernel::{CommitId, RunId, Seq, Timestamp, WorkerId};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// What a command comes back with.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A database that keeps runs. Every command is one transaction: it happens whole or not at all,
/// and a future that is dropped does not leave one half done.
pub trait Store: Send + Sync + 'static {
    /// What kind of store it is, for people.
    fn kind(&self) -> &'static str;

    /// Where it says that something may have changed.
    fn hints(&self) -> &Hints;

    /// The store's time.
    fn now(&self) -> Answer<'_, Timestamp>;

    /// Begins the life of a process. Parked runs of its workflows become due.
    fn register(&self, registration: Registration) -> Answer<'_, Timestamp>;

    /// The process claims no more; what it has stays its own.
    fn drain(&self, who: WorkerId) -> Answer<'_, ()>;

    /// The process ends: whatever it still has goes back to the queue, without counting.
    fn leave(&self, who: WorkerId) -> Answer<'_, ()>;

    /// Changes runs. One answer for each, in order; a run has at most one commit in a batch. A
    /// commit that loses does not disturb the others. Before: all its claims stand and the head is
    /// the one named, otherwise nothing of it is written. After a crash in between: all or nothing
    /// of the batch.
    fn commit(
        &self,
        who: Option<WorkerId>,
        batch: Arc<Vec<RunCommit>>,
    ) -> Answer<'_, Vec<CommitAnswer>>;

    /// As many batches of commits of one process are best under way at once.
    fn batches(&self) -> usize {
        1
    }

    /// Whether a commit whose answer was lost is in the history, looked up under the run's lock.
    fn look_up(&self, run: RunId, commit: CommitId) -> Answer<'_, bool>;

    /// Takes tasks that the process can execute, fair between tenants in equal shares: highest
    /// priority first, started runs before new ones, then tenants in turn from the cursor on.
    /// Repeated under the same call id it gives the same tasks as long as they are still claimed.
    fn claim(&self, call: ClaimCall) -> Answer<'_, Claimed>;

    /// Reads a run for a turn; none if there is no such run.
    fn load(&self, call: LoadCall) -> Answer<'_, Option<Loaded>>;

    /// Puts facts into inboxes and makes sure that each run's turn row is there.
    fn deliver(&self, batch: Vec<Delivery>) -> Answer<'_, Vec<Delivered>>;

    /// Gives claims back; those that no longer stand are ignored.
    fn hand_back(&self, who: WorkerId, batch: Vec<HandBack>) -> Answer<'_, ()>;

    /// The process lives, and this is what it has in its hands.
    fn beat(&self, beat: Beat) -> Answer<'_, BeatAnswer>;

    /// Which of its claims stand; is no beat.
    fn ask(&self, who: WorkerId) -> Answer<'_, AskAnswer>;

    /// Due rows become ready or inbox entries, lost claims return, time-outs become inbox entries.
    fn sweep(&self, call: SweepCall) -> Answer<'_, Swept>;

    /// Asks to lead. One leads at a time, by the store's clock: a process that is active begins to
    /// when nobody does, and goes on as long as it asks again within its lease, while it lives. It
    /// ends by leaving, or when its lease is over; whoever begins then has a higher term. Repeated
    /// by the leader it renews the lease, so a lost answer costs nothing.
    ///
    /// One that stood still may believe that it leads when somebody else does: what leaders do has
    /// to be harmless twice, or to name the term.
    fn lead(&self, call: LeadCall) -> Answer<'_, Led>;

    /// One run.
    fn run(&self, run: RunId) -> Answer<'_, Option<RunView>>;

    /// Runs, newest first.
    fn runs(&self, query: RunQuery) -> Answer<'_, Vec<RunView>>;

    /// A page of a run's history.
    fn history(&self, run: RunId, after: Seq, most: usize) -> Answer<'_, HistoryPage>;

    /// The live rows of a run, by place.
    fn tasks(&self, run: RunId) -> Answer<'_, Vec<TaskRow>>;

    /// A page of a run's inbox: entries after a number, those that are used up included.
    fn inbox(&self, run: RunId, after: u64, most: usize) -> Answer<'_, Vec<InboxEntry>>;

    /// Dead letters, newest first; of one run or of all.
    fn dead_letters(&self, run: Option<RunId>, most: usize) -> Answer<'_, Vec<DeadLetterRow>>;

    /// All processes, newest first.
    fn workers(&self) -> Answer<'_, Vec<WorkerRow>>;

    /// Who leads.
    fn leader(&self) -> Answer<'_, LeaderRow>;

    /// What the tables hold under each id from this one on, by id; also under ids of no run.
    fn examine(&self, from: RunId, most: usize) -> Answer<'_, Vec<Examined>>;
}
