//! Calls to the store that outlast its bad moments.

use crate::environment::Environment;
use durably_store::{Class, StoreError};
use std::future::Future;
use std::time::Duration;

/// Repeats a call while the store is not available, with a growing delay; other errors, and a
/// store that stays away for longer than `patience`, are the caller's.
pub(crate) async fn persist<T, F>(
    environment: &dyn Environment,
    patience: Duration,
    mut call: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let endless = patience == FOR_EVER;
    let began = if endless { Duration::ZERO } else { environment.monotonic() };
    let mut delay = Duration::from_millis(5);
    loop {
        let error = match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let Class::Transient { retry_after } = error.class() else { return Err(error) };
        if !endless && environment.monotonic().saturating_sub(began) >= patience {
            return Err(error);
        }
        tracing::debug!(%error, "the store is not available, trying again");
        let jitter = environment.random() % (delay.as_millis() as u64 + 1);
        environment.sleep(retry_after.unwrap_or(delay) + Duration::from_millis(jitter)).await;
        delay = (delay * 2).min(Duration::from_secs(1));
    }
}

/// For calls whose caller has nothing better to do than to wait.
pub(crate) const FOR_EVER: Duration = Duration::MAX;

/// For calls that somebody waits for.
pub(crate) const A_WHILE: Duration = Duration::from_secs(30);
