//! Names and numbers, each with a type of its own so that none is taken for another.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Arc, LazyLock};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        // As the bytes are ordered, and as one number: maps are searched by it all the time.
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.0.as_u128().cmp(&other.0.as_u128())
            }
        }
        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl $name {
            /// Makes a version 7 id from a time in milliseconds and ten random bytes.
            pub fn from_parts(unix_ms: u64, random: [u8; 10]) -> Self {
                Self(uuid::Builder::from_unix_timestamp_millis(unix_ms, &random).into_uuid())
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text of it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
        impl From<Arc<str>> for $name {
            fn from(text: Arc<str>) -> Self {
                Self(text)
            }
        }
        impl From<$name> for Arc<str> {
            fn from(id: $name) -> Self {
                id.0
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The number after this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

uuid_id! {
    /// One execution of a workflow.
    RunId
}
uuid_id! {
    /// One attempt to change a run: unique, so that a lost answer can be looked up.
    CommitId
}
text_id! {
    /// What a workflow calls one of its activities; unique within a run.
    ActivityId
}
text_id! {
    /// The name under which an activity's code is registered.
    ActivityType
}
text_id! {
    /// What a workflow calls one of its timers; unique within a run.
    TimerId
}
text_id! {
    /// The name under which a workflow's code is registered.
    WorkflowType
}
text_id! {
    /// Who the work is for; the claim is fair between tenants.
    Tenant
}
text_id! {
    /// Where tasks wait; a worker serves one or more queues.
    Queue
}
text_id! {
    /// A process incarnation, `host-pid-random`: never used twice.
    WorkerId
}
number! {
    /// Position of an event in a run's history, from 1; never goes back.
    Seq(u64)
}
number! {
    /// A task's row within its run: 0 is the turn row, others count from 1.
    Place(u32)
}
number! {
    /// Grows with each claim of a row.
    ClaimNumber(u64)
}

impl Place {
    /// The place of the run's one turn row.
    pub const TURN: Place = Place(0);
}

/// Shared: most runs are of the default tenant and wait in the default queue.
static DEFAULT: LazyLock<Arc<str>> = LazyLock::new(|| "default".into());

impl Default for Tenant {
    fn default() -> Self {
        Self(DEFAULT.clone())
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self(DEFAULT.clone())
    }
}

/// A worker's right to a task. A write that names a claim which no longer stands changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// The run that the task belongs to.
    pub run: RunId,
    /// The task's row.
    pub place: Place,
    /// Sequence number of the event that scheduled or last re-queued the task; for a turn row
    /// the run's counter of turn rows.
    pub seq: Seq,
    /// The row's claim number.
    pub number: ClaimNumber,
}
