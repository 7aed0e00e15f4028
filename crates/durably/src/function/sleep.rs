//! `ctx.sleep`: a timer that is a row.

use super::core::{Core, OpId};
use durably_kernel::Failure;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A sleep of a durable function.
#[must_use = "a sleep begins when it is awaited"]
#[derive(Debug)]
pub struct Sleep {
    core: Arc<Core>,
    delay: Duration,
    id: Option<OpId>,
}

impl Sleep {
    pub(super) fn new(core: Arc<Core>, delay: Duration) -> Sleep {
        Sleep { core, delay, id: None }
    }
}

impl Future for Sleep {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.id.is_none() {
            self.id = Some(OpId::Timer(self.core.start_timer("sleep", self.delay)));
        }
        let Some(id) = &self.id else { return Poll::Pending };
        match self.core.outcome(id, cx.waker()) {
            Some(result) => Poll::Ready(result.map(|_| ())),
            None => Poll::Pending,
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.core.give_up(id);
        }
    }
}
