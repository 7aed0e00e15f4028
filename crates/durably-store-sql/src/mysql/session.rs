//! A connection in the hands of one command.

use crate::error::{Kind, Trouble};
use crate::mysql::error::{trouble, trouble_before_commit, trouble_of_commit};
use crate::mysql::line::{Line, calls_of};
use crate::mysql::param::MyRow;
use crate::mysql::pool::{Connections, Held};
use crate::mysql::settings::Settings;
use crate::mysql::template::{Chunk, Template};
use crate::mysql::writer;
use crate::session::{Began, Begun, Call, Fields, Session};
use crate::text::{Dialect, Sql, Texts, render};
use durably_kernel::Timestamp;
use durably_store::Clock;
use mysql_async::{Error, Row, Value};
use std::future::Future;
use std::time::Duration;

/// Both in one trip.
const BEGIN: &str = concat!(include_str!("../../sql/mysql/now.sql"), "; start transaction");
/// Both in one trip, and on a node of a cluster.
const BEGIN_ON_NODE: &str =
    concat!(include_str!("../../sql/mysql/now_writer.sql"), "; start transaction");

/// What the connection is in the middle of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing.
    Clean,
    /// A transaction.
    Open,
    /// A transaction in which a statement failed. MySQL would commit the others: it may take back
    /// only the statement.
    Failed,
    /// It was given up.
    Lost,
}

/// A connection in the hands of one command. Only a clean one goes back to the others.
pub(crate) struct MySession {
    connections: Connections,
    /// Nothing while a question is under way, and after one that was given up.
    held: Option<Held>,
    state: State,
}

impl Drop for MySession {
    fn drop(&mut self) {
        if let (Some(held), State::Clean) = (self.held.take(), self.state) {
            self.connections.give_back(held);
        }
    }
}

/// A statement with the calls that it needs.
struct Asked<'a> {
    sql: Sql,
    template: &'a Template,
    chunks: Vec<(Chunk, Vec<Value>)>,
}

impl MySession {
    pub(super) fn new(connections: Connections, held: Held) -> MySession {
        MySession { connections, held: Some(held), state: State::Clean }
    }

    /// The node of a cluster to which it leads.
    #[cfg(test)]
    pub(super) fn node(&self) -> Option<&str> {
        self.held.as_ref().and_then(|held| held.line.node.as_deref())
    }

    /// Takes the connection for a question. Nobody has it until the answer is there.
    fn set_out(&mut self, from: &[State]) -> Result<Held, Trouble> {
        let state = std::mem::replace(&mut self.state, State::Lost);
        match self.held.take() {
            Some(held) if from.contains(&state) => Ok(held),
            _ => {
                let problem = format!("a transaction went on although it was {state:?}");
                Err(Trouble::server(Kind::Refused, problem))
            }
        }
    }

    /// Keeps the connection after an error if it is as good as before.
    fn keep(&mut self, held: Held, trouble: &Trouble) {
        match trouble {
            Trouble::Server { kind: Kind::Repeat | Kind::Busy | Kind::Full, .. } => {
                self.held = Some(held);
                self.state = State::Failed;
            }
            // Out of reach, or only to be read: so are the others.
            Trouble::Server { kind: Kind::Away | Kind::Cut, .. } => {
                drop(held);
                self.connections.forget_idle();
            }
            Trouble::Server { .. } | Trouble::Damaged(_) | Trouble::Store(_) => drop(held),
        }
    }

    /// Begins a transaction; tells the time of the database in microseconds.
    async fn begin_with(&mut self, held: &mut Held) -> Result<i64, Trouble> {
        let connections = self.connections.clone();
        let manner = connections.manner();
        match begin_on(&mut held.line, manner).await {
            // It was idle, and nothing was asked yet: another one may do.
            Err(Trouble::Server { kind: Kind::Cut | Kind::Away, .. }) if held.was_idle => {
                connections.forget_idle();
                connections.replace(held).await?;
                begin_on(&mut held.line, manner).await
            }
            answer => answer,
        }
    }

    fn asked<'a>(&self, manner: &'a Manner, calls: Vec<Call>) -> Result<Vec<Asked<'a>>, Trouble> {
        let asked = |call: Call| {
            let template = manner.template(call.sql);
            let chunks = calls_of(template, call.params)?;
            Ok(Asked { sql: call.sql, template, chunks })
        };
        calls.into_iter().map(asked).collect()
    }
}

async fn begin_on(line: &mut Line, manner: &Manner) -> Result<i64, Trouble> {
    let text = if line.node.is_some() { manner.begin_on_node.as_str() } else { BEGIN };
    let rows = within(manner.trip_max, line.tell(text)).await?;
    let untold = || Trouble::server(Kind::Refused, "the server did not tell the time");
    let mut row = rows.into_iter().next().map(MyRow::from).ok_or_else(untold)?;
    let micros = row.int()?.ok_or_else(untold)?;
    if let Some(node) = &line.node {
        writer::check(node, row.text()?.as_deref())?;
    }
    Ok(micros)
}

/// What the sessions of a store have in common.
pub(crate) struct Manner {
    /// Statements by their number.
    templates: Vec<Template>,
    begin_on_node: String,
    clock: Clock,
    /// How long the server may take to answer before the connection is given up.
    trip_max: Duration,
}

