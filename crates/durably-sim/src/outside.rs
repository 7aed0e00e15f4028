//! What all processes of a simulation share and what outlives them: the store, the ledger, and
//! what was seen of both.

use crate::executor::{Executor, Group};
use crate::ledger::{Effect, Ledger};
use crate::plan::{Shot, Work};
use crate::tally::Tally;
use crate::trace::Trace;
use crate::watch::{Began, Watch};
use durably::{ActivityContext, Error, Result};
use durably_kernel::{RunId, Timestamp};
use durably_store::memory::MemoryStore;
use durably_store::{LeaderRow, ManualClock};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The group of the store and of everything that is on its way to it.
pub(crate) const STORE: Group = 1;
/// The group of the operators.
pub(crate) const OPERATOR: Group = 2;
/// When simulated time begins: 2026-01-01.
pub(crate) const EPOCH: Timestamp = Timestamp(1_767_225_600_000);
/// What was handed to a process before it was stopped in its tracks begins when it goes on.
const AFTER_A_PAUSE: Duration = Duration::from_millis(50);
/// Every planned panic says this.
pub(crate) const PLANNED_PANIC: &str = "a planned panic";

/// What happens to a process at one of its commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strike {
    /// It loses its memory.
    Crash,
    /// It stands still for a while.
    Pause {
        /// For so long.
        ms: u64,
    },
}

/// What all processes share.
pub(crate) struct Outside {
    pub(crate) executor: Executor,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) trace: Trace,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) tally: Mutex<Tally>,
    pub(crate) watch: Mutex<Watch>,
    /// Who led when it was last looked.
    pub(crate) leader: Mutex<LeaderRow>,
    pub(crate) healed: AtomicBool,
    clock: ManualClock,
    /// Milliseconds that the store's clock is ahead.
    ahead: AtomicU64,
    violation: Mutex<Option<String>>,
    /// When the engines last went on after a pause.
    resumed: Mutex<Vec<Option<Duration>>>,
    /// Engines that are struck now.
    pub(crate) struck: Mutex<Vec<(usize, Strike)>>,
}

impl Outside {
    pub(crate) fn new(executor: Executor, clock: ManualClock, trace: Trace) -> Outside {
        let store = MemoryStore::with_clock(durably_store::Clock::Manual(clock.clone()));
        Outside {
            executor,
            store: Arc::new(store),
            trace,
            ledger: Mutex::default(),
            tally: Mutex::default(),
            watch: Mutex::default(),
            leader: Mutex::default(),
            healed: AtomicBool::new(false),
            clock,
            ahead: AtomicU64::new(0),
            violation: Mutex::new(None),
            resumed: Mutex::default(),
            struck: Mutex::default(),
        }
    }

    /// The store's time, which follows the virtual one.
    pub(crate) fn store_now(&self) -> Timestamp {
        let passed = self.executor.now().as_millis() as u64 + self.ahead.load(Ordering::SeqCst);
        let want = EPOCH.after(Duration::from_millis(passed));
        self.clock.advance(want.since(self.clock.now()));
        want
    }

    /// The store's clock jumps.
    pub(crate) fn step_clock(&self, ms: u64) {
        self.ahead.fetch_add(ms, Ordering::SeqCst);
    }

    pub(crate) fn has_healed(&self) -> bool {
        self.healed.load(Ordering::SeqCst)
    }

    /// Something that must never happen has happened; the first counts.
    pub(crate) fn violated(&self, what: String) {
        self.violation.lock().get_or_insert(what);
    }

    pub(crate) fn violation(&self) -> Option<String> {
        self.violation.lock().clone()
    }

    pub(crate) fn saw(&self, what: &'static str) {
        self.tally.lock().saw(what);
    }

    pub(crate) fn went_on(&self, engine: usize) {
        let mut resumed = self.resumed.lock();
        if resumed.len() <= engine {
            resumed.resize(engine + 1, None);
        }
        resumed[engine] = Some(self.executor.now());
    }

