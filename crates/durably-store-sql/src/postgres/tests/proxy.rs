//! Stands between a store and its server, and fails on demand.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to bytes on their way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Weather {
    /// They arrive.
    Fair,
    /// Those from the server do not: it does what it is told, and nobody hears of it.
    Deaf,
    /// None arrive, and nobody is told.
    Hole,
}

/// A proxy in front of a server of this host.
pub(super) struct Proxy {
    port: u16,
    weather: watch::Sender<Weather>,
    cuts: watch::Sender<u32>,
}

impl Proxy {
    pub(super) async fn before(port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let own = listener.local_addr().expect("an address").port();
        let (weather, seen) = watch::channel(Weather::Fair);
        let (cuts, mut cut) = watch::channel(0_u32);
        let accept = async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", port)).await.expect("the server");
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                cut.mark_unchanged();
                let there = Way { weather: seen.clone(), cut: cut.clone(), deaf: false };
                let back = Way { deaf: true, ..there.clone() };
                spawn(there.carry(from_client, to_server));
                spawn(back.carry(from_server, to_client));
            }
        };
        spawn(accept);
        Proxy { port: own, weather, cuts }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn set(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }

    /// Cuts all connections that there are.
    pub(super) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    #[allow(clippy::disallowed_methods, reason = "nothing here is simulated")]
    tokio::spawn(task);
}

/// One direction of a connection.
#[derive(Clone)]
struct Way {
    weather: watch::Receiver<Weather>,
    cut: watch::Receiver<u32>,
    /// Whether bytes are lost on it while it is deaf.
    deaf: bool,
}

impl Way {
    async fn carry(
        mut self,
        mut from: impl AsyncReadExt + Unpin,
        mut to: impl AsyncWriteExt + Unpin,
    ) {
        let mut bytes = vec![0; 65536];
        loop {
            let read = tokio::select! {
                biased;
                _ = self.cut.changed() => return,
                read = from.read(&mut bytes) => read,
            };
            let Ok(count @ 1..) = read else { return };
            let lost = match *self.weather.borrow() {
                Weather::Fair => false,
                Weather::Deaf => self.deaf,
                Weather::Hole => true,
            };
            if !lost && to.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    }
}
