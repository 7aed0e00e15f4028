//! Callers that go on starting runs, whatever happens to the servers.

use crate::common::until;
use crate::common::work::MANY;
use durably::{Client, ClientError, RunError, RunId};
use durably_runtime::RuntimeError;
use durably_store::Class;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

const CALLERS: u32 = 60;
/// A run that takes longer has come to a standstill.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs that are started one after the other by several callers.
pub(crate) struct Load {
    acknowledged: Arc<Mutex<Vec<RunId>>>,
    over: Arc<AtomicBool>,
    callers: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn start(client: &Client) -> Load {
        let (acknowledged, over) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let callers = (0..CALLERS)
            .map(|caller| {
                tokio::spawn(go_on(client.clone(), caller, Arc::clone(&acknowledged), over.clone()))
            })
            .collect();
        Load { acknowledged, over, callers }
    }

    pub(crate) fn count(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    pub(crate) async fn reaches(&self, count: usize) {
        until("the load is on", async || self.count() >= count).await;
    }

    /// A run from its start to its end, beginning now.
    pub(crate) async fn whole_run(&self, client: &Client) {
        let run = start(client, &format!("whole-{}", self.count())).await;
        self.acknowledged.lock().unwrap().push(run);
        complete(client, run).await;
    }

    /// Ends it, when everything that was started is completed; gives what was acknowledged.
    pub(crate) async fn end(self) -> Vec<RunId> {
        self.over.store(true, Ordering::SeqCst);
        for caller in self.callers {
            caller.await.unwrap();
        }
        std::mem::take(&mut self.acknowledged.lock().unwrap())
    }
}

async fn go_on(
    client: Client,
    caller: u32,
    acknowledged: Arc<Mutex<Vec<RunId>>>,
    over: Arc<AtomicBool>,
) {
    for n in 0.. {
        if over.load(Ordering::SeqCst) {
            return;
        }
        let run = start(&client, &format!("{caller}-{n}")).await;
        acknowledged.lock().unwrap().push(run);
        complete(&client, run).await;
    }
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
async fn complete(client: &Client, run: RunId) {
    let waiting = async {
        while let Err(error) = client.handle(MANY, run).result().await {
            let passes = matches!(&error, RunError::Call(error) if passes(error));
            assert!(passes, "{run} does not complete: {error}");
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    waited.unwrap_or_else(|_| panic!("{run} was acknowledged and is not complete in {PATIENCE:?}"));
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
