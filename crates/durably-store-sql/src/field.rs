//! Columns as our types, and our types as parameters.

use crate::error::Trouble;
use crate::session::{Fields, Param};
use durably_kernel::{Payload, Timestamp};
use durably_store::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use uuid::Uuid;

/// Columns, read as our types.
pub(crate) trait Columns: Fields {
    fn set<T>(&self, what: &str, value: Option<T>) -> Result<T, Trouble> {
        value.ok_or_else(|| Trouble::Damaged(format!("{what} is missing")))
    }

    fn uuid(&mut self, what: &str) -> Result<Uuid, Trouble> {
        let value = self.id()?;
        self.set(what, value)
    }

    fn words(&mut self, what: &str) -> Result<String, Trouble> {
        let value = self.text()?;
        self.set(what, value)
    }

    /// A number in the range of its type.
    fn number<T: TryFrom<i64>>(&mut self, what: &str) -> Result<T, Trouble> {
        let value = self.number_if_set(what)?;
        self.set(what, value)
    }

    /// A number in the range of its type, or nothing.
    fn number_if_set<T: TryFrom<i64>>(&mut self, what: &str) -> Result<Option<T>, Trouble> {
        let number =
            |value| T::try_from(value).map_err(|_| Trouble::Damaged(format!("{what} is {value}")));
        self.int()?.map(number).transpose()
    }

    fn truth(&mut self, what: &str) -> Result<bool, Trouble> {
        Ok(self.number::<i64>(what)? != 0)
    }

    fn time(&mut self) -> Result<Option<Timestamp>, Trouble> {
        Ok(self.int()?.map(Timestamp))
    }

    fn time_set(&mut self, what: &str) -> Result<Timestamp, Trouble> {
        let value = self.time()?;
        self.set(what, value)
    }

    /// One of our names.
    fn name<T>(&mut self, what: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Trouble> {
        let name = self.words(what)?;
        read(&name).ok_or_else(|| Trouble::Damaged(format!("{what} is {name:?}")))
    }

    /// JSON of a user.
    fn payload(&mut self, what: &str) -> Result<Option<Payload>, Trouble> {
        let text = self.text()?;
        let damaged = |error| Trouble::Damaged(format!("{what}: {error}"));
        text.map(Payload::from_text).transpose().map_err(damaged)
    }

    /// JSON of ours.
    fn json<T: DeserializeOwned>(&mut self, what: &str) -> Result<Option<T>, Trouble> {
        let text = self.text()?;
        let damaged = |error| Trouble::Damaged(format!("{what}: {error}"));
        text.map(|text| serde_json::from_str(&text)).transpose().map_err(damaged)
    }
}

impl<F: Fields> Columns for F {}

/// A number of ours as it is stored; nothing real comes near the end of the range.
pub(crate) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A bound on rows.
pub(crate) fn limit(most: usize) -> Param {
    Param::Int(Some(i64::try_from(most).unwrap_or(i64::MAX)))
}

pub(crate) fn time(at: Timestamp) -> Param {
    Param::Int(Some(at.0))
}

pub(crate) fn text(text: impl Into<String>) -> Param {
    Param::Text(Some(text.into()))
}

pub(crate) fn id(id: Uuid) -> Param {
    Param::Id(Some(id))
}

/// A duration as it is stored.
pub(crate) fn stored_millis(duration: Duration) -> i64 {
    stored(durably_kernel::to_millis(duration))
}

/// Our JSON as it is stored.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Result<String, Trouble> {
    // Our own types have string keys and finite numbers only; if that were ever not so, refusing
    // the command is right.
    serde_json::to_string(value).map_err(|error| {
        Trouble::Store(StoreError::Refused { operation: "write", problem: error.to_string() })
    })
}
