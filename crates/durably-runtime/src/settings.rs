//! How an engine behaves.

use crate::error::RuntimeError;
use durably_kernel::{ActivityOptions, Queue, Run, check_name};
use std::time::Duration;

/// How an engine behaves; everything has a default.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Activities at a time.
    pub slots: usize,
    /// Turns claimed at a time.
    pub turns_max: usize,
    /// Runs with inline steps under way at a time.
    pub inline_max: usize,
    /// The queues it serves.
    pub queues: Vec<Queue>,
    /// A name for processes of one kind.
    pub group: String,
    /// Between beats.
    pub beat: Duration,
    /// A process without a beat for so long is gone.
    pub stale_after: Duration,
    /// Between questions about its claims.
    pub ask: Duration,
    /// Between polls while there is work.
    pub poll_floor: Duration,
    /// Between polls while there is none.
    pub poll_ceiling: Duration,
    /// For work under way when the engine stops.
    pub grace: Duration,
    /// For deciding one turn.
    pub turn_deadline: Duration,
    /// Memory for cached programs, roughly.
    pub cache_bytes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            slots: 10,
            turns_max: 64,
            inline_max: 1024,
            queues: vec![Queue::default()],
            group: "default".into(),
            beat: Duration::from_secs(5),
            stale_after: Duration::from_secs(60),
            ask: Duration::from_secs(1),
            poll_floor: Duration::from_millis(50),
            poll_ceiling: Duration::from_secs(1),
            grace: Duration::from_secs(30),
            turn_deadline: Duration::from_secs(70),
            cache_bytes_max: 64 * 1024 * 1024,
        }
    }
}

/// The store's deadline for a holder is later than the holder's own.
const DEADLINE_SLACK: Duration = Duration::from_secs(10);

impl Settings {
    /// How long a holder of the run may be silent: as long as its inline steps may take.
    pub(crate) fn hold_deadline(&self, run: &Run) -> Duration {
        let longest = run.under_way().map(|(_, activity, _)| activity.options.longest_attempt());
        longest.min().map_or(self.turn_deadline, |first| first + DEADLINE_SLACK)
    }

    /// Whether what an answer gave may be gone by now, since it took so long: taken back from a
    /// process that seemed dead, or timed out. Nothing begins then before a beat has confirmed it.
    pub(crate) fn is_late(&self, took: Duration, options: Option<&ActivityOptions>) -> bool {
        let timed_out = options.is_some_and(|options| {
            took >= options.longest_attempt() || options.heartbeat.is_some_and(|most| took >= most)
        });
        took > self.beat || timed_out
    }

    /// Between questions who leads. A lease lasts three of them: a leader that is gone is followed
    /// by another within four, eight seconds at most.
    pub(crate) fn lead_pause(&self) -> Duration {
        self.beat.clamp(Duration::from_millis(10), Duration::from_secs(2))
    }

    /// Says what is wrong with the settings, if anything.
    pub fn check(&self) -> Result<(), RuntimeError> {
        let wrong = |problem: String| Err(RuntimeError::Settings { problem });
        let counts =
            [("slots", self.slots), ("turns_max", self.turns_max), ("inline_max", self.inline_max)];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return wrong(format!("{name} is 0; use 1 or more"));
        }
        if self.queues.is_empty() {
            return wrong("no queue is served; name at least one".into());
        }
        for queue in &self.queues {
            check_name("queue", queue.as_str())?;
        }
        check_name("group", &self.group)?;
        let times = [
            ("beat", self.beat),
            ("ask", self.ask),
            ("poll_floor", self.poll_floor),
            ("turn_deadline", self.turn_deadline),
        ];
        if let Some((name, _)) = times.iter().find(|(_, time)| time.is_zero()) {
            return wrong(format!("{name} is zero; use a millisecond or more"));
        }
        if self.stale_after < self.beat * 3 {
            let (stale, beat) = (self.stale_after, self.beat);
            return wrong(format!(
                "stale_after ({stale:?}) is less than three beats ({beat:?} each); living processes would be declared dead"
            ));
        }
        if self.poll_ceiling < self.poll_floor {
            return wrong("poll_ceiling is below poll_floor".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_leads_within_ten_seconds() {
        for beat in [0, 50, 5_000, 60_000].map(Duration::from_millis) {
            let pause = Settings { beat, ..Settings::default() }.lead_pause();
            // A lease of three pauses that was renewed at the last moment, and one to notice it.
            assert!(pause * 4 <= Duration::from_secs(8), "{beat:?}: {pause:?}");
        }
    }
}
