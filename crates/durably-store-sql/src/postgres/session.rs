//! A pooled connection in the hands of one command.

use crate::error::{Kind, Trouble};
use crate::postgres::error::{trouble, trouble_of_commit};
use crate::postgres::param::PgRow;
use crate::postgres::pool::Lease;
use crate::postgres::sql;
use crate::postgres::trip::in_one_trip;
use crate::session::{Began, Begun, Call, Fields, Param, Session};
use crate::text::Texts;
use deadpool_postgres::ClientWrapper;
use durably_kernel::Timestamp;
use durably_store::Clock;
use futures_util::TryStreamExt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row, Statement};

/// How transactions are isolated. The commands lock what they touch and need no more than the
/// first; some servers have only the second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Isolation {
    ReadCommitted,
    Serializable,
}

/// How statements reach the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Statements {
    /// Prepared once on each connection.
    Prepared,
    /// Sent with every call: a pooler gives each transaction another server connection, where
    /// nothing is prepared.
    Sent,
}

/// What a transaction may take before the server ends it; in milliseconds, as the server takes it.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) lock: String,
    pub(crate) statement: String,
    pub(crate) idle: String,
}

/// What the sessions of a store have in common.
#[derive(Debug)]
pub(crate) struct Manner {
    pub(crate) texts: Texts,
    pub(crate) clock: Clock,
    pub(crate) isolation: Isolation,
    pub(crate) statements: Statements,
    /// The limits to set in each transaction, if connections do not have them from their start.
    pub(crate) limits: Option<Limits>,
    /// How long the server may take to answer before the connection is given up.
    pub(crate) trip_max: Duration,
}

/// What the connection is in the middle of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing.
    Clean,
    /// A transaction.
    Open,
    /// A transaction in which a statement failed.
    Failed,
    /// A question whose answer is still to come, or will never come.
    Unknown,
}

/// A connection in the hands of one command. Only a clean one goes back into the pool.
pub(crate) struct PgSession {
    /// Nothing only while it is dropped.
    client: Option<Lease>,
    manner: Arc<Manner>,
    state: State,
}

impl Drop for PgSession {
    fn drop(&mut self) {
        if let (Some(client), true) = (self.client.take(), self.state != State::Clean) {
            // Closes the connection; the server takes the transaction back.
            drop(client.alone());
        }
    }
}

