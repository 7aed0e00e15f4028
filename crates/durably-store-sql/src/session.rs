//! A connection in the hands of one command: statements by name, parameters, rows.

use crate::error::Trouble;
use crate::text::Sql;
use durably_kernel::Timestamp;
use std::future::Future;
use uuid::Uuid;

/// A parameter. Numbers are 64 bits wide; JSON is text, byte for byte. Those with many values go
/// with others of the same length: a row of them for each index.
#[derive(Clone, Debug)]
pub(crate) enum Param {
    Int(Option<i64>),
    Text(Option<String>),
    Id(Option<Uuid>),
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
    Ids(Vec<Option<Uuid>>),
}

/// A statement with its parameters; `$1` is the first of them.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) sql: Sql,
    pub(crate) params: Vec<Param>,
}

/// What the server said as a transaction began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began {
    /// The database's time.
    pub(crate) now: Timestamp,
    /// The database's time in microseconds, whatever the store's clock shows: what became ready
    /// later has the higher order number.
    pub(crate) micros: i64,
}

/// A transaction that began, and the answers to its first questions.
pub(crate) type Begun<R> = (Began, Vec<Vec<R>>);

/// The columns of a row, one after the other, in the order in which the statement names them.
pub(crate) trait Fields {
    fn int(&mut self) -> Result<Option<i64>, Trouble>;
    fn text(&mut self) -> Result<Option<String>, Trouble>;
    fn id(&mut self) -> Result<Option<Uuid>, Trouble>;
}

/// A connection in the hands of one command. Whoever drops it with a transaction open, or after an
/// error of the connection, does not give it back to the pool as it is.
pub(crate) trait Session: Send {
    type Row: Fields + Send;

    /// Begins a transaction, READ COMMITTED, with the server's limits on waiting for locks and on
    /// idling; and asks its first questions, in one trip where the driver can.
    fn begin(
        &mut self,
        calls: Vec<Call>,
    ) -> impl Future<Output = Result<Begun<Self::Row>, Trouble>> + Send;

    /// Asks one question after the other, in one trip where the driver can, within the transaction
    /// or, where none was begun, each by itself. Each statement begins
    /// after the one before it has ended, so that it sees what that one's locks protect.
    fn ask(
        &mut self,
        calls: Vec<Call>,
    ) -> impl Future<Output = Result<Vec<Vec<Self::Row>>, Trouble>> + Send;

    /// Writes, and ends the transaction, in one trip where the driver can.
    fn finish(&mut self, calls: Vec<Call>) -> impl Future<Output = Result<(), Trouble>> + Send;

    /// Takes everything back.
    fn roll_back(&mut self) -> impl Future<Output = ()> + Send;
}
