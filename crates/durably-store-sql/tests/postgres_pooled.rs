//! The suite through PgBouncer in transaction mode.

use durably_store::{Clock, Store};
use durably_store_contract::Fixture;
use durably_store_sql::postgres;
use durably_testbed::{Database, Pooler};
use futures_util::future::BoxFuture;
use std::sync::Arc;

struct PooledFixture {
    /// Stops before the schema is dropped.
    pooler: Pooler,
    database: Database,
    clock: Clock,
}

impl Fixture for PooledFixture {
    fn fresh(clock: Clock) -> BoxFuture<'static, Self> {
        Box::pin(async move {
            let database = Database::postgres("pooled").expect("a schema");
            let pooler = Pooler::before(database.server_url(), &[]).expect("a pooler");
            PooledFixture { pooler, database, clock }
        })
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async move {
            let url = [self.pooler.url(), "?schema=", self.database.name()].concat();
            postgres::open(&url, self.clock.clone()).await.expect("the store opens")
        })
    }

    fn seeds(&self) -> u64 {
        20
    }
}

durably_store_contract::suite!(PooledFixture);
