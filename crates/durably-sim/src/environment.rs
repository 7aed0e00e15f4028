//! The world as one simulated process sees it.

use crate::dice::Dice;
use crate::executor::{Executor, Group};
use durably_runtime::Environment;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::time::Duration;

/// Time, randomness and tasks of one process.
pub(crate) struct SimEnvironment {
    executor: Executor,
    group: Group,
    born: Duration,
    dice: Mutex<Dice>,
    name: String,
}

impl SimEnvironment {
    /// A process that begins now.
    pub(crate) fn new(executor: &Executor, group: Group, dice: Dice, name: &str) -> SimEnvironment {
        SimEnvironment {
            executor: executor.clone(),
            group,
            born: executor.now(),
            dice: Mutex::new(dice),
            name: name.to_owned(),
        }
    }
}

impl Environment for SimEnvironment {
    fn monotonic(&self) -> Duration {
        self.executor.now() - self.born
    }

    fn random(&self) -> u64 {
        self.dice.lock().draw()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(self.executor.sleep(duration))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.executor.spawn(self.group, task);
    }

    fn spawn_vital(&self, task: BoxFuture<'static, ()>) {
        self.executor.spawn(self.group, task);
    }

    /// Nothing here plans a panic in the engine itself.
    fn loop_panicked(&self, name: &str, panic: &str) {
        panic!("the {name} loop panicked: {panic}");
    }

    fn process(&self) -> String {
        self.name.clone()
    }
}
