//! What the reads show of one run.

use crate::answer::{InboxEntry, RunView};
use crate::error::StoreError;
use crate::find::{EventRow, TaskRow};
use crate::port::Store;
use durably_kernel::{Broken, Event, Place, Run, Seq};

/// So many unread entries are looked at.
pub const UNREAD_MAX: usize = 1_000;

/// So many rows a read gets at a time.
const PAGE: usize = 1_000;
/// The same of entries, which may be large.
const ENTRIES: usize = 100;

/// What the reads show of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunShot {
    /// Its row.
    pub view: RunView,
    /// Its history.
    pub history: Vec<EventRow>,
    /// Its live rows.
    pub tasks: Vec<TaskRow>,
    /// Its unread inbox entries, at most [`UNREAD_MAX`].
    pub unread: Vec<InboxEntry>,
}

impl RunShot {
    /// Reads the rest of a run. In a store in use the parts may be of different moments.
    pub async fn of(store: &dyn Store, view: RunView) -> Result<RunShot, StoreError> {
        let run = view.identity.id;
        let mut history: Vec<EventRow> = Vec::new();
        loop {
            let after = history.last().map_or(Seq(0), |row| row.seq);
            let page = store.history(run, after, PAGE).await?;
            history.extend(page.events);
            if !page.more {
                break;
            }
        }
        let tasks = store.tasks(run).await?;
        let mut unread: Vec<InboxEntry> = Vec::new();
        while unread.len() < UNREAD_MAX && view.inbox_used < view.inbox_last {
            let after = unread.last().map_or(view.inbox_used, |entry| entry.number);
            let page = store.inbox(run, after, ENTRIES).await?;
            if page.is_empty() {
                break;
            }
            unread.extend(page);
        }
        unread.retain(|entry| entry.number <= view.inbox_last);
        Ok(RunShot { view, history, tasks, unread })
    }

    /// Whether the run has a turn row.
    pub(super) fn has_turn(&self) -> bool {
        self.tasks.iter().any(|row| row.place == Place::TURN)
    }

    /// Whether there are unread entries that are not in the shot.
    pub(super) fn has_more_unread(&self) -> bool {
        self.view.inbox_last.saturating_sub(self.view.inbox_used) > self.unread.len() as u64
    }

    /// The run that the events tell of.
    pub(super) fn fold(&self) -> Result<Run, Broken> {
        let identity = self.view.identity.clone();
        if self.history.iter().any(|row| matches!(row.event, Event::WorkflowReset { .. })) {
            let events: Vec<Event> = self.history.iter().map(|row| row.event.clone()).collect();
            return Run::fold(identity, &events);
        }
        let mut events = self.history.iter().map(|row| &row.event);
        let first = events.next().ok_or_else(|| Broken::new("a run without events"))?;
        let mut run = Run::begin(identity, first)?;
        events.try_for_each(|event| run.apply(event))?;
        Ok(run)
    }
}
