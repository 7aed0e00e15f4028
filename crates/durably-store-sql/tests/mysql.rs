//! The MySQL store passes the suite that every store passes.

use durably_store::{Clock, Store};
use durably_store_contract::Fixture;
use durably_store_sql::mysql;
use durably_testbed::Database;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// A database of its own; each handle has connections of its own.
struct MysqlFixture {
    database: Database,
    clock: Clock,
}

impl Fixture for MysqlFixture {
    fn fresh(clock: Clock) -> BoxFuture<'static, Self> {
        Box::pin(async move {
            let database = Database::mysql("contract").expect("a database");
            MysqlFixture { database, clock }
        })
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async move {
            // One command after the other: nothing becomes ready late.
            let url = [self.database.url(), "?claim_margin=0"].concat();
            mysql::open(&url, self.clock.clone()).await.expect("the store opens")
        })
    }

    fn seeds(&self) -> u64 {
        20
    }
}

durably_store_contract::suite!(MysqlFixture);
