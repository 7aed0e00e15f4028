//! Commits of many runs in one transaction: all that have queued up while the last batch was under
//! way. No artificial delay: an idle engine commits one at once.

use crate::persist::{FOR_EVER, persist};
use crate::shared::Shared;
use durably_store::{Class, CommitAnswer, RunCommit, StoreError};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

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

/// A commit, and where its answer goes.
pub(crate) struct Submission {
    commit: RunCommit,
    reply: oneshot::Sender<Verdict>,
}

impl Shared {
    /// Has a run's change committed, together with others.
    pub(crate) async fn commit(&self, commit: RunCommit) -> Verdict {
        let (reply, answer) = oneshot::channel();
        let stopped = || Verdict::Failed(stopped());
        match self.commits.send(Submission { commit, reply }).await {
            Ok(()) => answer.await.unwrap_or_else(|_| stopped()),
            Err(_) => stopped(),
        }
    }
}

fn stopped() -> StoreError {
    StoreError::Refused { operation: "commit", problem: "the engine has stopped".into() }
}

/// Takes all there are, commits them, and again.
pub(crate) async fn run(shared: Arc<Shared>, mut submissions: mpsc::Receiver<Submission>) {
    let mut batch = Vec::new();
    loop {
        let received = tokio::select! {
            biased;
            received = submissions.recv_many(&mut batch, BATCH_MAX) => received,
            () = shared.ended.cancelled() => 0,
        };
        if received == 0 {
            return;
        }
        commit_batch(&shared, std::mem::take(&mut batch)).await;
    }
}

/// A batch that fails for another reason than the store's absence is tried in halves, so that one
/// bad member does not fail the others.
async fn commit_batch(shared: &Shared, batch: Vec<Submission>) {
    let mut stack = vec![batch];
    while let Some(mut batch) = stack.pop() {
        let commits: Vec<RunCommit> = batch.iter().map(|one| one.commit.clone()).collect();
        let call = || shared.store.commit(Some(shared.who()), commits.clone());
        let result = persist(shared.environment.as_ref(), FOR_EVER, call).await;
        match result {
            Ok(answers) => {
                for (one, answer) in batch.into_iter().zip(answers) {
                    reply(one, Verdict::Answer(answer));
                }
            }
            Err(error) if error.class() == Class::Ambiguous => {
                tracing::warn!(%error, "the answer to a commit was lost; looking it up");
                for one in batch {
                    reply(one, Verdict::Ambiguous);
                }
            }
            Err(error) if batch.len() == 1 => {
                reply(batch.remove(0), Verdict::Failed(error));
            }
            Err(_) => {
                let half = batch.split_off(batch.len() / 2);
                stack.push(half);
                stack.push(batch);
            }
        }
    }
}

fn reply(one: Submission, verdict: Verdict) {
    // The mailbox is gone only if its engine was dropped; the store has the truth.
    let _ = one.reply.send(verdict);
}
