//! What all parts of an engine share.

use crate::cache::Cache;
use crate::clock::StoreClock;
use crate::committer::Commits;
use crate::environment::Environment;
use crate::hands::Hands;
use crate::host::Registry;
use crate::mailbox::{Mailboxes, Message};
use crate::settings::Settings;
use durably_kernel::{CommitId, Moment, RunId, Timestamp, WorkerId};
use durably_store::Store;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The beats that succeeded: without a gap since, and the last one.
#[derive(Debug)]
struct Beats {
    since: Duration,
    last: Duration,
}

/// What all parts of an engine share.
pub(crate) struct Shared {
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) registry: Registry,
    pub(crate) settings: Settings,
    pub(crate) hands: Hands,
    pub(crate) mailboxes: Mailboxes,
    pub(crate) cache: Mutex<Cache>,
    pub(crate) clock: StoreClock,
    pub(crate) commits: Commits,
    /// Tasks may be ready.
    pub(crate) ready: Notify,
    /// Something may be due earlier than the sweeper thinks.
    pub(crate) due: Notify,
    /// Claims may be lost or cancelled.
    pub(crate) claims: Notify,
    /// Every loop ends.
    pub(crate) ended: CancellationToken,
    who: RwLock<WorkerId>,
    draining: AtomicBool,
    /// The beats that succeeded.
    beats: Mutex<Beats>,
    /// The beats that were sent.
    beats_sent: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        environment: Arc<dyn Environment>,
        store: Arc<dyn Store>,
        registry: Registry,
        settings: Settings,
    ) -> Shared {
        let who = incarnation(environment.as_ref());
        let now = environment.monotonic();
        let beats = Mutex::new(Beats { since: now, last: now });
        let cache = Mutex::new(Cache::new(settings.cache_bytes_max));
        let commits = Commits::new(store.batches());
        Shared {
            environment,
            store,
            registry,
            settings,
            hands: Hands::default(),
            mailboxes: Mailboxes::default(),
            cache,
            clock: StoreClock::default(),
            commits,
            ready: Notify::new(),
            due: Notify::new(),
            claims: Notify::new(),
            ended: CancellationToken::new(),
            who: RwLock::new(who),
            draining: AtomicBool::new(false),
            beats,
            beats_sent: AtomicU64::new(0),
        }
    }

    /// This incarnation.
    pub(crate) fn who(&self) -> WorkerId {
        self.who.read().clone()
    }

    /// The old incarnation is dead in the store's eyes and stays so.
    pub(crate) fn reincarnate(&self) -> WorkerId {
        let who = incarnation(self.environment.as_ref());
        *self.who.write() = who.clone();
        who
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Every loop and every run's task ends.
    pub(crate) fn end(&self) {
        self.ended.cancel();
        self.mailboxes.tell_all(|| Message::Ended);
    }

    /// Numbers beats, so that the store knows which one is the later.
    pub(crate) fn next_beat(&self) -> u64 {
        self.beats_sent.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn beat_failed(&self) {
        self.beats.lock().since = self.environment.monotonic();
    }

    pub(crate) fn beat_succeeded(&self) {
        let now = self.environment.monotonic();
        let mut beats = self.beats.lock();
        // A gap (the process or the machine stood still) is no health.
        if now.saturating_sub(beats.last) > self.settings.beat * 3 {
            beats.since = now;
        }
        beats.last = now;
    }

    /// Whether the last beat succeeded, not long ago.
    pub(crate) fn beats_succeed(&self) -> bool {
        let last = self.beats.lock().last;
        self.environment.monotonic().saturating_sub(last) <= self.settings.beat * 2
    }

    /// Whether beats have succeeded for so long that silence of others means their death.
    pub(crate) fn may_declare(&self) -> bool {
        let since = self.beats.lock().since;
        self.beats_succeed()
            && self.environment.monotonic().saturating_sub(since) >= self.settings.stale_after
    }

    /// The store's time, just heard.
    pub(crate) fn hear(&self, now: Timestamp) {
        self.clock.hear(now, self.environment.monotonic());
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { now: self.clock.now(self.environment.as_ref()), random: self.environment.random() }
    }

    /// The id of a commit that is made about then.
    pub(crate) fn commit_id(&self, at: Timestamp) -> CommitId {
        CommitId(fresh_run_id(self.environment.as_ref(), at.0).0)
    }
}

fn random_bytes(environment: &dyn Environment) -> [u8; 10] {
    let (a, b) = (environment.random().to_le_bytes(), environment.random().to_le_bytes());
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&a);
    bytes[8..].copy_from_slice(&b[..2]);
    bytes
}

/// A version 7 id of a time and fresh random bits.
pub(crate) fn fresh_run_id(environment: &dyn Environment, unix_ms: i64) -> RunId {
    RunId::from_parts(u64::try_from(unix_ms).unwrap_or(0), random_bytes(environment))
}

/// `host-pid-random`.
fn incarnation(environment: &dyn Environment) -> WorkerId {
    let random = environment.random();
    format!("{}-{random:016x}", environment.process()).into()
}

/// The host's name, made fit for a file's name.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::env::var("HOSTNAME").map_err(std::io::Error::other))
        .unwrap_or_else(|_| "localhost".to_owned());
    let kept = name.trim().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '.').take(64);
    let name: String = kept.collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}
