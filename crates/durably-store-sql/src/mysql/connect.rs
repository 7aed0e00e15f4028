//! How a connection is made: to the one of several servers that can be written. Of the nodes of a
//! Galera cluster, which all can, it is the one that all processes write to.

use crate::error::{Kind, Trouble};
use crate::migrate::Access;
use crate::mysql::error::trouble_of_connect;
use crate::mysql::line::Line;
use crate::mysql::probe::{Facts, Flavour};
use crate::mysql::settings::{Encryption, Settings, host_shown};
use crate::mysql::template::Template;
use crate::mysql::writer::{Candidate, Recorded};
use crate::postgres::home::Home;
use crate::url::Host;
use mysql_async::{Conn, DriverError, Error, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SESSION: &str = include_str!("../../sql/mysql/session.sql");
const SESSION_MARIADB: &str = include_str!("../../sql/mysql/session_mariadb.sql");
const SESSION_MYSQL: &str = include_str!("../../sql/mysql/session_mysql.sql");

/// So often who is written to may change while a connection is made.
const CHANGES_MAX: usize = 5;

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    access: Access,
    settings: Arc<Settings>,
    home: Arc<Home>,
    /// The server that would do last: it is asked first.
    foremost: Arc<AtomicUsize>,
}

/// What a server must let us do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Need {
    Write,
    Read,
}

/// A connection that was just made.
pub(super) struct Made {
    pub(super) line: Line,
    pub(super) facts: Facts,
    /// How long it may be idle.
    pub(super) idle_max: Duration,
}

impl Connector {
    pub(crate) fn new(access: Access, settings: Settings, home: Arc<Home>) -> Connector {
        if settings.encryption != Encryption::Never {
            // The driver asks the process which cryptography to use. Where the program has chosen
            // already, its choice stays.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        Connector { access, settings: Arc::new(settings), home, foremost: Arc::default() }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Connects to the server that is written to; who only looks, to another one where there is
    /// none.
    pub(super) async fn connect(&self) -> Result<Made, Trouble> {
        match (self.connect_to_any(Need::Write).await, self.access) {
            (Ok(made), Access::Work) => self.settle(made).await,
            (Err(_), Access::Look) => self.connect_to_any(Need::Read).await,
            (answer, _) => answer,
        }
    }

    /// The first server that will do.
    async fn connect_to_any(&self, need: Need) -> Result<Made, Trouble> {
        let hosts = self.settings.hosts.len();
        let first = self.foremost.load(Ordering::Relaxed);
        let mut troubles = Vec::new();
        for at in (0..hosts).map(|next| (first + next) % hosts) {
            let host = &self.settings.hosts[at];
            match self.connect_to(host.clone(), need).await {
                Ok(made) => {
                    self.foremost.store(at, Ordering::Relaxed);
                    return Ok(made);
                }
                Err(trouble) => troubles.push((host_shown(host), trouble)),
            }
        }
        Err(together(troubles))
    }

    /// A connection to the node that is written to, given one to some node of its cluster.
    async fn settle(&self, made: Made) -> Result<Made, Trouble> {
        let Some(node) = made.facts.node().map(str::to_owned) else { return Ok(made) };
        let most = self.settings.answer_max;
        let settled = tokio::time::timeout(most, self.settle_on(&node, made)).await;
        settled.unwrap_or_else(|_| {
            let problem = format!("node {node} did not catch up with its cluster within {most:?}");
            Err(Trouble::server(Kind::Away, problem))
        })
    }

    async fn settle_on(&self, node: &str, mut made: Made) -> Result<Made, Trouble> {
        for _ in 0..CHANGES_MAX {
            let naming = &self.settings.naming;
            let mut candidate = Candidate { line: &mut made.line, naming };
            let recorded = candidate.recorded().await?;
            match &recorded {
                Recorded::NoTables => return Ok(made),
                Recorded::Node(name) if name == node => {
                    made.line.node = Some(node.to_owned());
                    return Ok(made);
                }
                Recorded::Node(name) => {
                    if let Some(other) = self.connect_to_node(name).await? {
                        return Ok(other);
                    }
                }
                Recorded::Nobody => {}
            }
            let mut candidate = Candidate { line: &mut made.line, naming };
            if candidate.take(node, &recorded).await? {
                tracing::warn!(node, before = ?recorded, "the cluster is written to on another node");
            }
        }
        Err(Trouble::server(Kind::Away, "the node that is written to changes all the time"))
    }

    /// A connection to the node with a name, if it is among the servers and can be written. One that
    /// only has no connection left is not gone: nobody may take its place for that.
    async fn connect_to_node(&self, name: &str) -> Result<Option<Made>, Trouble> {
        let mut busy = None;
        for (at, host) in self.settings.hosts.iter().enumerate() {
            match self.connect_to(host.clone(), Need::Write).await {
                Ok(mut made) if made.facts.node() == Some(name) => {
                    self.foremost.store(at, Ordering::Relaxed);
                    made.line.node = Some(name.to_owned());
                    return Ok(Some(made));
                }
                Err(trouble @ Trouble::Server { kind: Kind::Busy, .. }) => busy = Some(trouble),
                Ok(_) | Err(_) => {}
            }
        }
        busy.map_or(Ok(None), Err)
    }

    async fn connect_to(&self, host: Host, need: Need) -> Result<Made, Trouble> {
        let settings = self.settings.clone();
        let most = settings.connect_max;
        // The socket belongs to the runtime on which it is opened.
        let opening = self
            .home
            .spawn(async move { tokio::time::timeout(most, open(&settings, &host, need)).await });
        match opening.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                Err(Trouble::server(Kind::Away, format!("no connection within {most:?}")))
            }
            Err(error) => Err(Trouble::server(Kind::Away, error.to_string())),
        }
    }
}

/// A connection, set up, to a server that lets us do what we need.
async fn open(settings: &Settings, host: &Host, need: Need) -> Result<Made, Trouble> {
    let conn = open_socket(settings, host).await.map_err(|error| trouble_of_connect(&error))?;
    let mut line = Line::new(conn);
    let facts = Facts::ask(&mut line).await?;
    if need == Need::Write {
        facts.check_writable()?;
    }
    line.tell(SESSION).await.map_err(|error| trouble_of_connect(&error))?;
    let [lock, statement, idle] = settings.limits();
    let (text, limits, idle_max) = match facts.flavour {
        Flavour::Mariadb => (SESSION_MARIADB, vec![lock, statement, idle], settings.idle_max),
        // The server ends what is idle; so that we do not use it then, we do so before.
        Flavour::Mysql => (SESSION_MYSQL, vec![lock, idle], settings.idle_max.min(idle / 2)),
    };
    let limits = limits.into_iter().map(|limit| Value::UInt(limit.as_secs())).collect();
    bind(&mut line, text, limits).await?;
    Ok(Made { line, facts, idle_max })
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
