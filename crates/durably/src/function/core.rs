//! What a function and its operations share.

use durably_kernel::{
    Action, ActivityId, ActivityOptions, Code, Failure, FailureKind, Payload, RunId, Seq, Signal,
    TimerId, Timestamp,
};
use durably_runtime::StepOutcome;
use parking_lot::Mutex;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// How far an operation is.
#[derive(Debug)]
pub(super) enum OpState {
    /// Asked for.
    Open,
    /// Inline: its attempt may begin.
    Begun(Seq),
    /// Inline: its attempt is under way.
    UnderWay(Seq),
    /// Its outcome is known.
    Resolved(Result<Payload, Failure>),
}

#[derive(Debug)]
struct Op {
    state: OpState,
    waker: Option<Waker>,
}

/// A wait for a signal.
#[derive(Debug)]
struct Wait {
    name: String,
    timer: Option<TimerId>,
    /// The signal, none where its time-out fired, or the failure.
    resolved: Option<Result<Option<Signal>, Failure>>,
    waker: Option<Waker>,
}

/// An operation's id: activities and timers have namespaces of their own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum OpId {
    Activity(ActivityId),
    Timer(TimerId),
}

#[derive(Debug, Default)]
struct Inner {
    now: Timestamp,
    random: u64,
    drawn: u64,
    /// Ids in use, each with how often it was asked for as a name.
    activity_ids: BTreeMap<Arc<str>, u32>,
    timer_ids: BTreeMap<Arc<str>, u32>,
    ops: BTreeMap<OpId, Op>,
    waits: BTreeMap<u64, Wait>,
    waits_made: u64,
    buffered: BTreeMap<String, VecDeque<Signal>>,
    actions: Vec<Action>,
    /// Attempts are polled only between turns: a poll within one must not depend on them.
    driving: bool,
    /// Steps whose wake was used up by a poll within a turn.
    missed: BTreeSet<OpId>,
    outcomes: VecDeque<StepOutcome>,
}

/// What a function and its operations share. The lock is never held while users' code runs.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) run: RunId,
    inner: Mutex<Inner>,
}

