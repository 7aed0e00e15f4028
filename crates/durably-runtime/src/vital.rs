//! The loops that an engine lives by. One that panics, which is a defect of ours or of the store's,
//! is begun again: an engine that silently beats, sweeps or claims no more would be worse than none.

use crate::host::panic_text;
use crate::mailbox::Message;
use crate::shared::Shared;
use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Before a loop is begun again; twice as long each time.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// One that went well for so long begins with the shortest pause again.
const WELL: Duration = Duration::from_secs(60);

/// Begins a loop, and begins it again whenever it panics, until the engine ends.
pub(crate) fn keep_up<F: Future<Output = ()> + Send + 'static>(
    shared: &Arc<Shared>,
    name: &'static str,
    begin: fn(Arc<Shared>) -> F,
) {
    let task = supervise(shared.clone(), name, begin);
    shared.environment.spawn_vital(Box::pin(task));
}

async fn supervise<F: Future<Output = ()> + Send>(
    shared: Arc<Shared>,
    name: &'static str,
    begin: fn(Arc<Shared>) -> F,
) {
    let mut pause = PAUSE_MIN;
    loop {
        let began = shared.environment.monotonic();
        let lived = AssertUnwindSafe(begin(shared.clone())).catch_unwind().await;
        let Err(panic) = lived else { return };
        let panic = panic_text(panic.as_ref());
        shared.environment.loop_panicked(name, &panic);
        if shared.environment.monotonic().saturating_sub(began) >= WELL {
            pause = PAUSE_MIN;
        }
        tracing::error!(
            worker = %shared.who(), %panic, ?pause,
            "the engine's {name} loop panicked and is begun again after a pause; please report it"
        );
        tokio::select! {
            biased;
            () = shared.ended.cancelled() => return,
            () = shared.environment.sleep(pause) => {}
        }
        pause = (pause * 2).min(PAUSE_MAX);
        look_everywhere(&shared);
    }
}

/// Hints that came meanwhile may not have been heard.
fn look_everywhere(shared: &Shared) {
    shared.ready.notify_one();
    shared.due.notify_one();
    shared.claims.notify_one();
    shared.mailboxes.tell_all(|| Message::Unread);
}
