//! The stable codes of all errors, each with a page under `docs/errors/`.

use std::fmt;

/// A stable error code. Codes are never reused for something else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(&'static str);

impl Code {
    /// A name is empty, too long or has control characters.
    pub const NAME: Code = Code("DUR-0001");
    /// A payload is too large, too deep or has a NUL character.
    pub const PAYLOAD: Code = Code("DUR-0002");
    /// A duration is out of range.
    pub const DURATION: Code = Code("DUR-0003");
    /// Options of an activity make no sense.
    pub const OPTIONS: Code = Code("DUR-0004");
    /// A value cannot be written as JSON.
    pub const ENCODE: Code = Code("DUR-0005");
    /// JSON does not fit the type that the code asks for.
    pub const DECODE: Code = Code("DUR-0006");
    /// Too many starts in one call.
    pub const MANY_STARTS: Code = Code("DUR-0007");
    /// A workflow used an id twice.
    pub const ID_TWICE: Code = Code("DUR-0010");
    /// Workflow code panicked.
    pub const WORKFLOW_PANICKED: Code = Code("DUR-0011");
    /// Code and history of a run do not fit.
    pub const DIVERGED: Code = Code("DUR-0012");
    /// An invariant of the engine did not hold for a run.
    pub const INVARIANT: Code = Code("DUR-0013");
    /// A run's time-out passed.
    pub const RUN_TIMED_OUT: Code = Code("DUR-0014");
    /// Workers died over an activity too often.
    pub const LOST: Code = Code("DUR-0015");
    /// A time-out of an activity passed.
    pub const ACTIVITY_TIMED_OUT: Code = Code("DUR-0016");
    /// An activity panicked.
    pub const ACTIVITY_PANICKED: Code = Code("DUR-0017");
    /// A durable function awaited something that is not durable.
    pub const FOREIGN_AWAIT: Code = Code("DUR-0018");
    /// Work was cancelled.
    pub const CANCELLED: Code = Code("DUR-0019");
    /// A store's URL is wrong.
    pub const STORE_URL: Code = Code("DUR-0020");
    /// A store cannot be opened.
    pub const STORE_OPEN: Code = Code("DUR-0021");
    /// A file is no database, or a database is damaged.
    pub const STORE_CORRUPT: Code = Code("DUR-0022");
    /// The store's schema is newer than this program.
    pub const SCHEMA_NEWER: Code = Code("DUR-0023");
    /// The store did not answer in time or was busy.
    pub const STORE_TRANSIENT: Code = Code("DUR-0024");
    /// Whether the store made a change is not known.
    pub const STORE_AMBIGUOUS: Code = Code("DUR-0025");
    /// The store refused a command.
    pub const STORE_PERMANENT: Code = Code("DUR-0026");
    /// The store has no room left.
    pub const STORE_FULL: Code = Code("DUR-0027");
    /// An event was written by a newer version.
    pub const EVENT_NEWER: Code = Code("DUR-0028");
    /// The store cannot promise durability as configured.
    pub const STORE_UNSAFE: Code = Code("DUR-0029");
    /// There is no such run.
    pub const RUN_UNKNOWN: Code = Code("DUR-0030");
    /// The run has ended.
    pub const RUN_ENDED: Code = Code("DUR-0031");
    /// The same key or id was used with another input.
    pub const KEY_TAKEN: Code = Code("DUR-0032");
    /// A wait for a result took too long.
    pub const WAIT_TIMED_OUT: Code = Code("DUR-0033");
    /// A run did not complete.
    pub const RUN_NOT_COMPLETED: Code = Code("DUR-0034");
    /// The definitions given to an engine do not fit together.
    pub const DEFINITIONS: Code = Code("DUR-0035");
    /// The engine's settings make no sense.
    pub const SETTINGS: Code = Code("DUR-0036");
    /// A codec failed.
    pub const CODEC: Code = Code("DUR-0037");
    /// A payload was coded by a codec that this program does not have.
    pub const CODEC_OTHER: Code = Code("DUR-0038");

    /// The code's text.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
