//! Brings the schema up to date. Each migration is one transaction, under the lock of a row that
//! all processes know: of many that start at once one applies, and the others find it done.

use crate::error::{Kind, Trouble};
use crate::migrate::{Applied, Migration, check_current, migrations, next};
use crate::postgres::error::{is_there_already, trouble, trouble_of_commit};
use crate::postgres::param::PgRow;
use crate::postgres::sql;
use crate::session::{Fields, Param};
use crate::text::{Dialect, Naming, Sql, render};
use durably_store::Clock;
use std::time::Duration;
use tokio_postgres::{Client, Error};

/// How long all of it may take: a migration may have to go through every row.
const MIGRATE_MAX: Duration = Duration::from_secs(600);
/// How often processes that start at once may get into each other's way.
const COLLISIONS_MAX: u32 = 20;

/// Who migrates what.
pub(crate) struct Schema<'a> {
    pub(crate) client: &'a Client,
    pub(crate) naming: &'a Naming,
    pub(crate) clock: &'a Clock,
}

/// What was found or done.
enum Step {
    Current,
    Applied,
}

/// What stopped a step.
enum Stop {
    /// Another process did the same thing at the same time.
    Collision(Trouble),
    Other(Trouble),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        let again = is_there_already(&error);
        match (trouble(&error), again) {
            (found @ Trouble::Server { kind: Kind::Repeat, .. }, _) => Stop::Collision(found),
            (found, true) => Stop::Collision(found),
            (found, false) => Stop::Other(found),
        }
    }
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        Stop::Other(trouble)
    }
}

impl Schema<'_> {
    pub(crate) async fn migrate(&self) -> Result<(), Trouble> {
        self.migrate_to(migrations(Dialect::Postgres)).await
    }

    /// Whether it is there and up to date; changes nothing.
    pub(crate) async fn check(&self, store: &str) -> Result<(), Trouble> {
        let checked = async {
            let there = self.is_there().await?;
            let applied = if there { Some(self.applied().await?) } else { None };
            let known = migrations(Dialect::Postgres);
            check_current(known, applied.as_deref(), store)
                .map_err(|error| Stop::Other(Trouble::Store(error)))
        };
        checked.await.map_err(|stop: Stop| match stop {
            Stop::Collision(trouble) | Stop::Other(trouble) => trouble,
        })
    }

    async fn is_there(&self) -> Result<bool, Stop> {
        let table = self.named("durable_schema");
        Ok(self.one(sql::SCHEMA_TABLE, vec![Param::Text(Some(table))]).await? == Some(1))
    }

    /// Applies what is missing of a list of migrations.
    pub(crate) async fn migrate_to(&self, known: &[Migration]) -> Result<(), Trouble> {
        let applying = async {
            let mut collisions = 0;
            loop {
                match self.step(known).await {
                    Ok(Step::Current) => return Ok(()),
                    Ok(Step::Applied) => {}
                    Err(Stop::Collision(_)) if collisions < COLLISIONS_MAX => {
                        collisions += 1;
                        self.client.batch_execute("rollback").await.map_err(|e| trouble(&e))?;
                    }
                    Err(Stop::Collision(trouble) | Stop::Other(trouble)) => return Err(trouble),
                }
            }
        };
        let in_time = tokio::time::timeout(MIGRATE_MAX, applying).await;
        in_time.unwrap_or_else(|_| {
            let problem = format!("the schema was not brought up to date within {MIGRATE_MAX:?}");
            Err(Trouble::server(Kind::Away, problem))
        })
    }

    async fn step(&self, known: &[Migration]) -> Result<Step, Stop> {
        // Whoever finds everything done needs no right but to read.
        let there = self.is_there().await?;
        if there && next(known, &self.applied().await?).map_err(Trouble::Store)?.is_none() {
            return Ok(Step::Current);
        }
        self.client.batch_execute("begin isolation level read committed").await?;
        let most = MIGRATE_MAX.as_millis().to_string();
        let limits = vec![Param::Text(Some(most)); 3];
        let micros = self.one(sql::NOW_LIMITED, limits).await?.unwrap_or(0);
        if !there {
            self.create_schema().await?;
            self.client.batch_execute(&self.named(sql::SCHEMA_CREATE)).await?;
        }
        self.client.batch_execute(&self.named(sql::SCHEMA_LOCK_ROW)).await?;
        self.client.batch_execute(&self.named(sql::SCHEMA_LOCK)).await?;
        let applied = self.applied().await?;
        let step = match next(known, &applied).map_err(Trouble::Store)? {
            None => Step::Current,
            Some(migration) => {
                self.apply(migration, micros.div_euclid(1000)).await?;
                Step::Applied
            }
        };
        self.client.batch_execute("commit").await.map_err(|error| trouble_of_commit(&error))?;
        Ok(step)
    }

    async fn apply(&self, migration: &Migration, database_now: i64) -> Result<(), Stop> {
        self.client.batch_execute(&self.named(migration.text)).await?;
        let now = match self.clock {
            Clock::Database => database_now,
            Clock::Manual(clock) => clock.now().0,
        };
        let row = vec![
            Param::Int(Some(i64::from(migration.version))),
            Param::Text(Some(migration.name.to_owned())),
            Param::Text(Some(migration.checksum())),
            Param::Int(Some(now)),
        ];
        self.ask(&self.named(Sql::SchemaInsert.text(Dialect::Postgres)), row).await?;
        tracing::info!(version = migration.version, name = migration.name, "schema migrated");
        Ok(())
    }

    /// Creates the schema that the user named. Who may not do that can have it created by somebody
    /// else.
    async fn create_schema(&self) -> Result<(), Stop> {
        let Some(schema) = &self.naming.schema else { return Ok(()) };
        let there = self.one(sql::SCHEMA_THERE, vec![Param::Text(Some(schema.clone()))]).await?;
        if there == Some(0) {
            // A name cannot be bound; this one is plain.
            let create = ["create schema \"", schema, "\""].concat();
            self.client.batch_execute(&create).await?;
        }
        Ok(())
    }

    async fn applied(&self) -> Result<Vec<Applied>, Stop> {
        let rows = self.ask(&self.named(Sql::SchemaLoad.text(Dialect::Postgres)), vec![]).await?;
        let applied: Result<Vec<_>, Trouble> = rows.into_iter().map(Applied::of).collect();
        Ok(applied?.into_iter().flatten().collect())
    }

    fn named(&self, text: &str) -> String {
        render(text, Dialect::Postgres, self.naming)
    }

    async fn ask(&self, text: &str, params: Vec<Param>) -> Result<Vec<PgRow>, Stop> {
        let rows = ask(self.client, text, &params).await?;
        Ok(rows)
    }

    /// The number in the first column of the first row.
    async fn one(&self, text: &str, params: Vec<Param>) -> Result<Option<i64>, Stop> {
        match self.ask(text, params).await?.first_mut() {
            Some(row) => Ok(row.int()?),
            None => Ok(None),
        }
    }
}

/// A question outside of a session.
pub(crate) async fn ask(
    client: &Client,
    text: &str,
    params: &[Param],
) -> Result<Vec<PgRow>, Error> {
    let params: Vec<_> = params
        .iter()
        .map(|param| (param as &(dyn tokio_postgres::types::ToSql + Sync), param.type_of()))
        .collect();
    let rows = client.query_typed(text, &params).await?;
    Ok(rows.into_iter().map(PgRow::from).collect())
}
