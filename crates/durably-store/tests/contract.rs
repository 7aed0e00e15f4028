//! The memory store passes the suite that every store passes.

use durably_store::memory::MemoryStore;
use durably_store::{Clock, Store};
use durably_store_contract::Fixture;
use futures_util::future::BoxFuture;
use std::sync::Arc;

struct MemoryFixture(Arc<MemoryStore>);

impl Fixture for MemoryFixture {
    fn fresh(clock: Clock) -> BoxFuture<'static, Self> {
        Box::pin(async { MemoryFixture(Arc::new(MemoryStore::with_clock(clock))) })
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        let store: Arc<dyn Store> = self.0.clone();
        Box::pin(std::future::ready(store))
    }
}

durably_store_contract::suite!(MemoryFixture);
