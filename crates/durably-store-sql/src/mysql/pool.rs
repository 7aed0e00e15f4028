//! The connections of a store.
//!
//! A connection is taken out, used by one command, and given back only by one that left it clean.
//! mysql_async has a pool, too; ours differs in that it gives up what is not clean instead of
//! cleaning it, keeps prepared statements, and chooses among several servers.
//!
//! Of several servers the first that answers and can be written is used, by every process: the
//! nodes of a Galera cluster all take writes, but a row that one skips as locked is free on another.

use crate::error::{Kind, Trouble};
use crate::mysql::line::Line;
use crate::mysql::server::{Server, Settings};
use crate::mysql::session::{Manner, MySession};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A connection to another server than the first is not used for longer than this, so that all
/// processes come back to the first when it does.
const SECOND_CHOICE_MAX: Duration = Duration::from_secs(30);

/// The connections of a store; a cheap handle.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Shared>);

struct Shared {
    manner: Manner,
    settings: Settings,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
    /// Grows when what is idle is not to be used any more.
    epoch: AtomicU64,
}

struct Idle {
    line: Line,
    origin: Origin,
    since: Instant,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
struct Origin {
    epoch: u64,
    /// Until when it is used, if there is an end.
    end: Option<Instant>,
    idle_max: Duration,
}

/// A connection that somebody has.
pub(super) struct Held {
    pub(super) line: Line,
    /// Whether it was idle before.
    pub(super) was_idle: bool,
    origin: Origin,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    pub(crate) fn new(settings: Settings, manner: Manner) -> Connections {
        let permits = Arc::new(Semaphore::new(settings.pool));
        let idle = Mutex::new(Vec::new());
        Connections(Arc::new(Shared { manner, settings, permits, idle, epoch: AtomicU64::new(0) }))
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
        let Settings { pool, wait_max, .. } = self.0.settings;
        let permit = self.0.permits.clone().acquire_owned();
        let permit = match tokio::time::timeout(wait_max, permit).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(Trouble::server(Kind::Away, "the store is closed")),
            Err(_) => {
                let problem = format!("all {pool} connections are in use (pool= in the URL)");
                return Err(Trouble::server(Kind::Busy, problem));
            }
        };
        if let Some(Idle { line, origin, .. }) = self.take_idle() {
            return Ok(Held { line, was_idle: true, origin, _permit: permit });
        }
        let (line, origin) = self.connect().await?;
        Ok(Held { line, was_idle: false, origin, _permit: permit })
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
            && origin.end.is_none_or(|end| now() < end)
    }

    /// Keeps a clean connection for the next command; and none that was not needed for long.
    pub(super) fn give_back(&self, held: Held) {
        let Held { line, origin, .. } = held;
        if self.is_good(&origin) {
            let mut idle = self.0.idle.lock();
            idle.retain(|idle| idle.since.elapsed() < idle.origin.idle_max);
            idle.push(Idle { line, origin, since: now() });
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

    /// A new connection to the first server that can be written.
    async fn connect(&self) -> Result<(Line, Origin), Trouble> {
        let epoch = self.0.epoch.load(Ordering::Acquire);
        let settings = &self.0.settings;
        let mut troubles = Vec::new();
        for (place, server) in settings.servers.iter().enumerate() {
            match server.connect(settings).await {
                Ok((line, idle_max)) => {
                    let end = (place > 0).then(|| now() + SECOND_CHOICE_MAX);
                    return Ok((line, Origin { epoch, end, idle_max }));
                }
                Err(trouble) => troubles.push((server, trouble)),
            }
        }
        Err(of_all(troubles))
    }
}

/// Why no server would do. One that may come back makes it worth trying again.
fn of_all(mut troubles: Vec<(&Server, Trouble)>) -> Trouble {
    if troubles.len() == 1
        && let Some((_, trouble)) = troubles.pop()
    {
        return trouble;
    }
    let (mut kind, mut problems) = (Kind::Away, Vec::new());
    for (server, trouble) in &troubles {
        if let Trouble::Server { kind: of_this, problem } = trouble {
            problems.push(format!("{server}: {problem}"));
            kind = *of_this;
        }
    }
    let passing = |(_, trouble): &(&Server, Trouble)| {
        matches!(trouble, Trouble::Server { kind: Kind::Away | Kind::Busy | Kind::Cut, .. })
    };
    if troubles.iter().any(passing) {
        kind = Kind::Away;
    }
    Trouble::server(kind, problems.join("; "))
}

#[expect(clippy::disallowed_methods, reason = "how long a connection idled decides nothing else")]
fn now() -> Instant {
    Instant::now()
}
