//! What must hold after a failure: histories that are whole, and effects that they explain.
#![allow(dead_code, reason = "each test file uses a part of it")]

use super::work::Effect;
use durably::{Client, Event, Handle, RunId, RunStatus, Seq};
use futures_util::stream::{self, StreamExt};
use std::collections::{BTreeMap, BTreeSet};

/// What histories say in sum.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) completed: usize,
    pub(crate) lost: usize,
    pub(crate) timers: usize,
    pub(crate) effects: usize,
}

/// The attempts of each activity of each run.
type Attempts = BTreeMap<(RunId, String), BTreeSet<u32>>;

/// By activity. No attempt is there twice: that would be one claim that two had at once.
pub(crate) fn attempts_of(effects: &[Effect]) -> Attempts {
    let mut attempts = Attempts::new();
    for effect in effects {
        let key = (effect.run, effect.activity.clone());
        let fresh = attempts.entry(key).or_default().insert(effect.attempt);
        assert!(fresh, "executed twice: {effect:?}");
    }
    attempts
}

/// Every run completed, nothing is left, and each has its history.
pub(crate) async fn check(client: &Client, runs: &[RunId], effects: &[Effect]) -> Checked {
    let attempts = attempts_of(effects);
    let known: BTreeSet<RunId> = runs.iter().copied().collect();
    assert_eq!(known.len(), runs.len(), "two starts gave one run");
    for (run, activity) in attempts.keys() {
        assert!(known.contains(run), "{activity} of {run}, which nobody started");
    }
    assert!(client.dead_letters(None, 10).await.unwrap().is_empty());
    let checks = runs.iter().map(|run| check_run(client.handle_by_id(*run), &attempts));
    let mut all = Checked::default();
    let mut checks = stream::iter(checks).buffer_unordered(8);
    while let Some(one) = checks.next().await {
        all.completed += one.completed;
        all.lost += one.lost;
        all.timers += one.timers;
        all.effects += one.effects;
    }
    all
}

async fn check_run(handle: Handle<serde_json::Value>, attempts: &Attempts) -> Checked {
    let (id, view) = (handle.id(), handle.status().await.unwrap());
    assert_eq!(view.status, RunStatus::Completed, "{id}: {view:?}");
    assert!(handle.tasks().await.unwrap().is_empty(), "{id} has tasks after its end");
    let page = handle.history(Seq(0), 10_000).await.unwrap();
    let seqs: Vec<u64> = page.events.iter().map(|row| row.seq.0).collect();
    assert_eq!(seqs, (1..=view.head.0).collect::<Vec<_>>(), "{id}: gapless up to the head");
    let mut checked = Checked::default();
    let mut losses: BTreeMap<&str, u32> = BTreeMap::new();
    let (mut waiting, mut fired) = (BTreeSet::new(), BTreeSet::new());
    for row in &page.events {
        match &row.event {
            Event::ActivityScheduled { activity_id, .. } => {
                assert!(losses.insert(activity_id.as_str(), 0).is_none(), "{id}: scheduled twice");
            }
            Event::ActivityLost { activity_id, .. } => {
                *losses.get_mut(activity_id.as_str()).expect("lost while open") += 1;
                checked.lost += 1;
            }
            Event::ActivityCompleted { activity_id, attempt, result, .. } => {
                let lost = losses.remove(activity_id.as_str()).expect("one outcome while open");
                assert_eq!(attempt.number, lost + 1, "{id} {activity_id}: every attempt shows");
                assert_eq!(result.decode::<u32>().unwrap(), attempt.number, "{id} {activity_id}");
                let done = attempts.get(&(id, activity_id.to_string())).expect("an effect");
                assert!(done.contains(&attempt.number), "{id} {activity_id}: {done:?}");
                assert!(done.iter().all(|n| *n <= lost + 1), "{id} {activity_id}: {done:?}");
                checked.effects += done.len();
            }
            Event::TimerStarted { timer_id, .. } => assert!(waiting.insert(timer_id.clone())),
            Event::TimerFired { timer_id, .. } => {
                assert!(
                    waiting.contains(timer_id) && fired.insert(timer_id.clone()),
                    "{id}: twice"
                );
            }
            Event::ActivityFailed { .. } | Event::ActivityTimedOut { .. } => {
                panic!("{id}: a lost process or server is no failure: {:?}", row.event)
            }
            Event::WorkflowCompleted { .. } => checked.completed += 1,
            _ => {}
        }
    }
    assert!(losses.is_empty(), "{id}: {losses:?} without an outcome");
    assert_eq!(waiting, fired, "{id}: timers fire once");
    checked.timers = fired.len();
    assert_eq!(checked.completed, 1, "{id}");
    let last = page.events.last().map(|row| row.event.name());
    assert_eq!(last, Some("WorkflowCompleted"), "{id}");
    checked
}
