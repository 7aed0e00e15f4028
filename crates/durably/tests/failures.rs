//! A database server, or the way to it, fails under an engine that has much to do. Afterwards
//! everything completes without a restart of ours, and no run is lost or doubled.
#![allow(clippy::disallowed_methods, reason = "an outage lasts for real time")]
#![allow(clippy::print_stdout, reason = "the counts are printed")]

mod common;

use common::load::{Effects, under_load};
use common::planted::{Call, Fault, Planted};
use common::work::{self, MANY, SINGLE};
use common::{database, own_server, start_all, until, with};
use durably::{Client, RunQuery};
use durably_testbed::{Direction, Kind, Proxy, Server, ServerOptions, execute};
use futures_util::future::{join, join_all};
use std::future::{Future, IntoFuture, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

on_every_server!(
    a_server_that_crashes_and_starts_again,
    connections_that_the_server_ends,
    connections_that_are_cut,
    connections_that_fall_silent,
    commits_whose_answer_is_lost_or_that_never_arrive,
    a_server_that_may_only_be_read_for_a_while,
    a_pool_of_two_connections,
    more_connections_wanted_than_there_are,
    a_pool_that_may_not_grow_waits_for_its_own,
    calls_that_are_dropped_midway,
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
    let server = Arc::new(server);
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
            as_user(database.url(), "plain:p")
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
    // Each of the engines may want 13; four or five will do to start one.
    let options = ServerOptions::default().set("max_connections", "24");
    let (_server, database) = own_server(kind, &options);
    let effects = Effects::default();
    let mut engines = vec![];
    for _ in 0..4 {
        engines.push(work::engine(effects.ledger()).slots(16).start(database.url()).await.unwrap());
    }
    let handles = join_all(engines.iter().map(|engine| start_all(engine, MANY, 15))).await.concat();
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

/// The same URL for another user.
fn as_user(url: &str, user: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (_, place) = rest.split_once('@').unwrap();
    format!("{scheme}://{user}@{place}")
}

async fn a_pool_that_may_not_grow_waits_for_its_own(kind: Kind) {
    let (_server, database) = own_server(kind, &ServerOptions::default());
    // Its listener takes one of them.
    let user: &[&str] = match kind {
        Kind::Postgres => &[
            "create role few login password 'p' connection limit 3",
            "grant all on schema NAME to few",
        ],
        Kind::Mysql => &[
            "create user few identified by 'p' with max_user_connections 3",
            "grant all on NAME.* to few",
        ],
    };
    let user: Vec<String> = user.iter().map(|sql| sql.replace("NAME", database.name())).collect();
    database.execute(&user.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    let url = with(&as_user(database.url(), "few:p"), "pool=16");
    let client = Client::connect(&url).await.unwrap();
    let store = client.store();
    // Those that opened the store are gone.
    until("there is one", async || store.now().await.is_ok()).await;
    for _ in 0..3 {
        let asked = (0..100).map(|_| store.now());
        for answer in join_all(asked).await {
            answer.unwrap();
        }
    }
}

/// Polls a call so many times, then drops it.
async fn dropped_after<T>(polls: u32, call: impl Future<Output = T>) -> Option<T> {
    let (mut call, mut left) = (std::pin::pin!(call), polls);
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        call.as_mut().poll(context).map(Some)
    })
    .await
}

async fn calls_that_are_dropped_midway(kind: Kind) {
    const KEYS: u32 = 100;
    let database = database(kind);
    // A connection that is lost to the pool, or poisoned, would be missed.
    let client = Client::connect(&with(database.url(), "pool=2")).await.unwrap();
    let start = |n: u32| client.start(MANY, &n).idempotency_key(format!("key-{n}"));
    let mut dropped = 0;
    for n in 0..KEYS {
        let polls = n % 10;
        let (started, asked) = join(
            dropped_after(polls, start(n).into_future()),
            dropped_after(polls, client.runs(RunQuery::default())),
        )
        .await;
        dropped += u32::from(started.is_none()) + u32::from(asked.is_none());
    }
    assert!(dropped > 0, "calls that end before they are dropped prove nothing");
    let mut runs = vec![];
    for n in 0..KEYS {
        runs.push(start(n).await.unwrap().id());
    }
    let all = client.runs(RunQuery { most: 1000, ..RunQuery::default() }).await.unwrap();
    assert_eq!(all.len(), KEYS as usize, "each start is there once");
    let effects = Effects::default();
    let engine = work::engine(effects.ledger()).start(database.url()).await.unwrap();
    for run in &runs {
        engine.handle(MANY, *run).result().await.unwrap();
    }
    println!("{dropped} dropped, {:?}", common::check::check(&client, &runs, &effects.all()).await);
    engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_engine_asks_a_few_times_a_second() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let store = Planted::new(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        Fault::None
    });
    let engine = work::engine(Effects::default().ledger()).start_on(Arc::new(store)).await.unwrap();
    let (began, before) = (Instant::now(), calls.load(Ordering::SeqCst));
    tokio::time::sleep(Duration::from_secs(3)).await; // tidy: what is done in a time is counted
    let asked = calls.load(Ordering::SeqCst) - before;
    // A poll and a sweep a second, a beat in five; a slow machine asks less.
    let most = 8.0 + 3.0 * began.elapsed().as_secs_f64();
    assert!(asked > 0 && f64::from(asked) <= most, "{asked} calls");
    engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_take_longer_than_a_process_may_be_silent() {
    const RUNS: u32 = 20;
    const SILENT_MAX: Duration = Duration::from_secs(3);
    let store = Planted::new(|_, call| match call {
        Call::Commit(_) => Fault::Late(SILENT_MAX + Duration::from_secs(1)),
        _ => Fault::None,
    });
    let (store, effects) = (Arc::new(store), Effects::default());
    let mut engines = vec![];
    for _ in 0..2 {
        let engine = work::engine(effects.ledger()).slots(16).stale_after(SILENT_MAX);
        let engine = engine.beat(Duration::from_millis(200)).start_on(store.clone());
        engines.push(engine.await.unwrap());
    }
    let handles = start_all(&engines[0], SINGLE, RUNS).await;
    for handle in &handles {
        handle.result_within(Duration::from_secs(60)).await.unwrap();
    }
    let runs: Vec<_> = handles.iter().map(|handle| handle.id()).collect();
    let checked = common::check::check(&engines[0], &runs, &effects.all()).await;
    // What is done and not committed yet is still in somebody's hands, and beats say so.
    assert_eq!((checked.lost, checked.effects), (0, RUNS as usize), "nothing is done again");
}

/// Lets every process notify others, or none.
async fn may_notify(server: &Server, may: bool) {
    let statement = match may {
        true => "grant execute on function pg_notify(text, text) to public",
        false => "revoke execute on function pg_notify(text, text) from public",
    };
    let url = server.url();
    blocking(move || execute(&url, &[statement]).unwrap()).await;
}

/// As with a full queue: NOTIFY fails. Meanwhile somebody else listens and does not hear, which is
/// how queues become full.
#[tokio::test(flavor = "multi_thread")]
async fn notifications_that_the_server_refuses() {
    let (server, database) = own_server(Kind::Postgres, &ServerOptions::default());
    let grant = "grant all on schema NAME to plain".replace("NAME", database.name());
    database.execute(&["create role plain login password 'p'", &grant]).unwrap();
    let url = as_user(database.url(), "plain:p");
    let listener = server.url();
    let idles = "begin; listen \"durably:NAME:\"; select pg_sleep(4); commit";
    let idles = idles.replace("NAME", database.name());
    let deaf = tokio::task::spawn_blocking(move || execute(&listener, &[&idles]).unwrap());
    let refusals = async {
        for _ in 0..3 {
            may_notify(&server, false).await;
            let tried = url.clone();
            blocking(move || {
                execute(&tried, &["select pg_notify('a', 'b')"]).expect_err("it is refused");
            })
            .await;
            outage().await;
            may_notify(&server, true).await;
            outage().await;
        }
        deaf.await.unwrap();
    };
    println!("{:?}", under_load(&url, refusals).await);
}
