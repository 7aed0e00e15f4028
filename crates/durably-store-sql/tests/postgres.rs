//! The PostgreSQL store passes the suite that every store passes.

use durably_store::{Clock, Store};
use durably_store_contract::Fixture;
use durably_store_sql::postgres;
use durably_testbed::Database;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// A schema of its own; each handle has connections of its own.
struct PostgresFixture {
    database: Database,
    clock: Clock,
}

impl Fixture for PostgresFixture {
    fn fresh(clock: Clock) -> BoxFuture<'static, Self> {
        Box::pin(async move {
            let database = Database::postgres("contract").expect("a schema");
            PostgresFixture { database, clock }
        })
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async move {
            postgres::open(self.database.url(), self.clock.clone()).await.expect("the store opens")
        })
    }

    fn seeds(&self) -> u64 {
        20
    }
}

durably_store_contract::suite!(PostgresFixture);
