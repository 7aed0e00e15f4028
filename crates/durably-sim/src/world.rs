//! Plays a scenario: starts and strikes engines, does the deeds, heals everything, and waits until
//! all is done.

use crate::dice::Dice;
use crate::environment::SimEnvironment;
use crate::executor::{Executor, Group, Ran};
use crate::operator::{Operator, Receipts};
use crate::outside::{EPOCH, OPERATOR, Outside, STORE, Strike};
use crate::plan::{SIGNALS, Stage};
use crate::program::host;
use crate::scenario::{Deed, Scenario};
use crate::store::{FaultyStore, Line, count_letters};
use crate::tally::{self, Tally};
use crate::trace::{Keep, Trace};
use crate::verdict;
use crate::watch::at_once;
use durably::Engine;
use durably_kernel::Waits;
use durably_store::{ManualClock, Store};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// After everything has healed, all runs end within this much virtual time.
pub const MENDED_WITHIN: Duration = Duration::from_secs(3600);
/// How often it is looked whether all is done.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// So long a process that crashed or stopped stays down.
const DOWN: Duration = Duration::from_millis(700);
/// More polls than this are no longer a small scenario.
const POLLS_MAX: u64 = 20_000_000;

/// What came of a simulation.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// What must never happen and has happened.
    pub violation: Option<String>,
    /// The hash of everything that happened, in its order.
    pub hash: u64,
    /// What was met.
    pub tally: Tally,
    /// The last lines of what happened, if they were kept.
    pub lines: Vec<String>,
    /// Virtual time that passed.
    pub lasted: Duration,
    /// Polls of tasks.
    pub polls: u64,
    /// Effects of activities and steps.
    pub effects: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Down,
    Running,
    Stopping,
}

struct Life {
    group: Group,
    engine: Arc<Mutex<Option<Arc<Engine>>>>,
    state: State,
    sent: Arc<Mutex<u64>>,
    stopped: Arc<Mutex<bool>>,
}

/// What happens by itself at some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    GoesOn(usize, Group),
    Starts(usize),
}

struct World<'a> {
    scenario: &'a Scenario,
    outside: Arc<Outside>,
    faults: Arc<crate::store::Faults>,
    blows: Arc<Vec<crate::store::Blow>>,
    dice: Dice,
    lives: Vec<Life>,
    groups: Group,
    due: BTreeMap<(Duration, u64), Due>,
    dues: u64,
    operator: Operator,
}

/// Plays a scenario.
pub fn simulate(scenario: &Scenario, keep: Keep) -> Report {
    let dice = Dice::new(scenario.seed ^ 0x5ce1_a210);
    let trace = Trace::new(keep);
    let executor = Executor::new(dice.split(1), scenario.order, trace.clone());
    executor.open(STORE);
    executor.open(OPERATOR);
    let outside = Arc::new(Outside::new(executor.clone(), ManualClock::at(EPOCH), trace.clone()));
    let faults = Arc::new(scenario.faults.clone());
    let receipts = Arc::new(Mutex::new(Receipts::default()));
    let operator = Operator::new(&outside, &faults, dice.split(2), receipts.clone());
    let mut world = World {
        scenario,
        outside: outside.clone(),
        faults,
        blows: Arc::new(scenario.blows.clone()),
        dice,
        lives: Vec::new(),
        groups: 10,
        due: BTreeMap::new(),
        dues: 0,
        operator,
    };
    if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| world.play())) {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        outside.violated(format!("a panic: {}", text.unwrap_or("without a text")));
    }
    if outside.violation().is_none() {
        let letters = at_once(outside.store.dead_letters(None, usize::MAX >> 1));
        count_letters(&outside, letters.iter().map(|letter| letter.kind));
        let checked = verdict::check(scenario, &outside, &receipts.lock(), &letters);
        if let Err(broken) = checked.and_then(|()| verdict::doctor(outside.store.as_ref())) {
            outside.violated(broken);
        }
    }
    let (lasted, polls) = (executor.now(), executor.polls());
    world.end();
    let effects = outside.ledger.lock().len();
    let tally = outside.tally.lock().clone();
    Report {
        seed: scenario.seed,
        violation: outside.violation(),
        hash: trace.hash(),
        tally,
        lines: trace.lines(),
        lasted,
        polls,
        effects,
    }
}

