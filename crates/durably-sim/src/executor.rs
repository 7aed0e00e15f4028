//! One thread, virtual time, and a seed that says who is polled next.
//!
//! Tasks belong to groups: a process. A group's tasks are dropped together (a crash), or not
//! polled for a while although time goes on (a zombie). Whatever they asked of the world outside
//! before that is under way all the same: it is in another group.

use crate::dice::Dice;
use crate::trace::Trace;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// A process, or the world outside.
pub(crate) type Group = u64;

/// So many polls without time passing: something spins.
const POLLS_AT_ONCE_MAX: u64 = 200_000;

/// Who is polled next of those that can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Any.
    Random,
    /// Who has waited longest, now and then another.
    Oldest,
    /// Who came last, now and then another.
    Newest,
}

struct Task {
    group: Group,
    /// None while it is polled.
    future: Option<BoxFuture<'static, ()>>,
}

struct Inner {
    now: Duration,
    dice: Dice,
    tasks: BTreeMap<u64, Task>,
    born: u64,
    /// By the order of their wakes.
    woken: BTreeMap<u64, u64>,
    wakes: u64,
    queued: BTreeSet<u64>,
    timers: BTreeMap<(Duration, u64), Waker>,
    timers_made: u64,
    alive: BTreeSet<Group>,
    paused: BTreeSet<Group>,
    polls: u64,
    polls_at_once: u64,
}

/// The executor.
#[derive(Clone)]
pub(crate) struct Executor {
    inner: Arc<Mutex<Inner>>,
    trace: Trace,
    order: Order,
}

struct TaskWaker {
    task: u64,
    inner: Arc<Mutex<Inner>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.inner.lock().wake(self.task);
    }
}

impl Inner {
    fn wake(&mut self, task: u64) {
        if self.tasks.contains_key(&task) && self.queued.insert(task) {
            self.wakes += 1;
            self.woken.insert(self.wakes, task);
        }
    }

    /// The next task to poll, taken off the queue.
    fn choose(&mut self, order: Order) -> Option<u64> {
        let can = |task: &u64| {
            self.tasks.get(task).is_some_and(|task| !self.paused.contains(&task.group))
        };
        let can: Vec<u64> =
            self.woken.iter().filter(|(_, task)| can(task)).map(|(at, _)| *at).collect();
        if can.is_empty() {
            return None;
        }
        let any = self.dice.below(can.len() as u64) as usize;
        let at = match order {
            Order::Random => can[any],
            Order::Oldest if self.dice.chance(85) => can[0],
            Order::Newest if self.dice.chance(85) => can[can.len() - 1],
            Order::Oldest | Order::Newest => can[any],
        };
        let task = self.woken.remove(&at)?;
        self.queued.remove(&task);
        Some(task)
    }
}

impl Executor {
    pub(crate) fn new(dice: Dice, order: Order, trace: Trace) -> Executor {
        let inner = Inner {
            now: Duration::ZERO,
            dice,
            tasks: BTreeMap::new(),
            born: 0,
            woken: BTreeMap::new(),
            wakes: 0,
            queued: BTreeSet::new(),
            timers: BTreeMap::new(),
            timers_made: 0,
            alive: BTreeSet::new(),
            paused: BTreeSet::new(),
            polls: 0,
            polls_at_once: 0,
        };
        Executor { inner: Arc::new(Mutex::new(inner)), trace, order }
    }

    pub(crate) fn now(&self) -> Duration {
        self.inner.lock().now
    }

    pub(crate) fn polls(&self) -> u64 {
        self.inner.lock().polls
    }

    /// Opens a group.
    pub(crate) fn open(&self, group: Group) {
        self.inner.lock().alive.insert(group);
    }

    /// Drops a group with all its tasks: nothing of it runs any more.
    pub(crate) fn drop_group(&self, group: Group) {
        let mut inner = self.inner.lock();
        inner.alive.remove(&group);
        inner.paused.remove(&group);
        let of_group = |task: &Task| task.group == group;
        let ids: Vec<u64> =
            inner.tasks.iter().filter(|(_, task)| of_group(task)).map(|(id, _)| *id).collect();
        let mut dropped = Vec::new();
        for id in ids {
            dropped.extend(inner.tasks.remove(&id));
            inner.queued.remove(&id);
        }
        let gone: Vec<u64> = inner
            .woken
            .iter()
            .filter(|(_, task)| !inner.tasks.contains_key(task))
            .map(|(at, _)| *at)
            .collect();
        for at in gone {
            inner.woken.remove(&at);
        }
        // Destructors wake and unregister: not under the lock.
        drop(inner);
        drop(dropped);
    }

