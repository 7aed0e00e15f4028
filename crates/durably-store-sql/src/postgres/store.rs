//! The store.

use crate::error::Trouble;
use crate::postgres::connect::Connector;
use crate::postgres::home::Home;
use crate::postgres::pool::Connections;
use crate::postgres::session::{Manner, PgSession, Statements};
use crate::postgres::settings::Settings;
use crate::store::{Purpose, Server, SqlStore};
use crate::text::{Dialect, Texts, render};
use durably_store::{Clock, Gathered, Hints, StoreError};
use std::sync::Arc;

/// Where sessions of a PostgreSQL store come from.
pub(crate) struct Postgres {
    name: String,
    work: Connections,
    people: Connections,
}

impl Server for Postgres {
    type Session = PgSession;

    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn session(&self, purpose: Purpose) -> Result<PgSession, Trouble> {
        match purpose {
            Purpose::Work => self.work.session().await,
            Purpose::People => self.people.session().await,
        }
    }

    fn tell(&self, _: &Gathered) {}
}

#[cfg(test)]
pub(crate) async fn open(url: &str, clock: Clock) -> Result<SqlStore<Postgres>, StoreError> {
    let settings = Settings::of(url)?;
    let home = Arc::new(Home::start().unwrap());
    let name = settings.shown();
    let manner = Arc::new(Manner {
        texts: Texts::new(Dialect::Postgres, &settings.naming),
        clock,
        isolation: settings.isolation,
        statements: Statements::Prepared,
        limits: None,
        trip_max: settings.answer_max,
    });
    let connector = Connector::new(settings.clone(), home)?;
    let made = connector.connect(Statements::Prepared, None).await.unwrap();
    let schema = settings.naming.schema.clone().unwrap();
    made.client.batch_execute("select pg_advisory_lock(42)").await.unwrap();
    let there = made
        .client
        .query("select 1 from information_schema.schemata where schema_name = $1", &[&schema])
        .await
        .unwrap();
    if there.is_empty() {
        let text = include_str!("../../migrations/postgres/0001_first.sql");
        let text = render(text, Dialect::Postgres, &settings.naming);
        made.client.batch_execute(&format!("create schema {schema}; {text}")).await.unwrap();
    }
    made.client.batch_execute("select pg_advisory_unlock(42)").await.unwrap();
    let work = Connections::new(connector.clone(), 8, manner.clone());
    let people = Connections::new(connector, 2, manner);
    Ok(SqlStore::new(Postgres { name, work, people }, Hints::default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use durably_store::Store;
    use durably_store_contract::Fixture;
    use futures_util::future::BoxFuture;

    struct PgFixture {
        schema: String,
        clock: Clock,
    }

    impl Fixture for PgFixture {
        fn fresh(clock: Clock) -> BoxFuture<'static, Self> {
            let schema = format!("t{}", uuid::Uuid::from_u128(rand::random()).simple());
            Box::pin(std::future::ready(PgFixture { schema, clock }))
        }

        fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
            Box::pin(async move {
                let base = std::env::var("DURABLY_TEST_POSTGRES_URL").unwrap();
                let url = format!("{base}?schema={}", self.schema);
                let store: Arc<dyn Store> = Arc::new(open(&url, self.clock.clone()).await.unwrap());
                store
            })
        }
    }

    durably_store_contract::suite!(PgFixture);
}
