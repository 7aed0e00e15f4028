//! Points in time and durations as whole milliseconds. Nothing here reads a clock.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::Duration;

/// Milliseconds since 1970-01-01 UTC, by the store's clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This time and `delay` more; stops at the end of time instead of overflowing.
    #[must_use]
    pub fn after(self, delay: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(to_millis(delay).min(i64::MAX as u64) as i64))
    }

    /// How long after `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// Whole milliseconds of a duration, rounded up so that nothing is due early.
pub fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Durations in JSON: a number of milliseconds.
pub mod millis {
    use super::*;

    /// Writes milliseconds.
    pub fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(to_millis(*value))
    }

    /// Reads milliseconds.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

/// Optional durations in JSON: a number of milliseconds or null.
pub mod option_millis {
    use super::*;

    /// Writes milliseconds or null.
    pub fn serialize<S: Serializer>(value: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        value.map(to_millis).serialize(to)
    }

    /// Reads milliseconds or null.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Option::<u64>::deserialize(from).map(|ms| ms.map(Duration::from_millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_saturates_at_both_ends() {
        assert_eq!(Timestamp(5).after(Duration::MAX), Timestamp(i64::MAX));
        assert_eq!(Timestamp(i64::MIN).since(Timestamp(i64::MAX)), Duration::ZERO);
        assert_eq!(to_millis(Duration::from_nanos(1)), 1);
    }
}
