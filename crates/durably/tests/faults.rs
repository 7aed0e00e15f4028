//! Two engines on one store whose commands fail: before they are carried out, or after, with the
//! answer lost. Nothing may be lost or recorded twice, and everything must end.
#![allow(clippy::disallowed_methods, reason = "tests run in the real world")]
#![allow(clippy::print_stdout, reason = "the seed is printed")]

mod common;

use common::until;
use durably::prelude::*;
use durably::{Event, RunStatus, Seq};
use durably_kernel::{CommitId, RunId, Timestamp, WorkerId};
use durably_store::memory::MemoryStore;
use durably_store::{
    Answer, AskAnswer, Beat, BeatAnswer, ClaimCall, Claimed, CommitAnswer, DeadLetterRow,
    Delivered, Delivery, HandBack, Hints, HistoryPage, LoadCall, Loaded, Registration, RunCommit,
    RunQuery, RunView, Store, StoreError, SweepCall, Swept, TaskRow, WorkerRow,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A memory store that fails now and then.
struct Faulty {
    inner: MemoryStore,
    random: AtomicU64,
    on: AtomicBool,
    lost_before: AtomicU64,
    lost_after: AtomicU64,
}

enum Fault {
    None,
    Unavailable,
    LostBefore,
    LostAfter,
}

impl Faulty {
    fn new(seed: u64) -> Faulty {
        Faulty {
            inner: MemoryStore::new(),
            random: AtomicU64::new(seed),
            on: AtomicBool::new(true),
            lost_before: AtomicU64::new(0),
            lost_after: AtomicU64::new(0),
        }
    }

    fn fault(&self) -> Fault {
        let mut z = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        match ((z ^ (z >> 31)) % 30, self.on.load(Ordering::SeqCst)) {
            (0, true) => Fault::Unavailable,
            (1, true) => Fault::LostBefore,
            (2, true) => Fault::LostAfter,
            _ => Fault::None,
        }
    }

    /// A command that changes something.
    fn change<'a, T: Send + 'a>(
        &'a self,
        operation: &'static str,
        call: impl FnOnce(&'a MemoryStore) -> Answer<'a, T> + Send + 'a,
    ) -> Answer<'a, T> {
        let problem = || "planted".to_owned();
        let lost = move || StoreError::Ambiguous { operation, problem: problem() };
        match self.fault() {
            Fault::None => call(&self.inner),
            Fault::Unavailable => {
                let retry_after = None;
                let error = StoreError::Unavailable { operation, problem: problem(), retry_after };
                Box::pin(std::future::ready(Err(error)))
            }
            Fault::LostBefore => {
                self.lost_before.fetch_add(1, Ordering::SeqCst);
                Box::pin(std::future::ready(Err(lost())))
            }
            Fault::LostAfter => {
                self.lost_after.fetch_add(1, Ordering::SeqCst);
                let answer = call(&self.inner);
                Box::pin(async move {
                    answer.await?;
                    Err(lost())
                })
            }
        }
    }

    /// A command that only reads.
    fn read<'a, T: Send + 'a>(
        &'a self,
        operation: &'static str,
        call: impl FnOnce(&'a MemoryStore) -> Answer<'a, T>,
    ) -> Answer<'a, T> {
        match self.fault() {
            Fault::None => call(&self.inner),
            Fault::Unavailable | Fault::LostBefore | Fault::LostAfter => {
                let (problem, retry_after) = ("planted".to_owned(), None);
                let error = StoreError::Unavailable { operation, problem, retry_after };
                Box::pin(std::future::ready(Err(error)))
            }
        }
    }
}

impl Store for Faulty {
    fn kind(&self) -> &'static str {
        "faulty"
    }
    fn hints(&self) -> &Hints {
        self.inner.hints()
    }
    fn now(&self) -> Answer<'_, Timestamp> {
        self.read("now", |store| store.now())
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
    fn commit(
        &self,
        who: Option<WorkerId>,
        batch: Vec<RunCommit>,
    ) -> Answer<'_, Vec<CommitAnswer>> {
        self.change("commit", move |store| store.commit(who, batch))
    }
    fn look_up(&self, run: RunId, commit: CommitId) -> Answer<'_, bool> {
        self.read("look_up", move |store| store.look_up(run, commit))
    }
    fn claim(&self, call: ClaimCall) -> Answer<'_, Claimed> {
        self.change("claim", move |store| store.claim(call))
    }
    fn load(&self, call: LoadCall) -> Answer<'_, Option<Loaded>> {
        self.read("load", move |store| store.load(call))
    }
    fn deliver(&self, batch: Vec<Delivery>) -> Answer<'_, Vec<Delivered>> {
        self.change("deliver", move |store| store.deliver(batch))
    }
    fn hand_back(&self, who: WorkerId, batch: Vec<HandBack>) -> Answer<'_, ()> {
        self.change("hand_back", move |store| store.hand_back(who, batch))
    }
    fn beat(&self, beat: Beat) -> Answer<'_, BeatAnswer> {
        self.change("beat", move |store| store.beat(beat))
    }
    fn ask(&self, who: WorkerId) -> Answer<'_, AskAnswer> {
        self.read("ask", move |store| store.ask(who))
    }
    fn sweep(&self, call: SweepCall) -> Answer<'_, Swept> {
        self.change("sweep", move |store| store.sweep(call))
    }
    fn run(&self, run: RunId) -> Answer<'_, Option<RunView>> {
        self.read("run", move |store| store.run(run))
    }
    fn runs(&self, query: RunQuery) -> Answer<'_, Vec<RunView>> {
        self.read("runs", move |store| store.runs(query))
    }
    fn history(&self, run: RunId, after: Seq, most: usize) -> Answer<'_, HistoryPage> {
        self.read("history", move |store| store.history(run, after, most))
    }
    fn tasks(&self, run: RunId) -> Answer<'_, Vec<TaskRow>> {
        self.read("tasks", move |store| store.tasks(run))
    }
    fn dead_letters(&self, run: Option<RunId>, most: usize) -> Answer<'_, Vec<DeadLetterRow>> {
        self.read("dead_letters", move |store| store.dead_letters(run, most))
    }
    fn workers(&self) -> Answer<'_, Vec<WorkerRow>> {
        self.read("workers", |store| store.workers())
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
    let store = Arc::new(Faulty::new(seed));
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
    store.on.store(false, Ordering::SeqCst);
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
    (store.lost_before.load(Ordering::SeqCst), store.lost_after.load(Ordering::SeqCst))
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
