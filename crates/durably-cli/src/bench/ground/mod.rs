//! Where it is measured: a store of its own for every pass.
//!
//! A store that the user names is looked at and otherwise left alone: databases are made in a
//! folder beside a SQLite file, so that they are on the same disk, schemas in the database of a
//! server, and both are removed afterwards. A store that is in use is refused: its work would be
//! measured too, and ours would be in its way.

mod made;
pub(super) mod mysql;
pub(super) mod postgres;
mod sqlite;

use super::address::Address;
use super::pace::{Cpu, ServerProcess};
use anyhow::{Context, ensure};
use durably::Client;
use durably_store::Store;
use mysql::Mysql;
use postgres::Postgres;
use sqlite::Sqlite;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A database server.
#[derive(Clone)]
pub(super) enum Server {
    Postgres(Arc<Postgres>),
    Mysql(Arc<Mysql>),
}

/// Makes stores.
pub(super) enum Ground {
    Memory,
    Sqlite(Sqlite),
    Server(Server),
}

impl Ground {
    /// Checks the store that a URL names, and prepares to measure beside it.
    pub(super) async fn of(url: &str) -> anyhow::Result<Ground> {
        let address = Address::of(url);
        match address.scheme().as_str() {
            "sqlite" => Ok(Ground::Sqlite(Sqlite::of(url).await?)),
            "postgres" | "postgresql" => {
                let server = Postgres::of(address).await?;
                Ok(Ground::Server(Server::Postgres(Arc::new(server))))
            }
            "mysql" | "mariadb" => {
                let server = Mysql::of(address).await?;
                Ok(Ground::Server(Server::Mysql(Arc::new(server))))
            }
            _ => {
                let shown = address.shown();
                let client = Client::connect(url).await;
                let client = client.with_context(|| format!("cannot measure on {shown}"))?;
                ensure!(client.store().kind() == "memory", "{shown} cannot be measured on yet");
                Ok(Ground::Memory)
            }
        }
    }

    /// A store with nothing in it.
    pub(super) async fn fresh(&self) -> anyhow::Result<Stage> {
        self.fresh_with(|url| url).await
    }

    /// The same, where processes do not tell each other what has changed, but look.
    pub(super) async fn fresh_polled(&self) -> anyhow::Result<Stage> {
        match self {
            Ground::Server(Server::Postgres(_)) => {
                self.fresh_with(|url| Address::of(&url).with("listen", "off").to_string()).await
            }
            Ground::Memory | Ground::Sqlite(_) | Ground::Server(Server::Mysql(_)) => {
                self.fresh().await
            }
        }
    }

    async fn fresh_with(&self, changed: impl FnOnce(String) -> String) -> anyhow::Result<Stage> {
        let (url, place) = match self {
            Ground::Memory => ("memory:".to_owned(), Place::Nowhere),
            Ground::Sqlite(sqlite) => {
                let folder = sqlite.fresh()?;
                let url = format!("sqlite:{}", folder.join("bench.db").display());
                (url, Place::Folder(folder))
            }
            Ground::Server(server) => {
                let (url, name) = server.fresh().await?;
                (url, Place::Server(server.clone(), name))
            }
        };
        let url = changed(url);
        let client = Client::connect(&url).await?;
        Ok(Stage { store: client.store(), client, url, place })
    }

    /// What kind of store it is.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Ground::Memory => "memory",
            Ground::Sqlite(_) => "sqlite",
            Ground::Server(Server::Postgres(_)) => "postgres",
            Ground::Server(Server::Mysql(_)) => "mysql",
        }
    }

    /// What is made meanwhile, in a sentence for people.
    pub(super) fn made(&self) -> Option<String> {
        match self {
            Ground::Memory => None,
            Ground::Sqlite(sqlite) => {
                let folder: &Path = sqlite.folder();
                Some(format!("databases are made in {} and removed afterwards", folder.display()))
            }
            Ground::Server(server) => {
                let (what, names) = (server.what_is_made(), server.made().names());
                Some(format!("{what} named {names} are made and dropped afterwards"))
            }
        }
    }

    /// Whether processes tell each other what has changed.
    pub(super) fn notifies(&self) -> bool {
        matches!(self, Ground::Server(Server::Postgres(_)))
    }

    /// The server, where there is one.
    pub(super) fn server(&self) -> Option<&Server> {
        match self {
            Ground::Server(server) => Some(server),
            Ground::Memory | Ground::Sqlite(_) => None,
        }
    }
}

impl Server {
    async fn fresh(&self) -> anyhow::Result<(String, String)> {
        match self {
            Server::Postgres(server) => Ok(server.fresh()),
            Server::Mysql(server) => server.fresh().await,
        }
    }

    fn made(&self) -> &made::Made {
        match self {
            Server::Postgres(server) => server.made(),
            Server::Mysql(server) => server.made(),
        }
    }

    fn what_is_made(&self) -> &'static str {
        match self {
            Server::Postgres(_) => "schemas",
            Server::Mysql(_) => "databases",
        }
    }

    fn remove(&self, name: &str) {
        match self {
            Server::Postgres(server) => server.remove(name),
            Server::Mysql(server) => server.remove(name),
        }
    }

    fn process(&self) -> Option<ServerProcess> {
        match self {
            Server::Postgres(server) => server.process(),
            Server::Mysql(server) => server.process(),
        }
    }

    /// What it calls itself.
    pub(super) fn version(&self) -> &str {
        match self {
            Server::Postgres(server) => server.version(),
            Server::Mysql(server) => server.version(),
        }
    }
}

/// Where a pass has its rows.
enum Place {
    Nowhere,
    Folder(PathBuf),
    Server(Server, String),
}

/// A store for one pass; its files, its schema or its database go with it.
pub(super) struct Stage {
    pub(super) client: Client,
    pub(super) store: Arc<dyn Store>,
    /// For processes that work on it too.
    pub(super) url: String,
    place: Place,
}

impl Stage {
    /// The database file, where there is one.
    pub(super) fn file(&self) -> Option<PathBuf> {
        match &self.place {
            Place::Folder(folder) => Some(folder.join("bench.db")),
            Place::Nowhere | Place::Server(..) => None,
        }
    }

    /// The server, and the schema or database in it, where there is one.
    pub(super) fn server(&self) -> Option<(&Server, &str)> {
        match &self.place {
            Place::Server(server, name) => Some((server, name)),
            Place::Nowhere | Place::Folder(_) => None,
        }
    }

    /// The processor time used so far, by this process and by the server where it is on this host.
    pub(super) fn cpu(&self) -> Cpu {
        Cpu::now(self.server().and_then(|(server, _)| server.process()))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        match &self.place {
            Place::Nowhere => {}
            Place::Folder(folder) => {
                // What cannot be removed now goes with the folder around it.
                let _ = std::fs::remove_dir_all(folder);
            }
            Place::Server(server, name) => server.remove(name),
        }
    }
}

/// Why a store cannot be measured on.
fn in_use(shown: &str, why: anyhow::Error, instead: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "the store {shown} is in use: {why}. Nothing was written; measure on {instead}, or on \
         memory:"
    )
}

async fn refuse_store_in_use(client: &Client) -> anyhow::Result<()> {
    let query = durably::RunQuery { most: 1, ..durably::RunQuery::default() };
    ensure!(client.runs(query).await?.is_empty(), "there are runs in it");
    let workers = client.workers().await?;
    let active = workers.iter().find(|worker| worker.status.holds_claims());
    match active {
        Some(worker) => anyhow::bail!("process {} works on it", worker.who),
        None => Ok(()),
    }
}
