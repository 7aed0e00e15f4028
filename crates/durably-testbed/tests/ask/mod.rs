//! Questions to servers.
#![allow(dead_code, reason = "each test binary asks some of them")]
#![allow(clippy::disallowed_methods, reason = "nothing here runs in a simulation")]

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use std::net::TcpStream;
use tokio_postgres::{Client, NoTls};
use url::Url;

pub(crate) async fn postgres_client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("it answers");
    tokio::spawn(connection);
    client
}

pub(crate) async fn postgres_number(url: &str, question: &str) -> i32 {
    let client = postgres_client(url).await;
    client.query_one(question, &[]).await.expect("one row").get(0)
}

pub(crate) async fn on_postgres(url: &str, statements: &str) {
    postgres_client(url).await.batch_execute(statements).await.expect("it obeys");
}

pub(crate) async fn mysql_connection(url: &str) -> Conn {
    let opts = OptsBuilder::from_opts(Opts::from_url(url).expect("a URL")).prefer_socket(false);
    Conn::new(opts).await.expect("it answers")
}

pub(crate) async fn mysql_number(url: &str, question: &str) -> i64 {
    let mut connection = mysql_connection(url).await;
    let number = connection.query_first(question).await.expect("it answers");
    connection.disconnect().await.expect("it says farewell");
    number.expect("one row")
}

pub(crate) async fn on_mysql(url: &str, statement: &str) {
    let mut connection = mysql_connection(url).await;
    connection.query_drop(statement).await.expect("it obeys");
    connection.disconnect().await.expect("it says farewell");
}

/// Whether nobody listens there.
pub(crate) fn refuses(url: &str) -> bool {
    let url = Url::parse(url).expect("a URL");
    let address = (url.host_str().expect("a host"), url.port().expect("a port"));
    TcpStream::connect(address).is_err()
}
