//! An engine of this process that has much to do while something breaks.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::disallowed_methods, reason = "tests wait for the real world")]

use super::check::{Checked, check};
use super::work::{self, Effect, Ledger, MANY};
use super::{start_all, until};
use durably::{Engine, Handle, RunId, RunQuery};
use futures_util::future::{join, join_all};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Runs that are there from the beginning.
const RUNS: u32 = 100;
/// Callers that go on starting runs whatever happens.
const CALLERS: u32 = 4;
/// Each of them starts at least so many.
const RUNS_OF_CALLER_MIN: u32 = 5;

/// A run that takes longer has come to a standstill.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was done, by engines of this process.
#[derive(Clone, Default)]
pub(crate) struct Effects(Arc<Mutex<Vec<Effect>>>);

impl Effects {
    pub(crate) fn ledger(&self) -> Ledger {
        let effects = self.0.clone();
        Arc::new(move |effect| {
            effects.lock().unwrap().push(effect);
            true
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(crate) fn all(&self) -> Vec<Effect> {
        self.0.lock().unwrap().clone()
    }
}

/// Starts an engine on the store, breaks something while runs are under way and others are started,
/// and expects that all of them complete in this very engine: none lost, none doubled.
pub(crate) async fn under_load(url: &str, fault: impl Future<Output = ()>) -> Checked {
    let effects = Effects::default();
    let engine = work::engine(effects.ledger()).slots(16);
    let engine = engine.beat(Duration::from_secs(1)).start(url).await.unwrap();
    let mut handles = start_all(&engine, MANY, RUNS).await;
    until("the load is on", async || effects.count() >= RUNS as usize).await;
    let over = AtomicBool::new(false);
    let fault = async {
        fault.await;
        over.store(true, Ordering::SeqCst);
    };
    let callers = join_all((0..CALLERS).map(|caller| go_on_starting(&engine, caller, &over)));
    let ((), started) = join(fault, callers).await;
    handles.extend(started.into_iter().flatten());
    for handle in &handles {
        let result = handle.result_within(PATIENCE).await;
        result.unwrap_or_else(|error| panic!("{} does not complete: {error}", handle.id()));
    }
    let runs: Vec<RunId> = handles.iter().map(|handle| handle.id()).collect();
    let all = engine.runs(RunQuery { most: 100_000, ..RunQuery::default() }).await.unwrap();
    assert_eq!(all.len(), runs.len(), "each start is there once");
    let checked = check(&engine, &runs, &effects.all()).await;
    assert_eq!(checked.timers, runs.len());
    engine.stop().await.unwrap();
    checked
}

/// Starts runs under keys, one after the other, and repeats what fails.
async fn go_on_starting(engine: &Engine, caller: u32, over: &AtomicBool) -> Vec<Handle<u32>> {
    let mut started = vec![];
    for n in 0.. {
        if over.load(Ordering::SeqCst) && n >= RUNS_OF_CALLER_MIN {
            break;
        }
        let key = format!("{caller}-{n}");
        let handle = loop {
            match engine.start(MANY, &n).idempotency_key(&key).await {
                Ok(handle) => break handle,
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        };
        if let Err(error) = handle.result_within(PATIENCE).await {
            let (view, tasks) = (handle.status().await, handle.tasks().await);
            panic!("{} does not complete: {error}\n{view:#?}\n{tasks:#?}", handle.id());
        }
        started.push(handle);
    }
    started
}