/// Something to ask.
enum Request<'a> {
    /// A word without parameters.
    Plain(&'static str),
    Prepared(Statement, &'a [Param]),
    Sent(&'a str, &'a [Param]),
}

async fn request(client: &ClientWrapper, request: Request<'_>) -> Result<Vec<Row>, Error> {
    match request {
        Request::Plain(text) => client.batch_execute(text).await.map(|()| Vec::new()),
        Request::Prepared(statement, params) => {
            client.query_raw(&statement, params).await?.try_collect().await
        }
        Request::Sent(text, params) => {
            let params = params.iter().map(|param| (param, param.type_of()));
            client.query_typed_raw(text, params).await?.try_collect().await
        }
    }
}

impl PgSession {
    pub(crate) fn new(client: Lease, manner: Arc<Manner>) -> PgSession {
        PgSession { client: Some(client), manner, state: State::Clean }
    }

    /// The connection, if it is where it should be. Nobody knows where it is until the trip that
    /// begins with this has ended.
    fn set_out(&mut self, from: &[State]) -> Result<&ClientWrapper, Trouble> {
        let state = std::mem::replace(&mut self.state, State::Unknown);
        if !from.contains(&state) {
            let problem = format!("a transaction went on although it was {state:?}");
            return Err(Trouble::server(Kind::Refused, problem));
        }
        match &self.client {
            Some(client) if !client.is_closed() => Ok(client),
            // Nothing was sent.
            Some(_) | None => {
                Err(Trouble::server(Kind::Away, "the connection was closed in the meantime"))
            }
        }
    }

    /// Where the connection is after an error that the server gave as an answer.
    fn after(&self, trouble: &Trouble, otherwise: State) -> State {
        match trouble {
            Trouble::Server { kind: Kind::Repeat | Kind::Busy | Kind::Full, .. } => otherwise,
            // A standby, a server that stops, a plan that does not fit the schema any more: the
            // next connection may be better.
            Trouble::Server { .. } | Trouble::Damaged(_) | Trouble::Store(_) => State::Unknown,
        }
    }

    async fn try_begin(&mut self, calls: Vec<Call>) -> Result<Begun<PgRow>, Trouble> {
        let manner = self.manner.clone();
        let client = self.set_out(&[State::Clean])?;
        let begin = Request::Plain(match manner.isolation {
            Isolation::ReadCommitted => "begin isolation level read committed",
            Isolation::Serializable => "begin isolation level serializable",
        });
        let limits = manner.limits.as_ref().map(|limits| {
            [&limits.lock, &limits.statement, &limits.idle]
                .map(|limit| Param::Text(Some(limit.clone())))
        });
        let now = match &limits {
            Some(params) => (sql::NOW_LIMITED, params.as_slice()),
            None => (sql::NOW, [].as_slice()),
        };
        let calls: Vec<_> = std::iter::once(now).chain(texts(&manner, &calls)).collect();
        let trip = async {
            let calls = prepare(client, manner.statements, &calls).await?;
            let requests = std::iter::once(begin).chain(calls);
            let answers = in_one_trip(requests.map(|what| request(client, what)).collect()).await;
            Ok::<_, Error>(answers)
        };
        let answers = within(manner.trip_max, trip).await?.map_err(|error| trouble(&error))?;
        let mut answers = answers.into_iter();
        answers.next().transpose().map_err(|error| trouble(&error))?;
        let answers = match answers.collect::<Result<Vec<_>, Error>>() {
            Ok(answers) => answers,
            Err(error) => {
                let trouble = trouble(&error);
                self.state = self.after(&trouble, State::Failed);
                return Err(trouble);
            }
        };
        let mut answers = answers
            .into_iter()
            .map(|rows| rows.into_iter().map(PgRow::from).collect::<Vec<PgRow>>());
        let micros = match answers.next().and_then(|rows| rows.into_iter().next()) {
            Some(mut row) => row.int()?,
            None => None,
        };
        let micros = micros
            .ok_or_else(|| Trouble::server(Kind::Refused, "the server did not tell the time"))?;
        self.state = State::Open;
        let now = match &manner.clock {
            Clock::Database => Timestamp(micros.div_euclid(1000)),
            Clock::Manual(clock) => clock.now(),
        };
        Ok((Began { now, micros }, answers.collect()))
    }

    async fn try_ask(&mut self, calls: Vec<Call>) -> Result<Vec<Vec<PgRow>>, Trouble> {
        let manner = self.manner.clone();
        let before = self.state;
        let client = self.set_out(&[State::Clean, State::Open])?;
        let calls = texts(&manner, &calls);
        let trip = async {
            let requests = prepare(client, manner.statements, &calls).await?;
            in_one_trip(requests.map(|what| request(client, what)).collect())
                .await
                .into_iter()
                .collect::<Result<Vec<_>, Error>>()
        };
        match within(manner.trip_max, trip).await? {
            Ok(answers) => {
                self.state = before;
                Ok(answers
                    .into_iter()
                    .map(|rows| rows.into_iter().map(PgRow::from).collect())
                    .collect())
            }
            Err(error) => {
                let trouble = trouble(&error);
                let failed = if before == State::Open { State::Failed } else { State::Clean };
                self.state = self.after(&trouble, failed);
                Err(trouble)
            }
        }
    }

    async fn try_finish(&mut self, calls: Vec<Call>) -> Result<(), Trouble> {
        let manner = self.manner.clone();
        let client = self.set_out(&[State::Open])?;
        let calls = texts(&manner, &calls);
        // The end is not sent before this has succeeded: nothing can have been done.
        let requests = within(manner.trip_max, prepare(client, manner.statements, &calls)).await;
        let requests = match requests.map_err(Trouble::before_the_end)? {
            Ok(requests) => requests,
            Err(error) => {
                let trouble = trouble(&error).before_the_end();
                self.state = self.after(&trouble, State::Failed);
                return Err(trouble);
            }
        };
        let trip = async {
            let requests = requests.chain([Request::Plain("commit")]);
            let mut answers =
                in_one_trip(requests.map(|what| request(client, what)).collect()).await;
            let commit = answers.pop();
            // All was sent at once: what comes after a statement that failed does nothing, and the
            // end of such a transaction takes it back. A connection that breaks says nothing about
            // how far the server came.
            for answer in answers {
                answer.map_err(|error| (trouble(&error), State::Clean))?;
            }
            match commit {
                Some(Err(error)) => Err((trouble_of_commit(&error), State::Clean)),
                Some(Ok(_)) | None => Ok(()),
            }
        };
        match within(manner.trip_max, trip).await? {
            Ok(()) => {
                self.state = State::Clean;
                Ok(())
            }
            Err((trouble, state)) => {
                self.state = self.after(&trouble, state);
                Err(trouble)
            }
        }
    }
}

impl Session for PgSession {
    type Row = PgRow;

    fn begin(
        &mut self,
        calls: Vec<Call>,
    ) -> impl Future<Output = Result<Begun<PgRow>, Trouble>> + Send {
        self.try_begin(calls)
    }

    fn ask(
        &mut self,
        calls: Vec<Call>,
    ) -> impl Future<Output = Result<Vec<Vec<PgRow>>, Trouble>> + Send {
        self.try_ask(calls)
    }

    fn finish(&mut self, calls: Vec<Call>) -> impl Future<Output = Result<(), Trouble>> + Send {
        self.try_finish(calls)
    }

    async fn roll_back(&mut self) {
        let most = self.manner.trip_max;
        if self.state == State::Clean {
            return;
        }
        // If it fails the connection is given up, and the server takes back by itself.
        let Ok(client) = self.set_out(&[State::Open, State::Failed]) else { return };
        if let Ok(Ok(_)) = within(most, request(client, Request::Plain("rollback"))).await {
            self.state = State::Clean;
        }
    }
}

impl Trouble {
    /// The same, where the end of the transaction was not sent yet.
    fn before_the_end(self) -> Trouble {
        match self {
            Trouble::Server { kind: Kind::Cut, problem } => Trouble::server(Kind::Away, problem),
            other => other,
        }
    }
}

/// Waits for an answer, but not for ever: a connection may be dead without anybody knowing.
async fn within<T>(most: Duration, trip: impl Future<Output = T>) -> Result<T, Trouble> {
    tokio::time::timeout(most, trip).await.map_err(|_| {
        Trouble::server(Kind::Cut, format!("the server did not answer within {most:?}"))
    })
}

/// Calls with their texts.
fn texts<'a>(manner: &'a Manner, calls: &'a [Call]) -> Vec<(&'a str, &'a [Param])> {
    calls.iter().map(|call| (manner.texts.of(call.sql), call.params.as_slice())).collect()
}

