//! When to try again: pure, and total over every input.

use crate::failure::{Failure, FailureKind};
use crate::time::{millis, option_millis};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often and how soon failed work is tried again. Attempts count starts: 3 attempts are two
/// retries. Lost attempts (the worker died) do not count here.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Retry {
    /// Most attempts, from 1.
    pub attempts: u32,
    /// Delay before the second attempt.
    #[serde(rename = "first_ms", with = "millis")]
    pub first: Duration,
    /// Factor from one delay to the next.
    pub coefficient: f64,
    /// No delay is longer than this.
    #[serde(rename = "cap_ms", with = "millis")]
    pub cap: Duration,
    /// Random part of each delay, 0 to 1: 0.2 means ±20 %.
    pub jitter: f64,
    /// Kinds that are not tried again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_kinds: Vec<FailureKind>,
    /// Codes that are not tried again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_codes: Vec<String>,
    /// No attempt begins later than this after scheduling.
    #[serde(
        rename = "total_ms",
        default,
        skip_serializing_if = "Option::is_none",
        with = "option_millis"
    )]
    pub total: Option<Duration>,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            attempts: 3,
            first: Duration::from_secs(1),
            coefficient: 2.0,
            cap: Duration::from_secs(60),
            jitter: 0.2,
            not_kinds: Vec::new(),
            not_codes: Vec::new(),
            total: None,
        }
    }
}

/// What is wrong with a policy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RetryError {
    /// No attempt at all.
    #[error("a retry policy needs at least 1 attempt, got 0; use 1 for no retries")]
    NoAttempts,
    /// Not a usable factor.
    #[error("the coefficient must be a finite number of at least 1, got {0}")]
    Coefficient(String),
    /// Not a usable random part.
    #[error("the jitter must be between 0 and 1, got {0}")]
    Jitter(String),
    /// The cap undercuts the first delay.
    #[error("the longest delay ({cap:?}) is shorter than the first ({first:?})")]
    CapBelowFirst {
        /// First delay.
        first: Duration,
        /// Longest delay.
        cap: Duration,
    },
}

/// Whether failed work is tried again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Yes, after this delay.
    Again(Duration),
    /// No.
    Never(NotAgain),
}

/// Why work is not tried again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAgain {
    /// Its attempts or its total time are used up: it leaves a dead letter.
    Exhausted,
    /// The failure is of a kind or code that another attempt does not change.
    NotRetryable,
}

/// What a verdict is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
    /// Failed attempts so far, this one included.
    pub failures: u32,
    /// Attempts in a row that met contention, this one included.
    pub contentions: u32,
    /// Time since scheduling.
    pub elapsed: Duration,
    /// Random bits for the jitter.
    pub random: u64,
}

impl Retry {
    /// Contention uses no attempt, but it is not endless either: after so many in a row it counts.
    pub const CONTENTIONS_MAX: u32 = 20;

    /// One attempt, no retry.
    pub fn never() -> Retry {
        Retry::attempts(1)
    }

    /// The default policy with this many attempts.
    pub fn attempts(attempts: u32) -> Retry {
        Retry { attempts, ..Retry::default() }
    }

    /// 5 attempts, 1 s, doubled up to 60 s, ±10 %.
    pub fn exponential() -> Retry {
        Retry { attempts: 5, jitter: 0.1, ..Retry::default() }
    }

    /// The same delay before every attempt, without a random part.
    pub fn fixed(attempts: u32, delay: Duration) -> Retry {
        Retry {
            attempts,
            first: delay,
            coefficient: 1.0,
            cap: delay,
            jitter: 0.0,
            ..Retry::default()
        }
    }

    /// Sets the first delay.
    #[must_use]
    pub fn first(mut self, first: Duration) -> Retry {
        self.first = first;
        self.cap = self.cap.max(first);
        self
    }

    /// Sets the longest delay.
    #[must_use]
    pub fn cap(mut self, cap: Duration) -> Retry {
        self.cap = cap;
        self
    }

    /// Sets the factor between delays.
    #[must_use]
    pub fn coefficient(mut self, coefficient: f64) -> Retry {
        self.coefficient = coefficient;
        self
    }

