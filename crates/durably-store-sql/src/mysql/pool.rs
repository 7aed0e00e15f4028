//! The connections of a store.
//!
//! A connection is taken out, used by one command, and given back only by one that left it clean.
//! mysql_async has a pool, too; ours differs in that it gives up what is not clean instead of
//! cleaning it, keeps prepared statements, and chooses among several servers.
//!
//! Where the server accepts no further connection, one waits for those that there are.

use crate::error::{Kind, Trouble};
use crate::mysql::connect::{Connector, Made};
use crate::mysql::line::Line;
use crate::mysql::session::{Manner, MySession};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// A server that accepted no further connection is asked again after this long.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// The connections of a store; a cheap handle.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Shared>);

struct Shared {
    manner: Arc<Manner>,
    connector: Connector,
    size: usize,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
    /// Something was put there.
    returned: Notify,
    /// Counts the connections that there are, idle or not.
    there: Arc<()>,
    /// Grows when what is idle is not to be used any more.
    epoch: AtomicU64,
}

struct Idle {
    line: Line,
    origin: Origin,
    there: Arc<()>,
    since: Instant,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
struct Origin {
    epoch: u64,
    idle_max: Duration,
}

/// A connection that somebody has.
pub(super) struct Held {
    pub(super) line: Line,
    /// Whether it was idle before.
    pub(super) was_idle: bool,
    origin: Origin,
    there: Arc<()>,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    pub(crate) fn new(connector: Connector, size: usize, manner: Arc<Manner>) -> Connections {
        let permits = Arc::new(Semaphore::new(size));
        let (idle, epoch) = (Mutex::default(), AtomicU64::new(0));
        let (returned, there) = (Notify::new(), Arc::new(()));
        let shared = Shared { manner, connector, size, permits, idle, returned, there, epoch };
        Connections(Arc::new(shared))
    }

    pub(super) fn manner(&self) -> &Manner {
        &self.0.manner
    }

    /// A connection for one command; waits until there is one.
    pub(crate) async fn session(&self) -> Result<MySession, Trouble> {
        let held = self.hold().await?;
        Ok(MySession::new(self.clone(), held))
    }

    async fn hold(&self) -> Result<Held, Trouble> {
        let wait_max = self.0.connector.settings().answer_max;
        let permit = self.0.permits.clone().acquire_owned();
        let permit = match tokio::time::timeout(wait_max, permit).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(Trouble::server(Kind::Away, "the store is closed")),
            Err(_) => {
                let size = self.0.size;
                let problem = format!("all {size} connections are in use (pool= in the URL)");
                return Err(Trouble::server(Kind::Busy, problem));
            }
        };
        let began = now();
        loop {
            let returned = self.0.returned.notified();
            if let Some(Idle { line, origin, there, .. }) = self.take_idle() {
                return Ok(Held { line, was_idle: true, origin, there, _permit: permit });
            }
            let there = self.0.there.clone();
            match self.connect().await {
                Ok((line, origin)) => {
                    return Ok(Held { line, was_idle: false, origin, there, _permit: permit });
                }
                Err(Trouble::Server { kind: Kind::Crowded, problem }) => {
                    drop(there);
                    let left = wait_max.saturating_sub(began.elapsed());
                    // One is ours to count with, the other are connections, or on their way.
                    if left.is_zero() || Arc::strong_count(&self.0.there) == 1 {
                        return Err(Trouble::server(Kind::Crowded, problem));
                    }
                    // Whether it comes back or not, the server is asked again after a while.
                    let _ = tokio::time::timeout(left.min(ASK_AGAIN), returned).await;
                }
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// The one that was used last.
    fn take_idle(&self) -> Option<Idle> {
        let mut idle = self.0.idle.lock();
        while let Some(line) = idle.pop() {
            if self.is_good(&line.origin) && line.since.elapsed() < line.origin.idle_max {
                return Some(line);
            }
        }
        None
    }

    fn is_good(&self, origin: &Origin) -> bool {
        origin.epoch == self.0.epoch.load(Ordering::Acquire)
    }

    /// Keeps a clean connection for the next command; and none that was not needed for long.
    pub(super) fn give_back(&self, held: Held) {
        let Held { line, origin, there, .. } = held;
        if self.is_good(&origin) {
            let mut idle = self.0.idle.lock();
            idle.retain(|idle| idle.since.elapsed() < idle.origin.idle_max);
            idle.push(Idle { line, origin, there, since: now() });
            drop(idle);
            self.0.returned.notify_one();
        }
    }

    /// What is idle now is not used again: a connection turned out to be useless.
    pub(super) fn forget_idle(&self) {
        self.0.epoch.fetch_add(1, Ordering::AcqRel);
        self.0.idle.lock().clear();
    }

    /// Another connection instead of one that was idle for too long.
    pub(super) async fn replace(&self, held: &mut Held) -> Result<(), Trouble> {
        (held.line, held.origin) = self.connect().await?;
        held.was_idle = false;
        Ok(())
    }

    /// A new connection.
    async fn connect(&self) -> Result<(Line, Origin), Trouble> {
        let epoch = self.0.epoch.load(Ordering::Acquire);
        let Made { line, idle_max, .. } = self.0.connector.connect().await?;
        Ok((line, Origin { epoch, idle_max }))
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a connection idled decides nothing else")]
fn now() -> Instant {
    Instant::now()
}
