//! How a connection is made: to the one of several servers that accepts writes. Who only looks takes
//! another one where there is none.

use crate::error::{Kind, Trouble};
use crate::migrate::Access;
use crate::postgres::error::trouble_of_connect;
use crate::postgres::home::Home;
use crate::postgres::session::Statements;
use crate::postgres::settings::{Settings, host_shown};
use crate::postgres::tls::connector;
use crate::url::Host;
use durably_store::StoreError;
use futures_util::FutureExt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{AsyncMessage, Client, Notification};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    access: Access,
    settings: Arc<Settings>,
    tls: MakeRustlsConnect,
    home: Arc<Home>,
    /// The server that accepted writes last: it is asked first.
    foremost: Arc<AtomicUsize>,
}

/// How a connection is made.
#[derive(Clone)]
struct Way {
    statements: Statements,
    notifications: Option<mpsc::UnboundedSender<Notification>>,
    /// What the server must let us do.
    target: TargetSessionAttrs,
}

/// A connection: what to ask with, and the task that carries it.
pub(crate) struct Made {
    pub(crate) client: Client,
    pub(crate) task: JoinHandle<()>,
}

impl Connector {
    pub(crate) fn new(settings: Settings, home: Arc<Home>) -> Result<Connector, StoreError> {
        let tls = connector(&settings)?;
        let (access, foremost) = (Access::Work, Arc::default());
        Ok(Connector { access, settings: Arc::new(settings), tls, home, foremost })
    }

    /// One that is used for this.
    pub(crate) fn with_access(self, access: Access) -> Connector {
        Connector { access, ..self }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn home(&self) -> &Arc<Home> {
        &self.home
    }

    /// Connects to the first server that accepts writes; who only looks, to any where there is none.
    pub(crate) async fn connect(
        &self,
        statements: Statements,
        notifications: Option<mpsc::UnboundedSender<Notification>>,
    ) -> Result<Made, Trouble> {
        let way = Way { statements, notifications, target: TargetSessionAttrs::ReadWrite };
        match (self.connect_to_any(&way).await, self.access) {
            (Err(_), Access::Look) => {
                self.connect_to_any(&Way { target: TargetSessionAttrs::Any, ..way }).await
            }
            (answer, _) => answer,
        }
    }

    /// Connects to the first server that will do.
    async fn connect_to_any(&self, way: &Way) -> Result<Made, Trouble> {
        let hosts = self.settings.hosts.len();
        let first = self.foremost.load(Ordering::Relaxed);
        let mut troubles = Vec::new();
        for at in (0..hosts).map(|next| (first + next) % hosts) {
            let host = &self.settings.hosts[at];
            match self.connect_to(host, way.clone()).await {
                Ok(made) => {
                    self.foremost.store(at, Ordering::Relaxed);
                    return Ok(made);
                }
                Err(trouble) => troubles.push((host_shown(host), trouble)),
            }
        }
        Err(together(troubles))
    }

    async fn connect_to(&self, host: &Host, way: Way) -> Result<Made, Trouble> {
        let Way { statements, notifications, target } = way;
        let mut driver = self.settings.driver(host, statements);
        driver.target_session_attrs(target);
        let tls = self.tls.clone();
        let most = self.settings.connect_max;
        // The socket belongs to the runtime on which it is opened.
        let opening = self.home.spawn(async move {
            let connecting = driver.connect(tls);
            tokio::time::timeout(most, connecting).await
        });
        match opening.await {
            Ok(Ok(Ok((client, mut connection)))) => {
                let carry = async move {
                    while let Some(Ok(message)) =
                        poll_fn(|context| connection.poll_message(context)).await
                    {
                        if let (AsyncMessage::Notification(hint), Some(to)) =
                            (message, &notifications)
                            && to.send(hint).is_err()
                        {
                            break;
                        }
                    }
                };
                Ok(Made { client, task: self.home.spawn(carry) })
            }
            Ok(Ok(Err(error))) if error.as_db_error().is_some() => Err(trouble_of_connect(&error)),
            Ok(Ok(Err(error))) => Err(self.explain(host, trouble_of_connect(&error)).await),
            Ok(Err(_)) => {
                let problem = format!("no connection within {most:?}");
                Err(self.explain(host, Trouble::server(Kind::Away, problem)).await)
            }
            Err(error) => Err(Trouble::server(Kind::Away, error.to_string())),
        }
    }

    /// What is behind a connection that failed without the server saying why: perhaps it is no
    /// PostgreSQL.
    async fn explain(&self, host: &Host, trouble: Trouble) -> Trouble {
        let (host, most) = (host.clone(), self.settings.connect_max.min(Duration::from_secs(2)));
        // The caller's runtime, which may be that of the beats, need not have sockets.
        let sniffed = self.home.spawn(async move { sniff(&host, most).await });
        match sniffed.await.ok().flatten() {
            Some(what) => {
                let problem = format!("{what}; check host and port in the URL");
                Trouble::server(Kind::Unfit, problem)
            }
            None => trouble,
        }
    }
}

/// What answers at a host that does not speak as PostgreSQL does; none if it does, or if nobody
/// answers. It is asked whether it encrypts: PostgreSQL says S or N, or E with an error.
async fn sniff(host: &Host, most: Duration) -> Option<&'static str> {
    /// Length, and the code that asks.
    const ENCRYPTS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
    if host.name.starts_with('/') {
        return None;
    }
    let look = async {
        let mut stream =
            TcpStream::connect((host.name.as_str(), host.port.unwrap_or(5432))).await?;
        stream.write_all(&ENCRYPTS).await?;
        let mut answer = vec![0; 16];
        let length = stream.read(&mut answer).await?;
        answer.truncate(length);
        Ok::<Vec<u8>, std::io::Error>(answer)
    };
    match tokio::time::timeout(most, look.boxed()).await {
        Ok(Err(_)) | Err(_) => None,
        Ok(Ok(answer)) => match answer.as_slice() {
            [] | b"S" | b"N" | [b'E', ..] => None,
            [b'H', b'T', b'T', b'P', ..] => {
                Some("what answers there is a web server and no PostgreSQL")
            }
            _ => Some("what answers there is no PostgreSQL"),
        },
    }
}

/// What several servers said. Unless all say the same, one of them may come to accept writes.
fn together(troubles: Vec<(String, Trouble)>) -> Trouble {
    let mut kinds = Vec::new();
    let mut problems = Vec::new();
    for (host, trouble) in troubles {
        match trouble {
            Trouble::Server { kind, problem } => {
                kinds.push(kind);
                problems.push(format!("{host}: {problem}"));
            }
            other @ (Trouble::Damaged(_) | Trouble::Store(_)) => return other,
        }
    }
    let kind = match kinds.first() {
        Some(first) if kinds.iter().all(|kind| kind == first) => *first,
        Some(_) if kinds.contains(&Kind::Crowded) => Kind::Crowded,
        Some(_) | None => Kind::Away,
    };
    Trouble::server(kind, problems.join("; "))
}
