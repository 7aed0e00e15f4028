//! A database for one test, and what tests ask of it beside the store.

use crate::error::{Kind, Trouble};
use crate::mysql::open::{Ground, open};
use crate::mysql::session::MySession;
use crate::session::{Call, Param, Session};
use crate::text::Sql;
use durably_store::{Clock, StoreError};
use durably_testbed::Database;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

pub(super) fn database(label: &str) -> Database {
    Database::mysql(label).expect("a database")
}

/// A connection of the test's own.
pub(super) async fn client(url: &str) -> Conn {
    Conn::new(Opts::from_url(url).expect("a URL")).await.expect("connects")
}

/// Runs statements on a connection of the test's own.
pub(super) async fn run(url: &str, text: &str) {
    let mut conn = client(url).await;
    conn.query_drop(text).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    conn.disconnect().await.expect("disconnects");
}

/// Runs statements in which USER and DATABASE stand for names.
pub(super) async fn run_for(url: &str, text: &str, user: &str, database: &str) {
    run(url, &text.replace("USER", user).replace("DATABASE", database)).await;
}

/// A store's URL for another user.
pub(super) fn url_of(url: &str, user: &str, password: &str) -> String {
    let at = url.find('@').expect("a user");
    format!("mysql://{user}:{password}{}", &url[at..])
}

pub(super) async fn ground(url: &str) -> Ground {
    open(url, Clock::Database).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Why a store does not open.
pub(super) async fn refusal(url: &str) -> StoreError {
    match open(url, Clock::Database).await {
        Err(error) => error,
        Ok(_) => panic!("{url} was opened"),
    }
}

pub(super) async fn session(ground: &Ground) -> MySession {
    ground.work.session().await.unwrap_or_else(|trouble| panic!("{trouble:?}"))
}

/// Reads all rows of `durable_schema`.
pub(super) fn load() -> Call {
    Call { sql: Sql::SchemaLoad, params: vec![] }
}

/// Writes a row of `durable_schema`.
pub(super) fn insert(version: i64) -> Call {
    let text = || Param::Text(Some("x".to_owned()));
    let params = vec![Param::Int(Some(version)), text(), text(), Param::Int(Some(0))];
    Call { sql: Sql::SchemaInsert, params }
}

/// How many rows `durable_schema` has for a command that begins now.
pub(super) async fn count(ground: &Ground) -> usize {
    let mut session = session(ground).await;
    session.begin(vec![]).await.expect("begins");
    let rows = session.ask(vec![load()]).await.expect("an answer").remove(0);
    session.roll_back().await;
    rows.len()
}

pub(super) fn kind(trouble: Trouble) -> Kind {
    match trouble {
        Trouble::Server { kind, .. } => kind,
        other => panic!("{other:?} is not of the server"),
    }
}
