//! Where the runtime takes time, randomness and tasks from. The real one is here; simulation and
//! tests bring their own.
#![allow(clippy::disallowed_methods, reason = "this is the one place that touches the real world")]

use crate::shared::host_name;
use futures_util::future::BoxFuture;
use rand::RngCore;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Time, randomness and spawning.
pub trait Environment: Send + Sync + 'static {
    /// Time since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;

    /// Random bits.
    fn random(&self) -> u64;

    /// Ends after a while.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Runs a task in which users' code may run.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Runs a task that must go on even while users' code blocks every thread of theirs.
    fn spawn_vital(&self, task: BoxFuture<'static, ()>);

    /// A loop of the engine's own panicked, and is begun again.
    fn loop_panicked(&self, _name: &str, _panic: &str) {}

    /// The process's name, the first part of its incarnations' names.
    fn process(&self) -> String;
}

/// The real world: the caller's tokio runtime, and a thread of our own for what must not starve.
#[derive(Debug)]
pub struct RealEnvironment {
    start: Instant,
    user: Handle,
    vital: Handle,
    // Dropping it ends the thread.
    _end: oneshot::Sender<()>,
}

impl RealEnvironment {
    /// The environment of the current tokio runtime; none outside of one.
    pub fn current() -> Option<RealEnvironment> {
        let user = Handle::try_current().ok()?;
        // With sockets, for stores on connections of the program's own: they are opened by whoever
        // needs one.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let vital = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("durably-vital".into())
            .spawn(move || {
                // An error means that the sender is gone, which is the end as well.
                let _ = runtime.block_on(ended);
            })
            .ok()?;
        Some(RealEnvironment { start: Instant::now(), user, vital, _end: end })
    }
}

impl Environment for RealEnvironment {
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn random(&self) -> u64 {
        rand::rng().next_u64()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async move { tokio::time::sleep(duration).await })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.user.spawn(task);
    }

    fn spawn_vital(&self, task: BoxFuture<'static, ()>) {
        self.vital.spawn(task);
    }

    fn process(&self) -> String {
        format!("{}-{}", host_name(), std::process::id())
    }
}
