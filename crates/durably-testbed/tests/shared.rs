//! The servers that all tests share, and the places in them.

mod ask;

use ask::{mysql_number, postgres_number, refuses};
use durably_testbed::Database;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

#[tokio::test]
async fn shared_postgres_answers() {
    let url = durably_testbed::postgres().expect("there is a server");
    assert_eq!(postgres_number(&url, "SELECT 1").await, 1);
    let version = postgres_number(&url, "SELECT current_setting('server_version_num')::int").await;
    assert!(version >= 130_000, "{version}");
    assert_eq!(url, durably_testbed::postgres().expect("it is still there"));
}

#[tokio::test]
async fn shared_mysql_answers() {
    let url = durably_testbed::mysql().expect("there is a server");
    assert_eq!(mysql_number(&url, "SELECT 1").await, 1);
    assert_eq!(url, durably_testbed::mysql().expect("it is still there"));
}

#[tokio::test]
async fn shared_servers_keep_what_they_acknowledge() {
    let url = durably_testbed::postgres().expect("there is a server");
    let durable = "SELECT count(*)::int FROM pg_settings WHERE setting = 'on' AND name IN \
                   ('fsync', 'synchronous_commit', 'full_page_writes')";
    assert_eq!(postgres_number(&url, durable).await, 3);
    let url = durably_testbed::mysql().expect("there is a server");
    assert_eq!(mysql_number(&url, "SELECT @@innodb_flush_log_at_trx_commit").await, 1);
}

#[tokio::test]
async fn postgres_schemas_are_separate_and_end_with_their_test() {
    let one = Database::postgres("Separate one").expect("a schema");
    let two = Database::postgres("separate two").expect("another");
    assert!(one.url().ends_with(&format!("/postgres?schema={}", one.name())), "{}", one.url());
    for (database, number) in [(&one, 1), (&two, 2)] {
        let fill = format!("CREATE TABLE {}.place AS SELECT {number} AS n", database.name());
        ask::on_postgres(database.server_url(), &fill).await;
    }
    for (database, number) in [(&one, 1), (&two, 2)] {
        let read = format!("SELECT n FROM {}.place", database.name());
        assert_eq!(postgres_number(database.server_url(), &read).await, number);
    }
    let count = format!(
        "SELECT count(*)::int FROM pg_namespace WHERE nspname IN ('{}', '{}')",
        one.name(),
        two.name()
    );
    let server_url = one.server_url().to_owned();
    assert_eq!(postgres_number(&server_url, &count).await, 2);
    drop((one, two));
    assert_eq!(postgres_number(&server_url, &count).await, 0);
}

#[tokio::test]
async fn mysql_databases_are_separate_and_end_with_their_test() {
    let one = Database::mysql("Separate one").expect("a database");
    let two = Database::mysql("separate two").expect("another");
    assert!(one.url().ends_with(&format!("/{}", one.name())), "{}", one.url());
    for (database, number) in [(&one, 1), (&two, 2)] {
        ask::on_mysql(database.url(), &format!("CREATE TABLE place AS SELECT {number} AS n")).await;
    }
    for (database, number) in [(&one, 1), (&two, 2)] {
        assert_eq!(mysql_number(database.url(), "SELECT n FROM place").await, number);
    }
    let count = format!(
        "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name IN ('{}', '{}')",
        one.name(),
        two.name()
    );
    let server_url = one.server_url().to_owned();
    assert_eq!(mysql_number(&server_url, &count).await, 2);
    drop((one, two));
    assert_eq!(mysql_number(&server_url, &count).await, 0);
}

#[test]
fn a_url_of_something_else_is_refused() {
    let error = Database::on("redis://somebody:secret@127.0.0.1/", "x").expect_err("not ours");
    let text = error.to_string();
    assert!(text.contains("neither postgres: nor mysql:") && !text.contains("secret"), "{text}");
}

/// A process that uses a shared server until it is killed. Those in one ground share it, and nobody
/// else does.
struct User {
    process: Child,
    url: String,
}

