//! Brings the schema up to date, under a lock of the server's that all processes know: of many that
//! start at once one applies, and the others find it done. Changes of the schema commit by
//! themselves here, so a migration that was interrupted is applied again, from its beginning.

use crate::error::{Kind, Trouble};
use crate::migrate::{Applied, Migration, check_current, migrations, next};
use crate::mysql::connect::bind;
use crate::mysql::error::trouble;
use crate::mysql::line::Line;
use crate::mysql::param::MyRow;
use crate::session::Fields;
use crate::text::{Dialect, Naming, Sql, render};
use durably_kernel::Timestamp;
use durably_store::Clock;
use mysql_async::Value;
use std::time::Duration;

const NOW: &str = include_str!("../../sql/mysql/now.sql");
const SCHEMA_THERE: &str = include_str!("../../sql/mysql/schema_there.sql");
const SCHEMA_CREATE: &str = include_str!("../../sql/mysql/schema_create.sql");
const SCHEMA_LOCK: &str = include_str!("../../sql/mysql/schema_lock.sql");
const SCHEMA_UNLOCK: &str = include_str!("../../sql/mysql/schema_unlock.sql");

/// Bringing a schema up to date may take as long as this, the migrations of others included.
pub(super) const MIGRATE_MAX: Duration = Duration::from_secs(600);

/// The schema of a store, on a connection that is used for nothing else.
pub(super) struct Schema<'a> {
    pub(super) line: &'a mut Line,
    pub(super) naming: &'a Naming,
    pub(super) clock: &'a Clock,
}

impl Schema<'_> {
    pub(super) async fn migrate(&mut self) -> Result<(), Trouble> {
        let applying = self.migrate_to(migrations(Dialect::Mysql));
        tokio::time::timeout(MIGRATE_MAX, applying).await.unwrap_or_else(|_| {
            let problem = format!("the schema was not brought up to date within {MIGRATE_MAX:?}");
            Err(Trouble::server(Kind::Away, problem))
        })
    }

    /// Whether it is there and up to date; changes nothing.
    pub(super) async fn check(&mut self, store: &str) -> Result<(), Trouble> {
        let applied = match self.is_there().await? {
            true => Some(self.applied().await?),
            false => None,
        };
        let checked = check_current(migrations(Dialect::Mysql), applied.as_deref(), store);
        checked.map_err(Trouble::Store)
    }

    async fn is_there(&mut self) -> Result<bool, Trouble> {
        let table = Value::from(self.named("durable_schema"));
        Ok(self.number(SCHEMA_THERE, vec![table]).await? == Some(1))
    }

    async fn migrate_to(&mut self, known: &[Migration]) -> Result<(), Trouble> {
        // Whoever finds everything done needs no right but to read.
        if self.is_there().await? && self.next(known).await?.is_none() {
            return Ok(());
        }
        let lock = vec![self.naming.prefix.as_str().into(), MIGRATE_MAX.as_secs().into()];
        if self.number(SCHEMA_LOCK, lock).await? != Some(1) {
            let problem = format!("another process migrates the schema since {MIGRATE_MAX:?}");
            return Err(Trouble::server(Kind::Away, problem));
        }
        self.tell(SCHEMA_CREATE).await?;
        while let Some(migration) = self.next(known).await? {
            self.apply(migration).await?;
        }
        // It would be free with the end of the connection; nobody needs to wait for that.
        self.number(SCHEMA_UNLOCK, vec![self.naming.prefix.as_str().into()]).await.map(|_| ())
    }

    async fn next<'k>(&mut self, known: &'k [Migration]) -> Result<Option<&'k Migration>, Trouble> {
        next(known, &self.applied().await?).map_err(Trouble::Store)
    }

    async fn applied(&mut self) -> Result<Vec<Applied>, Trouble> {
        let text = self.named(Sql::SchemaLoad.text(Dialect::Mysql));
        let rows = bind(self.line, &text, Vec::new()).await?;
        let applied = rows.into_iter().map(|row| Applied::of(MyRow::from(row)));
        let applied = applied.collect::<Result<Vec<_>, _>>()?;
        Ok(applied.into_iter().flatten().collect())
    }

    async fn apply(&mut self, migration: &Migration) -> Result<(), Trouble> {
        self.tell(migration.text).await?;
        let row = vec![
            migration.version.into(),
            migration.name.into(),
            migration.checksum().into(),
            self.now().await?.0.into(),
        ];
        bind(self.line, &self.named(Sql::SchemaInsert.text(Dialect::Mysql)), row).await?;
        tracing::info!(version = migration.version, name = migration.name, "schema migrated");
        Ok(())
    }

    async fn now(&mut self) -> Result<Timestamp, Trouble> {
        if let Clock::Manual(clock) = self.clock {
            return Ok(clock.now());
        }
        Ok(Timestamp(self.number(NOW, Vec::new()).await?.unwrap_or(0).div_euclid(1000)))
    }

    fn named(&self, text: &str) -> String {
        render(text, Dialect::Mysql, self.naming)
    }

    async fn tell(&mut self, text: &str) -> Result<(), Trouble> {
        let text = self.named(text);
        self.line.tell(&text).await.map(|_| ()).map_err(|error| trouble(&error))
    }

    async fn number(&mut self, text: &str, values: Vec<Value>) -> Result<Option<i64>, Trouble> {
        let rows = bind(self.line, &self.named(text), values).await?;
        match rows.into_iter().next() {
            Some(row) => MyRow::from(row).int(),
            None => Ok(None),
        }
    }
}
