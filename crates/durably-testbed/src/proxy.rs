//! A proxy between a client and a server, which breaks their connections as networks do.

mod connection;
mod trap;

use crate::TestbedError;
use connection::Connection;
use parking_lot::Mutex;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use trap::{Trap, Traps, When};
use url::Url;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client: questions.
    ToServer,
    /// From the server: answers.
    ToClient,
    /// Both.
    Both,
}

/// Forwards connections to a server until it is told otherwise. All connections are cut, and new
/// ones refused, when it is dropped.
///
/// It sees bytes as they are on the wire: what TLS hides from others it hides from predicates too.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// The task that has the listener; `None` while connections are refused.
    listening: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

/// What all connections look at.
#[derive(Debug)]
struct Shared {
    server: SocketAddr,
    faults: watch::Sender<Faults>,
    /// How many pieces are held back.
    held: watch::Sender<usize>,
    traps: Mutex<Traps>,
    open: Mutex<Open>,
}

/// The connections since the last cut.
#[derive(Clone, Debug, Default)]
struct Open {
    cut: CancellationToken,
    tasks: TaskTracker,
}

#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    to_server: Fault,
    to_client: Fault,
}

#[derive(Clone, Copy, Debug, Default)]
struct Fault {
    held: bool,
    delay: Duration,
}

/// Done when a trap of [`Proxy`] has cut a connection. Panics if the proxy is dropped, or another
/// trap is set, before: what a test waits for can then no longer happen.
#[derive(Debug)]
#[must_use = "await it to know that the connection was cut"]
pub struct Sprung(oneshot::Receiver<()>);

impl Future for Sprung {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|sprung| sprung.expect("nobody stepped into the trap while it was set"))
    }
}

impl Proxy {
    /// Forwards from a free port of the loopback to a server.
    ///
    /// # Errors
    ///
    /// If no port can be had.
    pub async fn to(server: SocketAddr) -> Result<Proxy, TestbedError> {
        let shared = Arc::new(Shared {
            server,
            faults: watch::Sender::default(),
            held: watch::Sender::default(),
            traps: Mutex::default(),
            open: Mutex::default(),
        });
        let port = crate::supervisor::free_port()?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let proxy = Proxy { address, shared, listening: tokio::sync::Mutex::new(None) };
        proxy.accept().await?;
        Ok(proxy)
    }

    /// Forwards to the server of a URL, which must name an address and a port.
    ///
    /// # Errors
    ///
    /// If the URL does not, or no port can be had.
    pub async fn to_server_of(url: &str) -> Result<Proxy, TestbedError> {
        let bad = |problem: &str| TestbedError::BadUrl {
            url: crate::database::without_password(url),
            problem: problem.to_owned(),
        };
        let parsed = Url::parse(url).map_err(|error| bad(&error.to_string()))?;
        let host = parsed.host_str().ok_or_else(|| bad("it has no host"))?;
        let port = parsed.port().ok_or_else(|| bad("it has no port"))?;
        let mut found = tokio::net::lookup_host((host, port))
            .await
            .map_err(TestbedError::io(format!("look up {host}")))?;
        let server = found.next().ok_or_else(|| bad("its host has no address"))?;
        Proxy::to(server).await
    }

    /// Where the proxy listens. It stays the same.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL of the server, with the proxy in its place.
    ///
    /// # Errors
    ///
    /// If it is no URL with a host.
    pub fn instead_of(&self, url: &str) -> Result<String, TestbedError> {
        let bad = |problem: String| TestbedError::BadUrl {
            url: crate::database::without_password(url),
            problem,
        };
        let mut parsed = Url::parse(url).map_err(|error| bad(error.to_string()))?;
        parsed
            .set_host(Some("127.0.0.1"))
            .map_err(|error| bad(error.to_string()))
            .and_then(|()| {
                parsed
                    .set_port(Some(self.address.port()))
                    .map_err(|()| bad("it cannot have a port".to_owned()))
            })
            .map(|()| parsed.into())
    }

    /// Cuts all connections, without a farewell to either side. Returns when they are cut. New ones
    /// are taken as before.
    pub async fn cut(&self) {
        let open = std::mem::take(&mut *self.shared.open.lock());
        open.cut.cancel();
        open.tasks.close();
        open.tasks.wait().await;
    }

