//! Two engines on one store whose commands fail: before they are carried out, or after, with the
//! answer lost. Nothing may be lost or recorded twice, and everything must end.
#![allow(clippy::disallowed_methods, reason = "tests run in the real world")]
#![allow(clippy::print_stdout, reason = "the seed is printed")]

mod common;

use common::planted::{Fault, Planted};
use common::until;
use durably::prelude::*;
use durably::{Event, RunStatus, Seq};
use durably_kernel::RunId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Faults by seed, until they are switched off.
#[derive(Default)]
struct Faults {
    random: AtomicU64,
    off: AtomicBool,
    lost_before: AtomicU64,
    lost_after: AtomicU64,
}

impl Faults {
    fn next(&self) -> Fault {
        let mut z = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        match ((z ^ (z >> 31)) % 30, self.off.load(Ordering::SeqCst)) {
            (0, false) => Fault::Unavailable,
            (1, false) => {
                self.lost_before.fetch_add(1, Ordering::SeqCst);
                Fault::LostBefore
            }
            (2, false) => {
                self.lost_after.fetch_add(1, Ordering::SeqCst);
                Fault::LostAfter
            }
            _ => Fault::None,
        }
    }
}

const WORK: ActivityRef<u32, u32> = ActivityRef::new("work");
const MIXED: WorkflowRef<u32, u32> = WorkflowRef::new("mixed");
const GO: SignalRef<u32> = SignalRef::new("go");

/// How often each effect happened, by run and step.
type Effects = Arc<Mutex<BTreeMap<(RunId, String), u32>>>;

fn effect(effects: &Effects, run: RunId, step: &str) {
    *effects.lock().unwrap().entry((run, step.to_owned())).or_default() += 1;
}

/// Three activities at once, then two in a line.
struct Fan {
    done: u32,
    sum: u32,
}

impl Workflow for Fan {
    const TYPE: &'static str = "fan";
    type Input = u32;
    type Output = u32;
    fn new(_: u32) -> Self {
        Fan { done: 0, sum: 0 }
    }
    fn on_start(&mut self) -> Actions<Self> {
        Ok((0..3).map(|n| Action::activity(format!("a{n}"), WORK, &n).into()).collect())
    }
    fn on_activity_completed(&mut self, _id: &str, result: &Output) -> Actions<Self> {
        self.done += 1;
        self.sum += result.of(WORK)?.unwrap_or_default();
        match self.done {
            3 | 4 => actions![Action::activity(format!("a{}", self.done), WORK, &self.done)],
            5 => actions![Action::complete(&self.sum)],
            _ => actions![],
        }
    }
}

async fn mixed(ctx: Ctx, effects: Effects) -> Result<u32> {
    let run = ctx.run_id();
    let one = ctx.step("one", async || {
        effect(&effects, run, "one");
        tokio::task::yield_now().await;
        Ok(1)
    });
    let (one, two) = futures_util::future::join(one, ctx.activity(WORK, &2)).await;
    let signal = ctx.signal(GO).await?;
    ctx.sleep(Duration::from_millis(5)).await?;
    let last = ctx.step("last", async || {
        effect(&effects, run, "last");
        Ok(signal)
    });
    Ok(one? + two? + last.await?)
}

/// Answers lost before and after the command was carried out.
async fn campaign(seed: u64) -> (u64, u64) {
    println!("DURABLY_SEED={seed}");
    let faults = Arc::new(Faults { random: AtomicU64::new(seed), ..Faults::default() });
    let plan = faults.clone();
    let store = Arc::new(Planted::new(move |_, _| plan.next()));
    let effects: Effects = Effects::default();
    let app = || {
        let (a, b) = (effects.clone(), effects.clone());
        Engine::builder()
            .beat(Duration::from_millis(50))
            .workflow::<Fan>()
            .function(MIXED, move |ctx: Ctx, _: u32| mixed(ctx, a.clone()))
            .activity_fn(WORK, async move |ctx: ActivityContext, n: u32| {
                effect(&b, ctx.run_id(), ctx.activity_id());
                tokio::task::yield_now().await;
                Ok(n)
            })
    };
    let first = app().start_on(store.clone()).await.unwrap();
    let second = app().start_on(store.clone()).await.unwrap();
    let mut runs = vec![];
    for n in 0..20 {
        let key = format!("k{n}");
        let engine = if n % 2 == 0 { &first } else { &second };
        let run = match n % 4 {
            0 | 1 => engine.start(Fan::REF, &n).idempotency_key(&key).await.unwrap(),
            _ => {
                let run = engine.start(MIXED, &n).idempotency_key(&key).await.unwrap();
                run.signal(GO, &40).await.unwrap();
                run
            }
        };
        runs.push((n, run));
    }
    for (n, run) in &runs {
        let result = run.result_within(Duration::from_secs(60)).await;
        let result = result.unwrap_or_else(|error| panic!("run {n}: {error}"));
        assert_eq!(result, if n % 4 < 2 { 10 } else { 43 });
    }
    faults.off.store(true, Ordering::SeqCst);
    for (_, run) in &runs {
        check(run, &effects).await;
    }
    let idle = async || {
        for (_, run) in &runs {
            if !run.tasks().await.unwrap().is_empty() {
                return false;
            }
        }
        true
    };
    until("no task is left", idle).await;
    first.stop().await.unwrap();
    second.stop().await.unwrap();
    (faults.lost_before.load(Ordering::SeqCst), faults.lost_after.load(Ordering::SeqCst))
}

async fn check(run: &Handle<u32>, effects: &Effects) {
    let view = run.status().await.unwrap();
    assert_eq!(view.status, RunStatus::Completed);
    let page = run.history(Seq(0), 1000).await.unwrap();
    assert_eq!(page.events.len() as u64, view.head.0);
    let mut outcomes: BTreeMap<String, u32> = BTreeMap::new();
    let mut signals = 0;
    for row in &page.events {
        match &row.event {
            Event::ActivityCompleted { activity_id, attempt, .. } => {
                let twice = outcomes.insert(activity_id.to_string(), attempt.number);
                assert!(twice.is_none(), "{activity_id} has two outcomes");
            }
            Event::SignalReceived { .. } => signals += 1,
            _ => {}
        }
    }
    assert!(signals <= 1, "a signal is recorded once");
    let effects = effects.lock().unwrap();
    for (activity, attempts) in outcomes {
        let happened = effects.get(&(run.id(), activity.clone())).copied().unwrap_or(0);
        assert!(happened >= 1, "{activity} has an outcome without an effect");
        assert!(happened <= attempts, "{activity}: {happened} effects in {attempts} attempts");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_lose_nothing_and_record_nothing_twice() {
    let seeds = match std::env::var("DURABLY_SEED") {
        Ok(seed) => vec![seed.parse().expect("DURABLY_SEED is a number")],
        Err(_) => (1..=8).chain([u64::from(std::process::id())]).collect(),
    };
    let (mut before, mut after) = (0, 0);
    for seed in seeds {
        let lost = campaign(seed).await;
        (before, after) = (before + lost.0, after + lost.1);
    }
    assert!(before > 0, "no answer was lost before its command");
    assert!(after > 0, "no answer was lost after its command");
}
