//! The proxy's faults, on a server that echoes and on real ones.
#![allow(clippy::disallowed_methods, reason = "nothing here runs in a simulation")]

mod ask;

use durably_testbed::{Database, Direction, Proxy};
use mysql_async::prelude::Queryable;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A server that answers each piece with the same, and tells the test what it got: a piece, or
/// nothing at the end of a connection, however that came.
async fn echo_server() -> (std::net::SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it has one");
    let (tell, got) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let mut chunk = [0; 1024];
                while let Ok(length @ 1..) = stream.read(&mut chunk).await {
                    // The test may be over.
                    let _ = tell.send(String::from_utf8_lossy(&chunk[..length]).into_owned());
                    if stream.write_all(&chunk[..length]).await.is_err() {
                        break;
                    }
                }
                let _ = tell.send(String::new());
            });
        }
    });
    (address, got)
}

/// A proxy to an echo server, and a client that has had one answer through it.
struct Line {
    proxy: Proxy,
    client: TcpStream,
    got: mpsc::UnboundedReceiver<String>,
}

impl Line {
    async fn new() -> Line {
        let (address, got) = echo_server().await;
        let proxy = Proxy::to(address).await.expect("a proxy");
        let client = TcpStream::connect(proxy.address()).await.expect("it listens");
        let mut line = Line { proxy, client, got };
        line.exchange("hello").await;
        line
    }

    async fn send(&mut self, text: &str) {
        self.client.write_all(text.as_bytes()).await.expect("the proxy reads");
    }

    async fn server_gets(&mut self, text: &str) {
        assert_eq!(self.got.recv().await.expect("the server runs"), text);
    }

    async fn answer(&mut self, text: &str) {
        let mut answer = vec![0; text.len()];
        self.client.read_exact(&mut answer).await.expect("there is an answer");
        assert_eq!(String::from_utf8_lossy(&answer), text);
    }

    async fn exchange(&mut self, text: &str) {
        self.send(text).await;
        self.server_gets(text).await;
        self.answer(text).await;
    }

    async fn reconnect(&mut self) {
        self.client = TcpStream::connect(self.proxy.address()).await.expect("it listens");
    }

    /// The client finds its connection broken, without an answer before.
    async fn is_cut(&mut self) {
        self.client.read_u8().await.expect_err("the connection is cut");
    }
}

#[tokio::test]
async fn bytes_and_farewells_go_both_ways() {
    let mut line = Line::new().await;
    line.exchange("one").await;
    line.exchange("two").await;
    line.client.shutdown().await.expect("it is open");
    line.server_gets("").await;
    assert_eq!(line.client.read(&mut [0]).await.expect("a clean end"), 0);
}

#[tokio::test]
async fn a_cut_ends_all_connections_and_new_ones_work() {
    let mut line = Line::new().await;
    let mut second = TcpStream::connect(line.proxy.address()).await.expect("it listens");
    second.write_all(b"second").await.expect("it is open");
    line.server_gets("second").await;
    line.proxy.cut().await;
    line.is_cut().await;
    line.server_gets("").await;
    line.server_gets("").await;
    let mut rest = Vec::new();
    // The answer may have been on its way.
    let end = second.read_to_end(&mut rest).await;
    assert!(end.is_err() || rest.len() <= "second".len());
    line.reconnect().await;
    line.exchange("again").await;
}

#[tokio::test]
async fn refused_connections_leave_open_ones_alone_and_are_taken_again() {
    let mut line = Line::new().await;
    line.proxy.refuse().await;
    let error = TcpStream::connect(line.proxy.address()).await.expect_err("nobody listens");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    line.exchange("still open").await;
    line.proxy.accept().await.expect("the port is free");
    line.reconnect().await;
    line.exchange("again").await;
}

#[tokio::test]
async fn a_black_hole_holds_questions_and_lets_them_go_later() {
    let mut line = Line::new().await;
    line.proxy.black_hole(Direction::ToServer);
    line.send("late").await;
    line.proxy.held_back().await;
    assert!(line.got.try_recv().is_err());
    line.proxy.forward(Direction::ToServer);
    line.server_gets("late").await;
    line.answer("late").await;
}

#[tokio::test]
async fn a_black_hole_of_one_direction_lets_the_other_through() {
    let mut line = Line::new().await;
    line.proxy.black_hole(Direction::ToClient);
    line.send("asked").await;
    line.server_gets("asked").await;
    line.proxy.held_back().await;
    assert!(line.client.try_read(&mut [0]).is_err());
    line.proxy.forward(Direction::ToClient);
    line.answer("asked").await;
}

