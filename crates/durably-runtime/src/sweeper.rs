//! Housekeeping in time: what is due fires, what is lost returns. Every process does it, since
//! somebody waits for it; it is harmless when several do at once.

use crate::shared::Shared;
use durably_store::SweepCall;
use std::sync::Arc;
use std::time::Duration;

/// Rows of each kind in one sweep.
const BATCH: usize = 500;
/// A sweep at least this often: others may have died.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Hints do not make it sweep more often than this.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// Sweeps until the engine ends.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let next = sweep(&shared).await;
        let began = shared.environment.monotonic();
        tokio::select! {
            biased;
            () = shared.ended.cancelled() => return,
            () = shared.due.notified() => {}
            () = shared.environment.sleep(next.clamp(PAUSE_MIN, PAUSE_MAX)) => {}
        }
        let passed = shared.environment.monotonic().saturating_sub(began);
        if passed < PAUSE_MIN {
            shared.environment.sleep(PAUSE_MIN - passed).await;
        }
    }
}

/// One sweep; says when the next thing is due.
pub(crate) async fn sweep(shared: &Shared) -> Duration {
    sweep_with(shared, false).await
}

/// A sweep that declares silent processes dead, if this one can judge that.
pub(crate) async fn declare_dead(shared: &Shared) {
    if shared.may_declare() {
        sweep_with(shared, true).await;
    }
}

async fn sweep_with(shared: &Shared, may_declare: bool) -> Duration {
    let (who, stale_after) = (Some(shared.who()), shared.settings.stale_after);
    let call = SweepCall { who, most: BATCH, stale_after, may_declare };
    match shared.store.sweep(call).await {
        Ok(swept) => {
            if swept.dead > 0 || swept.returned > 0 {
                tracing::info!(dead = swept.dead, returned = swept.returned, "claims taken back");
            }
            swept.next_due.unwrap_or(PAUSE_MAX)
        }
        Err(error) => {
            tracing::debug!(%error, "a sweep failed; the next one will do");
            PAUSE_MAX
        }
    }
}
