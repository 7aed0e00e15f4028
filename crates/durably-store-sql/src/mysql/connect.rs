//! How a connection is made: to the first of several servers that can be written.
//!
//! Always the first one that will do, in every process: the nodes of a Galera cluster all take
//! writes, but a row that a claim skips as locked on one is free on another.

use crate::error::{Kind, Trouble};
use crate::mysql::error::trouble_of_connect;
use crate::mysql::line::Line;
use crate::mysql::probe::{Facts, Flavour};
use crate::mysql::settings::{Encryption, Settings, host_shown};
use crate::mysql::template::Template;
use crate::postgres::home::Home;
use crate::url::Host;
use mysql_async::{Conn, DriverError, Error, Value};
use std::sync::Arc;
use std::time::Duration;

const SESSION: &str = include_str!("../../sql/mysql/session.sql");
const SESSION_MARIADB: &str = include_str!("../../sql/mysql/session_mariadb.sql");
const SESSION_MYSQL: &str = include_str!("../../sql/mysql/session_mysql.sql");

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    settings: Arc<Settings>,
    home: Arc<Home>,
}

/// A connection that was just made.
pub(super) struct Made {
    pub(super) line: Line,
    pub(super) facts: Facts,
    /// Whether it is to the first of the servers.
    pub(super) first_choice: bool,
    /// How long it may be idle.
    pub(super) idle_max: Duration,
}

impl Connector {
    pub(crate) fn new(settings: Settings, home: Arc<Home>) -> Connector {
        if settings.encryption != Encryption::Never {
            // The driver asks the process which cryptography to use. Where the program has chosen
            // already, its choice stays.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        Connector { settings: Arc::new(settings), home }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Connects to the first server that can be written.
    pub(super) async fn connect(&self) -> Result<Made, Trouble> {
        let mut troubles = Vec::new();
        for (at, host) in self.settings.hosts.iter().enumerate() {
            match self.connect_to(host.clone()).await {
                Ok(made) => return Ok(Made { first_choice: at == 0, ..made }),
                Err(trouble) => troubles.push((host_shown(host), trouble)),
            }
        }
        Err(together(troubles))
    }

    async fn connect_to(&self, host: Host) -> Result<Made, Trouble> {
        let settings = self.settings.clone();
        let most = settings.connect_max;
        // The socket belongs to the runtime on which it is opened.
        let opening = self
            .home
            .spawn(async move { tokio::time::timeout(most, open(&settings, &host)).await });
        match opening.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                Err(Trouble::server(Kind::Away, format!("no connection within {most:?}")))
            }
            Err(error) => Err(Trouble::server(Kind::Away, error.to_string())),
        }
    }
}

/// A connection, set up, to a server that can be written.
async fn open(settings: &Settings, host: &Host) -> Result<Made, Trouble> {
    let conn = open_socket(settings, host).await.map_err(|error| trouble_of_connect(&error))?;
    let mut line = Line::new(conn);
    let facts = Facts::ask(&mut line).await?;
    facts.check_writable()?;
    line.tell(SESSION).await.map_err(|error| trouble_of_connect(&error))?;
    let [lock, statement, idle] = settings.limits();
    let (text, limits, idle_max) = match facts.flavour {
        Flavour::Mariadb => (SESSION_MARIADB, vec![lock, statement, idle], settings.idle_max),
        // The server ends what is idle; so that we do not use it then, we do so before.
        Flavour::Mysql => (SESSION_MYSQL, vec![lock, idle], settings.idle_max.min(idle / 2)),
    };
    let limits = limits.into_iter().map(|limit| Value::UInt(limit.as_secs())).collect();
    bind(&mut line, text, limits).await?;
    Ok(Made { line, facts, first_choice: true, idle_max })
}

async fn open_socket(settings: &Settings, host: &Host) -> Result<Conn, Error> {
    let socket = host.name.starts_with('/');
    let encrypted = settings.encryption != Encryption::Never && !socket;
    match Conn::new(settings.driver(host, encrypted)).await {
        Err(Error::Driver(DriverError::NoClientSslFlagFromServer))
            if settings.encryption == Encryption::IfOffered =>
        {
            Conn::new(settings.driver(host, false)).await
        }
        answer => answer,
    }
}

/// Asks once, with values, before there are sessions.
pub(super) async fn bind(
    line: &mut Line,
    text: &str,
    values: Vec<Value>,
) -> Result<Vec<mysql_async::Row>, Trouble> {
    let template =
        Template::parse(text).map_err(|problem| Trouble::server(Kind::Refused, problem))?;
    line.ask_once(&template.text(1), values).await.map_err(|error| trouble_of_connect(&error))
}

/// What several servers said. Where one of them may come back, all is not lost.
fn together(mut troubles: Vec<(String, Trouble)>) -> Trouble {
    if troubles.len() == 1
        && let Some((_, trouble)) = troubles.pop()
    {
        return trouble;
    }
    let (mut worst, mut problems) = (Kind::Unfit, Vec::new());
    for (host, trouble) in troubles {
        match trouble {
            Trouble::Server { kind, problem } => {
                worst = match (worst, kind) {
                    (Kind::Crowded, _) | (_, Kind::Crowded) => Kind::Crowded,
                    (worst, Kind::Unfit) => worst,
                    (_, _) => Kind::Away,
                };
                problems.push(format!("{host}: {problem}"));
            }
            Trouble::Damaged(problem) => problems.push(format!("{host}: {problem}")),
            Trouble::Store(error) => problems.push(format!("{host}: {error}")),
        }
    }
    Trouble::server(worst, problems.join("; "))
}
