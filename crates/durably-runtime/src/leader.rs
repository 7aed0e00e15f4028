//! Leadership: one process at a time does what one is enough for.
//!
//! Every process asks, so that another one leads soon after the leader is gone. Whoever leads does
//! its duties between two questions, in this very loop: one whose duties hang asks no more, and is
//! followed by another. A process that stood still may do a duty when somebody else leads already:
//! duties are harmless twice (decision 16).
//!
//! So far the one duty is to declare silent processes dead. Whatever somebody waits for (timers,
//! backoffs, time-outs, claims of the dead) every process sweeps: it must not wait for a leader.

use crate::shared::Shared;
use crate::sweeper;
use durably_store::{LeadCall, Led, Term};
use std::sync::Arc;
use std::time::Duration;

/// Asks to lead until the engine ends.
pub(crate) async fn run(shared: Arc<Shared>) {
    let pause_max = shared.settings.lead_pause();
    let mut term = None;
    loop {
        let (led, left) = ask(&shared).await;
        if let Some(led) = led.filter(|led| term.replace(*led) != Some(*led)) {
            tracing::info!(worker = %shared.who(), term = led.0, "leads");
        }
        let pause = match led {
            Some(_) => {
                sweeper::declare_dead(&shared).await;
                pause_max
            }
            // Not before the leader's time is over, and not much later.
            None => left.clamp(pause_max / 10, pause_max),
        };
        tokio::select! {
            biased;
            () = shared.ended.cancelled() => return,
            () = shared.environment.sleep(pause) => {}
        }
    }
}

/// The term, if this process leads; how long nobody else can.
async fn ask(shared: &Shared) -> (Option<Term>, Duration) {
    // One whose beats fail would lead until others may declare it dead, and only it could do that.
    if !shared.beats_succeed() {
        return (None, Duration::MAX);
    }
    let lease = shared.settings.lead_pause() * 3;
    let sent = shared.environment.monotonic();
    match shared.store.lead(LeadCall { who: shared.who(), lease }).await {
        Ok(Led::Leads { term, left }) => {
            // The lease began after the question was sent. A late answer may be out of date.
            let took = shared.environment.monotonic().saturating_sub(sent);
            ((took < left).then_some(term), left)
        }
        Ok(Led::Follows { left }) => (None, left),
        Err(error) => {
            tracing::debug!(%error, "could not ask who leads");
            (None, Duration::MAX)
        }
    }
}
