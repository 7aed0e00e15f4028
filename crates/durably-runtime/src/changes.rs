//! Follows a run: every event once, in order, until the run has ended.
//!
//! What the store says is read again, never remembered: a page of events at a time, after the last
//! one that was given out. The store's hints tell of changes in this process at once; those of
//! other processes are found by looking, less often the longer nothing happens.

use crate::client::Caller;
use crate::error::RuntimeError;
use durably_kernel::{Broken, RunId, RunStatus, Seq};
use durably_store::{EventRow, Watch};
use std::collections::VecDeque;
use std::time::Duration;

/// Events in memory at a time.
const PAGE: usize = 64;
/// The first pause between looks; each is twice as long as the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// No longer than this.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The changes of a run.
#[derive(Debug)]
pub struct Changes {
    caller: Caller,
    watch: Watch,
    run: RunId,
    /// The last event that was given out.
    after: Seq,
    /// The status after it; none before event 1.
    status: Option<RunStatus>,
    page: VecDeque<EventRow>,
    /// The store has more than the page.
    more: bool,
    pause: Duration,
}

impl Changes {
    /// Follows a run after an event; 0 is the beginning.
    pub(crate) fn new(caller: Caller, run: RunId, after: Seq) -> Changes {
        let watch = caller.store.hints().watch(run);
        // Event 1 is the start; a second one is the first turn's, or gives the run up.
        let status = match after.0 {
            0 => None,
            1 => Some(RunStatus::Pending),
            _ => Some(RunStatus::Running),
        };
        let (page, more, pause) = (VecDeque::new(), false, PAUSE_FIRST);
        Changes { caller, watch, run, after, status, page, more, pause }
    }

    /// The run.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The next event and the run's status after it; none once the run has ended. Dropping the
    /// future loses nothing.
    pub async fn next(&mut self) -> Result<Option<(EventRow, RunStatus)>, RuntimeError> {
        while self.page.is_empty() {
            if !self.more {
                // While nothing happens, this one row is all that is read.
                let view = self.caller.run(self.run).await?;
                if view.head <= self.after && view.status.has_ended() {
                    return Ok(None);
                }
                if view.head <= self.after {
                    self.wait().await;
                    continue;
                }
            }
            let page = self.caller.events(self.run, self.after, PAGE).await?;
            if page.events.is_empty() {
                self.more = false;
                self.wait().await;
                continue;
            }
            self.more = page.more;
            self.page = page.events.into();
            self.pause = PAUSE_FIRST;
        }
        let Some(row) = self.page.pop_front() else { return Ok(None) };
        self.take(row).map(Some)
    }

    fn take(&mut self, row: EventRow) -> Result<(EventRow, RunStatus), RuntimeError> {
        if row.seq != self.after.next() {
            let message = format!("event {} follows event {}", row.seq, self.after);
            return Err(RuntimeError::Damaged { run: self.run, source: Broken { message } });
        }
        let status = match self.status {
            None => RunStatus::Pending,
            // Who follows a run does not judge it.
            Some(status) => status.after(&row.event).unwrap_or(status),
        };
        (self.after, self.status) = (row.seq, Some(status));
        Ok((row, status))
    }

    async fn wait(&mut self) {
        let environment = self.caller.environment.as_ref();
        tokio::select! {
            biased;
            () = self.watch.changed() => {}
            () = environment.sleep(self.pause) => self.pause = (self.pause * 2).min(PAUSE_MAX),
        }
    }
}
