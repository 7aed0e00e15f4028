//! What happened, as a hash of everything and as text of the last part.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// So many of the last lines are kept.
const TAIL_MAX: usize = 400;

#[derive(Debug)]
struct Inner {
    hash: DefaultHasher,
    lines: VecDeque<String>,
}

/// Every choice and everything that came of it. Two runs of a seed have the same hash.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    inner: Arc<Mutex<Inner>>,
    text: bool,
    all: bool,
}

/// What is kept of a trace beside its hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// Nothing: fast.
    Hash,
    /// The last lines.
    Tail,
    /// Every line.
    All,
}

impl Trace {
    pub(crate) fn new(keep: Keep) -> Trace {
        let inner = Inner { hash: DefaultHasher::new(), lines: VecDeque::new() };
        let (text, all) = (keep != Keep::Hash, keep == Keep::All);
        Trace { inner: Arc::new(Mutex::new(inner)), text, all }
    }

    /// Takes note of something; the text is made only if somebody will read it.
    pub(crate) fn note(&self, what: &str, numbers: &[u64], text: impl FnOnce() -> String) {
        let mut inner = self.inner.lock();
        what.hash(&mut inner.hash);
        numbers.hash(&mut inner.hash);
        if self.text {
            let text = text();
            if !text.is_empty() {
                self.push(&mut inner, text);
            }
        }
    }

    /// Takes note of something whose text is part of what must repeat.
    pub(crate) fn say(&self, text: String) {
        let mut inner = self.inner.lock();
        text.hash(&mut inner.hash);
        if self.text {
            self.push(&mut inner, text);
        }
    }

    fn push(&self, inner: &mut Inner, text: String) {
        if inner.lines.len() >= TAIL_MAX && !self.all {
            inner.lines.pop_front();
        }
        inner.lines.push_back(text);
    }

    pub(crate) fn hash(&self) -> u64 {
        self.inner.lock().hash.finish()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.inner.lock().lines.iter().cloned().collect()
    }
}
