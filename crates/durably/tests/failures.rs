//! A database server, or the way to it, fails under an engine that has much to do. Afterwards
//! everything completes without a restart of ours, and no run is lost or doubled.
#![allow(clippy::disallowed_methods, reason = "an outage lasts for real time")]
#![allow(clippy::print_stdout, reason = "the counts are printed")]

mod common;

use common::load::{Effects, under_load};
use common::work::{self, MANY};
use common::{database, own_server, start_all, until, with};
use durably_testbed::{Direction, Kind, Proxy, Server, ServerOptions, execute};
use futures_util::future::join_all;
use std::time::Duration;

on_every_server!(
    a_server_that_crashes_and_starts_again,
    connections_that_the_server_ends,
    connections_that_are_cut,
    connections_that_fall_silent,
    commits_whose_answer_is_lost_or_that_never_arrive,
    a_server_that_may_only_be_read_for_a_while,
    a_pool_of_two_connections,
    more_connections_wanted_than_there_are,
);

/// What a server that is away for a while is like.
async fn outage() {
    tokio::time::sleep(Duration::from_millis(500)).await; // tidy: an outage lasts
}

async fn blocking(work: impl FnOnce() + Send + 'static) {
    tokio::task::spawn_blocking(work).await.unwrap();
}

async fn a_server_that_crashes_and_starts_again(kind: Kind) {
    let (server, database) = own_server(kind, &ServerOptions::default());
    let server = std::sync::Arc::new(server);
    let crash = async {
        let crashing = server.clone();
        blocking(move || crashing.stop_immediate().unwrap()).await;
        outage().await;
        let starting = server.clone();
        blocking(move || starting.start_again().unwrap()).await;
    };
    println!("{:?}", under_load(database.url(), crash).await);
}

async fn connections_that_the_server_ends(kind: Kind) {
    let database = database(kind);
    let (url, end) = match kind {
        Kind::Postgres => {
            let url = with(database.url(), &format!("application_name={}", database.name()));
            let end = "select pg_terminate_backend(pid) from pg_stat_activity \
                       where application_name = 'NAME'";
            (url, end)
        }
        Kind::Mysql => {
            let end = "begin not atomic for c in (select id from information_schema.processlist \
                       where db = 'NAME') do begin declare continue handler for 1094 begin end; \
                       kill connection c.id; end; end for; end";
            (database.url().to_owned(), end)
        }
    };
    let end = end.replace("NAME", database.name());
    let ends = async {
        for _ in 0..5 {
            let (server, end) = (database.server_url().to_owned(), end.clone());
            blocking(move || execute(&server, &[&end]).unwrap()).await;
            outage().await;
        }
    };
    println!("{:?}", under_load(&url, ends).await);
}

async fn connections_that_are_cut(kind: Kind) {
    let database = database(kind);
    let proxy = Proxy::to_server_of(database.server_url()).await.unwrap();
    let cuts = async {
        for _ in 0..5 {
            proxy.cut().await;
            outage().await;
        }
        proxy.refuse().await;
        proxy.cut().await;
        outage().await;
        proxy.accept().await.unwrap();
    };
    println!("{:?}", under_load(&proxy.instead_of(database.url()).unwrap(), cuts).await);
}

async fn connections_that_fall_silent(kind: Kind) {
    let database = database(kind);
    let proxy = Proxy::to_server_of(database.server_url()).await.unwrap();
    let url =
        with(&proxy.instead_of(database.url()).unwrap(), "answer_timeout=1&connect_timeout=1");
    let silences = async {
        for direction in [Direction::ToClient, Direction::ToServer] {
            proxy.black_hole(direction);
            proxy.held_back().await;
            // Longer than anybody waits for an answer.
            tokio::time::sleep(Duration::from_millis(1500)).await; // tidy: silence lasts
            // What was held back is never delivered: these connections are dead for good.
            proxy.cut().await;
            proxy.forward(direction);
        }
        // And as after a network that came back: what was held back arrives late.
        proxy.black_hole(Direction::ToServer);
        proxy.held_back().await;
        tokio::time::sleep(Duration::from_millis(1500)).await; // tidy: silence lasts
        proxy.forward(Direction::ToServer);
    };
    println!("{:?}", under_load(&url, silences).await);
}

