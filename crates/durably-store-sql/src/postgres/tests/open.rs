use super::scene::{Database, ground, insert, port_of, refusal, run, session, through, url_of};
use crate::postgres::open::{Given, open_given};
use crate::session::Session;
use durably_store::{Class, Clock, Hints, StoreError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Something that accepts connections and says the same to everybody, at once or when asked.
async fn stranger(says: &'static [u8], first: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let talk = async move {
        let mut all = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            if !first {
                let mut asked = [0; 8];
                let _ = stream.read_exact(&mut asked).await;
            }
            let _ = stream.write_all(says).await;
            match says {
                b"" => all.push(stream),
                _ => drop(stream),
            }
        }
    };
    #[allow(clippy::disallowed_methods, reason = "nothing here is simulated")]
    tokio::spawn(talk);
    port
}

#[tokio::test]
async fn what_is_no_postgres_is_called_so() {
    const GREETING: &[u8] = b"\x5b\0\0\0\x0a5.5.5-10.11.14-MariaDB\0\x04\0\0\0abcdefgh\0";
    for (says, first, problem) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), false, "web server"),
        (GREETING, true, "no PostgreSQL"),
        (b"SSH-2.0-x\r\n", true, "no PostgreSQL"),
        (b"", false, "within 1s"),
    ] {
        let port = stranger(says, first).await;
        for mode in ["disable", "prefer"] {
            let url = format!("postgres://me:s3cret@127.0.0.1:{port}/d");
            let error = refusal(&format!("{url}?connect_timeout=1&sslmode={mode}")).await;
            let text = error.to_string();
            assert!(text.contains(problem) && !text.contains("s3cret"), "{mode}: {text}");
        }
    }
}

#[tokio::test]
async fn nobody_there_is_a_matter_of_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    for host in [format!("127.0.0.1:{port}"), "nowhere.invalid".to_owned()] {
        let error = refusal(&format!("postgres://me:s3cret@{host}/d")).await;
        assert!(matches!(error.class(), Class::Transient { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(&host) && !text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_to_be_created() {
    let database = Database::new("missing");
    let port = port_of(database.server_url());
    let url = database.server_url();
    let user = &url[..url.find('@').expect("a user")];
    let error = refusal(&format!("{user}@127.0.0.1:{port}/not_there")).await;
    assert!(matches!(&error, StoreError::Open { .. }), "{error:?}");
    assert!(error.to_string().contains("create the database"), "{error}");
}

#[tokio::test]
async fn of_several_servers_the_one_that_accepts_writes_is_used() {
    let database = Database::new("several");
    let port = port_of(database.server_url());
    let silent = stranger(b"", false).await;
    let here = format!("127.0.0.1:{port}");
    let hosts = format!("127.0.0.1:1,127.0.0.1:{silent},{here}");
    let url = database.url_with("connect_timeout=1&pool=2").replace(&here, &hosts);
    let ground = ground(&url).await;
    // The silent one costs a second once, and not with every connection.
    let both = async {
        let sessions = (session(&ground).await, session(&ground).await);
        drop(sessions);
    };
    tokio::time::timeout(Duration::from_secs(1), both).await.expect("the right one is asked first");
}

#[tokio::test]
async fn a_server_that_may_only_be_read_is_not_opened() {
    let database = Database::new("reader");
    let client = database.client().await;
    let role = format!("{}_reader", database.name());
    let reader = "create role ROLE login password 'x';
        alter role ROLE set default_transaction_read_only = on";
    run(&client, reader, &role, "").await;
    let error = refusal(&url_of(&database.url(), &role, "x")).await;
    assert!(error.to_string().contains("does not allow writes"), "{error}");
    assert!(matches!(error.class(), Class::Transient { .. }), "{error}");
    run(&client, "drop role ROLE", &role, "").await;
}

#[tokio::test]
async fn a_server_that_may_lose_commits_is_refused_unless_that_is_wanted() {
    let database = Database::new("unsafe");
    let client = database.client().await;
    let role = format!("{}_lax", database.name());
    let lax = "create role ROLE login superuser password 'x';
        alter role ROLE set synchronous_commit = off";
    run(&client, lax, &role, "").await;
    let url = url_of(&database.url(), &role, "x");
    let error = refusal(&url).await;
    assert!(matches!(&error, StoreError::Unsafe { setting: "synchronous_commit", .. }), "{error}");
    drop(ground(&format!("{url}&unsafe=allowed&listen=off")).await);
    run(&client, "drop owned by ROLE cascade; drop role ROLE", &role, "").await;
}

#[tokio::test]
async fn a_pool_of_the_users_may_be_used() {
    let database = Database::new("given");
    let config = database.server_url().parse().expect("a URL");
    let manager = deadpool_postgres::Manager::new(config, tokio_postgres::NoTls);
    let pool = deadpool_postgres::Pool::builder(manager).max_size(2).build().expect("a pool");
    let url = database.url();
    let given = Given { pool: pool.clone(), url: &url, clock: Clock::Database };
    let ground = open_given(given, &Hints::default()).await.expect("opens");
    for version in 100..103 {
        let mut session = session(&ground).await;
        session.begin(vec![]).await.expect("begins");
        session.finish(vec![insert(version)]).await.expect("writes");
    }
    assert_eq!(pool.status().size, 1);
    let mut dropped = session(&ground).await;
    dropped.begin(vec![]).await.expect("begins");
    drop(dropped);
    assert_eq!(pool.status().size, 0, "what is unknown does not go back");
}

#[tokio::test]
async fn a_server_that_was_cut_off_is_found_again() {
    let database = Database::new("again");
    let proxy = database.proxy().await;
    let ground = ground(&through(&proxy, &database.url())).await;
    let mut first = session(&ground).await;
    first.begin(vec![]).await.expect("begins");
    proxy.cut().await;
    first.finish(vec![insert(100)]).await.expect_err("cut");
    drop(first);
    let mut next = session(&ground).await;
    next.begin(vec![]).await.expect("begins on a new connection");
    next.finish(vec![insert(100)]).await.expect("writes");
}
