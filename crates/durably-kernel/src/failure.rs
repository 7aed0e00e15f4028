//! What is recorded about work that failed: plain data.

use crate::payload::Payload;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What sort of failure it was; it decides whether another attempt makes sense.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// May go away by itself: tried again after a backoff.
    Retryable,
    /// Will not go away: not tried again.
    Permanent,
    /// The other side asked for a pause; tried again after it.
    RateLimited,
    /// A time-out passed.
    TimedOut,
    /// The work was cancelled.
    Cancelled,
    /// The code panicked.
    Panicked,
    /// The input does not fit: not tried again.
    InvalidInput,
    /// Somebody else was writing to the same data: tried again soon, without using an attempt.
    Contention,
    /// The processes that executed it died too often.
    Lost,
}

impl FailureKind {
    /// The name used in JSON, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Retryable => "retryable",
            FailureKind::Permanent => "permanent",
            FailureKind::RateLimited => "rate_limited",
            FailureKind::TimedOut => "timed_out",
            FailureKind::Cancelled => "cancelled",
            FailureKind::Panicked => "panicked",
            FailureKind::InvalidInput => "invalid_input",
            FailureKind::Contention => "contention",
            FailureKind::Lost => "lost",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What was recorded about work that failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// What sort of failure.
    pub kind: FailureKind,
    /// What happened, for people.
    pub message: String,
    /// A stable code, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How long the other side asked us to wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The activity, step or run in which it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Anything else that the code wanted to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Payload>,
}

impl Failure {
    /// A failure of a kind with a message. Characters that databases refuse (NUL) are replaced,
    /// and the text is cut at 16 KiB, so that recording a failure never fails.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Failure {
        let message = storable(message.into());
        Failure { kind, message, code: None, retry_after_ms: None, origin: None, details: None }
    }

    /// The longest message that is kept, in bytes.
    pub const MESSAGE_LEN_MAX: usize = 16 * 1024;

    /// The same with a code.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Failure {
        self.code = Some(storable(code.into()));
        self
    }

    /// The same with the place where it began, unless that is known already.
    #[must_use]
    pub fn from_origin(mut self, origin: &str) -> Failure {
        self.origin.get_or_insert_with(|| storable(origin.to_owned()));
        self
    }
}

/// The text without characters that databases refuse, and not too long.
fn storable(mut text: String) -> String {
    if text.contains('\0') {
        text = text.replace('\0', "\u{fffd}");
    }
    if text.len() > Failure::MESSAGE_LEN_MAX {
        let mut end = Failure::MESSAGE_LEN_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        write!(f, "{} ({}", self.message, self.kind)?;
        match &self.code {
            Some(code) => write!(f, ", {code})"),
            None => f.write_str(")"),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_messages_are_made_storable() {
        let failure = Failure::new(FailureKind::Permanent, "a\0b");
        assert_eq!(failure.message, "a\u{fffd}b");
        let long = Failure::new(FailureKind::Permanent, "é".repeat(20_000));
        assert!(long.message.len() <= Failure::MESSAGE_LEN_MAX + 3);
    }
}
