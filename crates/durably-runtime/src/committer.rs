//! Commits of many runs in one transaction: all that have queued up while the last batch was under
//! way. No artificial delay: an idle engine commits one at once. A store may want more than one batch
//! under way.

use crate::environment::Environment;
use crate::persist::{FOR_EVER, persist};
use crate::shared::Shared;
use durably_kernel::WorkerId;
use durably_store::{Class, CommitAnswer, RunCommit, Store, StoreError};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The most commits in one transaction.
const BATCH_MAX: usize = 512;

/// What a run's mailbox hears of its commit.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The store's answer.
    Answer(CommitAnswer),
    /// The answer was lost: look it up.
    Ambiguous,
    /// The store failed for good; nothing was written.
    Failed(StoreError),
}

/// Where the answer to a commit goes.
type Reply = oneshot::Sender<Verdict>;

/// Commits, and where their answers go.
#[derive(Default)]
struct Batch {
    commits: Vec<RunCommit>,
    replies: Vec<Reply>,
}

/// Commits that wait for a batch under way to end.
pub(crate) struct Commits {
    queue: Mutex<Queue>,
    /// As many batches may be under way.
    batches_max: usize,
}

#[derive(Default)]
struct Queue {
    waiting: Batch,
    /// A batch of the past: room for the next one.
    spare: Batch,
    /// Batches under way: whoever commits one takes the next one too.
    batches: usize,
}

impl Commits {
    pub(crate) fn new(batches_max: usize) -> Commits {
        Commits { queue: Mutex::default(), batches_max }
    }

    /// Says whether somebody must begin to commit.
    fn push(&self, commit: RunCommit, reply: Reply) -> bool {
        let mut queue = self.queue.lock();
        queue.waiting.commits.push(commit);
        queue.waiting.replies.push(reply);
        let begins = queue.batches < self.batches_max;
        queue.batches += usize::from(begins);
        begins
    }

    /// Whether others wait; otherwise whoever comes next begins.
    fn go_on(&self) -> bool {
        let mut queue = self.queue.lock();
        let others = !queue.waiting.commits.is_empty();
        queue.batches -= usize::from(!others);
        others
    }

    /// The next batch, or the end of it.
    fn next(&self) -> Option<Batch> {
        let mut queue = self.queue.lock();
        if queue.waiting.commits.is_empty() {
            queue.batches -= 1;
            return None;
        }
        let spare = std::mem::take(&mut queue.spare);
        let mut batch = std::mem::replace(&mut queue.waiting, spare);
        let most = batch.commits.len().min(BATCH_MAX);
        queue.waiting.commits.extend(batch.commits.drain(most..));
        queue.waiting.replies.extend(batch.replies.drain(most..));
        Some(batch)
    }

    /// A batch is done; its memory is used again.
    fn done(&self, commits: Vec<RunCommit>, replies: Vec<Reply>) {
        self.queue.lock().spare = Batch { commits, replies };
    }
}

/// Who commits: an engine, or a client of the store.
pub(crate) trait Commit: Send + Sync + 'static {
    fn environment(&self) -> &Arc<dyn Environment>;
    fn store(&self) -> &Arc<dyn Store>;
    fn commits(&self) -> &Commits;
    /// The process in the store's eyes, if it is one.
    fn who(&self) -> Option<WorkerId>;
    /// How long a store that is away is waited for.
    fn patience(&self) -> Duration;
    fn has_ended(&self) -> bool;
}

impl Commit for Shared {
    fn environment(&self) -> &Arc<dyn Environment> {
        &self.environment
    }

    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn commits(&self) -> &Commits {
        &self.commits
    }

    fn who(&self) -> Option<WorkerId> {
        Some(Shared::who(self))
    }

    fn patience(&self) -> Duration {
        FOR_EVER
    }

    fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }
}

