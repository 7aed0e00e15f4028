//! Hints that something may have changed. They are never needed for correctness: who misses one
//! finds out by polling.

use durably_kernel::{Event, RunId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// What may have changed.
#[derive(Clone, PartialEq, Debug)]
pub enum Hint {
    /// A task may have become ready.
    Ready,
    /// Something waits for a time that may be earlier than all others.
    Due,
    /// The run has new inbox entries.
    Inbox(RunId),
    /// The run has changed.
    Changed(RunId),
    /// The run has ended with this event, which is committed.
    Ended(RunId, Arc<Event>),
    /// A claim may have been taken back or cancelled.
    Claims,
}

/// All that was hinted at since a listener heard last; repeats are one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Heard {
    /// A task may have become ready.
    pub ready: bool,
    /// Something may be due earlier than thought.
    pub due: bool,
    /// A claim may have been taken back or cancelled.
    pub claims: bool,
    /// Runs with new inbox entries.
    pub inboxes: Vec<RunId>,
    /// There were too many of those to name: any run may have new entries.
    pub missed: bool,
}

impl Heard {
    /// A listener that falls behind by more than this looks at everything again.
    const INBOXES_MAX: usize = 4096;

    fn note(&mut self, hint: &Hint) {
        match hint {
            Hint::Ready => self.ready = true,
            Hint::Due => self.due = true,
            Hint::Claims => self.claims = true,
            Hint::Inbox(_) if self.inboxes.len() == Self::INBOXES_MAX => self.missed = true,
            Hint::Inbox(run) => self.inboxes.push(*run),
            Hint::Changed(_) | Hint::Ended(..) => {}
        }
    }
}

/// Hints that a transaction gathers, to be given once it is committed; repeats are one.
#[derive(Debug, Default)]
pub struct Gathered {
    ready: bool,
    due: bool,
    claims: bool,
    of_runs: Vec<Hint>,
}

impl Gathered {
    /// Takes note of a hint.
    pub fn note(&mut self, hint: Hint) {
        match hint {
            Hint::Ready => self.ready = true,
            Hint::Due => self.due = true,
            Hint::Claims => self.claims = true,
            Hint::Inbox(_) | Hint::Changed(_) if self.of_runs.last() == Some(&hint) => {}
            Hint::Inbox(_) | Hint::Changed(_) | Hint::Ended(..) => self.of_runs.push(hint),
        }
    }

    /// Everything that was noted.
    pub fn hints(&self) -> impl Iterator<Item = &Hint> {
        self.plain().chain(&self.of_runs)
    }

    fn plain(&self) -> impl Iterator<Item = &Hint> {
        let plain =
            [(self.ready, &Hint::Ready), (self.due, &Hint::Due), (self.claims, &Hint::Claims)];
        plain.into_iter().filter(|(given, _)| *given).map(|(_, hint)| hint)
    }

    fn heard(&self) -> impl Iterator<Item = &Hint> {
        self.plain().chain(self.of_runs.iter().filter(|hint| matches!(hint, Hint::Inbox(_))))
    }
}

#[derive(Debug, Default)]
struct Ear {
    heard: Mutex<Heard>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Eye {
    changed: Notify,
    ended: Notify,
    end: OnceLock<Arc<Event>>,
}

impl Eye {
    fn see(&self, end: Option<&Arc<Event>>) {
        self.changed.notify_one();
        if let Some(event) = end {
            // A run ends once.
            let _ = self.end.set(event.clone());
            self.ended.notify_waiters();
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    ears: Mutex<Vec<Arc<Ear>>>,
    watches: Mutex<BTreeMap<RunId, Vec<Arc<Eye>>>>,
    /// Lets commits pass without the lock while nobody watches.
    watched: AtomicUsize,
}

/// Where a store says that something may have changed.
#[derive(Clone, Debug, Default)]
pub struct Hints(Arc<Inner>);

impl Hints {
    /// Gives a hint to whoever listens, or watches that run.
    pub fn give(&self, hint: Hint) {
        let mut gathered = Gathered::default();
        gathered.note(hint);
        self.give_all(&gathered);
    }

    /// Gives all of them at once.
    pub fn give_all(&self, gathered: &Gathered) {
        if self.0.watched.load(Ordering::Acquire) > 0 {
            let watches = self.0.watches.lock();
            for hint in &gathered.of_runs {
                let (run, end) = match hint {
                    Hint::Changed(run) => (run, None),
                    Hint::Ended(run, event) => (run, Some(event)),
                    _ => continue,
                };
                watches.get(run).into_iter().flatten().for_each(|eye| eye.see(end));
            }
        }
        if gathered.heard().next().is_none() {
            return;
        }
        for ear in self.0.ears.lock().iter() {
            let mut heard = ear.heard.lock();
            gathered.heard().for_each(|hint| heard.note(hint));
            drop(heard);
            ear.arrived.notify_one();
        }
    }

    /// Everything may have changed: whoever listens or watches looks again.
    pub fn give_everything(&self) {
        for eye in self.0.watches.lock().values().flatten() {
            eye.see(None);
        }
        for ear in self.0.ears.lock().iter() {
            let mut heard = ear.heard.lock();
            heard.ready = true;
            heard.due = true;
            heard.claims = true;
            heard.missed = true;
            drop(heard);
            ear.arrived.notify_one();
        }
    }

    /// Listens from now on.
    pub fn listen(&self) -> Listener {
        let ear = Arc::new(Ear::default());
        self.0.ears.lock().push(ear.clone());
        Listener { hints: self.clone(), ear }
    }

    /// Watches a run from now on.
    pub fn watch(&self, run: RunId) -> Watch {
        let eye = Arc::new(Eye::default());
        self.0.watches.lock().entry(run).or_default().push(eye.clone());
        self.0.watched.fetch_add(1, Ordering::Release);
        Watch { hints: self.clone(), run, eye }
    }
}

/// Hears the hints of a store.
#[derive(Debug)]
pub struct Listener {
    hints: Hints,
    ear: Arc<Ear>,
}

impl Listener {
    /// All that was hinted at since the last time; pends while there is nothing.
    pub async fn next(&mut self) -> Heard {
        loop {
            let heard = std::mem::take(&mut *self.ear.heard.lock());
            if heard != Heard::default() {
                return heard;
            }
            self.ear.arrived.notified().await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.hints.0.ears.lock().retain(|ear| !Arc::ptr_eq(ear, &self.ear));
    }
}

/// Sees what becomes of one run.
#[derive(Debug)]
pub struct Watch {
    hints: Hints,
    run: RunId,
    eye: Arc<Eye>,
}

impl Watch {
    /// Ends when the run may have changed since the last time.
    pub async fn changed(&self) {
        self.eye.changed.notified().await;
    }

    /// The event with which the run ended, once that is committed by this process.
    pub async fn ended(&self) -> Arc<Event> {
        loop {
            let ended = self.eye.ended.notified();
            // The wait began before the look: an end in between is not missed.
            if let Some(event) = self.eye.end.get() {
                return event.clone();
            }
            ended.await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.hints.0.watched.fetch_sub(1, Ordering::Release);
        let mut watches = self.hints.0.watches.lock();
        if let Some(of_run) = watches.get_mut(&self.run) {
            of_run.retain(|eye| !Arc::ptr_eq(eye, &self.eye));
            if of_run.is_empty() {
                watches.remove(&self.run);
            }
        }
    }
}
