//! How an activity is to be executed.

use crate::id::Queue;
use crate::retry::{Retry, RetryError};
use crate::time::option_millis;
use crate::validate::{self, Invalid};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How an activity is to be executed. Everything has a default; only what differs is stored.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ActivityOptions {
    /// When to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Longest wait for a worker; none by default, so that a backlog fails nothing.
    #[serde(
        rename = "schedule_to_start_ms",
        with = "option_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub schedule_to_start: Option<Duration>,
    /// Longest attempt; 10 minutes by default.
    #[serde(
        rename = "start_to_close_ms",
        with = "option_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub start_to_close: Option<Duration>,
    /// Longest silence of an attempt; none until the activity heartbeats, 30 s from then on.
    #[serde(
        rename = "heartbeat_ms",
        with = "option_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub heartbeat: Option<Duration>,
    /// Longest time from scheduling to the end, retries included.
    #[serde(
        rename = "schedule_to_close_ms",
        with = "option_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub schedule_to_close: Option<Duration>,
    /// Higher first; the run's by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Where it waits; the run's queue by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// What it is limited by, together with others of the same key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How many workers may die over it before it fails; 3 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deaths_max: Option<u32>,
}

impl ActivityOptions {
    /// Longest attempt where none is set.
    pub const START_TO_CLOSE: Duration = Duration::from_secs(600);
    /// Longest silence once an activity has heartbeated, where none is set.
    pub const HEARTBEAT: Duration = Duration::from_secs(30);
    /// Deaths of workers after which an activity fails, where none is set.
    pub const DEATHS_MAX: u32 = 3;

    /// The retry policy in force.
    pub fn retry_policy(&self) -> Retry {
        self.retry.clone().unwrap_or_default()
    }

    /// The longest attempt in force.
    pub fn longest_attempt(&self) -> Duration {
        self.start_to_close.unwrap_or(Self::START_TO_CLOSE)
    }

    /// The bound on deaths in force.
    pub fn most_deaths(&self) -> u32 {
        self.deaths_max.unwrap_or(Self::DEATHS_MAX)
    }

    /// Says what is wrong with the options, if anything.
    pub fn check(&self) -> Result<(), Invalid> {
        let times = [
            ("schedule-to-start", self.schedule_to_start),
            ("start-to-close", self.start_to_close),
            ("heartbeat", self.heartbeat),
            ("schedule-to-close", self.schedule_to_close),
        ];
        for (what, time) in times {
            match time {
                Some(Duration::ZERO) => return Err(Invalid::ZeroTimeout { what }),
                Some(time) => validate::check_delay(what, time)?,
                None => {}
            }
        }
        if let Some(retry) = &self.retry {
            retry.check().map_err(|source: RetryError| Invalid::Retry { source })?;
        }
        if let Some(queue) = &self.queue {
            validate::check_name("queue", queue.as_str())?;
        }
        if let Some(key) = &self.key {
            validate::check_name("key", key)?;
        }
        if self.deaths_max == Some(0) {
            return Err(Invalid::NoDeaths);
        }
        Ok(())
    }
}
