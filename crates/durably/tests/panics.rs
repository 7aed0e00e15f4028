//! A panic of the engine's own, or of its store's, stops no engine.

mod common;

use common::check::check;
use common::load::Effects;
use common::planted::{Call, Fault, Planted};
use common::work::{self, MANY};
use common::{start_all, until};
use durably::RunId;
use durably::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

const WAITS: WorkflowRef<(), bool> = WorkflowRef::new("waits");
/// Commands of the loops that an engine lives by.
const OF_LOOPS: [&str; 5] = ["claim", "beat", "ask", "sweep", "lead"];
/// Each of them panics so many times, then works.
const PANICS: u32 = 2;

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_that_panics_is_begun_again() {
    let calls: Arc<Mutex<BTreeMap<&str, u32>>> = Arc::default();
    let counted = calls.clone();
    // The first call of each kind works, so that the engine is up when they begin to panic.
    let store = Planted::new(move |_, call| match call {
        Call::Change(name) | Call::Read(name) if OF_LOOPS.contains(&name) => {
            let mut calls = counted.lock().unwrap();
            let number = calls.entry(name).or_default();
            *number += 1;
            let panics = (2..2 + PANICS).contains(number);
            if panics { Fault::Panic } else { Fault::None }
        }
        _ => Fault::None,
    });
    let effects = Effects::default();
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let engine = work::engine(effects.ledger()).function(WAITS, move |ctx: Ctx, ()| {
        let gate = gate.clone();
        async move {
            let step = ctx.step("wait", async || Ok(gate.acquire().await.is_ok()));
            Ok(step.await?)
        }
    });
    let engine = engine.beat(Duration::from_millis(50));
    let engine = engine.tune(|settings| settings.ask = Duration::from_millis(20));
    let engine = engine.start_on(Arc::new(store)).await.unwrap();
    // Which claims stand is asked while there is one.
    let waits = engine.start(WAITS, &()).await.unwrap();
    let handles = start_all(&engine, MANY, 20).await;
    for handle in &handles {
        handle.result_within(Duration::from_secs(60)).await.unwrap();
    }
    let runs: Vec<RunId> = handles.iter().map(|handle| handle.id()).collect();
    check(&engine, &runs, &effects.all()).await;
    until("every loop goes on", async || {
        let calls = calls.lock().unwrap().clone();
        OF_LOOPS.iter().all(|name| calls.get(name) > Some(&(2 + PANICS)))
    })
    .await;
    opened.add_permits(1);
    assert!(waits.result_within(Duration::from_secs(60)).await.unwrap());
    engine.stop().await.unwrap();
}