/// Has a run's change committed, together with others. Not for callers that may give up waiting:
/// others wait for the same batch.
pub(crate) async fn commit_in_group(by: &Arc<impl Commit>, commit: RunCommit) -> Verdict {
    let Some((begins, answer)) = submit(by.as_ref(), commit) else {
        return Verdict::Failed(stopped());
    };
    if begins {
        // Where nobody else commits meanwhile this saves a task.
        if let Some(batch) = by.commits().next() {
            let busy = Busy(by);
            commit_batch(by.as_ref(), batch).await;
            drop(busy);
            if by.commits().go_on() {
                by.environment().spawn(Box::pin(run(by.clone())));
            }
        }
    }
    // Nobody answers if whoever committed it panicked: what became of it is not known.
    answer.await.unwrap_or(Verdict::Ambiguous)
}

/// As [`commit_in_group`], for a caller that may be dropped while it waits.
pub(crate) async fn commit_apart(by: &Arc<impl Commit>, commit: RunCommit) -> Verdict {
    let Some((begins, answer)) = submit(by.as_ref(), commit) else {
        return Verdict::Failed(stopped());
    };
    if begins {
        by.environment().spawn(Box::pin(run(by.clone())));
    }
    answer.await.unwrap_or(Verdict::Ambiguous)
}

/// Whether we must begin to commit, and where the answer comes; none in an engine that ended.
fn submit(by: &impl Commit, commit: RunCommit) -> Option<(bool, oneshot::Receiver<Verdict>)> {
    if by.has_ended() {
        return None;
    }
    let (reply, answer) = oneshot::channel();
    Some((by.commits().push(commit, reply), answer))
}

/// Whoever commits a batch. A panic in the store must not keep all others from committing: they
/// are then committed by a task of their own.
struct Busy<'a, C: Commit>(&'a Arc<C>);

impl<C: Commit> Drop for Busy<'_, C> {
    fn drop(&mut self) {
        if std::thread::panicking() && self.0.commits().go_on() {
            self.0.environment().spawn(Box::pin(run(self.0.clone())));
        }
    }
}

fn stopped() -> StoreError {
    StoreError::Refused { operation: "commit", problem: "the engine has stopped".into() }
}

/// Takes all there are, commits them, and again until there are none.
async fn run(by: Arc<impl Commit>) {
    while let Some(batch) = by.commits().next() {
        if by.has_ended() {
            let stopped = || Verdict::Failed(stopped());
            batch.replies.into_iter().for_each(|one| reply(one, stopped()));
            continue;
        }
        let _busy = Busy(&by);
        commit_batch(by.as_ref(), batch).await;
    }
}

/// A batch that fails for another reason than the store's absence is tried in halves, so that one
/// bad member does not fail the others.
async fn commit_batch(by: &impl Commit, batch: Batch) {
    let mut stack = vec![batch];
    while let Some(Batch { commits, mut replies }) = stack.pop() {
        let commits = Arc::new(commits);
        let call = || by.store().commit(by.who(), commits.clone());
        let result = persist(by.environment().as_ref(), by.patience(), call).await;
        match result {
            Ok(answers) => {
                for (one, answer) in replies.drain(..).zip(answers) {
                    reply(one, Verdict::Answer(answer));
                }
                if let Ok(mut commits) = Arc::try_unwrap(commits) {
                    commits.clear();
                    by.commits().done(commits, replies);
                }
            }
            Err(error) if error.class() == Class::Ambiguous => {
                tracing::warn!(%error, "the answer to a commit was lost; looking it up");
                replies.into_iter().for_each(|one| reply(one, Verdict::Ambiguous));
            }
            Err(error)
                if replies.len() == 1 || matches!(error.class(), Class::Transient { .. }) =>
            {
                replies.into_iter().for_each(|one| reply(one, Verdict::Failed(error.clone())));
            }
            Err(_) => {
                let mut commits = Arc::unwrap_or_clone(commits);
                let half = commits.len() / 2;
                stack.push(Batch {
                    commits: commits.split_off(half),
                    replies: replies.split_off(half),
                });
                stack.push(Batch { commits, replies });
            }
        }
    }
}

fn reply(one: Reply, verdict: Verdict) {
    // The mailbox is gone only if its engine was dropped; the store has the truth.
    let _ = one.send(verdict);
}