#[tokio::test]
async fn a_black_hole_takes_new_connections_and_can_be_cut() {
    let mut line = Line::new().await;
    line.proxy.black_hole(Direction::Both);
    let new = TcpStream::connect(line.proxy.address()).await.expect("it listens");
    let _idle = std::mem::replace(&mut line.client, new);
    line.send("lost").await;
    line.proxy.held_back().await;
    line.proxy.cut().await;
    line.is_cut().await;
    line.proxy.forward(Direction::Both);
    line.reconnect().await;
    // The two connections that were cut; what was lost is not among them.
    line.server_gets("").await;
    line.server_gets("").await;
    line.exchange("again").await;
}

#[tokio::test]
async fn a_delay_delays_each_way() {
    let mut line = Line::new().await;
    let delay = Duration::from_millis(30);
    line.proxy.delay(Direction::Both, delay);
    let began = Instant::now();
    line.exchange("slow").await;
    assert!(began.elapsed() >= delay * 2);
}

#[tokio::test]
async fn cut_before_keeps_the_question_from_the_server() {
    let mut line = Line::new().await;
    let sprung = line.proxy.cut_before(|sent| sent.ends_with(b"COMMIT"));
    line.exchange("BEGIN").await;
    line.exchange("COMM").await;
    line.send("IT").await;
    sprung.await;
    line.is_cut().await;
    line.server_gets("").await;
    line.reconnect().await;
    line.exchange("COMMIT").await;
}

#[tokio::test]
async fn a_lost_reply_was_given_by_the_server() {
    let mut line = Line::new().await;
    line.exchange("COMMIT").await;
    let sprung = line.proxy.lose_reply(|sent| sent.ends_with(b"COMMIT"));
    line.exchange("BEGIN").await;
    line.send("COMMIT").await;
    line.server_gets("COMMIT").await;
    sprung.await;
    line.is_cut().await;
    line.server_gets("").await;
    line.reconnect().await;
    line.exchange("COMMIT").await;
}

#[tokio::test]
async fn a_lost_reply_can_be_a_later_one() {
    let mut line = Line::new().await;
    let sprung =
        line.proxy.lose_reply_once(|sent| sent == b"first", |answer| answer.ends_with(b"last"));
    line.send("first").await;
    line.server_gets("first").await;
    line.send("last").await;
    line.server_gets("last").await;
    sprung.await;
    line.is_cut().await;
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn postgres_commits_whose_reply_was_lost_stand_and_those_cut_before_do_not() {
    let database = Database::postgres("lost_commit").expect("a schema");
    let server_url = database.server_url();
    let table = format!("{}.kept", database.name());
    ask::on_postgres(server_url, &format!("CREATE TABLE {table} (n int)")).await;
    let proxy = Proxy::to_server_of(server_url).await.expect("a proxy");
    let url = proxy.instead_of(server_url).expect("a URL");
    for (number, lost) in [(1, false), (2, true)] {
        let client = ask::postgres_client(&url).await;
        client
            .batch_execute(&format!("BEGIN; INSERT INTO {table} VALUES ({number})"))
            .await
            .expect("it obeys");
        let is_commit = |sent: &[u8]| contains(sent, "COMMIT");
        let sprung = if lost { proxy.lose_reply(is_commit) } else { proxy.cut_before(is_commit) };
        client.batch_execute("COMMIT").await.expect_err("the connection is cut");
        sprung.await;
    }
    let count = format!("SELECT sum(n)::int FROM {table}");
    assert_eq!(ask::postgres_number(server_url, &count).await, 2);
}

#[tokio::test]
async fn mariadb_commits_whose_reply_was_lost_stand_and_those_cut_before_do_not() {
    let database = Database::mysql("lost_commit").expect("a database");
    ask::on_mysql(database.url(), "CREATE TABLE kept (n INT) ENGINE = InnoDB").await;
    let proxy = Proxy::to_server_of(database.url()).await.expect("a proxy");
    let url = proxy.instead_of(database.url()).expect("a URL");
    for (number, lost) in [(1, false), (2, true)] {
        let mut connection = ask::mysql_connection(&url).await;
        connection.query_drop("BEGIN").await.expect("it obeys");
        let insert = format!("INSERT INTO kept VALUES ({number})");
        connection.query_drop(insert).await.expect("it obeys");
        let is_commit = |sent: &[u8]| contains(sent, "COMMIT");
        let sprung = if lost { proxy.lose_reply(is_commit) } else { proxy.cut_before(is_commit) };
        connection.query_drop("COMMIT").await.expect_err("the connection is cut");
        sprung.await;
    }
    let sum = "SELECT CAST(SUM(n) AS SIGNED) FROM kept";
    assert_eq!(ask::mysql_number(database.url(), sum).await, 2);
}
