//! Shows what happens: every line is an event that is in the store.

use durably::{Client, Event, RunId, RunQuery, RunView, Seq};
use std::collections::BTreeMap;

/// Prints events as they appear.
pub(super) struct Watcher {
    client: Client,
    seen: BTreeMap<RunId, Seq>,
}

/// The last digits of an id tell runs apart.
pub(super) fn short(run: &RunView) -> String {
    let id = run.identity.id.to_string();
    id[id.len() - 6..].to_owned()
}

impl Watcher {
    /// What is there already is not shown again.
    pub(super) async fn new(client: Client) -> anyhow::Result<Watcher> {
        let mut seen = BTreeMap::new();
        for run in client.runs(RunQuery { most: 1000, ..RunQuery::default() }).await? {
            seen.insert(run.identity.id, run.head);
        }
        Ok(Watcher { client, seen })
    }

    pub(super) async fn show(&mut self) -> anyhow::Result<()> {
        let runs = self.client.runs(RunQuery { most: 200, ..RunQuery::default() }).await?;
        for run in runs.iter().rev() {
            let seen = self.seen.entry(run.identity.id).or_default();
            while *seen < run.head {
                let page = self.client.handle_by_id(run.identity.id).history(*seen, 100).await?;
                for row in &page.events {
                    let line = describe(&row.event);
                    let (id, kind) = (short(run), &run.workflow_type);
                    super::say(format!("{id}  {kind:<7} {:>3}  {line}", row.seq))?;
                    *seen = row.seq;
                }
                if page.events.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn describe(event: &Event) -> String {
    match event {
        Event::WorkflowStarted { .. } => "started".into(),
        Event::VersionPinned { version, .. } => format!("first turn, version {version}"),
        Event::WorkflowCompleted { .. } => "completed".into(),
        Event::WorkflowFailed { error } => format!("failed: {error}"),
        Event::WorkflowCancelled { reason } => format!("cancelled: {reason}"),
        Event::WorkflowTerminated { reason, .. } => format!("terminated: {reason}"),
        Event::ActivityScheduled { activity_id, inline: true, .. } => format!("step {activity_id}"),
        Event::ActivityScheduled { activity_id, .. } => format!("{activity_id} queued"),
        Event::ActivityCompleted { activity_id, attempt, .. } => {
            format!("{activity_id} done (attempt {})", attempt.number)
        }
        Event::ActivityFailed { activity_id, error, retry_in_ms: Some(ms), .. } => {
            let message = &error.message;
            format!("{activity_id} failed: {message}; again in {:.1} s", *ms as f64 / 1000.0)
        }
        Event::ActivityFailed { activity_id, error, .. } => {
            format!("{activity_id} failed: {error}")
        }
        Event::ActivityLost { activity_id, attempt, .. } => {
            format!("{activity_id}: attempt {} was lost with its process", attempt.number)
        }
        Event::TimerStarted { timer_id, duration_ms, .. } => {
            format!("timer {timer_id} for {:.1} s", *duration_ms as f64 / 1000.0)
        }
        Event::TimerFired { timer_id, .. } => format!("timer {timer_id} fired"),
        Event::TimerCancelled { timer_id } => format!("timer {timer_id} no longer needed"),
        Event::SignalReceived { signal, .. } => format!("signal {} received", signal.signal_type),
        other => other.name().into(),
    }
}
