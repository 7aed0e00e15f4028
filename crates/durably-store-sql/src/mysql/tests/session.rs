use super::scene::{
    client, count, database, ground, insert, kind, load, run, run_for, session, url_of,
};
use crate::error::Kind;
use crate::mysql::open::Ground;
use crate::session::{Call, Fields, Param, Session};
use crate::text::Sql;
use durably_testbed::{Database, Direction, Proxy, Server, ServerOptions};
use futures_util::FutureExt;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

#[tokio::test]
async fn what_was_finished_is_there_and_what_was_taken_back_is_not() {
    let database = database("session");
    let ground = ground(database.url()).await;
    let mut session = session(&ground).await;
    let (began, _) = session.begin(vec![]).await.expect("begins");
    assert_eq!(began.now.0, began.micros / 1000);
    let answers = session.ask(vec![load(), insert(7), load()]).await.expect("answers");
    assert_eq!(answers.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 2]);
    session.finish((10..60).map(insert).collect()).await.expect("finished");
    let (later, _) = session.begin(vec![]).await.expect("begins again");
    assert!(later.micros > began.micros);
    session.ask(vec![insert(8)]).await.expect("an answer");
    session.roll_back().await;
    let mut rows = session.ask(vec![load()]).await.expect("an answer").remove(0);
    assert_eq!(rows.len(), 52);
    assert_eq!(rows[1].int().expect("a number"), Some(7));
    assert_eq!(rows[1].text().expect("a text").as_deref(), Some("x"));
    session.begin(vec![]).await.expect("begins");
    session.ask(vec![insert(9)]).await.expect("an answer");
    drop(session);
    assert_eq!(count(&ground).await, 52, "a transaction that was dropped is taken back");
}

/// A transaction of the test's own that has locked a row of `durable_schema`.
async fn locked(database: &Database, version: i64) -> Conn {
    let mut conn = client(database.url()).await;
    conn.query_drop("set session transaction isolation level read committed").await.expect("set");
    conn.query_drop("begin").await.expect("begins");
    let rows = "select version from durable_schema where version = ? for update";
    let rows: Vec<i64> = conn.exec(rows, (version,)).await.expect("locks");
    assert_eq!(rows, [version]);
    conn
}

#[tokio::test]
async fn a_statement_that_failed_leaves_nothing_to_commit() {
    let database = database("half");
    let ground = ground(&[database.url(), "?lock_timeout=1"].concat()).await;
    run(database.url(), "insert into durable_schema values (5, 'x', 'x', 0)").await;
    let holder = locked(&database, 5).await;
    let mut session = session(&ground).await;
    session.begin(vec![]).await.expect("begins");
    session.ask(vec![insert(6)]).await.expect("an answer");
    // The server takes back this statement alone, and would commit the one before.
    let trouble = session.ask(vec![insert(5)]).await.expect_err("the row is locked");
    assert_eq!(kind(trouble), Kind::Busy);
    let trouble = session.finish(vec![]).await.expect_err("half of it must not be kept");
    assert_eq!(kind(trouble), Kind::Refused);
    drop((session, holder));
    assert_eq!(count(&ground).await, 2);
}

#[tokio::test]
async fn a_transaction_that_met_another_one_may_be_repeated_on_its_connection() {
    let database = database("repeat");
    let ground = ground(database.url()).await;
    let mut session = session(&ground).await;
    session.begin(vec![]).await.expect("begins");
    session.ask(vec![insert(5)]).await.expect("an answer");
    let trouble = session.ask(vec![insert(5)]).await.expect_err("it is there already");
    assert_eq!(kind(trouble), Kind::Repeat);
    session.roll_back().await;
    session.begin(vec![]).await.expect("begins again");
    session.finish(vec![insert(5)]).await.expect("finished");
    assert_eq!(count(&ground).await, 2);
}

