//! What the tests of the public API share.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::disallowed_methods, reason = "tests wait for the real world")]

pub(crate) mod check;
pub(crate) mod fleet;
pub(crate) mod load;
pub(crate) mod planted;
pub(crate) mod toy;
pub(crate) mod work;

use durably::{Client, Engine, EngineBuilder, Handle, WorkflowRef};
use durably_store::memory::MemoryStore;
use durably_testbed::{Database, Kind, Server, ServerOptions};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A store for one test: its URL, and the folder that goes with it.
pub(crate) struct TestStore {
    pub(crate) url: String,
    memory: Option<Arc<MemoryStore>>,
    folder: tempfile::TempDir,
    /// A schema of its own, which goes with it.
    _database: Option<Database>,
}

impl TestStore {
    /// The store in memory, if it is one.
    pub(crate) fn in_memory(&self) -> Option<&MemoryStore> {
        self.memory.as_deref()
    }

    /// The bytes of all files, if it has any.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![];
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                bytes.extend(std::fs::read(path).unwrap());
            }
        }
        bytes
    }

    /// Starts an engine; those that are started so share one store.
    pub(crate) async fn start(&self, engine: EngineBuilder) -> Engine {
        match &self.memory {
            Some(memory) => engine.start_on(memory.clone()).await.unwrap(),
            None => engine.start(&self.url).await.unwrap(),
        }
    }
}

pub(crate) fn memory() -> TestStore {
    let memory = Some(Arc::new(MemoryStore::new()));
    let folder = tempfile::tempdir().unwrap();
    TestStore { url: "memory:".into(), memory, folder, _database: None }
}

pub(crate) fn sqlite() -> TestStore {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("test.db").display());
    TestStore { url, memory: None, folder, _database: None }
}

pub(crate) fn postgres() -> TestStore {
    on(Database::postgres("durably").unwrap())
}

pub(crate) fn mysql() -> TestStore {
    on(Database::mysql("durably").unwrap())
}

fn on(database: Database) -> TestStore {
    let (url, folder) = (database.url().to_owned(), tempfile::tempdir().unwrap());
    TestStore { url, memory: None, folder, _database: Some(database) }
}

/// One test for each store that ends with the engine, and for those that do not.
#[macro_export]
macro_rules! on_every_store {
    ($($name:ident),+ $(,)?) => {
        mod on_memory {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(&$crate::common::memory()).await; })+
        }
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(&$crate::common::sqlite()).await; })+
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(&$crate::common::postgres()).await; })+
        }
        mod on_mysql {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(&$crate::common::mysql()).await; })+
        }
    };
}

/// One test for each kind of server.
#[macro_export]
macro_rules! on_every_server {
    ($($name:ident),+ $(,)?) => {
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(durably_testbed::Kind::Postgres).await; })+
        }
        mod on_mysql {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name(durably_testbed::Kind::Mysql).await; })+
        }
    };
}

/// A schema or database on the server that tests share.
pub(crate) fn database(kind: Kind) -> Database {
    match kind {
        Kind::Postgres => Database::postgres("failures").unwrap(),
        Kind::Mysql => Database::mysql("failures").unwrap(),
    }
}

/// A server of one's own, and a place in it.
pub(crate) fn own_server(kind: Kind, options: &ServerOptions) -> (Server, Database) {
    let server = match kind {
        Kind::Postgres => Server::postgres(options).unwrap(),
        Kind::Mysql => Server::mariadb(options).unwrap(),
    };
    let database = Database::on(&server.url(), "failures").unwrap();
    (server, database)
}

/// A URL with a parameter.
pub(crate) fn with(url: &str, parameter: &str) -> String {
    let mark = if url.contains('?') { '&' } else { '?' };
    format!("{url}{mark}{parameter}")
}

/// Waits until a condition holds; fails loudly if it never does.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let condition = || {
        let holds = condition();
        async move { holds.await.then_some(()) }
    };
    until_some(what, condition).await;
}

/// Waits until there is something, and gives it; fails loudly if there never is.
pub(crate) async fn until_some<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await; // tidy: polls for a condition
    }
}

/// Starts runs, all at once.
pub(crate) async fn start_all(
    client: &Client,
    workflow: WorkflowRef<u32, u32>,
    runs: u32,
) -> Vec<Handle<u32>> {
    let starts = (0..runs).map(|n| client.start(workflow, &n));
    let started = client.start_many(starts).await.unwrap();
    started.into_iter().map(|start| start.unwrap()).collect()
}

/// The names of a run's events.
pub(crate) async fn events<O>(run: &Handle<O>) -> Vec<String> {
    let page = run.history(durably::Seq(0), 10_000).await.unwrap();
    page.events.iter().map(|row| row.event.name().to_owned()).collect()
}

pub(crate) async fn count<O>(run: &Handle<O>, name: &str) -> usize {
    events(run).await.iter().filter(|event| *event == name).count()
}
