//! A server: how it is reached, and whether it will do.

use crate::error::{Kind, Trouble};
use crate::mysql::error::trouble_of_connect;
use crate::mysql::line::Line;
use mysql_async::{Conn, Opts, OptsBuilder, Row};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

const SESSION: &str = include_str!("../../sql/mysql/session.sql");
const SESSION_MARIADB: &str = include_str!("../../sql/mysql/session_mariadb.sql");
const SESSION_MYSQL: &str = include_str!("../../sql/mysql/session_mysql.sql");
const SERVER: &str = include_str!("../../sql/mysql/server.sql");
const SERVER_READY: &str = include_str!("../../sql/mysql/server_ready.sql");

/// How the servers of a store are used.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// In the order in which they are tried.
    pub(crate) servers: Vec<Server>,
    /// Most connections.
    pub(crate) pool: usize,
    /// How long a command waits for a connection of others.
    pub(crate) wait_max: Duration,
    /// How long a server may take to let us in.
    pub(crate) connect_max: Duration,
    /// How long a connection is kept that nobody uses.
    pub(crate) idle_max: Duration,
}

/// A server, and who we are to it.
#[derive(Clone)]
pub(crate) struct Server(Opts);

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.socket() {
            Some(socket) => f.write_str(socket),
            None => write!(f, "{}:{}", self.0.ip_or_hostname(), self.0.tcp_port()),
        }
    }
}

impl Server {
    pub(crate) fn new(opts: OptsBuilder) -> Server {
        // Statements are kept by ourselves, and a server on this host is reached as it was named.
        let opts = opts.stmt_cache_size(0).prefer_socket(false).tcp_nodelay(true);
        Server(opts.tcp_keepalive(Some(Duration::from_secs(30))).into())
    }

    /// A connection, set up, to a server that can be written; and how long it may be idle.
    pub(super) async fn connect(&self, settings: &Settings) -> Result<(Line, Duration), Trouble> {
        let max = settings.connect_max;
        match tokio::time::timeout(max, self.try_connect(settings)).await {
            Ok(answer) => answer,
            Err(_) => {
                let problem = format!("the server did not let us in within {} s", max.as_secs());
                Err(Trouble::server(Kind::Away, problem))
            }
        }
    }

    async fn try_connect(&self, settings: &Settings) -> Result<(Line, Duration), Trouble> {
        let conn = Conn::new(self.0.clone()).await;
        let mut line = Line::new(conn.map_err(|error| trouble_of_connect(&error))?);
        let facts = Facts::ask(&mut line).await?;
        facts.check()?;
        let (limits, idle_max) = match facts.flavour {
            Flavour::Mariadb => (SESSION_MARIADB, settings.idle_max),
            // The server ends its connections after 30 s.
            Flavour::Mysql => (SESSION_MYSQL, settings.idle_max.min(Duration::from_secs(20))),
        };
        for text in [SESSION, limits] {
            line.tell(text).await.map_err(|error| trouble_of_connect(&error))?;
        }
        Ok((line, idle_max))
    }
}

/// Whose server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flavour {
    Mariadb,
    Mysql,
}

/// What a server says about itself.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) flavour: Flavour,
    values: BTreeMap<String, String>,
}

impl Facts {
    pub(super) async fn ask(line: &mut Line) -> Result<Facts, Trouble> {
        let mut values = BTreeMap::new();
        let rows = line.tell(SERVER).await.map_err(|error| trouble_of_connect(&error))?;
        values.extend(rows.into_iter().filter_map(name_and_value));
        if is_on(values.get("wsrep_on")) {
            let rows = line.tell(SERVER_READY).await.map_err(|error| trouble_of_connect(&error))?;
            values.extend(rows.into_iter().filter_map(name_and_value));
        }
        let mariadb = values.get("version").is_some_and(|version| version.contains("MariaDB"));
        let flavour = if mariadb { Flavour::Mariadb } else { Flavour::Mysql };
        Ok(Facts { flavour, values })
    }

    /// Whether it can be written.
    fn check(&self) -> Result<(), Trouble> {
        let away = |problem: &str| Err(Trouble::server(Kind::Away, problem));
        for name in ["read_only", "super_read_only", "innodb_read_only"] {
            // MariaDB has more than two words for how much of it is read only.
            if self.values.get(name).is_some_and(|value| !matches!(value.as_str(), "OFF" | "0")) {
                return away("the server is only to be read, a replica perhaps; name all servers");
            }
        }
        if is_on(self.values.get("wsrep_on")) && !is_on(self.values.get("wsrep_ready")) {
            return away("the server is not a working part of its Galera cluster");
        }
        Ok(())
    }
}

fn is_on(value: Option<&String>) -> bool {
    value.is_some_and(|value| matches!(value.as_str(), "ON" | "1"))
}

fn name_and_value(row: Row) -> Option<(String, String)> {
    mysql_async::from_row_opt(row).ok()
}
