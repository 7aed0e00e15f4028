//! How often things of interest happened: a campaign that never meets them proves nothing.

use std::collections::BTreeMap;

/// How often each thing of interest was seen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally(BTreeMap<&'static str, u64>);

macro_rules! sometimes {
    ($($name:ident = $text:literal,)+) => {
        $(pub(crate) const $name: &str = $text;)+
        /// What a campaign of some size must have met.
        pub(crate) const SOMETIMES: &[&str] = &[$($name),+];
    };
}

sometimes! {
    CLAIM_LOST = "claims lost",
    FENCED = "stale writes refused",
    LOST_BEFORE_COMMIT = "commit answers lost, not done",
    LOST_AFTER_COMMIT = "commit answers lost, done",
    ASTRAY_COMMIT = "commit answers lost, done later",
    FOUND = "look-ups that found the commit",
    NOT_FOUND = "look-ups that found nothing",
    CONFLICT = "conflicts",
    DECIDED_AGAIN = "conflicts decided again",
    END_CONFLICT = "ends that met newer entries",
    HELD = "runs held by others",
    CLAIM_ANSWER_LOST = "claim answers lost, done",
    TAKEN_UP_AGAIN = "lost claim answers taken up again",
    ZOMBIE = "zombies that came back",
    CRASH = "processes crashed",
    CRASH_HOLDING = "processes crashed with claims",
    STOPPED = "processes stopped gracefully",
    INCARNATION = "incarnations renewed",
    DECLARED_DEAD = "processes declared dead",
    LED_BY_ANOTHER = "leaders taken over from",
    LED_AFTER_STOP = "leaders that handed over",
    LED_AGAIN = "leaders that were late and began anew",
    PARKED = "runs parked",
    REPLAYED = "programs replayed after eviction",
    EAGER = "tasks begun by their committer",
    INLINE_LOST = "inline steps lost",
    ACTIVITY_LOST = "activities lost",
    LOST_FOR_GOOD = "activities lost too often",
    LATE_ANSWER = "answers later than a beat",
    HINT_LOST = "hints lost",
    SIGNAL_TO_ENDED = "signals to ended runs",
    DEAD_LETTER = "dead letters",
    UNREAD_LETTER = "dead letters of unread signals",
    TIMED_OUT_START = "schedule-to-start time-outs",
    TIMED_OUT_CLOSE = "start-to-close time-outs",
    TIMED_OUT_HEARTBEAT = "heartbeat time-outs",
    TIMED_OUT_TOTAL = "schedule-to-close time-outs",
    TIMED_OUT_RUN = "run time-outs",
    RETRIED = "attempts tried again",
    PANICKED = "attempts that panicked",
    COMPLETED = "runs completed",
    FAILED = "runs failed",
    CANCELLED = "runs cancelled",
    TERMINATED = "runs terminated",
    COMPENSATED = "runs compensated",
    EXISTED = "starts that found their run",
    CLOCK_STEPPED = "steps of the store's clock",
}

/// A campaign of at least so many seeds must have met everything.
pub const SEEDS_FOR_ALL: u64 = 500;

impl Tally {
    pub(crate) fn saw(&mut self, what: &'static str) {
        self.saw_times(what, 1);
    }

    pub(crate) fn saw_times(&mut self, what: &'static str, times: u64) {
        *self.0.entry(what).or_default() += times;
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        for (what, times) in &other.0 {
            self.saw_times(what, *times);
        }
    }

    /// How often something was seen.
    pub fn times(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    /// What was never met.
    pub fn never(&self) -> Vec<&'static str> {
        SOMETIMES.iter().filter(|what| self.times(what) == 0).copied().collect()
    }

    /// Each with its count, in a fixed order.
    pub fn rows(&self) -> Vec<(&'static str, u64)> {
        SOMETIMES.iter().map(|what| (*what, self.times(what))).collect()
    }
}
