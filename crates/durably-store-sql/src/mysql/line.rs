//! One connection and the statements prepared on it.
//!
//! Who asks takes the line away from where it is kept and puts it back with the answer. A question
//! that was given up, by a time-out or because its future was dropped, so ends the connection: it
//! would answer the next question with this one's answer.

use crate::mysql::template::{Chunk, Template};
use crate::session::Param;
use crate::text::Sql;
use futures_util::FutureExt;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error, Params, Row, Statement, Value};
use std::collections::BTreeMap;

/// Most statements kept prepared on a connection. The server has a limit for all connections
/// together (`max_prepared_stmt_count`, 16,382 unless changed).
const STATEMENTS_MAX: usize = 200;

/// A connection and the statements prepared on it.
pub(super) struct Line {
    /// Nothing only while it is closed.
    conn: Option<Conn>,
    prepared: BTreeMap<(Sql, usize), Prepared>,
    /// Grows with every use of a statement.
    uses: u64,
    /// The node of a cluster to which it leads, where transactions must look whether it is still
    /// the one that is written to.
    pub(super) node: Option<String>,
}

struct Prepared {
    statement: Statement,
    last_use: u64,
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            // Polled once and given up: says goodbye if that needs no waiting, and closes the
            // socket in any case. Dropping the connection by itself would wait for the answer to
            // the last question first, with the transaction open.
            let _ = conn.disconnect().now_or_never();
        }
    }
}

impl Line {
    pub(super) fn new(conn: Conn) -> Line {
        Line { conn: Some(conn), prepared: BTreeMap::new(), uses: 0, node: None }
    }

    fn conn(&mut self) -> Result<&mut Conn, Error> {
        self.conn.as_mut().ok_or(Error::Driver(DriverError::ConnectionClosed))
    }

    /// Sends a text, which may be several statements; gives the rows of the first.
    pub(super) async fn tell(&mut self, text: &str) -> Result<Vec<Row>, Error> {
        self.conn()?.query(text).await
    }

    /// Asks with values, once.
    pub(super) async fn ask_once(
        &mut self,
        text: &str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, Error> {
        let conn = self.conn()?;
        let statement = conn.prep(text).await?;
        let rows = conn.exec(&statement, params_of(values)).await?;
        conn.close(statement).await?;
        Ok(rows)
    }

    /// Asks a statement for all rows of its parameters.
    pub(super) async fn ask(
        &mut self,
        sql: Sql,
        template: &Template,
        chunks: Vec<(Chunk, Vec<Value>)>,
    ) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        for (chunk, values) in chunks {
            let statement = self.statement(sql, template, chunk.size).await?;
            let answer: Vec<Row> = self.conn()?.exec(statement, params_of(values)).await?;
            match rows.is_empty() {
                true => rows = answer,
                false => rows.extend(answer),
            }
        }
        Ok(rows)
    }

    /// The statement for so many rows, prepared.
    async fn statement(
        &mut self,
        sql: Sql,
        template: &Template,
        size: usize,
    ) -> Result<Statement, Error> {
        self.uses += 1;
        if let Some(prepared) = self.prepared.get_mut(&(sql, size)) {
            prepared.last_use = self.uses;
            return Ok(prepared.statement.clone());
        }
        if self.prepared.len() >= STATEMENTS_MAX {
            self.forget_one().await?;
        }
        let statement = self.conn()?.prep(template.text(size)).await?;
        let prepared = Prepared { statement: statement.clone(), last_use: self.uses };
        self.prepared.insert((sql, size), prepared);
        Ok(statement)
    }

    /// Gives up the statement that was not used for the longest time.
    async fn forget_one(&mut self) -> Result<(), Error> {
        let oldest = self.prepared.iter().min_by_key(|(_, prepared)| prepared.last_use);
        let Some(key) = oldest.map(|(key, _)| *key) else { return Ok(()) };
        match self.prepared.remove(&key) {
            Some(prepared) => self.conn()?.close(prepared.statement).await,
            None => Ok(()),
        }
    }
}

fn params_of(values: Vec<Value>) -> Params {
    match values.is_empty() {
        true => Params::Empty,
        false => Params::Positional(values),
    }
}

/// The calls that a statement needs, with their values.
pub(super) fn calls_of(
    template: &Template,
    mut params: Vec<Param>,
) -> Result<Vec<(Chunk, Vec<Value>)>, crate::error::Trouble> {
    let chunks = template.chunks(&params)?;
    chunks.into_iter().map(|chunk| Ok((chunk, template.values(&mut params, chunk)?))).collect()
}
