//! SQLite: a folder beside the file that the user names, on the same disk.

use super::{in_use, refuse_store_in_use};
use anyhow::Context;
use durably::Client;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// Where databases are made.
pub(crate) struct Sqlite {
    folder: TempDir,
    made: AtomicU32,
}

impl Sqlite {
    pub(super) async fn of(url: &str) -> anyhow::Result<Sqlite> {
        let path = file_of(url);
        check_file(url, &path).await?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parent = path.parent().map(Path::to_owned).unwrap_or_default();
        let folder = tempfile::Builder::new()
            .prefix(&format!("{name}.bench-"))
            .tempdir_in(&parent)
            .with_context(|| format!("cannot make a folder in {}", parent.display()))?;
        Ok(Sqlite { folder, made: AtomicU32::new(0) })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A folder for one database.
    pub(super) fn fresh(&self) -> anyhow::Result<PathBuf> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().join(number.to_string());
        std::fs::create_dir(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        Ok(folder)
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
        Ok(true) | Err(_) => refuse_store_in_use(&connect().await?)
            .await
            .map_err(|why| in_use(url, why, "a new file on the same disk")),
    }
}

/// Whether the database has our tables, without writing to it.
fn is_store(path: &Path) -> rusqlite::Result<bool> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    let tables: i64 =
        conn.query_row(include_str!("../../../sql/sqlite/has_tables.sql"), [], |row| row.get(0))?;
    Ok(tables > 0)
}