/// Calls as requests. What this connection has not seen yet is prepared, all in one trip.
async fn prepare<'a>(
    client: &ClientWrapper,
    statements: Statements,
    calls: &'a [(&'a str, &'a [Param])],
) -> Result<impl Iterator<Item = Request<'a>> + use<'a>, Error> {
    let prepared = match statements {
        Statements::Sent => Vec::new(),
        Statements::Prepared => {
            let preparing = calls.iter().map(|(text, params)| async move {
                let types: Vec<Type> = params.iter().map(Param::type_of).collect();
                client.prepare_typed_cached(text, &types).await
            });
            in_one_trip(preparing.collect()).await.into_iter().collect::<Result<_, _>>()?
        }
    };
    let mut prepared = prepared.into_iter();
    Ok(calls.iter().map(move |(text, params)| match prepared.next() {
        Some(statement) => Request::Prepared(statement, params),
        None => Request::Sent(text, params),
    }))
}

#[cfg(test)]
impl PgSession {
    /// As on a server that was made a standby.
    pub(crate) async fn read_only(&self) {
        let client = self.client.as_ref().expect("a connection");
        client.batch_execute("set transaction read only").await.expect("is read only");
    }

    /// The port of the server.
    pub(crate) async fn port(&mut self) -> Option<i32> {
        let client = self.client.as_ref()?;
        client.query_one("select inet_server_port()", &[]).await.ok()?.get(0)
    }

    /// Whether the connection is encrypted, as the server sees it.
    pub(crate) async fn encrypted(&mut self) -> Option<bool> {
        let client = self.client.as_ref()?;
        let asked = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
        client.query_one(asked, &[]).await.ok()?.get(0)
    }
}