    pub(crate) fn pause(&self, group: Group) {
        self.inner.lock().paused.insert(group);
    }

    pub(crate) fn resume(&self, group: Group) {
        self.inner.lock().paused.remove(&group);
    }

    /// Runs a task in a group; a group that is gone runs nothing.
    pub(crate) fn spawn(&self, group: Group, future: BoxFuture<'static, ()>) {
        let mut inner = self.inner.lock();
        if !inner.alive.contains(&group) {
            drop(inner);
            drop(future);
            return;
        }
        inner.born += 1;
        let id = inner.born;
        inner.tasks.insert(id, Task { group, future: Some(future) });
        inner.wake(id);
    }

    /// Ends after a while of virtual time.
    pub(crate) fn sleep(&self, duration: Duration) -> Sleep {
        let until = self.inner.lock().now.saturating_add(duration);
        Sleep { executor: self.clone(), until, timer: None }
    }

    /// Polls one task; false if none can be polled now.
    fn poll_one(&self) -> bool {
        let (id, group, mut future) = {
            let mut inner = self.inner.lock();
            let Some(id) = inner.choose(self.order) else { return false };
            inner.polls += 1;
            inner.polls_at_once += 1;
            let task = inner.tasks.get_mut(&id).expect("chosen of those that are there");
            let Some(future) = task.future.take() else { return true };
            (id, task.group, future)
        };
        self.trace.note("poll", &[id, group], String::new);
        let waker = Waker::from(Arc::new(TaskWaker { task: id, inner: self.inner.clone() }));
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        let mut inner = self.inner.lock();
        match polled {
            Poll::Ready(()) => {
                inner.queued.remove(&id);
                inner.woken.retain(|_, task| *task != id);
                inner.tasks.remove(&id);
            }
            Poll::Pending => {
                if let Some(task) = inner.tasks.get_mut(&id) {
                    task.future = Some(future);
                    return true;
                }
                // Its group was dropped while it was polled.
            }
        }
        drop(inner);
        drop(future);
        true
    }

    /// Moves time to the next timer, if there is one by then; false if there is none.
    fn pass_time(&self, until: Duration) -> bool {
        let mut inner = self.inner.lock();
        let Some((&(at, _), _)) = inner.timers.first_key_value() else { return false };
        if at > until {
            return false;
        }
        inner.now = inner.now.max(at);
        inner.polls_at_once = 0;
        let mut due = Vec::new();
        while let Some(entry) = inner.timers.first_entry() {
            if entry.key().0 > at {
                break;
            }
            due.push(entry.remove());
        }
        drop(inner);
        due.into_iter().for_each(Waker::wake);
        true
    }

    /// Runs until a time has come. `between` is called after every poll and every step of time,
    /// and ends it by answering false.
    pub(crate) fn run_until(&self, until: Duration, mut between: impl FnMut() -> bool) -> Ran {
        loop {
            if !between() {
                return Ran::Ended;
            }
            if self.inner.lock().polls_at_once > POLLS_AT_ONCE_MAX {
                return Ran::Spins;
            }
            if !self.poll_one() && !self.pass_time(until) {
                let mut inner = self.inner.lock();
                if inner.now < until {
                    inner.now = until;
                    inner.polls_at_once = 0;
                    continue;
                }
                return Ran::Time;
            }
        }
    }
}

/// Why running stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ran {
    /// The time has come.
    Time,
    /// Somebody wanted it.
    Ended,
    /// Something never comes to rest.
    Spins,
}

/// A sleep in virtual time.
pub(crate) struct Sleep {
    executor: Executor,
    until: Duration,
    timer: Option<(Duration, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Sleep { executor, until, timer } = self.get_mut();
        let mut inner = executor.inner.lock();
        if inner.now >= *until {
            return Poll::Ready(());
        }
        let key = *timer.get_or_insert_with(|| {
            inner.timers_made += 1;
            (*until, inner.timers_made)
        });
        inner.timers.insert(key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.timer {
            let waker = self.executor.inner.lock().timers.remove(&key);
            drop(waker);
        }
    }
}
