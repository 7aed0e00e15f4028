//! Parameters and columns as MySQL takes and gives them.

use crate::error::{Kind, Trouble};
use crate::session::{Fields, Param};
use mysql_async::{Column, Row, Value};
use std::sync::Arc;
use uuid::Uuid;

fn of_int(value: Option<i64>) -> Value {
    value.map_or(Value::NULL, Value::Int)
}

fn of_text(value: Option<String>) -> Value {
    value.map_or(Value::NULL, |text| Value::Bytes(text.into_bytes()))
}

fn of_id(value: Option<Uuid>) -> Value {
    value.map_or(Value::NULL, |id| Value::Bytes(id.as_bytes().to_vec()))
}

impl Param {
    /// How many values it has, if it is one with many.
    pub(super) fn rows(&self) -> Option<usize> {
        match self {
            Param::Int(_) | Param::Text(_) | Param::Id(_) => None,
            Param::Ints(values) => Some(values.len()),
            Param::Texts(values) => Some(values.len()),
            Param::Ids(values) => Some(values.len()),
        }
    }

    /// About how many bytes its value in a row has on the way.
    pub(super) fn bytes(&self, row: usize) -> usize {
        match self {
            Param::Text(Some(text)) => text.len(),
            Param::Texts(values) => values[row].as_ref().map_or(1, String::len),
            Param::Id(_) | Param::Ids(_) => 17,
            Param::Int(_) | Param::Text(None) | Param::Ints(_) => 9,
        }
    }

    /// Its value in a row.
    pub(super) fn value(&self, row: usize) -> Value {
        match self {
            Param::Int(value) => of_int(*value),
            Param::Text(value) => of_text(value.clone()),
            Param::Id(value) => of_id(*value),
            Param::Ints(values) => of_int(values[row]),
            Param::Texts(values) => of_text(values[row].clone()),
            Param::Ids(values) => of_id(values[row]),
        }
    }

    /// Its value in a row, which is not needed again.
    pub(super) fn take(&mut self, row: usize) -> Value {
        match self {
            Param::Texts(values) => of_text(values[row].take()),
            Param::Int(_) | Param::Text(_) | Param::Id(_) | Param::Ints(_) | Param::Ids(_) => {
                self.value(row)
            }
        }
    }
}

/// A row, read from its first column to its last.
#[derive(Debug)]
pub(crate) struct MyRow {
    columns: Arc<[Column]>,
    values: std::vec::IntoIter<Value>,
}

impl From<Row> for MyRow {
    fn from(row: Row) -> Self {
        MyRow { columns: row.columns(), values: row.unwrap().into_iter() }
    }
}

impl MyRow {
    /// The next value, if it is not NULL, as what it must be.
    fn take<T>(
        &mut self,
        wanted: &'static str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<Option<T>, Trouble> {
        let at = self.columns.len() - self.values.len();
        let value = match self.values.next() {
            Some(Value::NULL) => return Ok(None),
            Some(value) => read(value),
            None => None,
        };
        let column = self.columns.get(at).map_or("?".into(), |column| column.name_str());
        let unreadable = || {
            Trouble::server(
                Kind::Unreadable,
                format!("column {column} (number {at}) is no {wanted}"),
            )
        };
        value.ok_or_else(unreadable).map(Some)
    }
}

impl Fields for MyRow {
    fn int(&mut self) -> Result<Option<i64>, Trouble> {
        self.take("whole number", |value| match value {
            Value::Int(number) => Some(number),
            Value::UInt(number) => i64::try_from(number).ok(),
            // Sums are decimals, which come as text.
            Value::Bytes(digits) => std::str::from_utf8(&digits).ok()?.parse().ok(),
            Value::NULL
            | Value::Float(_)
            | Value::Double(_)
            | Value::Date(..)
            | Value::Time(..) => None,
        })
    }

    fn text(&mut self) -> Result<Option<String>, Trouble> {
        self.take("text in UTF-8", |value| match value {
            Value::Bytes(bytes) => String::from_utf8(bytes).ok(),
            _ => None,
        })
    }

    fn id(&mut self) -> Result<Option<Uuid>, Trouble> {
        self.take("id of 16 bytes", |value| match value {
            Value::Bytes(bytes) => Uuid::from_slice(&bytes).ok(),
            _ => None,
        })
    }
}
