//! Parameters and columns as PostgreSQL takes and gives them.

use crate::error::{Kind, Trouble};
use crate::session::{Fields, Param};
use tokio_postgres::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

impl Param {
    /// The type of the parameter; statements are prepared with it.
    pub(crate) fn type_of(&self) -> Type {
        match self {
            Param::Int(_) => Type::INT8,
            Param::Text(_) => Type::TEXT,
            Param::Id(_) => Type::UUID,
            Param::Ints(_) => Type::INT8_ARRAY,
            Param::Texts(_) => Type::TEXT_ARRAY,
            Param::Ids(_) => Type::UUID_ARRAY,
        }
    }
}

impl ToSql for Param {
    fn to_sql(
        &self,
        wanted: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        if *wanted != self.type_of() {
            return Err(format!("{} was given where {wanted} is wanted", self.type_of()).into());
        }
        match self {
            Param::Int(value) => value.to_sql(wanted, out),
            Param::Text(value) => value.to_sql(wanted, out),
            Param::Id(value) => value.to_sql(wanted, out),
            Param::Ints(values) => values.to_sql(wanted, out),
            Param::Texts(values) => values.to_sql(wanted, out),
            Param::Ids(values) => values.to_sql(wanted, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // Which one depends on the value; `to_sql` looks.
        true
    }

    to_sql_checked!();
}

/// A row, read from its first column to its last.
#[derive(Debug)]
pub(crate) struct PgRow {
    row: Row,
    next: usize,
}

impl From<Row> for PgRow {
    fn from(row: Row) -> Self {
        PgRow { row, next: 0 }
    }
}

impl PgRow {
    fn take<'a, T: FromSql<'a>>(&'a mut self) -> Result<Option<T>, Trouble> {
        let at = self.next;
        self.next += 1;
        self.row.try_get(at).map_err(|error| unreadable(&self.row, at, &error))
    }
}

fn unreadable(row: &Row, at: usize, error: &tokio_postgres::Error) -> Trouble {
    let column = row.columns().get(at).map_or("?", |column| column.name());
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let problem = format!("column {column}: {error}{}", cause.unwrap_or_default());
    Trouble::server(Kind::Unreadable, problem)
}

impl Fields for PgRow {
    fn int(&mut self) -> Result<Option<i64>, Trouble> {
        let kind = self.row.columns().get(self.next).map(|column| column.type_().clone());
        match kind {
            Some(Type::INT2) => Ok(self.take::<i16>()?.map(i64::from)),
            Some(Type::INT4) => Ok(self.take::<i32>()?.map(i64::from)),
            Some(Type::BOOL) => Ok(self.take::<bool>()?.map(i64::from)),
            _ => self.take(),
        }
    }

    fn text(&mut self) -> Result<Option<String>, Trouble> {
        self.take()
    }

    fn id(&mut self) -> Result<Option<Uuid>, Trouble> {
        self.take()
    }
}
