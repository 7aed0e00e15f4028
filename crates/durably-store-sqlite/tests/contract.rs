//! The SQLite store passes the suite that every store passes.

use durably_store::{Clock, Store};
use durably_store_contract::Fixture;
use durably_store_sqlite::SqliteStore;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tempfile::TempDir;

/// A folder with one database in it; each handle has connections and threads of its own.
struct SqliteFixture {
    folder: TempDir,
    clock: Clock,
}

impl Fixture for SqliteFixture {
    fn fresh(clock: Clock) -> BoxFuture<'static, Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Box::pin(std::future::ready(SqliteFixture { folder, clock }))
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        let path = self.folder.path().join("store.db");
        let url = format!("sqlite:{}", path.display());
        let store = SqliteStore::open(&url, self.clock.clone()).expect("the store opens");
        let store: Arc<dyn Store> = Arc::new(store);
        Box::pin(std::future::ready(store))
    }
}

durably_store_contract::suite!(SqliteFixture);