/// How a commit goes over the wire, and its answer.
fn is_commit(kind: Kind) -> impl FnMut(&[u8]) -> bool + Send + 'static {
    move |sent| match kind {
        Kind::Postgres => sent.ends_with(b"commit\0"),
        Kind::Mysql => sent.ends_with(b"\x03commit"),
    }
}

fn is_committed(kind: Kind) -> impl FnMut(&[u8]) -> bool + Send + 'static {
    move |answer| match kind {
        Kind::Postgres => answer.windows(7).any(|bytes| bytes == b"COMMIT\0"),
        Kind::Mysql => !answer.is_empty(),
    }
}

async fn commits_whose_answer_is_lost_or_that_never_arrive(kind: Kind) {
    let database = database(kind);
    let proxy = Proxy::to_server_of(database.server_url()).await.unwrap();
    let losses = async {
        for _ in 0..20 {
            proxy.lose_reply_once(is_commit(kind), is_committed(kind)).await;
            proxy.cut_before(is_commit(kind)).await;
        }
    };
    println!("{:?}", under_load(&proxy.instead_of(database.url()).unwrap(), losses).await);
}

/// Lets a server refuse to write, or not any more.
async fn read_only(server: &Server, kind: Kind, on: bool) {
    let statements: &[&str] = match (kind, on) {
        (Kind::Postgres, true) => {
            &["alter system set default_transaction_read_only = on", "select pg_reload_conf()"]
        }
        (Kind::Postgres, false) => {
            &["alter system reset default_transaction_read_only", "select pg_reload_conf()"]
        }
        (Kind::Mysql, true) => &["set global read_only = on"],
        (Kind::Mysql, false) => &["set global read_only = off"],
    };
    let url = server.url();
    blocking(move || execute(&url, statements).unwrap()).await;
}

async fn a_server_that_may_only_be_read_for_a_while(kind: Kind) {
    let (server, database) = own_server(kind, &ServerOptions::default());
    let url = match kind {
        Kind::Postgres => database.url().to_owned(),
        // Who may do everything may also write then.
        Kind::Mysql => {
            let grant = "grant all on NAME.* to plain".replace("NAME", database.name());
            execute(&server.url(), &["create user plain identified by 'p'", &grant]).unwrap();
            let (_, place) = database.url().split_once('@').unwrap();
            format!("mysql://plain:p@{place}")
        }
    };
    let flips = async {
        for _ in 0..3 {
            read_only(&server, kind, true).await;
            outage().await;
            read_only(&server, kind, false).await;
            outage().await;
        }
    };
    println!("{:?}", under_load(&url, flips).await);
}

async fn a_pool_of_two_connections(kind: Kind) {
    let database = database(kind);
    println!("{:?}", under_load(&with(database.url(), "pool=2"), async {}).await);
}

async fn more_connections_wanted_than_there_are(kind: Kind) {
    let options = ServerOptions::default().set("max_connections", "12");
    let (_server, database) = own_server(kind, &options);
    let effects = Effects::default();
    let mut engines = vec![];
    for _ in 0..4 {
        engines.push(work::engine(effects.ledger()).slots(16).start(database.url()).await.unwrap());
    }
    let handles = join_all(engines.iter().map(|engine| start_all(engine, MANY, 50))).await.concat();
    until("all has been done", async || effects.count() >= handles.len() * 5).await;
    let runs: Vec<_> = handles.iter().map(|handle| handle.id()).collect();
    // Whoever goes gives its connections back; a handle keeps those of its engine.
    drop(handles);
    let last = engines.pop().unwrap();
    for engine in engines {
        engine.stop().await.unwrap();
    }
    for run in &runs {
        last.handle(MANY, *run).result().await.unwrap();
    }
    println!("{:?}", common::check::check(&last, &runs, &effects.all()).await);
}
