//! What holds between a run's row, the rows of its work, and its events.

use super::rows::named;
use super::shot::RunShot;
use super::{Found, hold};
use crate::find::TaskRow;
use durably_kernel::{
    Activity, Fact, Phase, Place, Run, RunStatus, Seq, TaskKind, TaskState, Waits,
};
use std::collections::BTreeSet;

/// The run's row and the rows of its work are those of its events.
pub(super) fn folded(shot: &RunShot, run: &Run, found: &mut Found) {
    let view = &shot.view;
    hold(found, run.status == view.status, "I4", || {
        format!("the status is {}, by the events it is {}", view.status, run.status)
    });
    hold(found, run.workflow_type == view.workflow_type, "I4", || {
        format!("the type is {}, by the events {}", view.workflow_type, run.workflow_type)
    });
    let version = run.version.or(view.version);
    hold(found, version == view.version, "I4", || {
        format!("the version is {:?}, by the events it is {version:?}", view.version)
    });
    let begun = run.status != RunStatus::Pending;
    hold(found, !begun || run.retries == view.retries, "I4", || {
        format!("{} retries are counted, the events have {}", view.retries, run.retries)
    });
    hold(
        found,
        !begun || run.last_error == view.last_error,
        "I4",
        || "the last error is not that of the events",
    );
    hold(
        found,
        run.status.has_ended() == view.ended_at.is_some(),
        "I4",
        || "ended without a time, or a time of the end without one",
    );
    if run.status.has_ended() || view.status.has_ended() {
        return;
    }
    work(shot, run, found);
    let goes_on = !shot.tasks.is_empty() || view.waits != Waits::Signals(Vec::new());
    let first = begun || shot.has_turn();
    hold(
        found,
        goes_on && first,
        "I11",
        || "an open run that waits for nothing: no task, no timer, no turn row",
    );
}

fn has_row(shot: &RunShot, place: Place, kind: TaskKind, seq: Seq) -> bool {
    let fits = |row: &TaskRow| {
        (row.place, row.kind, row.seq) == (place, kind, seq) && row.state != TaskState::Cancelling
    };
    shot.tasks.iter().any(fits)
}

/// Whether something about it waits in the inbox, as far as that is known.
fn may_have_entry(shot: &RunShot, id: &str) -> bool {
    shot.has_more_unread() || shot.unread.iter().any(|entry| concerns(&entry.fact, id))
}

/// Every open activity and timer has a row or an entry; every row belongs to something open.
fn work(shot: &RunShot, run: &Run, found: &mut Found) {
    let mut wanted = BTreeSet::from([Place::TURN]);
    for (id, activity) in &run.activities {
        activity_goes_on(shot, id.as_str(), activity, found);
        let backoff = match activity.phase {
            Phase::Backoff(place, _) => Some(place),
            Phase::Queued | Phase::UnderWay(_) => None,
        };
        let places = [activity.place, backoff, activity.start_place, activity.close_place];
        wanted.extend(places.into_iter().flatten());
    }
    for (id, timer) in &run.timers {
        wanted.insert(timer.place);
        let known = has_row(shot, timer.place, TaskKind::Timer, timer.started)
            || may_have_entry(shot, id.as_str());
        hold(found, known, "I5", || format!("timer {id} has neither a row nor an entry"));
    }
    let of_run = |row: &TaskRow| row.kind == TaskKind::Timeout && row.target.is_empty();
    for row in &shot.tasks {
        let live = row.state != TaskState::Cancelling && !of_run(row);
        hold(found, !live || wanted.contains(&row.place), "I5", || {
            format!("nothing in the history asks for {}", named(row))
        });
    }
}

fn activity_goes_on(shot: &RunShot, id: &str, activity: &Activity, found: &mut Found) {
    let known = match activity.phase {
        Phase::Queued => {
            let place = activity.place.unwrap_or(Place::TURN);
            let queued = has_row(shot, place, TaskKind::Activity, activity.queued);
            hold(found, !(queued && outcome(shot, id, activity.queued)), "I5", || {
                format!("activity {id} has a row, and its outcome waits in the inbox")
            });
            let row = shot.tasks.iter().find(|row| row.place == place);
            let begun = row.map_or(activity.attempt, |row| row.attempts);
            hold(found, !queued || begun >= activity.attempt, "I8", || {
                format!("activity {id}: {begun} attempts begun, {} recorded", activity.attempt)
            });
            queued || may_have_entry(shot, id)
        }
        Phase::Backoff(place, since) => {
            has_row(shot, place, TaskKind::Retry, since) || may_have_entry(shot, id)
        }
        Phase::UnderWay(_) => shot.has_turn(),
    };
    hold(found, known, "I5", || format!("activity {id} has neither a row nor an outcome"));
}

fn concerns(fact: &Fact, id: &str) -> bool {
    match fact {
        Fact::ActivityCompleted { activity_id, .. }
        | Fact::ActivityFailed { activity_id, .. }
        | Fact::ActivityTimedOut { activity_id, .. }
        | Fact::ActivityLost { activity_id, .. }
        | Fact::InlineLost { activity_id, .. }
        | Fact::RetryDue { activity_id, .. } => activity_id.as_str() == id,
        Fact::TimerFired { timer_id, .. } => timer_id.as_str() == id,
        Fact::Begin { .. }
        | Fact::Signal(_)
        | Fact::CancelRequested { .. }
        | Fact::ShutdownRequested {}
        | Fact::RunTimedOut {} => false,
    }
}

/// Whether an outcome of the task that this event queued waits in the inbox.
fn outcome(shot: &RunShot, id: &str, queued: Seq) -> bool {
    shot.unread.iter().any(|entry| match &entry.fact {
        Fact::ActivityCompleted { activity_id, seq, .. }
        | Fact::ActivityFailed { activity_id, seq, .. }
        | Fact::ActivityLost { activity_id, seq, .. } => {
            activity_id.as_str() == id && *seq == queued
        }
        _ => false,
    })
}