impl World<'_> {
    fn play(&mut self) {
        for engine in 0..self.scenario.engines.len() {
            let stopped = Arc::default();
            let (engine_slot, sent) = (Arc::default(), Arc::default());
            let life = Life { group: 0, engine: engine_slot, state: State::Down, sent, stopped };
            self.lives.push(life);
            self.start_engine(engine);
        }
        let deeds = self.scenario.deeds.clone();
        for (at, deed) in deeds {
            if !self.run_until(Duration::from_millis(at)) {
                return;
            }
            self.outside.trace.say(format!("{:?} {deed:?}", self.outside.executor.now()));
            self.do_deed(deed);
        }
        if self.run_until(Duration::from_millis(self.scenario.heals_at_ms)) {
            self.heal();
            self.wait_until_done();
        }
    }

    /// Lets time pass; false if the simulation is over.
    fn run_until(&mut self, until: Duration) -> bool {
        loop {
            let next = self.due.first_key_value().map_or(until, |((at, _), _)| (*at).min(until));
            let outside = self.outside.clone();
            let ran = outside.executor.run_until(next, || {
                outside.violation().is_none() && outside.struck.lock().is_empty()
            });
            if self.outside.violation().is_some() {
                return false;
            }
            if ran == Ran::Spins || self.outside.executor.polls() > POLLS_MAX {
                self.outside.violated("something never comes to rest".to_owned());
                return false;
            }
            let struck = std::mem::take(&mut *self.outside.struck.lock());
            for (engine, strike) in struck {
                self.strike(engine, strike);
            }
            self.collect_stopped();
            if ran == Ran::Time && !self.take_due() && self.outside.executor.now() >= until {
                return true;
            }
        }
    }

    /// Does what is due by now; false if there was nothing.
    fn take_due(&mut self) -> bool {
        let now = self.outside.executor.now();
        let mut any = false;
        while let Some(entry) = self.due.first_entry() {
            if entry.key().0 > now {
                break;
            }
            any = true;
            match entry.remove() {
                Due::GoesOn(engine, group) => {
                    self.outside.trace.say(format!("{now:?} e{engine} goes on"));
                    self.outside.executor.resume(group);
                    self.outside.went_on(engine);
                }
                Due::Starts(engine) if self.lives[engine].state == State::Down => {
                    self.start_engine(engine);
                }
                Due::Starts(_) => {}
            }
        }
        any
    }

    fn later(&mut self, after: Duration, due: Due) {
        self.dues += 1;
        self.due.insert((self.outside.executor.now() + after, self.dues), due);
    }

    fn do_deed(&mut self, deed: Deed) {
        match deed {
            Deed::Start { run, via } => {
                let within = via.and_then(|engine| {
                    let life = &self.lives[engine];
                    Some((life.group, life.engine.lock().as_ref()?.client()))
                });
                self.operator.start(&self.scenario.runs[run], within);
            }
            Deed::Signal { run, name, id } => self.operator.signal(run, name, &format!("s{id}")),
            Deed::Cancel(run) => self.operator.cancel(run),
            Deed::Terminate(run) => self.operator.terminate(run),
            Deed::Shutdown(run) => self.operator.shutdown(run),
            Deed::Strike(engine, strike) => self.strike(engine, strike),
            Deed::Stop(engine) => self.stop(engine),
            Deed::StepClock(ms) => {
                self.outside.step_clock(ms);
                self.outside.saw(tally::CLOCK_STEPPED);
            }
        }
    }

    fn strike(&mut self, engine: usize, strike: Strike) {
        if self.lives[engine].state == State::Down {
            return;
        }
        self.outside.trace.say(format!("e{engine} is struck: {strike:?}"));
        match strike {
            Strike::Crash => {
                self.crash(engine);
                self.later(DOWN, Due::Starts(engine));
            }
            Strike::Pause { ms } => {
                let group = self.lives[engine].group;
                self.outside.executor.pause(group);
                self.later(Duration::from_millis(ms), Due::GoesOn(engine, group));
            }
        }
    }

    /// The process is gone with all that it had in memory.
    fn crash(&mut self, engine: usize) {
        let life = &mut self.lives[engine];
        let running = life.engine.lock().take();
        self.outside.saw(tally::CRASH);
        if let Some(running) = &running {
            let who = running.worker_id();
            let watch = self.outside.watch.lock();
            let mut rows = watch.runs().flat_map(|(_, seen)| &seen.shot.tasks);
            if rows.any(|row| row.attempt.as_ref().is_some_and(|a| a.worker.as_str() == who)) {
                self.outside.saw(tally::CRASH_HOLDING);
            }
        }
        self.outside.executor.drop_group(life.group);
        drop(running);
        life.state = State::Down;
    }

    fn stop(&mut self, engine: usize) {
        let life = &mut self.lives[engine];
        let Some(running) = life.engine.lock().clone() else { return };
        if life.state != State::Running {
            return;
        }
        life.state = State::Stopping;
        let stopped = life.stopped.clone();
        let task = async move {
            // Whether or not it could say goodbye, it ends.
            let _ = running.stop().await;
            *stopped.lock() = true;
        };
        self.outside.executor.spawn(life.group, Box::pin(task));
    }

    fn collect_stopped(&mut self) {
        for engine in 0..self.lives.len() {
            let life = &mut self.lives[engine];
            if !std::mem::take(&mut *life.stopped.lock()) || life.state != State::Stopping {
                continue;
            }
            life.state = State::Down;
            let running = life.engine.lock().take();
            self.outside.executor.drop_group(life.group);
            drop(running);
            self.outside.saw(tally::STOPPED);
            self.later(DOWN, Due::Starts(engine));
        }
    }

    fn start_engine(&mut self, engine: usize) {
        self.groups += 1;
        let (group, outside) = (self.groups, self.outside.clone());
        outside.executor.open(group);
        outside.trace.say(format!("{:?} e{engine} starts", outside.executor.now()));
        let life = &mut self.lives[engine];
        (life.group, life.state, life.stopped, life.engine) =
            (group, State::Running, Arc::default(), Arc::default());
        let name = format!("sim-{engine}");
        let dice = self.dice.split(group);
        let environment = SimEnvironment::new(&outside.executor, group, dice.split(1), &name);
        let environment = Arc::new(environment);
        let beat = Duration::from_millis(self.scenario.beat_ms);
        let line = Line { engine: Some(engine), beat };
        let (blows, sent) = (self.blows.clone(), life.sent.clone());
        let store = FaultyStore::new(&outside, &self.faults, line, blows, sent, dice.split(2));
        store.pass_hints(group);
        let store: Arc<dyn Store> = Arc::new(store);
        let (slot, spec) = (life.engine.clone(), self.scenario.engines[engine].clone());
        let stale_after = Duration::from_millis(self.scenario.stale_ms);
        let task = async move {
            loop {
                let builder = host(Engine::builder(), &spec.hosts, (engine, spec.broken), &outside);
                let builder = builder
                    .slots(spec.slots)
                    .beat(beat)
                    .stale_after(stale_after)
                    .grace(Duration::from_millis(spec.grace_ms))
                    .tune(|settings| {
                        settings.turns_max = spec.turns_max;
                        settings.inline_max = spec.inline_max;
                        settings.cache_bytes_max = spec.cache_bytes_max;
                        settings.ask = Duration::from_millis(spec.ask_ms);
                        settings.poll_ceiling = Duration::from_millis(spec.poll_ceiling_ms);
                        settings.turn_deadline = Duration::from_millis(spec.turn_deadline_ms);
                    });
                match builder.start_in(environment.clone(), store.clone()).await {
                    Ok(running) => {
                        *slot.lock() = Some(Arc::new(running));
                        return;
                    }
                    // The store was out of reach, or its answer lost: as an operator would.
                    Err(_) => outside.executor.sleep(Duration::from_millis(300)).await,
                }
            }
        };
        self.outside.executor.spawn(group, Box::pin(task));
    }

    /// No faults any more, and every engine is up.
    fn heal(&mut self) {
        self.outside.trace.say(format!("{:?} healed", self.outside.executor.now()));
        self.outside.healed.store(true, Ordering::SeqCst);
        self.due.clear();
        for engine in 0..self.lives.len() {
            let life = &self.lives[engine];
            self.outside.executor.resume(life.group);
            self.outside.went_on(engine);
            if life.state != State::Down
                && (life.state == State::Stopping || self.scenario.restart_all)
            {
                self.crash(engine);
            }
            if self.lives[engine].state == State::Down {
                self.start_engine(engine);
            }
        }
    }

    fn wait_until_done(&mut self) {
        let healed_at = self.outside.executor.now();
        let mut looks = 0;
        while self.run_until(self.outside.executor.now() + LOOK_EVERY) {
            if self.is_done() {
                return;
            }
            if self.outside.executor.now() - healed_at > MENDED_WITHIN {
                let open = self.left_over();
                return self.outside.violated(format!(
                    "I25: not done within {MENDED_WITHIN:?} after everything healed: {open}"
                ));
            }
            if looks % 4 == 0 {
                self.send_what_is_awaited(looks);
            }
            looks += 1;
        }
    }

    fn is_done(&self) -> bool {
        let watch = self.outside.watch.lock();
        let store = self.outside.store.as_ref();
        let all = watch.runs().all(|(run, seen)| {
            seen.shot.view.status.has_ended() && at_once(store.tasks(*run)).is_empty()
        });
        let led = !at_once(store.leader()).left(self.outside.store_now()).is_zero();
        all && led && self.operator.is_idle()
    }

    fn left_over(&self) -> String {
        let watch = self.outside.watch.lock();
        let store = self.outside.store.as_ref();
        let rows = watch.runs().filter_map(|(run, seen)| {
            let (view, tasks) = (&seen.shot.view, at_once(store.tasks(*run)));
            let left = !view.status.has_ended() || !tasks.is_empty();
            left.then(|| format!("run {run} ({:?}) {view:?} {tasks:?}", seen.plan.number))
        });
        let leader = format!("{:?}", at_once(store.leader()));
        rows.chain([leader]).collect::<Vec<_>>().join("\n")
    }

    /// Signals that runs wait for without a time-out are sent in the end.
    fn send_what_is_awaited(&self, look: u64) {
        let watch = self.outside.watch.lock();
        let mut wanted = Vec::new();
        for (run, seen) in watch.runs().filter(|(_, seen)| !seen.shot.view.status.has_ended()) {
            for (name, signal) in SIGNALS.iter().enumerate() {
                let awaited = match &seen.shot.view.waits {
                    Waits::Any => true,
                    Waits::Signals(names) => names.iter().any(|awaited| awaited == signal),
                };
                let endless = |stage: &Stage| matches!(stage, Stage::Signal { name: n, timeout_ms: None } if *n == name);
                if awaited && seen.plan.stages.iter().any(endless) {
                    wanted.push((*run, name, format!("final-{look}")));
                }
            }
        }
        drop(watch);
        for (run, name, id) in wanted {
            self.operator.signal_run(run, name, &id);
        }
    }

    /// Drops everything that is under way, so that nothing of it is left in memory.
    fn end(&mut self) {
        for life in &self.lives {
            let running = life.engine.lock().take();
            self.outside.executor.drop_group(life.group);
            drop(running);
        }
        self.outside.executor.drop_group(OPERATOR);
        self.outside.executor.drop_group(STORE);
    }
}
