//! The suite on a pool that the program hands in.

use deadpool_postgres::{Manager, Pool};
use durably_store::{Clock, Store};
use durably_store_contract::Fixture;
use durably_store_sql::postgres;
use durably_testbed::Database;
use futures_util::future::BoxFuture;
use std::sync::Arc;

struct GivenFixture {
    database: Database,
    clock: Clock,
}

impl Fixture for GivenFixture {
    fn fresh(clock: Clock) -> BoxFuture<'static, Self> {
        Box::pin(async move {
            let database = Database::postgres("given").expect("a schema");
            GivenFixture { database, clock }
        })
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async move {
            let config = self.database.server_url().parse().expect("a URL");
            let manager = Manager::new(config, tokio_postgres::NoTls);
            let pool = Pool::builder(manager).max_size(4).build().expect("a pool");
            let opened = postgres::open_on(pool, self.database.url(), self.clock.clone()).await;
            opened.expect("the store opens")
        })
    }

    fn seeds(&self) -> u64 {
        20
    }
}

durably_store_contract::suite!(GivenFixture);