    /// Refuses new connections, as a server does that is not there. Those that are open stay.
    pub async fn refuse(&self) {
        if let Some(task) = self.listening.lock().await.take() {
            task.abort();
            // Its answer is that it was aborted; by then the listener is closed.
            let _ = task.await;
        }
    }

    /// Takes new connections again.
    ///
    /// # Errors
    ///
    /// If somebody else took the port meanwhile.
    pub async fn accept(&self) -> Result<(), TestbedError> {
        let mut listening = self.listening.lock().await;
        if listening.is_none() {
            let listener = TcpListener::bind(self.address)
                .await
                .map_err(TestbedError::io(format!("listen on {}", self.address)))?;
            *listening = Some(tokio::spawn(serve(listener, Arc::clone(&self.shared))));
        }
        Ok(())
    }

    /// Keeps connections open, takes new ones, and forwards nothing: what is sent is held back,
    /// also the end of a connection.
    pub fn black_hole(&self, direction: Direction) {
        self.change(direction, |fault| fault.held = true);
    }

    /// Returns when something is held back by a black hole.
    pub async fn held_back(&self) {
        // The sender lives as long as what it is part of.
        let _ = self.shared.held.subscribe().wait_for(|held| *held > 0).await;
    }

    /// Ends a black hole: what was held back goes on, late, as after a network came back.
    pub fn forward(&self, direction: Direction) {
        self.change(direction, |fault| fault.held = false);
    }

    /// Delays each piece of what is sent. Pieces wait one after the other, as on a slow line.
    pub fn delay(&self, direction: Direction, delay: Duration) {
        self.change(direction, |fault| fault.delay = delay);
    }

    /// Cuts the connection on which a client sends what `is_it` recognises, before the server gets
    /// to see the end of it. `is_it` sees what a client sent on one connection since this call, up
    /// to the last 64 KiB, each time that there is more. Once, and for the first connection.
    pub fn cut_before(&self, is_it: impl FnMut(&[u8]) -> bool + Send + 'static) -> Sprung {
        self.set_trap(is_it, When::Before)
    }

    /// Forwards what `is_it` recognises (as for [`cut_before`](Proxy::cut_before)), waits until the
    /// server answers, swallows the answer and cuts the connection: a reply that is lost.
    ///
    /// The first piece of an answer counts. Where a client sends questions without waiting, that
    /// may be the answer to an earlier one: then use
    /// [`lose_reply_once`](Proxy::lose_reply_once).
    pub fn lose_reply(&self, is_it: impl FnMut(&[u8]) -> bool + Send + 'static) -> Sprung {
        self.lose_reply_once(is_it, |_| true)
    }

    /// As [`lose_reply`](Proxy::lose_reply), but swallows answers until `is_answer` recognises the
    /// one that counts, in what the server sent since the question, up to the last 64 KiB.
    pub fn lose_reply_once(
        &self,
        is_it: impl FnMut(&[u8]) -> bool + Send + 'static,
        is_answer: impl FnMut(&[u8]) -> bool + Send + 'static,
    ) -> Sprung {
        self.set_trap(is_it, When::After(Box::new(is_answer)))
    }

    fn set_trap(&self, is_it: impl FnMut(&[u8]) -> bool + Send + 'static, when: When) -> Sprung {
        let (sprung, done) = oneshot::channel();
        self.shared.traps.lock().set(Trap { is_it: Box::new(is_it), when, sprung });
        Sprung(done)
    }

    fn change(&self, direction: Direction, change: impl Fn(&mut Fault)) {
        self.shared.faults.send_modify(|faults| match direction {
            Direction::ToServer => change(&mut faults.to_server),
            Direction::ToClient => change(&mut faults.to_client),
            Direction::Both => {
                change(&mut faults.to_server);
                change(&mut faults.to_client);
            }
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(task) = self.listening.get_mut() {
            task.abort();
        }
        self.shared.open.lock().cut.cancel();
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        // A client that is gone before it was taken is no reason to end.
        let Ok((client, _)) = listener.accept().await else {
            continue;
        };
        let open = shared.open.lock().clone();
        let forwarded = forward(client, Arc::clone(&shared), open.cut);
        open.tasks.spawn(forwarded);
    }
}

async fn forward(client: TcpStream, shared: Arc<Shared>, cut: CancellationToken) {
    // A server that is not there: the client is cut, which is as near as a proxy gets to refusing.
    let Ok(server) = TcpStream::connect(shared.server).await else {
        return;
    };
    Connection::new(client, server).run(&shared, &cut).await;
}
