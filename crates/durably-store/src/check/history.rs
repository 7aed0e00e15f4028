//! What holds of a history by itself.

use super::shot::RunShot;
use super::{Found, TIMES, hold};
use durably_kernel::{ActivityId, Event, Fact, FailureKind, Seq, TimerId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Events count from 1 without gaps up to the head, and their times do not go back.
pub(super) fn numbered(shot: &RunShot, found: &mut Found) {
    let wrong = shot.history.iter().zip(1..).find(|(row, seq)| row.seq != Seq(*seq));
    hold(found, wrong.is_none(), "I1", || {
        let (row, seq) = wrong.map_or((Seq(0), 0), |(row, seq)| (row.seq, seq));
        format!("events are not numbered 1..n: where {seq} should be there is {row}")
    });
    let last = shot.history.last().map_or(Seq(0), |row| row.seq);
    hold(found, last == shot.view.head, "I2", || {
        format!("the head is {}, the last event {last}", shot.view.head)
    });
    let back = shot.history.windows(2).find(|two| two[0].committed_at > two[1].committed_at);
    hold(found, back.is_none(), TIMES, || {
        format!("commit times go back at event {}", back.map_or(Seq(0), |two| two[1].seq))
    });
}

fn is_end(event: &Event) -> bool {
    matches!(
        event,
        Event::WorkflowCompleted { .. }
            | Event::WorkflowFailed { .. }
            | Event::WorkflowCancelled { .. }
            | Event::WorkflowTerminated { .. }
    )
}

/// One end, and it is last; a reset takes it back.
pub(super) fn ended(shot: &RunShot, found: &mut Found) {
    let mut end: Option<Seq> = None;
    for row in &shot.history {
        if matches!(row.event, Event::WorkflowReset { .. }) {
            end = None;
        }
        if let Some(end) = end {
            hold(found, false, "I3", || {
                format!("event {} ({}) comes after the end, {end}", row.seq, row.event.name())
            });
            return;
        }
        end = is_end(&row.event).then_some(row.seq);
    }
}

/// No timer fires twice, and none before its time, by the store's clock.
pub(super) fn timers(shot: &RunShot, now: Timestamp, found: &mut Found) {
    let goes_back = shot.history.windows(2).any(|two| two[0].committed_at > two[1].committed_at);
    let mut due: BTreeMap<&TimerId, Timestamp> = BTreeMap::new();
    let mut fired: BTreeSet<&TimerId> = BTreeSet::new();
    let mut fire = |id, at: Timestamp, due: &BTreeMap<&TimerId, Timestamp>| {
        hold(found, fired.insert(id), "I13", || format!("timer {id} fired twice"));
        match due.get(id) {
            Some(due) => {
                // Where times go back, a clock was set back after the timer was due.
                let early = *due > at && !goes_back;
                hold(found, !early, "I13", || format!("timer {id} fired before its time"))
            }
            None => hold(found, false, "I13", || format!("timer {id} fired and was never started")),
        }
    };
    for row in &shot.history {
        match &row.event {
            // What came after its target may happen again.
            Event::WorkflowReset { .. } => return,
            Event::TimerStarted { timer_id, duration_ms, .. } => {
                let duration = i64::try_from(*duration_ms).unwrap_or(i64::MAX);
                due.insert(timer_id, Timestamp(row.committed_at.0.saturating_add(duration)));
            }
            Event::TimerFired { timer_id, .. } => fire(timer_id, row.committed_at, &due),
            _ => {}
        }
    }
    for entry in &shot.unread {
        if let Fact::TimerFired { timer_id, .. } = &entry.fact {
            fire(timer_id, now, &due);
        }
    }
}

/// What is counted of an activity.
#[derive(Default)]
struct Counted {
    outcome: Option<Seq>,
    failures: u32,
    deaths: u32,
    most: Option<(u32, u32)>,
}

/// One outcome for each activity, and no more attempts than its options allow.
pub(super) fn outcomes(shot: &RunShot, found: &mut Found) {
    let mut all: BTreeMap<&ActivityId, Counted> = BTreeMap::new();
    for row in &shot.history {
        match &row.event {
            // What came after its target may happen again.
            Event::WorkflowReset { .. } => return,
            Event::ActivityScheduled { activity_id, options, .. } => {
                let most = (options.retry_policy().attempts, options.most_deaths());
                all.entry(activity_id).or_default().most = Some(most);
            }
            Event::ActivityLost { activity_id, died, .. } => {
                all.entry(activity_id).or_default().deaths += u32::from(*died);
            }
            Event::ActivityFailed { activity_id, error, attempt, .. } => {
                let counts = error.kind != FailureKind::Contention
                    && error.kind != FailureKind::Lost
                    && attempt.is_some();
                all.entry(activity_id).or_default().failures += u32::from(counts);
            }
            Event::ActivityTimedOut { activity_id, attempt, .. } => {
                all.entry(activity_id).or_default().failures += u32::from(attempt.is_some());
            }
            _ => {}
        }
        if let Some(id) = outcome_of(&row.event) {
            let counted = all.entry(id).or_default();
            if let Some(first) = counted.outcome {
                hold(found, false, "I6", || {
                    format!("activity {id} has two outcomes: events {first} and {}", row.seq)
                });
            }
            counted.outcome = Some(row.seq);
        }
    }
    for (id, counted) in all {
        let Some((attempts, deaths)) = counted.most else { continue };
        hold(found, counted.failures <= attempts, "I17", || {
            format!("activity {id} failed {} times, {attempts} are allowed", counted.failures)
        });
        hold(found, counted.deaths <= deaths, "I17", || {
            format!("activity {id} was lost {} times, {deaths} are allowed", counted.deaths)
        });
    }
}

/// The activity that the event ends.
fn outcome_of(event: &Event) -> Option<&ActivityId> {
    match event {
        Event::ActivityCompleted { activity_id, .. }
        | Event::ActivityFailed { activity_id, will_retry: false, .. }
        | Event::ActivityTimedOut { activity_id, will_retry: false, .. }
        | Event::ActivityCancelled { activity_id, .. } => Some(activity_id),
        _ => None,
    }
}

/// A signal is in the history or in the inbox, and once.
pub(super) fn signals(shot: &RunShot, found: &mut Found) {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let heard = shot.history.iter().filter_map(|row| match &row.event {
        Event::SignalReceived { signal, .. } => Some(signal.id.as_str()),
        _ => None,
    });
    let waiting = shot.unread.iter().filter_map(|entry| match &entry.fact {
        Fact::Signal(signal) => Some(signal.id.as_str()),
        _ => None,
    });
    for id in heard.chain(waiting) {
        hold(found, seen.insert(id), "I14", || format!("the signal {id} counts twice"));
    }
}
