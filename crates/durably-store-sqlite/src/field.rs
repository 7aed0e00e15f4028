//! Columns of a row, read in the order in which the statement names them, and values as SQLite
//! stores them.

use crate::error::Trouble;
use durably_kernel::{Payload, Timestamp};
use rusqlite::Row;
use rusqlite::types::FromSql;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use uuid::Uuid;

/// The columns of a row, one after the other.
pub(crate) struct Fields<'a, 'row> {
    row: &'a Row<'row>,
    next: usize,
}

impl<'a, 'row> Fields<'a, 'row> {
    pub(crate) fn of(row: &'a Row<'row>) -> Self {
        Fields { row, next: 0 }
    }

    /// The next column as it is.
    pub(crate) fn take<T: FromSql>(&mut self) -> Result<T, Trouble> {
        let at = self.next;
        self.next += 1;
        Ok(self.row.get(at)?)
    }

    /// The next column is an id.
    pub(crate) fn uuid(&mut self) -> Result<Uuid, Trouble> {
        self.take::<[u8; 16]>().map(Uuid::from_bytes)
    }

    /// The next column counts something.
    pub(crate) fn count(&mut self) -> Result<u64, Trouble> {
        let value: i64 = self.take()?;
        u64::try_from(value).map_err(|_| self.damaged(&value.to_string()))
    }

    /// The next column counts something, or nothing.
    pub(crate) fn count_if_set(&mut self) -> Result<Option<u64>, Trouble> {
        let value: Option<i64> = self.take()?;
        value
            .map(|value| u64::try_from(value).map_err(|_| self.damaged(&value.to_string())))
            .transpose()
    }

    /// The next column is a truth.
    pub(crate) fn truth(&mut self) -> Result<bool, Trouble> {
        Ok(self.take::<i64>()? != 0)
    }

    /// The next column is a point in time, or nothing.
    pub(crate) fn time(&mut self) -> Result<Option<Timestamp>, Trouble> {
        Ok(self.take::<Option<i64>>()?.map(Timestamp))
    }

    /// The next column is a point in time.
    pub(crate) fn time_set(&mut self) -> Result<Timestamp, Trouble> {
        self.take().map(Timestamp)
    }

    /// The next column is one of our names.
    pub(crate) fn name<T>(&mut self, read: impl Fn(&str) -> Option<T>) -> Result<T, Trouble> {
        let name: String = self.take()?;
        read(&name).ok_or_else(|| self.damaged(&format!("{name:?}")))
    }

    /// The next column is JSON of a user.
    pub(crate) fn payload(&mut self) -> Result<Option<Payload>, Trouble> {
        let text: Option<String> = self.take()?;
        text.map(Payload::from_text).transpose().map_err(|error| self.damaged(&error.to_string()))
    }

    /// The next column is JSON of ours.
    pub(crate) fn json<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Trouble> {
        let text: Option<String> = self.take()?;
        text.map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(|error| self.damaged(&error.to_string()))
    }

    /// What is wrong with the column taken last.
    fn damaged(&self, problem: &str) -> Trouble {
        let column = self.next.checked_sub(1).and_then(|at| self.row.as_ref().column_name(at).ok());
        Trouble::Damaged(format!("column {}: {problem}", column.unwrap_or("?")))
    }
}

/// A number of ours as SQLite stores it; nothing real comes near the end of the range.
pub(crate) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A bound on rows.
pub(crate) fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

/// A duration as SQLite stores it.
pub(crate) fn stored_millis(duration: Duration) -> i64 {
    stored(durably_kernel::to_millis(duration))
}

/// Our JSON as SQLite stores it.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Result<String, Trouble> {
    // Our own types have string keys and finite numbers only; if that were ever not so, refusing
    // the command is right.
    serde_json::to_string(value).map_err(|error| {
        Trouble::Store(durably_store::StoreError::Refused {
            operation: "write",
            problem: error.to_string(),
        })
    })
}
