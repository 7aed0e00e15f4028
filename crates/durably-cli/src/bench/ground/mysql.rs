//! MySQL and MariaDB: a database of its own for every pass.

use super::made::Made;
use super::{in_use, refuse_store_in_use};
use crate::bench::address::Address;
use crate::bench::pace::ServerProcess;
use anyhow::{Context, bail};
use durably::Client;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};

/// A server, and what was made on it.
pub(crate) struct Mysql {
    /// Without a prefix.
    address: Address,
    opts: Opts,
    made: Made,
    process: Option<ServerProcess>,
    version: String,
}

impl Mysql {
    pub(super) async fn of(given: Address) -> anyhow::Result<Mysql> {
        let shown = given.shown();
        if let Some(mode @ ("require" | "verify-full")) = given.param("sslmode") {
            bail!(
                "the bare loop speaks to the server without encryption, so figures with \
                 sslmode={mode} could not be compared; measure with sslmode=disable, on a server \
                 that allows it"
            );
        }
        let made = Made::new();
        let address = given.without(&["prefix"]);
        let (process, version) = (None, String::new());
        let mut server = match driver(&given) {
            Ok(opts) => Mysql { address, opts, made, process, version },
            Err(error) => return Err(words_of_the_store(&given).await.unwrap_or(error)),
        };
        if let Err(error) = server.look_at_process().await {
            let error = words_of_the_store(&given).await.unwrap_or(error);
            return Err(error.context(format!("cannot measure on {shown}")));
        }
        // Tries whether a database may be made.
        let (_, first) = server.fresh().await?;
        server.remove(&first);
        if let Some(client) = server.store_there(&given).await? {
            let used = refuse_store_in_use(&client).await;
            used.map_err(|why| in_use(&shown, why, "another database"))?;
        }
        Ok(server)
    }

    pub(super) fn made(&self) -> &Made {
        &self.made
    }

    /// The URL of a store in a new database, and the database's name.
    pub(super) async fn fresh(&self) -> anyhow::Result<(String, String)> {
        let name = self.made.next();
        let mut conn = self.open(None).await?;
        let named = include_str!("../../../sql/mysql/database_name.sql");
        conn.exec_drop(named, (&name,)).await?;
        conn.query_drop(include_str!("../../../sql/mysql/database_create.sql")).await?;
        conn.disconnect().await?;
        Ok((self.address.in_database(&name).to_string(), name))
    }

    /// The server's process, where it is on this host.
    pub(super) fn process(&self) -> Option<ServerProcess> {
        self.process
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// A connection of our own, without an engine.
    pub(in crate::bench) async fn connect(&self, database: &str) -> anyhow::Result<Conn> {
        let mut conn = self.open(Some(database)).await?;
        conn.query_drop(include_str!("../../../sql/mysql/session.sql")).await?;
        Ok(conn)
    }

    /// A transaction that keeps seeing what there is now, until it is dropped.
    pub(in crate::bench) async fn snapshot(&self, database: &str) -> anyhow::Result<Conn> {
        let mut conn = self.open(Some(database)).await?;
        conn.query_drop(include_str!("../../../sql/mysql/snapshot.sql")).await?;
        Ok(conn)
    }

    /// Drops a database.
    pub(super) fn remove(&self, name: &str) {
        self.made.remove(name, self.drop_database(name));
    }

    async fn drop_database(&self, name: &str) -> anyhow::Result<()> {
        let mut conn = self.open(None).await?;
        conn.exec_drop(include_str!("../../../sql/mysql/database_name.sql"), (name,)).await?;
        conn.query_drop(include_str!("../../../sql/mysql/database_drop.sql")).await?;
        Ok(conn.disconnect().await?)
    }

    async fn open(&self, database: Option<&str>) -> anyhow::Result<Conn> {
        let opts = OptsBuilder::from_opts(self.opts.clone()).db_name(database);
        Ok(Conn::new(opts).await?)
    }

    /// The store that the URL names, if one is there; none is made.
    async fn store_there(&self, given: &Address) -> anyhow::Result<Option<Client>> {
        let Some(database) = given.database() else { return Ok(None) };
        let mut conn = self.open(None).await?;
        let params = (database, given.param("prefix").unwrap_or(""));
        let sql = include_str!("../../../sql/mysql/has_tables.sql");
        let tables: Option<i64> = conn.exec_first(sql, params).await?;
        conn.disconnect().await?;
        match tables {
            Some(tables) if tables > 0 => Ok(Some(Client::connect(&given.to_string()).await?)),
            _ => Ok(None),
        }
    }

    async fn look_at_process(&mut self) -> anyhow::Result<()> {
        let mut conn = self.open(None).await?;
        let row: Option<(String, String)> =
            conn.query_first(include_str!("../../../sql/mysql/server.sql")).await?;
        let (file, version) = row.context("the server told nothing of itself")?;
        self.process = ServerProcess::of_file(&file);
        self.version = version;
        Ok(conn.disconnect().await?)
    }
}

impl Drop for Mysql {
    fn drop(&mut self) {
        // What was in the way before may be gone now.
        self.made.left().iter().for_each(|name| self.remove(name));
    }
}

/// What the store says of a URL that is wrong: it has the better words.
async fn words_of_the_store(given: &Address) -> Option<anyhow::Error> {
    Client::connect(&given.to_string()).await.err().map(anyhow::Error::from)
}

/// What the driver makes of a URL of the store's.
fn driver(address: &Address) -> anyhow::Result<Opts> {
    let plain = address.only(&[]).first_host().to_string();
    let plain = plain.split_once(':').map(|(_, rest)| format!("mysql:{rest}")).unwrap_or_default();
    let opts = Opts::from_url(&plain);
    let opts = opts.with_context(|| format!("{} is no URL", address.shown()))?;
    Ok(OptsBuilder::from_opts(opts).prefer_socket(false).into())
}
