//! Connections, kept for the next command.

use crate::error::{Kind, Trouble};
use crate::postgres::error::trouble_of_connect;
use crate::postgres::session::{Manner, PgSession};
use deadpool_postgres::{Pool, PoolError, TimeoutType};
use std::sync::Arc;

/// The connections of a store.
#[derive(Clone)]
pub(crate) struct Connections {
    pool: Pool,
    manner: Arc<Manner>,
}

impl Connections {
    pub(crate) fn over(pool: Pool, manner: Arc<Manner>) -> Connections {
        Connections { pool, manner }
    }

    /// A connection for one command; waits until there is one.
    pub(crate) async fn session(&self) -> Result<PgSession, Trouble> {
        let client = self.pool.get().await.map_err(|error| self.trouble(error))?;
        Ok(PgSession::new(client, self.manner.clone()))
    }

    fn trouble(&self, error: PoolError) -> Trouble {
        match error {
            PoolError::Backend(error) => trouble_of_connect(&error),
            PoolError::Timeout(TimeoutType::Wait) => {
                let size = self.pool.status().max_size;
                let problem = format!("all {size} connections are in use (pool= in the URL)");
                Trouble::server(Kind::Busy, problem)
            }
            PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
                Trouble::server(Kind::Away, "the server did not accept a connection in time")
            }
            PoolError::Closed => Trouble::server(Kind::Away, "the store is closed"),
            PoolError::NoRuntimeSpecified => {
                Trouble::server(Kind::Refused, "the pool was built without its runtime")
            }
            PoolError::PostCreateHook(error) => Trouble::server(Kind::Away, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::session::{Isolation, Statements};
    use crate::session::{Call, Fields, Param, Session};
    use crate::text::{Dialect, Naming, Sql, Texts};
    use durably_store::Clock;
    use std::time::Duration;

    #[tokio::test]
    async fn begins_asks_and_finishes() {
        let config: tokio_postgres::Config =
            std::env::var("DURABLY_TEST_POSTGRES_URL").unwrap().parse().unwrap();
        for statements in [Statements::Prepared, Statements::Sent] {
            let manager = deadpool_postgres::Manager::new(config.clone(), tokio_postgres::NoTls);
            let pool = Pool::builder(manager).max_size(2).build().unwrap();
            let manner = Manner {
                texts: Texts::new(Dialect::Postgres, &Naming::default()),
                clock: Clock::Database,
                isolation: Isolation::ReadCommitted,
                statements,
                limits: None,
                trip_max: Duration::from_secs(5),
            };
            let connections = Connections::over(pool, Arc::new(manner));
            let client = connections.pool.get().await.unwrap();
            client.batch_execute("drop table if exists durable_schema; create table durable_schema (version bigint, name text, checksum text, applied_at bigint)").await.unwrap();
            drop(client);
            let mut session = connections.session().await.unwrap();
            let began = session.begin().await.unwrap();
            assert_eq!(began.now.0, began.micros / 1000);
            let load = || Call { sql: Sql::SchemaLoad, params: vec![] };
            let insert = |version| Call {
                sql: Sql::SchemaInsert,
                params: vec![
                    Param::Int(Some(version)),
                    Param::Text(Some("x".into())),
                    Param::Text(None),
                    Param::Int(None),
                ],
            };
            let answers = session.ask(vec![load(), insert(3), load()]).await.unwrap();
            assert_eq!(answers.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, 1]);
            session.finish((0..50).map(insert).collect()).await.unwrap();
            drop(session);
            let mut session = connections.session().await.unwrap();
            session.begin().await.unwrap();
            let mut rows = session.ask(vec![load()]).await.unwrap().remove(0);
            assert_eq!(rows.len(), 51);
            assert_eq!(rows[1].int().unwrap(), Some(1));
            assert_eq!(rows[1].text().unwrap().as_deref(), Some("x"));
            assert_eq!(rows[1].text().unwrap(), None);
            session.roll_back().await;
            drop(session);
            assert_eq!(connections.pool.status().size, 1);
        }
    }
}
