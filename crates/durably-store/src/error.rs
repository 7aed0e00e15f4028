//! What can go wrong with a store, and what that means for the caller.

use durably_kernel::{Code, EventFormatError, FORMAT};
use std::time::Duration;

/// What an error means for the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Nothing was changed; the same command may succeed later.
    Transient {
        /// Not before this long, where the store said so.
        retry_after: Option<Duration>,
    },
    /// Whether it was done is not known: look, do not guess.
    Ambiguous,
    /// The same command will fail again.
    Permanent,
    /// What is stored is damaged, or not ours.
    Corrupt,
}

/// What can go wrong with a store.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// The URL names no store.
    #[error("store URL {url:?}: {problem}")]
    Url {
        /// The URL, without secrets.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The store cannot be opened.
    #[error("cannot open the store {store}: {problem}")]
    Open {
        /// Which store.
        store: String,
        /// Why.
        problem: String,
    },
    /// The store would lose what it acknowledged.
    #[error(
        "the store {store} does not keep its promises: {setting} is {found}, it must be {wanted}"
    )]
    Unsafe {
        /// Which store.
        store: String,
        /// The setting.
        setting: &'static str,
        /// What it must be.
        wanted: &'static str,
        /// What it is.
        found: String,
    },
    /// The schema was written by a newer version.
    #[error(
        "the store's schema has version {found}, this program knows up to {known}: use a newer durably"
    )]
    SchemaNewer {
        /// The store's version.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// What is stored is damaged or not ours.
    #[error("{operation}: the store is damaged: {problem}")]
    Corrupt {
        /// During what.
        operation: &'static str,
        /// What was found.
        problem: String,
    },
    /// An event was written by a newer version.
    #[error(
        "event type {name:?} needs event format {needed}, this program reads up to {FORMAT}: use a newer durably"
    )]
    EventNewer {
        /// The event's type.
        name: String,
        /// The format that it needs.
        needed: u32,
    },
    /// Busy, locked, or out of reach for a moment.
    #[error("{operation}: the store is not available: {problem}")]
    Unavailable {
        /// During what.
        operation: &'static str,
        /// What it said.
        problem: String,
        /// Not before this long, where it said so.
        retry_after: Option<Duration>,
    },
    /// No room left.
    #[error("{operation}: the store has no room left: {problem}")]
    Full {
        /// During what.
        operation: &'static str,
        /// What it said.
        problem: String,
    },
    /// The answer was lost.
    #[error("{operation}: the store's answer was lost: {problem}")]
    Ambiguous {
        /// During what.
        operation: &'static str,
        /// What it said.
        problem: String,
    },
    /// The store refused.
    #[error("{operation}: the store refused: {problem}")]
    Refused {
        /// During what.
        operation: &'static str,
        /// What it said.
        problem: String,
    },
}

impl StoreError {
    /// What the error means for the caller.
    pub fn class(&self) -> Class {
        match self {
            StoreError::Url { .. }
            | StoreError::Open { .. }
            | StoreError::Unsafe { .. }
            | StoreError::SchemaNewer { .. }
            | StoreError::EventNewer { .. }
            | StoreError::Refused { .. } => Class::Permanent,
            StoreError::Corrupt { .. } => Class::Corrupt,
            StoreError::Unavailable { retry_after, .. } => {
                Class::Transient { retry_after: *retry_after }
            }
            // A full disk is emptied by somebody: the work waits for that instead of failing.
            StoreError::Full { .. } => {
                Class::Transient { retry_after: Some(Duration::from_secs(1)) }
            }
            StoreError::Ambiguous { .. } => Class::Ambiguous,
        }
    }

    /// The stable code of the error.
    pub fn code(&self) -> Code {
        match self {
            StoreError::Url { .. } => Code::STORE_URL,
            StoreError::Open { .. } => Code::STORE_OPEN,
            StoreError::Unsafe { .. } => Code::STORE_UNSAFE,
            StoreError::SchemaNewer { .. } => Code::SCHEMA_NEWER,
            StoreError::Corrupt { .. } => Code::STORE_CORRUPT,
            StoreError::EventNewer { .. } => Code::EVENT_NEWER,
            StoreError::Unavailable { .. } => Code::STORE_TRANSIENT,
            StoreError::Full { .. } => Code::STORE_FULL,
            StoreError::Ambiguous { .. } => Code::STORE_AMBIGUOUS,
            StoreError::Refused { .. } => Code::STORE_PERMANENT,
        }
    }

    /// The error of stored events that cannot be read.
    pub fn from_events(operation: &'static str, error: EventFormatError) -> StoreError {
        match error {
            EventFormatError::Newer { name, needed } => StoreError::EventNewer { name, needed },
            EventFormatError::Unreadable { source } => {
                StoreError::Corrupt { operation, problem: source.to_string() }
            }
        }
    }
}