    /// Sets the random part, 0 to 1.
    #[must_use]
    pub fn jitter(mut self, jitter: f64) -> Retry {
        self.jitter = jitter;
        self
    }

    /// Does not try again after a failure with this code.
    #[must_use]
    pub fn not_code(mut self, code: impl Into<String>) -> Retry {
        self.not_codes.push(code.into());
        self
    }

    /// Does not try again after a failure of this kind.
    #[must_use]
    pub fn not_kind(mut self, kind: FailureKind) -> Retry {
        self.not_kinds.push(kind);
        self
    }

    /// Begins no attempt later than this after scheduling.
    #[must_use]
    pub fn total(mut self, total: Duration) -> Retry {
        self.total = Some(total);
        self
    }

    /// Says what is wrong with the policy, if anything.
    pub fn check(&self) -> Result<(), RetryError> {
        if self.attempts == 0 {
            return Err(RetryError::NoAttempts);
        }
        if !(self.coefficient.is_finite() && self.coefficient >= 1.0) {
            return Err(RetryError::Coefficient(self.coefficient.to_string()));
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            return Err(RetryError::Jitter(self.jitter.to_string()));
        }
        if self.cap < self.first {
            return Err(RetryError::CapBelowFirst { first: self.first, cap: self.cap });
        }
        Ok(())
    }

    /// The delay after the given number of failed attempts (from 1). Total: a policy that
    /// [`Retry::check`] would refuse gives some delay of at most the cap as well.
    pub fn delay(&self, failures: u32, random: u64) -> Duration {
        let cap = self.cap.as_secs_f64();
        let coefficient =
            if self.coefficient.is_finite() { self.coefficient.max(0.0) } else { 1.0 };
        let exponent = failures.saturating_sub(1).min(i32::MAX as u32) as i32;
        let grown = self.first.as_secs_f64() * coefficient.powi(exponent);
        // 0 × ∞ is no number; a first delay of zero stays zero.
        let grown = if grown.is_nan() { 0.0 } else { grown.min(cap) };
        let jitter = if self.jitter.is_finite() { self.jitter.clamp(0.0, 1.0) } else { 0.0 };
        let unit = (random >> 11) as f64 / (1u64 << 53) as f64;
        let spread = grown * (1.0 + jitter * (2.0 * unit - 1.0));
        Duration::try_from_secs_f64(spread.clamp(0.0, cap)).unwrap_or(self.cap).min(self.cap)
    }

    /// Whether to try again after this failure.
    pub fn verdict(&self, failure: &Failure, tried: Tried) -> Verdict {
        let delay = match failure.kind {
            FailureKind::Permanent
            | FailureKind::InvalidInput
            | FailureKind::Cancelled
            | FailureKind::Lost => return Verdict::Never(NotAgain::NotRetryable),
            FailureKind::Contention if tried.contentions <= Self::CONTENTIONS_MAX => {
                let spread = 100 + (tried.random >> 32) % 400;
                return self.within_total(tried, Duration::from_millis(spread));
            }
            FailureKind::RateLimited => failure
                .retry_after_ms
                .map(|ms| Duration::from_millis(ms).min(Self::RETRY_AFTER_MAX))
                .unwrap_or_else(|| self.delay(tried.failures, tried.random)),
            FailureKind::Retryable
            | FailureKind::TimedOut
            | FailureKind::Panicked
            | FailureKind::Contention => self.delay(tried.failures, tried.random),
        };
        let by_code = failure.code.as_ref().is_some_and(|code| self.not_codes.contains(code));
        if by_code || self.not_kinds.contains(&failure.kind) {
            return Verdict::Never(NotAgain::NotRetryable);
        }
        if tried.failures >= self.attempts {
            return Verdict::Never(NotAgain::Exhausted);
        }
        self.within_total(tried, delay)
    }

    /// However long the other side asks us to wait, it is not longer than this.
    pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

