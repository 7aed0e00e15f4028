//! Where it is measured: a store of its own for every pass.
//!
//! A store that the user names is looked at and otherwise left alone: databases are made in a
//! folder beside a SQLite file, so that they are on the same disk, schemas in the database of a
//! server, and both are removed afterwards. A store that is in use is refused: its work would be
//! measured too, and ours would be in its way.

pub(super) mod postgres;
mod sqlite;

use super::address::Address;
use super::pace::Cpu;
use anyhow::{Context, ensure};
use durably::Client;
use durably_store::Store;
use postgres::Postgres;
use sqlite::Sqlite;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Makes stores.
pub(super) enum Ground {
    Memory,
    Sqlite(Sqlite),
    Postgres(Arc<Postgres>),
}

impl Ground {
    /// Checks the store that a URL names, and prepares to measure beside it.
    pub(super) async fn of(url: &str) -> anyhow::Result<Ground> {
        let address = Address::of(url);
        match address.scheme().as_str() {
            "sqlite" => Ok(Ground::Sqlite(Sqlite::of(url).await?)),
            "postgres" | "postgresql" => {
                Ok(Ground::Postgres(Arc::new(Postgres::of(address).await?)))
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
        let (url, place) = match self {
            Ground::Memory => ("memory:".to_owned(), Place::Nowhere),
            Ground::Sqlite(sqlite) => {
                let folder = sqlite.fresh()?;
                let url = format!("sqlite:{}", folder.join("bench.db").display());
                (url, Place::Folder(folder))
            }
            Ground::Postgres(server) => {
                let (url, schema) = server.fresh();
                (url, Place::Schema(server.clone(), schema))
            }
        };
        let client = Client::connect(&url).await?;
        Ok(Stage { store: client.store(), client, url, place })
    }

    /// What kind of store it is.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Ground::Memory => "memory",
            Ground::Sqlite(_) => "sqlite",
            Ground::Postgres(_) => "postgres",
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
            Ground::Postgres(server) => {
                let names = server.names();
                Some(format!("schemas named {names} are made and dropped afterwards"))
            }
        }
    }
}

/// Where a pass has its rows.
enum Place {
    Nowhere,
    Folder(PathBuf),
    Schema(Arc<Postgres>, String),
}

/// A store for one pass; its files or its schema go with it.
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
            Place::Nowhere | Place::Schema(..) => None,
        }
    }

    /// The server and the schema in it, where there is one.
    pub(super) fn schema(&self) -> Option<(&Postgres, &str)> {
        match &self.place {
            Place::Schema(server, schema) => Some((server, schema)),
            Place::Nowhere | Place::Folder(_) => None,
        }
    }

    /// The processor time used so far, by this process and by the server where it is on this host.
    pub(super) fn cpu(&self) -> Cpu {
        Cpu::now(self.schema().and_then(|(server, _)| server.process()))
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
            Place::Schema(server, schema) => server.remove(schema),
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