    fn just_went_on(&self, engine: usize) -> bool {
        let at = self.resumed.lock().get(engine).copied().flatten();
        at.is_some_and(|at| self.executor.now().saturating_sub(at) <= AFTER_A_PAUSE)
    }

    /// One attempt of a work, as activity or as step.
    pub(crate) async fn perform(
        self: Arc<Self>,
        engine: usize,
        run: RunId,
        work: &Work,
        context: Option<ActivityContext>,
    ) -> Result<String> {
        let attempt = context.as_ref().map(ActivityContext::attempt);
        let beginning = self.begin(engine, run, work, attempt);
        let shot = work.shot(beginning);
        let takes = Duration::from_millis(work.takes_ms);
        let whole = if shot == Shot::Hangs { Duration::from_secs(100_000) } else { takes };
        let result = match self.pass(whole, work, context.as_ref()).await {
            true => outcome(shot, work.number, beginning),
            false => Err(Error::cancelled("it is no longer wanted")),
        };
        let told = match &result {
            Ok(result) => Ok(result.clone()),
            Err(error) => Err(error.failure().kind.to_string()),
        };
        self.trace.say(format!("{:?} e{engine} w{} #{beginning}: {told:?}", run, work.number));
        self.ledger.lock().end(run, work.number, beginning, told);
        if shot == Shot::Panics && result.is_ok() {
            std::panic::panic_any(PLANNED_PANIC);
        }
        result
    }

    /// Lets time pass; false if the work is given up before.
    async fn pass(&self, whole: Duration, work: &Work, context: Option<&ActivityContext>) -> bool {
        let began = self.executor.now();
        loop {
            let left = whole.saturating_sub(self.executor.now() - began);
            if left.is_zero() {
                return true;
            }
            let beat = work.heartbeat_ms.map_or(left, |ms| Duration::from_millis(ms / 3));
            let slept = self.executor.sleep(left.min(beat));
            let Some(context) = context else {
                slept.await;
                continue;
            };
            let unwanted = context.cancellation().cancelled();
            tokio::select! {
                biased;
                () = unwanted, if work.heeds => return false,
                () = slept => {}
            }
            if work.heartbeat_ms.is_some() && context.heartbeat("beats").is_err() {
                self.violated("a heartbeat was not taken".to_owned());
            }
        }
    }

    fn begin(&self, engine: usize, run: RunId, work: &Work, attempt: Option<u32>) -> u32 {
        let began = self.executor.now();
        let effect = Effect { engine, attempt, began, ended: None };
        let zombie = self.just_went_on(engine);
        let may = self.watch.lock().may_begin(run, work, attempt, zombie);
        if let Ok(Began::Compensation) = may {
            self.saw(crate::tally::COMPENSATED);
        }
        let mut ledger = self.ledger.lock();
        if let (Some(attempt), false) = (attempt, zombie) {
            let mut before = ledger.of(run, work.number).iter();
            if let Some(first) = before.find(|effect| effect.attempt == Some(attempt)) {
                self.violated(format!(
                    "I23: attempt {attempt} of work {} of run {run} begins twice, {first}",
                    work.number
                ));
            }
        }
        let beginning = ledger.begin(run, work.number, effect);
        drop(ledger);
        self.trace.say(format!(
            "{:?} {run:?} e{engine} w{} #{beginning} begins, attempt {attempt:?}",
            began, work.number
        ));
        if let Err(broken) = may {
            self.violated(format!("run {run}, work {}: {broken}", work.number));
        }
        beginning
    }
}

fn outcome(shot: Shot, work: u32, beginning: u32) -> Result<String> {
    let what = format!("{work}:{beginning}");
    match shot {
        // What panics looks done until the very end.
        Shot::Done | Shot::Panics => Ok(what),
        Shot::Retryable | Shot::Hangs => Err(Error::retryable(what)),
        Shot::Permanent => Err(Error::permanent(what)),
        Shot::RateLimited => Err(Error::rate_limited(Duration::from_millis(150))),
        Shot::Contention => Err(Error::contention(what)),
    }
}