#[tokio::test]
async fn a_question_that_was_given_up_is_not_answered_to_somebody_else() {
    let database = database("dropped");
    let (proxy, ground) = behind_proxy(&database, "?pool=2").await;
    let there = |version| {
        let params = vec![Param::Int(Some(version)), Param::Text(None), Param::Text(None)];
        Call { sql: Sql::SchemaInsert, params: [params, vec![Param::Int(None)]].concat() }
    };
    for _ in 0..5 {
        let (mut asks, mut begins) = (session(&ground).await, session(&ground).await);
        asks.begin(vec![]).await.expect("begins");
        // Sent, and dropped before the answer.
        proxy.black_hole(Direction::ToClient);
        assert!(asks.ask(vec![load(), load()]).now_or_never().is_none());
        assert!(begins.begin(vec![]).now_or_never().is_none());
        proxy.forward(Direction::ToClient);
        let trouble = asks.ask(vec![load()]).await.expect_err("the connection was given up");
        assert_eq!(kind(trouble), Kind::Refused);
        drop((asks, begins));
        assert_eq!(count(&ground).await, 1);
    }
    let trouble = session(&ground).await.ask(vec![there(1)]).await;
    assert_eq!(kind(trouble.expect_err("a text is missing")), Kind::Refused);
}

/// A store through a proxy.
async fn behind_proxy(database: &Database, params: &str) -> (Proxy, Ground) {
    let proxy = Proxy::to_server_of(database.server_url()).await.expect("a proxy");
    let url = proxy.instead_of(database.url()).expect("a URL");
    let ground = ground(&[url.as_str(), params].concat()).await;
    (proxy, ground)
}

#[tokio::test]
async fn no_answer_in_time_gives_the_connection_up() {
    let database = database("silent");
    let (proxy, ground) = behind_proxy(&database, "?answer_timeout=1&connect_timeout=1").await;
    let mut open = session(&ground).await;
    open.begin(vec![]).await.expect("begins");
    let mut commits = session(&ground).await;
    commits.begin(vec![]).await.expect("begins");
    proxy.black_hole(Direction::ToClient);
    let trouble = open.ask(vec![load()]).await.expect_err("no answer");
    assert_eq!(kind(trouble), Kind::Cut);
    let trouble = commits.finish(vec![]).await.expect_err("no answer to COMMIT");
    assert_eq!(kind(trouble), Kind::Cut, "whether it was done is not known");
    let trouble = session(&ground).now_or_never();
    assert!(trouble.is_none(), "what was idle was forgotten");
    proxy.forward(Direction::ToClient);
    assert_eq!(count(&ground).await, 1);
}

#[tokio::test]
async fn connections_that_were_cut_while_idle_are_replaced() {
    let database = database("cut");
    let (proxy, ground) = behind_proxy(&database, "").await;
    let (mut first, mut second) = (session(&ground).await, session(&ground).await);
    first.begin(vec![]).await.expect("begins");
    first.finish(vec![]).await.expect("finished");
    second.begin(vec![]).await.expect("begins");
    second.finish(vec![]).await.expect("finished");
    drop((first, second));
    proxy.cut().await;
    assert_eq!(count(&ground).await, 1);
}

#[tokio::test]
async fn a_server_that_became_read_only_is_left_and_found_again() {
    let server = Server::mariadb(&ServerOptions::default()).expect("a server");
    let database = Database::on(&server.url(), "flip").expect("a database");
    let grant = "create user USER identified by 'p'; grant all on DATABASE.* to USER";
    run_for(&server.url(), grant, "plain", database.name()).await;
    let ground = ground(&url_of(database.url(), "plain", "p")).await;
    assert_eq!(count(&ground).await, 1);
    run(&server.url(), "set global read_only = on").await;
    let mut writer = session(&ground).await;
    writer.begin(vec![]).await.expect("begins");
    let trouble = writer.finish(vec![insert(5)]).await.expect_err("only to be read");
    assert_eq!(kind(trouble), Kind::Away);
    drop(writer);
    let trouble = ground.work.session().await.err().expect("no new connection either");
    assert_eq!(kind(trouble), Kind::Away);
    run(&server.url(), "set global read_only = off").await;
    assert_eq!(count(&ground).await, 1);
}

#[tokio::test]
async fn a_server_that_was_killed_and_started_again_is_used_again() {
    let server = Server::mariadb(&ServerOptions::default()).expect("a server");
    let database = Database::on(&server.url(), "killed").expect("a database");
    let ground = ground(database.url()).await;
    let mut open = session(&ground).await;
    open.begin(vec![]).await.expect("begins");
    assert_eq!(count(&ground).await, 1);
    server.stop_immediate().expect("stopped");
    let trouble = open.finish(vec![insert(5)]).await.expect_err("nobody there");
    assert_eq!(kind(trouble), Kind::Away, "COMMIT was not sent");
    server.start_again().expect("started");
    assert_eq!(count(&ground).await, 1);
}
