//! Random sequences of commands, side by side on the store under test and on the memory store.
//!
//! After every command both must have said the same, and the invariants must hold of the memory
//! store; every few commands, and at the end, all that their reads show is compared. A difference
//! is made as short as it gets and printed with its seed; `DURABLY_SEED` repeats that seed.
//! `DURABLY_SEEDS` tries so many, one after the other, and `DURABLY_STEPS` makes each longer.

mod command;
mod compose;
mod decide;
mod dice;
mod flow;
mod generate;
mod invariant;
mod life;
mod raw;
mod reach;
mod shrink;
mod tally;

use crate::snapshot::Snapshot;
use crate::world::World;
use command::{Command, Reply};
use durably_kernel::{CommitId, Fact};
use durably_store::memory::MemoryStore;
use durably_store::{Clock, CommitAnswer, Delivered, Delivery, ManualClock, Store};
use futures_util::FutureExt;
use generate::Generator;
use invariant::Watch;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tally::Tally;

/// So many commands of each seed.
const STEPS: usize = 250;
/// So often everything is compared.
const COMPARE_EVERY: usize = 10;

pub(crate) async fn fixed_seeds_agree_with_memory(world: &World) {
    let mut tally = Tally::default();
    for seed in 1..=world.seeds() {
        explore(world, seed, STEPS, &mut tally).await;
    }
    tally.check();
}

pub(crate) async fn a_fresh_seed_agrees_with_memory(world: &World) {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse().ok());
    let fresh = || RandomState::new().hash_one("seed") >> 1;
    let seed: u64 = number("DURABLY_SEED").unwrap_or_else(fresh);
    let seeds = number("DURABLY_SEEDS").unwrap_or(1);
    let steps = number("DURABLY_STEPS").map_or(2 * STEPS, |steps| steps as usize);
    #[allow(clippy::print_stdout, reason = "the seed is wanted where the test fails")]
    {
        println!("DURABLY_SEED={seed} DURABLY_SEEDS={seeds} DURABLY_STEPS={steps}");
    }
    for seed in seed..seed + seeds {
        explore(world, seed, steps, &mut Tally::default()).await;
    }
}

/// How a sequence failed.
#[derive(Clone, Debug)]
struct Failure {
    /// Failures of one kind are taken for the same.
    kind: String,
    what: String,
    /// An invariant of decided runs: commits that were refused must stay so.
    of_runs: bool,
}

/// Two stores on one clock, and what was seen of them.
struct Scene {
    memory: Arc<dyn Store>,
    /// The store under test as two processes have it: each of its workers is in one of them.
    handles: [Arc<dyn Store>; 2],
    clock: ManualClock,
    watch: Watch,
    /// Commits that were made.
    made: BTreeSet<CommitId>,
    _fixture: Box<dyn crate::Fixture>,
}

async fn explore(world: &World, seed: u64, steps: usize, tally: &mut Tally) {
    let mut scene = Scene::open(world).await;
    let mut generator = Generator::new(seed, scene.memory.clone(), scene.clock.clone());
    let mut sequence: Vec<Command> = Vec::new();
    for step in 1..=steps {
        let command = generator.next().await;
        sequence.push(command.clone());
        let compare = step % COMPARE_EVERY == 0 || step == steps;
        match scene.step(&command, compare).await {
            Ok(reply) => {
                tally.count(&command, &reply);
                generator.learn(&command, &reply);
            }
            Err(failure) => return report(world, seed, sequence, failure, scene.made).await,
        }
    }
}

async fn report(
    world: &World,
    seed: u64,
    sequence: Vec<Command>,
    failure: Failure,
    made: BTreeSet<CommitId>,
) {
    let (steps, first) = (sequence.len(), failure.clone());
    let (shortest, failure) = shrink::shrink(world, sequence, failure, made).await;
    let listed: Vec<String> =
        shortest.iter().enumerate().map(|(at, c)| format!("{}. {c:?}", at + 1)).collect();
    panic!(
        "seed {seed}, command {steps}: {}\n{}\n\nthe shortest sequence found:\n{}\n\nafter its \
         last command: {}\n{}\n\nDURABLY_SEED={seed} DURABLY_STEPS={steps} repeats it",
        first.kind,
        first.what,
        listed.join("\n"),
        failure.kind,
        failure.what
    );
}

impl Scene {
    async fn open(world: &World) -> Scene {
        let clock = ManualClock::at(World::START);
        let fixture = world.fresh(Clock::Manual(clock.clone())).await;
        Scene {
            memory: Arc::new(MemoryStore::with_clock(Clock::Manual(clock.clone()))),
            handles: [fixture.open().await, fixture.open().await],
            clock,
            watch: Watch::default(),
            made: BTreeSet::new(),
            _fixture: fixture,
        }
    }

    /// One command on both; what the memory store said.
    async fn step(&mut self, command: &Command, compare: bool) -> Result<Reply, Failure> {
        let stepped = AssertUnwindSafe(self.try_step(command, compare)).catch_unwind().await;
        stepped.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
            let what = format!("panicked: {}", text.unwrap_or_default());
            Err(Failure { kind: format!("panic at {}", command.name()), what, of_runs: false })
        })
    }

    async fn try_step(&mut self, command: &Command, compare: bool) -> Result<Reply, Failure> {
        command.pass_time(&self.clock);
        let expected = command.ask(self.memory.as_ref()).await;
        let store = self.handle(command);
        let found = command.ask(store.as_ref()).await;
        if expected != found {
            let what =
                format!("{command:?}\n  memory said {expected:?}\n  {} {found:?}", store.kind());
            let kind = format!("answer to {}", command.name());
            return Err(Failure { kind, what, of_runs: false });
        }
        self.note_accepted(command, &expected);
        let snapshot = Snapshot::of(self.memory.as_ref()).await;
        self.watch.check(&snapshot, self.clock.now()).map_err(|what| {
            let kind = what.split(": ").nth(1).unwrap_or_default().to_owned();
            Failure { kind, what, of_runs: true }
        })?;
        if compare {
            let differs = snapshot.difference(&Snapshot::of(store.as_ref()).await);
            if !differs.is_empty() {
                let what = differs.join("\n");
                return Err(Failure { kind: "state".to_owned(), what, of_runs: false });
            }
        }
        Ok(expected)
    }

    fn handle(&self, command: &Command) -> Arc<dyn Store> {
        let name = command.who().map(ToString::to_string);
        let sum = name.map_or(0, |name| name.bytes().map(usize::from).sum());
        self.handles[sum % 2].clone()
    }

    fn note_accepted(&mut self, command: &Command, reply: &Reply) {
        let mut note = |delivery: &Delivery| {
            if let Fact::Signal(signal) = &delivery.fact {
                self.watch.accepted(delivery.run, &signal.id);
            }
        };
        match (command, reply) {
            (Command::Deliver(batch), Reply::Delivered(answers)) => {
                for (delivery, answer) in batch.iter().zip(answers) {
                    if let Delivered::Entry(_) = answer {
                        note(delivery);
                    }
                }
            }
            (Command::Commit(_, batch), Reply::Committed(answers)) => {
                let made = batch.iter().zip(answers);
                for (commit, _) in made.filter(|(_, a)| matches!(a, CommitAnswer::Committed(_))) {
                    self.made.insert(commit.id);
                    commit.deliveries.iter().filter(|d| d.run == commit.run).for_each(&mut note);
                }
            }
            _ => {}
        }
    }
}
