//! The suite that all stores pass.

use crate::mysql::store::open;
use durably_store::{Clock, Store};
use durably_store_contract::Fixture;
use durably_testbed::Database;
use futures_util::future::BoxFuture;
use std::sync::Arc;

struct MyFixture {
    database: Database,
    clock: Clock,
}

impl Fixture for MyFixture {
    fn fresh(clock: Clock) -> BoxFuture<'static, Self> {
        let database = Database::mysql("contract").expect("a database");
        Box::pin(std::future::ready(MyFixture { database, clock }))
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async move {
            let store = open(self.database.url(), self.clock.clone()).await.expect("a store");
            let store: Arc<dyn Store> = Arc::new(store);
            store
        })
    }
}

durably_store_contract::suite!(MyFixture);