    fn within_total(&self, tried: Tried, delay: Duration) -> Verdict {
        match self.total {
            Some(total) if tried.elapsed.saturating_add(delay) > total => {
                Verdict::Never(NotAgain::Exhausted)
            }
            _ => Verdict::Again(delay),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tried(failures: u32) -> Tried {
        Tried { failures, contentions: 1, elapsed: Duration::ZERO, random: 0 }
    }

    fn failed(kind: FailureKind) -> Failure {
        Failure::new(kind, "x")
    }

    #[test]
    fn the_default_policy_is_three_attempts_one_second_doubled() {
        let retry = Retry { jitter: 0.0, ..Retry::default() };
        assert_eq!(retry.delay(1, 0), Duration::from_secs(1));
        assert_eq!(retry.delay(2, 0), Duration::from_secs(2));
        assert_eq!(retry.delay(30, 0), Duration::from_secs(60));
        assert_eq!(
            retry.verdict(&failed(FailureKind::Retryable), tried(3)),
            Verdict::Never(NotAgain::Exhausted)
        );
    }

    #[test]
    fn a_first_delay_of_zero_stays_zero() {
        let retry = Retry { first: Duration::ZERO, ..Retry::default() };
        assert_eq!(retry.delay(3_000_000_000, u64::MAX), Duration::ZERO);
    }

    #[test]
    fn kinds_and_codes_decide() {
        let retry = Retry::attempts(5).not_code("ZERO").jitter(0.0);
        let never = Verdict::Never(NotAgain::NotRetryable);
        assert_eq!(retry.verdict(&failed(FailureKind::Permanent), tried(1)), never);
        assert_eq!(retry.verdict(&failed(FailureKind::Retryable).code("ZERO"), tried(1)), never);
        let mut limited = failed(FailureKind::RateLimited);
        limited.retry_after_ms = Some(7_000);
        assert_eq!(retry.verdict(&limited, tried(1)), Verdict::Again(Duration::from_secs(7)));
    }

    #[test]
    fn contention_uses_no_attempt_but_ends() {
        let retry = Retry::attempts(1);
        let failure = failed(FailureKind::Contention);
        let few = Tried { contentions: 3, ..tried(0) };
        assert!(matches!(retry.verdict(&failure, few), Verdict::Again(_)));
        let many = Tried { contentions: Retry::CONTENTIONS_MAX + 1, ..tried(1) };
        assert_eq!(retry.verdict(&failure, many), Verdict::Never(NotAgain::Exhausted));
    }

    #[test]
    fn the_total_time_ends_it() {
        let retry = Retry::attempts(100).jitter(0.0).total(Duration::from_secs(10));
        let late = Tried { elapsed: Duration::from_secs(9), ..tried(2) };
        assert_eq!(
            retry.verdict(&failed(FailureKind::Retryable), late),
            Verdict::Never(NotAgain::Exhausted)
        );
    }

    proptest! {
        #[test]
        fn no_input_panics_and_no_delay_exceeds_the_cap(
            first in any::<Duration>(), cap in any::<Duration>(), coefficient in any::<f64>(),
            jitter in any::<f64>(), failures in any::<u32>(), random in any::<u64>(),
            elapsed in any::<Duration>(), attempts in any::<u32>(),
        ) {
            let retry = Retry { attempts, first, coefficient, cap, jitter, ..Retry::default() };
            let _ = retry.check();
            prop_assert!(retry.delay(failures, random) <= cap);
            let tried = Tried { failures, contentions: failures, elapsed, random };
            let _ = retry.verdict(&failed(FailureKind::TimedOut), tried);
        }

        #[test]
        fn delays_of_a_valid_policy_stay_within_the_jitter(
            first_ms in 0u64..100_000, more_ms in 0u64..1_000_000, coefficient in 1.0f64..10.0,
            jitter in 0.0f64..=1.0, random in any::<u64>(),
        ) {
            let first = Duration::from_millis(first_ms);
            let retry = Retry {
                first, cap: first + Duration::from_millis(more_ms), coefficient, jitter,
                ..Retry::default()
            };
            prop_assert_eq!(retry.check(), Ok(()));
            let lowest = first.mul_f64((1.0 - jitter).max(0.0));
            prop_assert!(retry.delay(1, random) + Duration::from_micros(1) >= lowest);
        }
    }
}
