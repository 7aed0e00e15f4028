//! PostgreSQL.

mod connect;
mod error;
pub(crate) mod home;
mod migrate;
mod notify;
mod open;
mod outbox;
mod param;
mod pool;
mod session;
mod settings;
mod store;
mod tls;
mod trip;

#[cfg(test)]
mod tests;

use crate::store::SqlStore;
use durably_store::{Clock, Hints, Store, StoreError};
use std::sync::Arc;

/// Opens the store that a URL names, `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, and brings its
/// schema up to date.
pub async fn open(url: &str, clock: Clock) -> Result<Arc<dyn Store>, StoreError> {
    let hints = Hints::default();
    let ground = open::open(url, clock, &hints).await?;
    Ok(Arc::new(SqlStore::new(ground, hints)))
}
