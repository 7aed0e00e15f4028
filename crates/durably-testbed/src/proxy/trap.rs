//! Faults that wait for certain bytes.

use std::fmt::{self, Debug, Formatter};
use tokio::sync::oneshot;

/// How much of what was sent a predicate gets to see.
const SEEN_BYTES_MAX: usize = 64 * 1024;

type Predicate = Box<dyn FnMut(&[u8]) -> bool + Send>;

pub(super) struct Trap {
    /// Recognises what a client sends.
    pub(super) is_it: Predicate,
    pub(super) when: When,
    pub(super) sprung: oneshot::Sender<()>,
}

/// When to cut.
pub(super) enum When {
    /// Before the server gets it.
    Before,
    /// After the server sent the answer that this recognises.
    After(Predicate),
}

/// The trap that is set, if any.
#[derive(Default)]
pub(super) struct Traps {
    set: Option<Trap>,
    /// How many were set so far: what was sent before a trap was set is not its business.
    count: u64,
}

impl Traps {
    pub(super) fn set(&mut self, trap: Trap) {
        self.set = Some(trap);
        self.count += 1;
    }

    /// Takes the trap if a client of a connection now steps into it.
    pub(super) fn step(&mut self, sent: &mut Sent, chunk: &[u8]) -> Option<Trap> {
        if sent.since != self.count {
            *sent = Sent { since: self.count, seen: Seen::default() };
        }
        let trap = self.set.as_mut()?;
        let seen = sent.seen.more(chunk);
        (trap.is_it)(seen).then(|| self.set.take()).flatten()
    }
}

impl Debug for Traps {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traps")
            .field("set", &self.set.is_some())
            .field("count", &self.count)
            .finish()
    }
}

/// What a client sent on one connection since a trap was set.
#[derive(Default)]
pub(super) struct Sent {
    since: u64,
    seen: Seen,
}

/// The end of what was sent. Bytes that belong together may come in several pieces.
#[derive(Default)]
pub(super) struct Seen(Vec<u8>);

impl Seen {
    pub(super) fn more(&mut self, chunk: &[u8]) -> &[u8] {
        self.0.extend_from_slice(chunk);
        let surplus = self.0.len().saturating_sub(SEEN_BYTES_MAX);
        self.0.drain(..surplus);
        &self.0
    }
}
