//! PostgreSQL: a schema of its own for every pass, in the database that the user names.

use super::made::Made;
use super::{in_use, refuse_store_in_use};
use crate::bench::address::Address;
use crate::bench::pace::ServerProcess;
use anyhow::{Context, bail};
use durably::Client;
use tokio_postgres::{Config, NoTls};

/// Parameters that the driver knows too.
const OF_THE_DRIVER: [&str; 2] = ["host", "connect_timeout"];

/// A server, and what was made on it.
pub(crate) struct Postgres {
    /// Without a schema and a prefix.
    address: Address,
    config: Config,
    made: Made,
    process: Option<ServerProcess>,
    version: String,
}

impl Postgres {
    pub(super) async fn of(given: Address) -> anyhow::Result<Postgres> {
        let shown = given.shown();
        check_encryption(&given)?;
        let made = Made::new();
        let address = given.without(&["schema", "prefix"]);
        // Before anything else: the store has the better words for all that can be wrong.
        let first = made.next();
        let opened = Client::connect(&address.with("schema", &first).to_string()).await.map(drop);
        opened.with_context(|| format!("cannot measure on {shown}"))?;
        let (process, version) = (None, String::new());
        let mut server = Postgres { config: driver(&given)?, address, made, process, version };
        server.remove(&first);
        server.refuse_if_in_use(&given).await.map_err(|why| match why {
            Look::Used(why) => in_use(&shown, why, "another schema, as schema=NAME,"),
            Look::Failed(error) => error.context(format!("cannot look at {shown}")),
        })?;
        server.look_at_process().await?;
        Ok(server)
    }

    /// What was made.
    pub(super) fn made(&self) -> &Made {
        &self.made
    }

    /// The URL of a store in a schema that is not there yet, and the schema's name.
    pub(super) fn fresh(&self) -> (String, String) {
        let schema = self.made.next();
        (self.address.with("schema", &schema).to_string(), schema)
    }

    /// The server's processes, where they are on this host.
    pub(super) fn process(&self) -> Option<ServerProcess> {
        self.process
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// A connection of our own, without an engine.
    pub(in crate::bench) async fn connect(
        &self,
        schema: &str,
    ) -> anyhow::Result<tokio_postgres::Client> {
        let (client, connection) = self.config.connect(NoTls).await?;
        // Ends with the client; what goes wrong there, the client hears.
        tokio::spawn(connection);
        client.query_one(include_str!("../../../sql/postgres/schema_use.sql"), &[&schema]).await?;
        Ok(client)
    }

    /// Drops a schema with all that is in it.
    pub(super) fn remove(&self, schema: &str) {
        self.made.remove(schema, self.drop_schema(schema));
    }

    /// A transaction that keeps seeing what there is now, until it is dropped.
    pub(in crate::bench) async fn snapshot(
        &self,
        schema: &str,
    ) -> anyhow::Result<tokio_postgres::Client> {
        let client = self.connect(schema).await?;
        client.batch_execute(include_str!("../../../sql/postgres/snapshot.sql")).await?;
        Ok(client)
    }

    async fn drop_schema(&self, schema: &str) -> anyhow::Result<()> {
        let client = self.connect(schema).await?;
        client.batch_execute(include_str!("../../../sql/postgres/schema_drop.sql")).await?;
        Ok(())
    }

    /// Looks at the schema that the user named. Where no store is, none is made.
    async fn refuse_if_in_use(&self, given: &Address) -> Result<(), Look> {
        let there = async {
            let (client, connection) = self.config.connect(NoTls).await?;
            tokio::spawn(connection);
            let (schema, prefix) = (given.param("schema"), given.param("prefix").unwrap_or(""));
            let sql = include_str!("../../../sql/postgres/has_tables.sql");
            let row = client.query_one(sql, &[&schema, &prefix]).await?;
            anyhow::Ok(row.try_get::<_, bool>(0)?)
        };
        if !there.await.map_err(Look::Failed)? {
            return Ok(());
        }
        let client = Client::connect(&given.to_string()).await;
        let client = client.map_err(|error| Look::Failed(error.into()))?;
        refuse_store_in_use(&client).await.map_err(Look::Used)
    }

    async fn look_at_process(&mut self) -> anyhow::Result<()> {
        let client = self.connect("pg_catalog").await?;
        let row = client.query_one(include_str!("../../../sql/postgres/backend.sql"), &[]).await?;
        self.process = ServerProcess::of_backend(row.try_get(0)?);
        self.version = row.try_get(1)?;
        Ok(())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // What was in the way before may be gone now.
        self.made.left().iter().for_each(|schema| self.remove(schema));
    }
}

/// What looking at a store came to.
enum Look {
    Used(anyhow::Error),
    Failed(anyhow::Error),
}

fn check_encryption(address: &Address) -> anyhow::Result<()> {
    match address.param("sslmode") {
        Some(mode @ ("require" | "verify-full")) => bail!(
            "the bare loop speaks to the server without encryption, so figures with \
             sslmode={mode} could not be compared; measure with sslmode=disable, on a server that \
             allows it"
        ),
        _ => Ok(()),
    }
}

/// What the driver makes of a URL of the store's.
fn driver(address: &Address) -> anyhow::Result<Config> {
    let plain = address.only(&OF_THE_DRIVER).to_string();
    let plain = plain.split_once(':').map(|(_, rest)| format!("postgres:{rest}"));
    let config = plain.unwrap_or_default().parse::<Config>();
    let mut config = config.with_context(|| format!("{} is no URL", address.shown()))?;
    config.application_name("durably-bench");
    Ok(config)
}
