//! Where it is measured: a store of its own for every pass.
//!
//! A SQLite file that the user names is looked at and otherwise left alone: databases are made in
//! a folder beside it, so that they are on the same disk, and removed afterwards. A store that is
//! in use is refused: its work would be measured too, and ours would be in its way.

use anyhow::{Context, bail, ensure};
use durably::Client;
use durably_store::Store;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// Makes stores.
pub(super) enum Ground {
    Memory,
    Sqlite { folder: TempDir, made: AtomicU32 },
}

impl Ground {
    /// Checks the store that a URL names, and prepares to measure beside it.
    pub(super) async fn of(url: &str) -> anyhow::Result<Ground> {
        let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        if scheme.as_deref() != Some("sqlite") {
            let client = Client::connect(url).await;
            let client = client.with_context(|| format!("cannot measure on {url}"))?;
            ensure!(client.store().kind() == "memory", "{url} cannot be measured on yet");
            return Ok(Ground::Memory);
        }
        let path = file_of(url);
        check_file(url, &path).await?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parent = path.parent().map(Path::to_owned).unwrap_or_default();
        let folder = tempfile::Builder::new()
            .prefix(&format!("{name}.bench-"))
            .tempdir_in(&parent)
            .with_context(|| format!("cannot make a folder in {}", parent.display()))?;
        Ok(Ground::Sqlite { folder, made: AtomicU32::new(0) })
    }

    /// A store with nothing in it.
    pub(super) async fn fresh(&self) -> anyhow::Result<Stage> {
        let (url, folder) = match self {
            Ground::Memory => ("memory:".to_owned(), None),
            Ground::Sqlite { folder, made } => {
                let number = made.fetch_add(1, Ordering::Relaxed);
                let folder = folder.path().join(number.to_string());
                std::fs::create_dir(&folder)
                    .with_context(|| format!("cannot make the folder {}", folder.display()))?;
                (format!("sqlite:{}", folder.join("bench.db").display()), Some(folder))
            }
        };
        let client = Client::connect(&url).await?;
        Ok(Stage { store: client.store(), client, folder })
    }

    /// What kind of store it is.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Ground::Memory => "memory",
            Ground::Sqlite { .. } => "sqlite",
        }
    }

    /// Where databases are made meanwhile.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Ground::Memory => None,
            Ground::Sqlite { folder, .. } => Some(folder.path()),
        }
    }
}

/// A store for one pass; its files go with it.
pub(super) struct Stage {
    pub(super) client: Client,
    pub(super) store: Arc<dyn Store>,
    folder: Option<PathBuf>,
}

impl Stage {
    /// The database file, where there is one.
    pub(super) fn file(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join("bench.db"))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // What cannot be removed now goes with the folder around it.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// The file that a URL names; whether there can be one is for the store to say.
fn file_of(url: &str) -> PathBuf {
    let rest = url.split_once(':').map_or(url, |(_, rest)| rest);
    let path = rest.strip_prefix("//").unwrap_or(rest);
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

async fn check_file(url: &str, path: &Path) -> anyhow::Result<()> {
    let connect = || async {
        let client = Client::connect(url).await;
        client.with_context(|| format!("cannot measure on {url}"))
    };
    if !path.exists() {
        // The store knows whether a database can be there; nothing of it stays.
        drop(connect().await?);
        for ending in ["", "-wal", "-shm"] {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            // A file that is not there need not be removed.
            let _ = std::fs::remove_file(name);
        }
        return Ok(());
    }
    match is_store(path) {
        // Somebody's database without tables of ours: nothing of ours is in use there.
        Ok(false) => Ok(()),
        // Also for its errors: what cannot be read at all, the store refuses with its reason.
        Ok(true) | Err(_) => refuse_store_in_use(url, &connect().await?).await,
    }
}

/// Whether the database has our tables, without writing to it.
fn is_store(path: &Path) -> rusqlite::Result<bool> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    let tables: i64 =
        conn.query_row(include_str!("../../sql/has_tables.sql"), [], |row| row.get(0))?;
    Ok(tables > 0)
}

async fn refuse_store_in_use(url: &str, client: &Client) -> anyhow::Result<()> {
    let query = durably::RunQuery { most: 1, ..durably::RunQuery::default() };
    if !client.runs(query).await?.is_empty() {
        bail!(
            "the store {url} is in use: there are runs in it. Nothing was written; measure on a \
             new file on the same disk, or on memory:"
        );
    }
    let workers = client.workers().await?;
    let active = workers.iter().find(|worker| worker.status.holds_claims());
    if let Some(worker) = active {
        bail!(
            "the store {url} is in use: process {} works on it. Nothing was written; measure on a \
             new file on the same disk, or on memory:",
            worker.who
        );
    }
    Ok(())
}