impl User {
    fn begin(ground: &Ground, kind: &str) -> User {
        let mut process = Command::new(env!("CARGO_BIN_EXE_durably-testbed"))
            .args([kind, "--shared", "--", "sh", "-c", "echo $DURABLY_STORE_URL && exec cat"])
            .env("TMPDIR", ground.0.path())
            .env_remove("DURABLY_TEST_POSTGRES_URL")
            .env_remove("DURABLY_TEST_MYSQL_URL")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("our own program runs");
        let mut url = String::new();
        let output = process.stdout.take().expect("it is a pipe");
        BufReader::new(output).read_line(&mut url).expect("it says where the server is");
        assert!(url.starts_with(kind), "{url:?}");
        User { process, url: url.trim_end().to_owned() }
    }

    /// SIGKILL, which no process can prepare for.
    fn kill(mut self) {
        self.process.kill().expect("it lives");
        self.process.wait().expect("it is ours");
    }
}

/// A folder for temporary files, with shared servers of its own.
struct Ground(TempDir);

impl Ground {
    fn new() -> Ground {
        let ground = tempfile::tempdir().expect("a folder");
        let open = Permissions::from_mode(0o755);
        std::fs::set_permissions(ground.path(), open).expect("it is ours");
        Ground(ground)
    }

    fn folders(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.0.path()).expect("it is there");
        entries.map(|entry| entry.expect("it can be read").path()).collect()
    }

    fn run(&self, arguments: &[&str]) {
        let status = Command::new(env!("CARGO_BIN_EXE_durably-testbed"))
            .args(arguments)
            .env("TMPDIR", self.0.path())
            .status();
        assert!(status.expect("our own program runs").success(), "{arguments:?}");
    }
}

fn supervisor_lock(folder: &Path) -> File {
    OpenOptions::new().write(true).open(folder.join("supervisor.lock")).expect("it is there")
}

#[test]
fn processes_share_a_postgres_that_is_gone_after_the_last_was_killed() {
    share_and_be_killed("postgres");
}

#[test]
fn processes_share_a_mariadb_that_is_gone_after_the_last_was_killed() {
    share_and_be_killed("mysql");
}

fn share_and_be_killed(kind: &str) {
    let ground = Ground::new();
    let first = User::begin(&ground, kind);
    let second = User::begin(&ground, kind);
    assert_eq!(first.url, second.url);
    first.kill();
    // Also after the one that started the server is gone.
    let third = User::begin(&ground, kind);
    assert_eq!(second.url, third.url);
    second.kill();
    let folders = ground.folders();
    let [folder] = folders.as_slice() else { panic!("{folders:?}") };
    let ended = supervisor_lock(folder);
    let url = third.url.clone();
    third.kill();
    ended.lock().expect("held until the supervisor ends");
    assert!(ground.folders().is_empty(), "{:?}", ground.folders());
    assert!(refuses(&url), "{url} still answers");
}

#[test]
fn a_shared_server_can_be_sent_away_at_once_but_not_while_it_is_used() {
    let ground = Ground::new();
    let user = User::begin(&ground, "postgres");
    ground.run(&["stop-unused"]);
    assert!(!refuses(&user.url));
    let url = user.url.clone();
    user.kill();
    ground.run(&["stop-unused"]);
    assert!(ground.folders().is_empty(), "{:?}", ground.folders());
    assert!(refuses(&url));
}

#[test]
fn a_supervisor_that_was_killed_takes_its_server_along_and_is_replaced() {
    let ground = Ground::new();
    let user = User::begin(&ground, "postgres");
    let folder = ground.folders().remove(0);
    let pid = std::fs::read_to_string(folder.join("supervisor.pid")).expect("it says who it is");
    let killed = Command::new("kill").args(["-KILL", pid.trim()]).status();
    assert!(killed.expect("kill runs").success());
    supervisor_lock(&folder).lock().expect("held until the supervisor ends");
    let next = User::begin(&ground, "postgres");
    assert_ne!(user.url, next.url);
    assert!(!refuses(&next.url));
    user.kill();
    next.kill();
    ground.run(&["stop-unused"]);
    assert!(ground.folders().is_empty(), "{:?}", ground.folders());
}
