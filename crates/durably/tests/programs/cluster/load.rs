//! Callers that go on starting runs, whatever happens to the servers.

use crate::common::until;
use crate::common::work::MANY;
use durably::{Client, ClientError, Code, RunError, RunId, RunQuery, RunStatus};
use durably_runtime::RuntimeError;
use durably_store::Class;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

const CALLERS: u32 = 60;
/// A run that takes longer has come to a standstill.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs that are started one after the other by several callers.
pub(crate) struct Load {
    book: Arc<Book>,
    callers: Vec<JoinHandle<()>>,
}

/// What callers write down.
#[derive(Default)]
struct Book {
    acknowledged: Mutex<Vec<RunId>>,
    /// Runs that the store does not know any more.
    gone: AtomicUsize,
    over: AtomicBool,
}

/// What became of a run that was waited for.
#[derive(PartialEq, Eq)]
enum End {
    Completed,
    Gone,
}

impl Load {
    pub(crate) fn start(client: &Client) -> Load {
        let book = Arc::<Book>::default();
        let callers = (0..CALLERS)
            .map(|caller| tokio::spawn(go_on(client.clone(), caller, book.clone())))
            .collect();
        Load { book, callers }
    }

    pub(crate) fn count(&self) -> usize {
        self.book.acknowledged.lock().unwrap().len()
    }

    pub(crate) async fn reaches(&self, count: usize) {
        until("the load is on", async || self.count() >= count).await;
    }

    /// A run from its start to its end, beginning now.
    pub(crate) async fn whole_run(&self, client: &Client) {
        let run = start(client, &format!("whole-{}", self.count())).await;
        self.book.acknowledged.lock().unwrap().push(run);
        assert!(complete(client, run).await == End::Completed, "{run} is gone");
    }

    /// Ends it, when everything that was started is completed or gone; gives what was acknowledged,
    /// and how much of it callers missed.
    pub(crate) async fn end(self) -> (Vec<RunId>, usize) {
        self.book.over.store(true, Ordering::SeqCst);
        for caller in self.callers {
            caller.await.unwrap();
        }
        let acknowledged = std::mem::take(&mut *self.book.acknowledged.lock().unwrap());
        (acknowledged, self.book.gone.load(Ordering::SeqCst))
    }
}

async fn go_on(client: Client, caller: u32, book: Arc<Book>) {
    for n in 0.. {
        if book.over.load(Ordering::SeqCst) {
            return;
        }
        let run = start(&client, &format!("{caller}-{n}")).await;
        book.acknowledged.lock().unwrap().push(run);
        if complete(&client, run).await == End::Gone {
            book.gone.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Waits until no run of the store is open.
pub(crate) async fn all_completed(client: &Client) {
    let query = || RunQuery { most: 1_000_000, ..RunQuery::default() };
    let waiting = async {
        while client
            .runs(query())
            .await
            .unwrap()
            .iter()
            .any(|run| run.status != RunStatus::Completed)
        {
            tokio::time::sleep(Duration::from_millis(100)).await; // tidy: polls for a condition
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "runs of the store are still open after {PATIENCE:?}");
}

/// Starts a run under a key, and repeats what fails.
async fn start(client: &Client, key: &str) -> RunId {
    loop {
        match client.start(MANY, &0).idempotency_key(key).await {
            Ok(handle) => return handle.id(),
            Err(error) => assert!(passes(&error), "a start that cannot be repeated: {error}"),
        }
    }
}

/// Waits for its end, and asks again where asking fails.
async fn complete(client: &Client, run: RunId) -> End {
    let waiting = async {
        loop {
            match client.handle(MANY, run).result().await {
                Ok(_) => return End::Completed,
                Err(RunError::Call(error)) if passes(&error) => {}
                Err(RunError::Call(error)) if error.code() == Code::RUN_UNKNOWN => {
                    return End::Gone;
                }
                Err(error) => panic!("{run} does not complete: {error}"),
            }
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| panic!("{run} was acknowledged and is not complete in {PATIENCE:?}"))
}

/// Whether an error says no more than that the store is out of reach for a while.
fn passes(error: &ClientError) -> bool {
    match error.kind() {
        RuntimeError::Store(error) => {
            matches!(error.class(), Class::Transient { .. } | Class::Ambiguous)
        }
        _ => false,
    }
}
