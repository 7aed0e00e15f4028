//! MySQL and MariaDB. What both understand, and nothing else: tests run on MariaDB, so a test keeps
//! out of the statements what MySQL lacks.

mod connect;
mod error;
mod line;
mod migrate;
mod open;
mod param;
mod pool;
mod probe;
mod session;
mod settings;
mod store;
mod template;
mod writer;

#[cfg(test)]
mod tests;

use crate::store::SqlStore;
use durably_store::check::Patient;
use durably_store::{Clock, Hints, Store, StoreError};
use std::sync::Arc;

/// Opens the store that a URL names, `mysql://USER:PASSWORD@HOST:PORT/DATABASE`, and brings its
/// schema up to date.
pub async fn open(url: &str, clock: Clock) -> Result<Arc<dyn Store>, StoreError> {
    let ground = open::open(url, clock).await?;
    Ok(Arc::new(SqlStore::new(ground, Hints::default())))
}

/// Opens a store that is there, to look at it: nothing is made or migrated.
pub async fn open_to_look(url: &str, clock: Clock) -> Result<Patient, StoreError> {
    let (ground, wrong) = open::open_to_look(url, clock).await?;
    Ok(Patient { store: Arc::new(SqlStore::new(ground, Hints::default())), wrong })
}
