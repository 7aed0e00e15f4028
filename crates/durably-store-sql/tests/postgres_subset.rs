//! The suite on what PostgreSQL has in common with servers that speak as it does: SERIALIZABLE
//! only, no LISTEN, tables under a prefix. Session locks are used nowhere.

use durably_store::{Clock, Store};
use durably_store_contract::Fixture;
use durably_store_sql::postgres;
use durably_testbed::Database;
use futures_util::future::BoxFuture;
use std::sync::Arc;

struct SubsetFixture {
    database: Database,
    clock: Clock,
}

impl Fixture for SubsetFixture {
    fn fresh(clock: Clock) -> BoxFuture<'static, Self> {
        Box::pin(async move {
            let database = Database::postgres("subset").expect("a schema");
            SubsetFixture { database, clock }
        })
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async move {
            let params = "&isolation=serializable&listen=off&prefix=app_&claim_margin=0";
            let url = [self.database.url(), params].concat();
            postgres::open(&url, self.clock.clone()).await.expect("the store opens")
        })
    }

    fn seeds(&self) -> u64 {
        20
    }
}

durably_store_contract::suite!(SubsetFixture);
