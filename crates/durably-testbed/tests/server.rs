//! Servers of one's own.

mod ask;

use ask::{mysql_number, on_mysql, on_postgres, postgres_number, refuses};
use durably_testbed::{Database, Server, ServerOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

const COUNT: &str = "SELECT n FROM kept";

#[tokio::test]
async fn postgres_stopped_at_once_has_what_was_committed_when_it_is_back() {
    let server = Server::postgres(&ServerOptions::default()).expect("it starts");
    let (url, folder) = (server.url(), server.folder().to_owned());
    on_postgres(&url, "CREATE TABLE kept AS SELECT 7 AS n").await;
    server.stop_immediate().expect("it stops");
    assert!(refuses(&url));
    server.start_again().expect("it starts again");
    assert_eq!(url, server.url());
    assert_eq!(postgres_number(&url, COUNT).await, 7);
    server.stop().expect("it stops");
    assert!(refuses(&url));
    server.start_again().expect("it starts again");
    assert_eq!(postgres_number(&url, COUNT).await, 7);
    drop(server);
    assert!(refuses(&url) && !folder.exists());
}

#[tokio::test]
async fn mariadb_killed_has_what_was_committed_when_it_is_back() {
    let server = Server::mariadb(&ServerOptions::default()).expect("it starts");
    let folder = server.folder().to_owned();
    let database = Database::on(&server.url(), "kept").expect("a database");
    on_mysql(database.url(), "CREATE TABLE kept (n INT) ENGINE = InnoDB").await;
    on_mysql(database.url(), "INSERT INTO kept VALUES (7)").await;
    server.stop_immediate().expect("it stops");
    assert!(refuses(&server.url()));
    server.start_again().expect("it starts again");
    assert_eq!(mysql_number(database.url(), COUNT).await, 7);
    server.stop().expect("it stops");
    assert!(refuses(&server.url()));
    server.start_again().expect("it starts again");
    assert_eq!(mysql_number(database.url(), COUNT).await, 7);
    let url = server.url();
    drop(server);
    assert!(refuses(&url) && !folder.exists());
}

#[tokio::test]
async fn options_reach_the_server() {
    let parent = tempfile::tempdir().expect("a folder");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(parent.path(), open).expect("it is ours");
    let options =
        ServerOptions::default().without_fsync().set("max_connections", "23").below(parent.path());
    let postgres = Server::postgres(&options).expect("it starts");
    assert!(postgres.folder().starts_with(parent.path()));
    let settings = "SELECT count(*)::int FROM pg_settings WHERE (name, setting) IN \
                    (('fsync', 'off'), ('max_connections', '23'))";
    assert_eq!(postgres_number(&postgres.url(), settings).await, 2);
    let mariadb = Server::mariadb(&options).expect("it starts");
    assert!(mariadb.folder().starts_with(parent.path()));
    assert_eq!(mysql_number(&mariadb.url(), "SELECT @@max_connections").await, 23);
    let flush = "SELECT @@innodb_flush_log_at_trx_commit";
    assert_eq!(mysql_number(&mariadb.url(), flush).await, 0);
}

#[test]
fn a_server_that_does_not_start_says_why_and_leaves_nothing() {
    let parent = tempfile::tempdir().expect("a folder");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(parent.path(), open).expect("it is ours");
    let options = ServerOptions::default().set("no_such_setting", "1").below(parent.path());
    for start in [Server::postgres, Server::mariadb] {
        let error = start(&options).expect_err("it refuses").to_string();
        assert!(error.contains("did not start"), "{error}");
        assert!(error.replace('-', "_").contains("no_such_setting"), "{error}");
    }
    assert_eq!(std::fs::read_dir(parent.path()).expect("it is there").count(), 0);
}

/// Runs our program with a command that prints the URL and waits for the end of its input.
fn begin(kind: &str, then: &str) -> (Child, String) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_durably-testbed"))
        .args([kind, "--without-fsync", "--", "sh", "-c"])
        .arg(format!("echo $DURABLY_STORE_URL; read ignored; {then}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("our own program runs");
    let mut url = String::new();
    let output = process.stdout.take().expect("it is a pipe");
    BufReader::new(output).read_line(&mut url).expect("it says where the server is");
    (process, url.trim_end().to_owned())
}

#[tokio::test]
async fn a_command_runs_with_a_server_and_ends_it() {
    let (mut process, url) = begin("postgres", "exit 42");
    assert_eq!(postgres_number(&url, "SELECT 1").await, 1);
    drop(process.stdin.take());
    let status = process.wait().expect("it is ours");
    assert_eq!(status.code(), Some(42));
    assert!(refuses(&url));
    let (mut process, url) = begin("mysql", "exit 0");
    assert_eq!(mysql_number(&url, "SELECT 1").await, 1);
    drop(process.stdin.take());
    assert!(process.wait().expect("it is ours").success());
    assert!(refuses(&url));
}

#[tokio::test]
async fn a_server_does_not_outlive_its_owner_that_was_killed() {
    let (mut process, url) = begin("postgres", "true");
    let (client, connection) =
        tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("it answers");
    process.kill().expect("it lives");
    process.wait().expect("it is ours");
    // Ends when the server does.
    connection.await.expect_err("the server goes away under its clients");
    drop(client);
}
