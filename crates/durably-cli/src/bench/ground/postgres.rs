//! PostgreSQL: a schema of its own for every pass, in the database that the user names.

use super::{in_use, refuse_store_in_use};
use crate::bench::address::Address;
use crate::bench::pace::ServerProcess;
use anyhow::{Context, bail};
use durably::Client;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio_postgres::{Config, NoTls};

/// Parameters that the driver knows too.
const OF_THE_DRIVER: [&str; 2] = ["host", "connect_timeout"];

/// A server, and what was made on it.
pub(crate) struct Postgres {
    /// Without a schema and a prefix.
    address: Address,
    config: Config,
    /// All schemas begin so.
    name: String,
    made: AtomicU32,
    /// Schemas that are still there.
    there: Mutex<BTreeSet<String>>,
    process: Option<ServerProcess>,
}

impl Postgres {
    pub(super) async fn of(given: Address) -> anyhow::Result<Postgres> {
        let shown = given.shown();
        let address = given.without(&["schema", "prefix"]);
        let name = format!("durably_bench_{:08x}", rand::random::<u32>());
        check_encryption(&given)?;
        // Before anything else: the store has the better words for all that can be wrong.
        let first = format!("{name}_first");
        let opened = Client::connect(&address.with("schema", &first).to_string()).await.map(drop);
        opened.with_context(|| format!("cannot measure on {shown}"))?;
        let mut server = Postgres {
            config: driver(&given)?,
            address,
            name,
            made: AtomicU32::new(0),
            there: Mutex::default(),
            process: None,
        };
        server.remove(&first);
        server.refuse_if_in_use(&given).await.map_err(|why| match why {
            Look::Used(why) => in_use(&shown, why, "another schema, as schema=NAME,"),
            Look::Failed(error) => error.context(format!("cannot look at {shown}")),
        })?;
        server.process = server.find_process().await?;
        Ok(server)
    }

    /// How all names begin.
    pub(super) fn names(&self) -> String {
        format!("{}_…", self.name)
    }

    /// The URL of a store in a schema that is not there yet, and the schema's name.
    pub(super) fn fresh(&self) -> (String, String) {
        let schema = format!("{}_{}", self.name, self.made.fetch_add(1, Ordering::Relaxed));
        self.there.lock().insert(schema.clone());
        (self.address.with("schema", &schema).to_string(), schema)
    }

    /// The server's processes, where they are on this host.
    pub(super) fn process(&self) -> Option<ServerProcess> {
        self.process
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

    /// Drops a schema with all that is in it. What cannot be dropped is named.
    pub(super) fn remove(&self, schema: &str) {
        // In a thread with a runtime of its own: this is called where something is dropped.
        let dropped = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(self.drop_schema(schema))
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        match dropped {
            Ok(()) => drop(self.there.lock().remove(schema)),
            Err(error) => tracing::warn!("the schema {schema} could not be dropped: {error:#}"),
        }
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

    async fn find_process(&self) -> anyhow::Result<Option<ServerProcess>> {
        let client = self.connect("pg_catalog").await?;
        let row = client.query_one(include_str!("../../../sql/postgres/backend.sql"), &[]).await?;
        Ok(ServerProcess::of_backend(row.try_get(0)?))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // What was in the way before may be gone now.
        let left = std::mem::take(&mut *self.there.lock());
        left.iter().for_each(|schema| self.remove(schema));
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
