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
mod sql;
mod store;
mod tls;
mod trip;

#[cfg(test)]
mod tests;

use crate::store::SqlStore;
use durably_store::check::Patient;
use durably_store::{Clock, Hints, Store, StoreError};
use std::sync::Arc;

/// Opens the store that a URL names, `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, and brings its
/// schema up to date.
pub async fn open(url: &str, clock: Clock) -> Result<Arc<dyn Store>, StoreError> {
    let hints = Hints::default();
    let ground = open::open(url, clock, &hints).await?;
    Ok(Arc::new(SqlStore::new(ground, hints)))
}

/// Opens a store that is there, to look at it: nothing is made or migrated.
pub async fn open_to_look(url: &str, clock: Clock) -> Result<Patient, StoreError> {
    let (ground, wrong) = open::open_to_look(url, clock).await?;
    Ok(Patient { store: Arc::new(SqlStore::new(ground, Hints::default())), wrong })
}

/// Opens a store on connections of the program's own, which may be set up in any way. The URL is one
/// of the same database: it says where the tables are, which limits hold, and where to listen (on a
/// connection of the store's). People's questions share the pool with work, so that it should have
/// four connections or more.
pub async fn open_on(
    pool: deadpool_postgres::Pool,
    url: &str,
    clock: Clock,
) -> Result<Arc<dyn Store>, StoreError> {
    let hints = Hints::default();
    let ground = open::open_given(open::Given { pool, url, clock }, &hints).await?;
    Ok(Arc::new(SqlStore::new(ground, hints)))
}
