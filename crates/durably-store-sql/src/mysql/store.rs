//! The store.

use crate::error::Trouble;
use crate::mysql::open::{self, Ground};
use crate::mysql::session::MySession;
use crate::store::{Purpose, Server, SqlStore};
use durably_store::check::Patient;
use durably_store::{Clock, Gathered, Hints, StoreError};
use std::sync::Arc;

/// Where sessions of a MySQL store come from.
pub(crate) struct Mysql(Ground);

impl Server for Mysql {
    type Session = MySession;

    fn kind(&self) -> &'static str {
        "mysql"
    }

    fn name(&self) -> &str {
        &self.0.store
    }

    async fn session(&self, purpose: Purpose) -> Result<MySession, Trouble> {
        match purpose {
            Purpose::Work => self.0.work.session().await,
            Purpose::People => self.0.read.session().await,
        }
    }

    /// There is no way to tell other processes; they ask from time to time.
    fn tell(&self, _: &Gathered) {}
}

pub(crate) async fn open(url: &str, clock: Clock) -> Result<SqlStore<Mysql>, StoreError> {
    Ok(SqlStore::new(Mysql(open::open(url, clock).await?), Hints::default()))
}

pub(crate) async fn open_to_look(url: &str, clock: Clock) -> Result<Patient, StoreError> {
    let (ground, wrong) = open::open_to_look(url, clock).await?;
    let store = Arc::new(SqlStore::new(Mysql(ground), Hints::default()));
    Ok(Patient { store, wrong })
}
