//! An engine: the runtime of a process, from its start to its graceful end.

use crate::client::Caller;
use crate::environment::Environment;
use crate::error::RuntimeError;
use crate::host::Registry;
use crate::mailbox::Message;
use crate::persist::{A_WHILE, persist};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::token::CancelReason;
use crate::vital::keep_up;
use crate::{leader, life, sweeper, worker};
use durably_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// What has not let go after the grace gets this long to end.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// A running engine. Dropping it ends it at once, as a crash would: use [`Engine::stop`].
pub struct Engine {
    shared: Arc<Shared>,
    caller: Caller,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("worker", &self.shared.who()).finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts an engine: takes back what a dead predecessor left, then claims.
    pub async fn start(
        environment: Arc<dyn Environment>,
        store: Arc<dyn Store>,
        registry: Registry,
        settings: Settings,
    ) -> Result<Engine, RuntimeError> {
        settings.check()?;
        let shared = Arc::new(Shared::new(environment.clone(), store, registry, settings));
        let caller = Caller::of_engine(&shared);
        // Listening begins before anything can change.
        keep_up(&shared, "hints", life::hints);
        let call = || shared.store.register(life::registration(&shared));
        let registered = persist(environment.as_ref(), A_WHILE, call).await;
        let now = registered.inspect_err(|_| shared.end())?;
        shared.hear(now);
        sweeper::sweep(&shared).await;
        keep_up(&shared, "worker", worker::run);
        keep_up(&shared, "beats", life::beats);
        keep_up(&shared, "questions", life::questions);
        keep_up(&shared, "sweeper", sweeper::run);
        keep_up(&shared, "leader", leader::run);
        Ok(Engine { shared, caller })
    }

    /// Calls to runs.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The process incarnation.
    pub fn worker_id(&self) -> String {
        self.shared.who().to_string()
    }

    /// Stops claiming, lets work end within the grace, hands back the rest, and deregisters.
    pub async fn stop(&self, grace: Option<Duration>) -> Result<(), RuntimeError> {
        let shared = &self.shared;
        let environment = shared.environment.as_ref();
        shared.drain();
        let call = || shared.store.drain(shared.who());
        // A store that is out of reach must not keep a process from ending.
        let _ = persist(environment, Duration::from_secs(1), call).await;
        shared.mailboxes.tell_all(|| Message::Drain);
        self.until_empty(grace.unwrap_or(shared.settings.grace)).await;
        shared.hands.cancel_all(CancelReason::Stopping);
        shared.mailboxes.tell_all(|| Message::Abandon);
        self.until_empty(LAST_MOMENT).await;
        let call = || shared.store.leave(shared.who());
        let left = persist(environment, LAST_MOMENT, call).await;
        shared.end();
        Ok(left?)
    }

    async fn until_empty(&self, most: Duration) {
        let environment = self.shared.environment.as_ref();
        let began = environment.monotonic();
        let waiting = self.shared.hands.waiting();
        loop {
            let freed = waiting.freed();
            let left = most.saturating_sub(environment.monotonic().saturating_sub(began));
            if self.shared.hands.is_empty() || left.is_zero() {
                return;
            }
            tokio::select! {
                biased;
                () = freed => {}
                () = environment.sleep(left.min(Duration::from_millis(100))) => {}
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.end();
    }
}
