use super::scene::{client, count, database, ground, refusal, run, run_for, url_of};
use durably_store::{Class, StoreError};
use durably_testbed::{Database, Server, ServerOptions};
use mysql_async::prelude::Queryable;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

/// Something that accepts connections and says the same to everybody.
async fn stranger(says: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let talk = async move {
        let mut all = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(says).await;
            all.push(stream);
        }
    };
    #[allow(clippy::disallowed_methods, reason = "nothing here is simulated")]
    tokio::spawn(talk);
    port
}

#[tokio::test]
async fn what_is_no_mysql_is_called_so() {
    for (says, problem) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), "does not speak as MySQL"),
        (b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n", "does not speak as MySQL"),
        (b"N", "within 1s"),
        (b"", "within 1s"),
    ] {
        let port = stranger(says).await;
        let url = format!("mysql://me:s3cret@127.0.0.1:{port}/d?connect_timeout=1");
        let text = refusal(&url).await.to_string();
        assert!(text.contains(problem) && !text.contains("s3cret"), "{says:?}: {text}");
    }
}

#[tokio::test]
async fn nobody_there_is_a_matter_of_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    for host in [format!("127.0.0.1:{port}"), "nowhere.invalid".to_owned()] {
        let error = refusal(&format!("mysql://me:s3cret@{host}/d")).await;
        assert!(matches!(error.class(), Class::Transient { .. }), "{error}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn who_may_not_is_told_what_is_missing() {
    let database = database("rights");
    let name = database.name();
    let user = format!("u{}", &name[name.len() - 12..]);
    let server = database.server_url();
    let text = "create user USER identified by 'p'; grant select on DATABASE.* to USER";
    run_for(server, text, &user, name).await;
    let url = |user: &str, password: &str| url_of(database.url(), user, password);
    let missing = database.url().replace(name, "not_there");
    for (url, hint) in [
        (url(&user, "wrong"), "check user and password"),
        (url("nobody_such", "p"), "check user and password"),
        (url(&user, "p").replace(name, "mysql"), "grant"),
        (url(&user, "p"), "grant"),
        (missing, "create the database"),
    ] {
        let error = refusal(&url).await;
        assert!(matches!(error, StoreError::Open { .. }), "{error:?}");
        assert!(error.to_string().contains(hint), "{error}");
    }
    ground(database.url()).await;
    run_for(server, "grant insert, update, delete on DATABASE.* to USER", &user, name).await;
    let ground = ground(&url(&user, "p")).await;
    assert_eq!(count(&ground).await, 1, "who finds everything done needs no right to create");
    run_for(server, "drop user USER", &user, name).await;
}

#[tokio::test]
async fn of_several_servers_the_first_that_can_be_written_is_used() {
    let database = database("several");
    let silent = stranger(b"").await;
    let (user, rest) = database.url().split_once('@').expect("a user");
    let url = format!("{user}@127.0.0.1:{silent},{rest}?connect_timeout=1");
    let ground = ground(&url).await;
    assert_eq!(count(&ground).await, 1);
    let text = refusal(&format!("{user}@127.0.0.1:{silent},127.0.0.1:1/d?connect_timeout=1"))
        .await
        .to_string();
    assert!(text.contains(&silent.to_string()) && text.contains("127.0.0.1:1:"), "{text}");
}

#[tokio::test]
async fn a_server_that_does_not_keep_its_promises_is_refused() {
    let options = ServerOptions::default()
        .set("innodb_flush_log_at_trx_commit", "2")
        .set("max_allowed_packet", "1M");
    let server = Server::mariadb(&options).expect("a server");
    let database = Database::on(&server.url(), "unsafe").expect("a database");
    let text = refusal(database.url()).await.to_string();
    assert!(text.contains("max_allowed_packet"), "{text}");
    run(&server.url(), "set global max_allowed_packet = 64 * 1024 * 1024").await;
    let error = refusal(database.url()).await;
    assert!(
        matches!(&error, StoreError::Unsafe { setting, .. }
            if *setting == "innodb_flush_log_at_trx_commit"),
        "{error:?}"
    );
    let ground = ground(&[database.url(), "?unsafe=allowed"].concat()).await;
    assert_eq!(count(&ground).await, 1);
}

#[tokio::test]
async fn connections_are_set_up_whatever_the_server_is_set_to() {
    let options = ServerOptions::default()
        .set("autocommit", "0")
        .set("sql_mode", "ANSI_QUOTES,PIPES_AS_CONCAT")
        .set("default_time_zone", "-07:00")
        .set("character_set_server", "latin1")
        .set("transaction_isolation", "SERIALIZABLE");
    let server = Server::mariadb(&options).expect("a server");
    let database = Database::on(&server.url(), "odd").expect("a database");
    let ground = ground(database.url()).await;
    assert_eq!(count(&ground).await, 1);
    let mut conn = client(database.url()).await;
    let real = "select timestampdiff(second, '1970-01-01', utc_timestamp()), applied_at \
                from durable_schema";
    let times: Option<(i64, i64)> = conn.query_first(real).await.expect("times");
    let (now, applied) = times.expect("a row");
    assert!((now * 1000 - applied).abs() < 60_000, "{now} s, {applied} ms");
}