/// Mixes two words: the n-th random number of a seed.
pub(crate) fn mixed(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a step does about its attempt.
pub(super) enum Attempt {
    /// Nothing now: this poll is a turn's.
    NotNow,
    /// There is none.
    None,
    /// It begins.
    Begins(Seq),
    /// It goes on.
    UnderWay(Seq),
}

/// An inline step or an activity that is asked for.
pub(super) struct Asked {
    pub(super) name: Arc<str>,
    pub(super) activity_type: Arc<str>,
    pub(super) input: Payload,
    pub(super) options: Arc<ActivityOptions>,
    pub(super) inline: bool,
}

impl Core {
    pub(super) fn new(run: RunId, seed: u64) -> Core {
        Core { run, inner: Mutex::new(Inner { random: seed, ..Inner::default() }) }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.inner.lock().now
    }

    pub(super) fn set_now(&self, now: Timestamp) {
        self.inner.lock().now = now;
    }

    pub(super) fn draw(&self) -> u64 {
        let mut inner = self.inner.lock();
        inner.drawn += 1;
        mixed(inner.random, inner.drawn)
    }

    /// Asks for an activity; the id is its name, then `name#2`, in the order of first polls.
    pub(super) fn schedule(&self, asked: Asked) -> ActivityId {
        let mut inner = self.inner.lock();
        let id = ActivityId::from(unique(&mut inner.activity_ids, asked.name));
        inner.open(OpId::Activity(id.clone()));
        inner.actions.push(Action::ScheduleActivity {
            id: id.clone(),
            activity_type: asked.activity_type.into(),
            input: asked.input,
            options: asked.options,
            inline: asked.inline,
        });
        id
    }

    pub(super) fn start_timer(&self, name: &str, delay: Duration) -> TimerId {
        let mut inner = self.inner.lock();
        let id = TimerId::from(unique(&mut inner.timer_ids, name.into()));
        inner.open(OpId::Timer(id.clone()));
        inner.actions.push(Action::StartTimer { id: id.clone(), delay });
        id
    }

    /// What became of an operation, or registers who wants to know.
    pub(super) fn outcome(&self, id: &OpId, waker: &Waker) -> Option<Result<Payload, Failure>> {
        let mut inner = self.inner.lock();
        let op = inner.ops.get_mut(id)?;
        match &op.state {
            OpState::Resolved(result) => {
                let result = result.clone();
                inner.ops.remove(id);
                Some(result)
            }
            OpState::Open | OpState::Begun(_) | OpState::UnderWay(_) => {
                op.waker = Some(waker.clone());
                None
            }
        }
    }

    /// The attempt of an inline step that may begin or is under way, for who drives the steps.
    pub(super) fn attempt(&self, id: &OpId) -> Attempt {
        let mut inner = self.inner.lock();
        let driving = inner.driving;
        let Some(op) = inner.ops.get_mut(id) else { return Attempt::None };
        if !driving {
            // Only an attempt can have been woken.
            if matches!(op.state, OpState::Begun(_) | OpState::UnderWay(_)) {
                inner.missed.insert(id.clone());
            }
            return Attempt::NotNow;
        }
        match op.state {
            OpState::Begun(seq) => {
                op.state = OpState::UnderWay(seq);
                Attempt::Begins(seq)
            }
            OpState::UnderWay(seq) => Attempt::UnderWay(seq),
            OpState::Open | OpState::Resolved(_) => Attempt::None,
        }
    }

    /// Begins or ends the time in which attempts are polled.
    pub(super) fn drive(&self, driving: bool) {
        self.inner.lock().driving = driving;
    }

    /// Wakes that polls within turns used up are given again.
    pub(super) fn wake_missed(&self) {
        let mut inner = self.inner.lock();
        if inner.missed.is_empty() {
            return;
        }
        let missed = std::mem::take(&mut inner.missed);
        let wakers: Vec<Waker> = missed
            .iter()
            .filter_map(|id| inner.ops.get_mut(id).and_then(|op| op.waker.take()))
            .collect();
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(super) fn report(&self, id: &OpId, seq: Seq, result: Result<Payload, Failure>) {
        let mut inner = self.inner.lock();
        let OpId::Activity(activity) = id else { return };
        if let Some(op) = inner.ops.get_mut(id) {
            op.state = OpState::Open;
        }
        inner.outcomes.push_back(StepOutcome { id: activity.clone(), seq, result });
    }

    pub(super) fn take_outcome(&self) -> Option<StepOutcome> {
        self.inner.lock().outcomes.pop_front()
    }

    /// An operation that is dropped without its outcome is given up.
    pub(super) fn give_up(&self, id: &OpId) {
        let mut inner = self.inner.lock();
        let Some(op) = inner.ops.remove(id) else { return };
        if !matches!(op.state, OpState::Resolved(_)) {
            inner.cancel(id);
        }
    }

    pub(super) fn begin(&self, id: ActivityId, seq: Seq) {
        self.wake(|inner| {
            let op = inner.ops.get_mut(&OpId::Activity(id))?;
            op.state = OpState::Begun(seq);
            op.waker.take()
        });
    }

    /// The attempt of an inline step is not wanted any more: its future is dropped at the next
    /// poll, since no attempt is under way then.
    pub(super) fn stop(&self, id: &ActivityId) {
        self.wake(|inner| {
            inner.outcomes.retain(|outcome| outcome.id != *id);
            let op = inner.ops.get_mut(&OpId::Activity(id.clone()))?;
            if !matches!(op.state, OpState::Resolved(_)) {
                op.state = OpState::Open;
            }
            op.waker.take()
        });
    }

    /// The outcome of an operation was heard; false if nobody waits for it.
    pub(super) fn resolve(&self, id: &OpId, result: Result<Payload, Failure>) -> bool {
        let mut found = false;
        self.wake(|inner| {
            let op = inner.ops.get_mut(id)?;
            found = true;
            op.state = OpState::Resolved(result);
            op.waker.take()
        });
        found || self.resolve_timeout(id)
    }

    /// A timer may be the time-out of a wait for a signal.
    fn resolve_timeout(&self, id: &OpId) -> bool {
        let OpId::Timer(timer) = id else { return false };
        let mut found = false;
        self.wake(|inner| {
            let mut waits = inner.waits.values_mut();
            let wait = waits.find(|w| w.timer.as_ref() == Some(timer) && w.resolved.is_none())?;
            found = true;
            wait.resolved = Some(Ok(None));
            wait.waker.take()
        });
        found
    }

    fn wake(&self, act: impl FnOnce(&mut Inner) -> Option<Waker>) {
        let waker = act(&mut self.inner.lock());
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits for a signal: one that has arrived is taken at once.
    pub(super) fn wait_for(&self, name: &str, timeout: Option<Duration>) -> u64 {
        let mut inner = self.inner.lock();
        let buffered = inner.buffered.get_mut(name).and_then(VecDeque::pop_front);
        let timer = match (&buffered, timeout) {
            (None, Some(delay)) => {
                let id = unique(&mut inner.timer_ids, format!("signal:{name}").into());
                let id = TimerId::from(id);
                inner.actions.push(Action::StartTimer { id: id.clone(), delay });
                Some(id)
            }
            _ => None,
        };
        inner.waits_made += 1;
        let number = inner.waits_made;
        let resolved = buffered.map(|signal| Ok(Some(signal)));
        inner.waits.insert(number, Wait { name: name.to_owned(), timer, resolved, waker: None });
        number
    }

    pub(super) fn waited(
        &self,
        number: u64,
        waker: &Waker,
    ) -> Option<Result<Option<Signal>, Failure>> {
        let mut inner = self.inner.lock();
        let wait = inner.waits.get_mut(&number)?;
        if wait.resolved.is_none() {
            wait.waker = Some(waker.clone());
            return None;
        }
        inner.waits.remove(&number)?.resolved
    }

    /// A wait that is dropped: a signal that it was given goes back to where it was.
    pub(super) fn stop_waiting(&self, number: u64) {
        let mut inner = self.inner.lock();
        let Some(wait) = inner.waits.remove(&number) else { return };
        match (wait.resolved, wait.timer) {
            (None, Some(timer)) => inner.actions.push(Action::CancelTimer { id: timer }),
            (Some(Ok(Some(signal))), _) => {
                inner.buffered.entry(wait.name).or_default().push_front(signal);
            }
            _ => {}
        }
    }

    /// A signal goes to who has waited longest, or is kept.
    pub(super) fn hear_signal(&self, signal: Signal) {
        self.wake(|inner| {
            let mut waits = inner.waits.values_mut();
            let first = waits.find(|w| w.name == signal.signal_type && w.resolved.is_none());
            let Some(wait) = first else {
                let name = signal.signal_type.clone();
                inner.buffered.entry(name).or_default().push_back(signal);
                return None;
            };
            wait.resolved = Some(Ok(Some(signal)));
            let (waker, timer) = (wait.waker.take(), wait.timer.take());
            if let Some(id) = timer {
                inner.actions.push(Action::CancelTimer { id });
            }
            waker
        });
    }

    /// Every open await gets the cancellation, once; what it waited for is given up.
    pub(super) fn cancel_all(&self, reason: &str) {
        let failure = Failure::new(FailureKind::Cancelled, reason).code(Code::CANCELLED.as_str());
        let mut wakers = Vec::new();
        let mut inner = self.inner.lock();
        let open: Vec<OpId> = inner
            .ops
            .iter()
            .filter(|(_, op)| !matches!(op.state, OpState::Resolved(_)))
            .map(|(id, _)| id.clone())
            .collect();
        for id in open {
            inner.cancel(&id);
            if let Some(op) = inner.ops.get_mut(&id) {
                op.state = OpState::Resolved(Err(failure.clone()));
                wakers.extend(op.waker.take());
            }
        }
        let mut timers = Vec::new();
        for wait in inner.waits.values_mut().filter(|wait| wait.resolved.is_none()) {
            wait.resolved = Some(Err(failure.clone()));
            timers.extend(wait.timer.take());
            wakers.extend(wait.waker.take());
        }
        inner.actions.extend(timers.into_iter().map(|id| Action::CancelTimer { id }));
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(super) fn take_actions(&self) -> Vec<Action> {
        std::mem::take(&mut self.inner.lock().actions)
    }

    pub(super) fn has_actions(&self) -> bool {
        !self.inner.lock().actions.is_empty()
    }

    /// Whether anything can ever wake the function.
    pub(super) fn waits_for_nothing(&self) -> bool {
        let inner = self.inner.lock();
        inner.ops.is_empty() && inner.waits.is_empty()
    }

    pub(super) fn awaited_signals(&self) -> Vec<String> {
        let inner = self.inner.lock();
        let open = inner.waits.values().filter(|wait| wait.resolved.is_none());
        let names: BTreeSet<String> = open.map(|wait| wait.name.clone()).collect();
        names.into_iter().collect()
    }

    pub(super) fn size(&self) -> usize {
        let inner = self.inner.lock();
        let ids = inner.activity_ids.len() + inner.timer_ids.len();
        ids * 96 + inner.ops.len() * 256 + 512
    }
}

/// `name`, then `name#2` and so on, past what is in use already.
fn unique(ids: &mut BTreeMap<Arc<str>, u32>, name: Arc<str>) -> Arc<str> {
    let asked = match ids.entry(name.clone()) {
        Entry::Vacant(first) => {
            first.insert(1);
            return name;
        }
        Entry::Occupied(before) => *before.get(),
    };
    // An id that came of another name counts as asked for once.
    let mut count = asked.max(1);
    let id: Arc<str> = loop {
        count += 1;
        let id = format!("{name}#{count}");
        if !ids.contains_key(id.as_str()) {
            break id.into();
        }
    };
    ids.insert(name, count);
    ids.insert(id.clone(), 0);
    id
}

impl Inner {
    fn open(&mut self, id: OpId) {
        self.ops.insert(id, Op { state: OpState::Open, waker: None });
    }

    fn cancel(&mut self, id: &OpId) {
        self.actions.push(match id.clone() {
            OpId::Activity(id) => Action::CancelActivity { id },
            OpId::Timer(id) => Action::CancelTimer { id },
        });
    }
}
