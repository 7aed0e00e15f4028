//! One connection through the proxy: two streams, and bytes both ways.

use super::trap::{Seen, Sent, Trap, When};
use super::{Fault, Faults, Shared};
use parking_lot::Mutex;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

const CHUNK_BYTES_MAX: usize = 16 * 1024;

pub(super) struct Connection {
    client: TcpStream,
    server: TcpStream,
}

/// The connection broke on one side, or is to be cut: then both sides are, and whoever waits for a
/// trap hears of it afterwards.
#[derive(Default)]
struct Broken {
    sprung: Option<oneshot::Sender<()>>,
}

impl Broken {
    fn by(trap: Trap) -> Broken {
        Broken { sprung: Some(trap.sprung) }
    }
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Broken {
        Broken::default()
    }
}

impl Connection {
    pub(super) fn new(client: TcpStream, server: TcpStream) -> Connection {
        Connection { client, server }
    }

    /// Forwards until both sides have closed, or the connection is cut.
    pub(super) async fn run(mut self, shared: &Shared, cut: &CancellationToken) {
        let end = tokio::select! {
            biased;
            () = cut.cancelled() => Err(Broken::default()),
            end = self.forward(shared) => end,
        };
        let Err(Broken { sprung }) = end else {
            return;
        };
        for stream in [self.client, self.server] {
            // A stream that is broken already needs no cutting.
            let _ = stream.set_zero_linger();
        }
        if let Some(sprung) = sprung {
            // Nobody need wait for it.
            let _ = sprung.send(());
        }
    }

    async fn forward(&mut self, shared: &Shared) -> Result<(), Broken> {
        for stream in [&self.client, &self.server] {
            // Only speed is at stake.
            let _ = stream.set_nodelay(true);
        }
        // The trap that the client stepped into, while the server's answer is awaited.
        let caught = Mutex::new(None);
        let (client_read, client_write) = self.client.split();
        let (server_read, server_write) = self.server.split();
        tokio::try_join!(
            questions(shared, &caught, client_read, server_write),
            answers(shared, &caught, server_read, client_write),
        )?;
        Ok(())
    }
}

async fn questions(
    shared: &Shared,
    caught: &Mutex<Option<Trap>>,
    mut client: ReadHalf<'_>,
    mut server: WriteHalf<'_>,
) -> Result<(), Broken> {
    let mut sent = Sent::default();
    let mut chunk = vec![0; CHUNK_BYTES_MAX];
    loop {
        let length = client.read(&mut chunk).await?;
        let chunk = &chunk[..length];
        pass(shared, |faults| faults.to_server).await;
        if chunk.is_empty() {
            server.shutdown().await?;
            return Ok(());
        }
        let stepped = shared.traps.lock().step(&mut sent, chunk);
        if let Some(trap) = stepped {
            match trap.when {
                When::Before => return Err(Broken::by(trap)),
                When::After(_) => *caught.lock() = Some(trap),
            }
        }
        server.write_all(chunk).await?;
    }
}

async fn answers(
    shared: &Shared,
    caught: &Mutex<Option<Trap>>,
    mut server: ReadHalf<'_>,
    mut client: WriteHalf<'_>,
) -> Result<(), Broken> {
    let mut swallowed = Seen::default();
    let mut chunk = vec![0; CHUNK_BYTES_MAX];
    loop {
        let length = server.read(&mut chunk).await?;
        let chunk = &chunk[..length];
        // What was read before the question went on is no answer to it, but nobody can tell.
        let trap = caught.lock().take();
        if let Some(mut trap) = trap {
            let is_answer = match &mut trap.when {
                When::Before => true,
                When::After(is_answer) => chunk.is_empty() || is_answer(swallowed.more(chunk)),
            };
            if is_answer {
                return Err(Broken::by(trap));
            }
            *caught.lock() = Some(trap);
            continue;
        }
        pass(shared, |faults| faults.to_client).await;
        if chunk.is_empty() {
            client.shutdown().await?;
            return Ok(());
        }
        client.write_all(chunk).await?;
    }
}

/// Waits as long as the faults of one direction hold a piece back.
async fn pass(shared: &Shared, direction: impl Fn(&Faults) -> Fault) {
    let mut faults = shared.faults.subscribe();
    let delay = direction(&faults.borrow()).delay;
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    if direction(&faults.borrow()).held {
        let _held = Held::begin(shared);
        // The sender lives as long as what it is part of.
        let _ = faults.wait_for(|faults| !direction(faults).held).await;
    }
}

/// One more piece is held back while this lives.
struct Held<'a>(&'a Shared);

impl Held<'_> {
    fn begin(shared: &Shared) -> Held<'_> {
        shared.held.send_modify(|held| *held += 1);
        Held(shared)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.send_modify(|held| *held -= 1);
    }
}