impl Manner {
    pub(crate) fn new(settings: &Settings, clock: Clock) -> Result<Manner, Trouble> {
        let texts = Texts::new(Dialect::Mysql, &settings.naming);
        let mut all = Sql::ALL.to_vec();
        all.sort();
        let template = |sql: Sql| {
            let wrong = |problem| Trouble::server(Kind::Refused, format!("{sql:?}: {problem}"));
            Template::parse(texts.of(sql)).map_err(wrong)
        };
        let templates = all.into_iter().map(template).collect::<Result<_, _>>()?;
        let begin_on_node = render(BEGIN_ON_NODE, Dialect::Mysql, &settings.naming);
        Ok(Manner { templates, begin_on_node, clock, trip_max: settings.answer_max })
    }

    fn template(&self, sql: Sql) -> &Template {
        &self.templates[sql as usize]
    }
}

/// The answer, or what is known without one.
async fn within<T>(
    max: Duration,
    trip: impl Future<Output = Result<T, Error>>,
) -> Result<T, Trouble> {
    match tokio::time::timeout(max, trip).await {
        Ok(answer) => answer.map_err(|error| trouble(&error)),
        Err(_) => Err(no_answer(max)),
    }
}

fn no_answer(max: Duration) -> Trouble {
    Trouble::server(Kind::Cut, format!("no answer for {} s", max.as_secs()))
}

async fn ask_all(line: &mut Line, asked: Vec<Asked<'_>>) -> Result<Vec<Vec<Row>>, Error> {
    let mut answers = Vec::with_capacity(asked.len());
    for Asked { sql, template, chunks } in asked {
        answers.push(line.ask(sql, template, chunks).await?);
    }
    Ok(answers)
}

/// How a transaction that was to be finished failed.
fn of_finish(answer: Result<Result<(), Trouble>, Duration>, sent: bool) -> Result<(), Trouble> {
    match (answer, sent) {
        (Ok(answer), _) => answer,
        (Err(max), true) => Err(no_answer(max)),
        (Err(max), false) => match no_answer(max) {
            Trouble::Server { problem, .. } => Err(Trouble::server(Kind::Away, problem)),
            trouble => Err(trouble),
        },
    }
}

impl Session for MySession {
    type Row = MyRow;

    async fn begin(&mut self, calls: Vec<Call>) -> Result<Begun<MyRow>, Trouble> {
        let mut held = self.set_out(&[State::Clean])?;
        let micros = match self.begin_with(&mut held).await {
            Ok(micros) => micros,
            Err(trouble) => {
                self.keep(held, &trouble);
                return Err(trouble);
            }
        };
        (self.held, self.state) = (Some(held), State::Open);
        let now = match &self.connections.manner().clock {
            Clock::Database => Timestamp(micros.div_euclid(1000)),
            Clock::Manual(clock) => clock.now(),
        };
        let answers = if calls.is_empty() { Vec::new() } else { self.ask(calls).await? };
        Ok((Began { now, micros }, answers))
    }

    async fn ask(&mut self, calls: Vec<Call>) -> Result<Vec<Vec<MyRow>>, Trouble> {
        let connections = self.connections.clone();
        let manner = connections.manner();
        let asked = self.asked(manner, calls)?;
        // Outside of a transaction each statement is one of its own.
        let state = self.state;
        let mut held = self.set_out(&[State::Clean, State::Open])?;
        match within(manner.trip_max, ask_all(&mut held.line, asked)).await {
            Ok(answers) => {
                (self.held, self.state) = (Some(held), state);
                let rows = |rows: Vec<Row>| rows.into_iter().map(MyRow::from).collect();
                Ok(answers.into_iter().map(rows).collect())
            }
            Err(trouble) => {
                self.keep(held, &trouble);
                Err(trouble)
            }
        }
    }

    async fn finish(&mut self, calls: Vec<Call>) -> Result<(), Trouble> {
        let connections = self.connections.clone();
        let manner = connections.manner();
        let asked = self.asked(manner, calls)?;
        let mut held = self.set_out(&[State::Open])?;
        let mut sent = false;
        let trip = async {
            let written = ask_all(&mut held.line, asked).await;
            written.map_err(|error| trouble_before_commit(&error))?;
            sent = true;
            let committed = held.line.tell("commit").await;
            committed.map(|_| ()).map_err(|error| trouble_of_commit(&error))
        };
        let max = manner.trip_max;
        let answer = tokio::time::timeout(max, trip).await.map_err(|_| max);
        match of_finish(answer, sent) {
            Ok(()) => {
                (self.held, self.state) = (Some(held), State::Clean);
                Ok(())
            }
            Err(trouble) => {
                self.keep(held, &trouble);
                Err(trouble)
            }
        }
    }

    async fn roll_back(&mut self) {
        if self.state == State::Clean {
            return;
        }
        let max = self.connections.manner().trip_max;
        if let Ok(mut held) = self.set_out(&[State::Open, State::Failed])
            && within(max, held.line.tell("rollback")).await.is_ok()
        {
            (self.held, self.state) = (Some(held), State::Clean);
        }
    }
}
