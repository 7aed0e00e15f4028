//! What an event means for the queue: rows to put, delete or cancel. A function of the event and
//! of the run before it.
//!
//! The end of a run needs nothing here: the store then removes every row of the run, except those
//! in a worker's hands, which become cancelling.

use crate::event::{Event, TimeoutKind};
use crate::id::{ActivityId, Place, Queue, Seq};
use crate::options::ActivityOptions;
use crate::run::{Activity, Phase, Run};
use crate::task::{TaskChange, TaskKind, TaskPut};
use std::sync::Arc;
use std::time::Duration;

/// The changes that the event with number `seq` makes to the run's rows. `run` is none for event 1.
pub(crate) fn effects(run: Option<&Run>, event: &Event, seq: Seq) -> Vec<TaskChange> {
    let Some(run) = run else {
        return of_start(event, seq);
    };
    match event {
        Event::ActivityScheduled { .. } => of_scheduled(run, event, seq),
        Event::ActivityCompleted { activity_id, .. }
        | Event::ActivityFailed { activity_id, will_retry: false, .. }
        | Event::ActivityTimedOut { activity_id, will_retry: false, .. } => {
            let activity = &run.activities[activity_id];
            rows(activity, true).map(TaskChange::Delete).collect()
        }
        Event::ActivityCancelled { activity_id, .. } => {
            let activity = &run.activities[activity_id];
            let own = activity.place.map(TaskChange::Cancel);
            rows(activity, false).map(TaskChange::Delete).chain(own).collect()
        }
        Event::ActivityFailed { activity_id, retry_in_ms, place, attempt, details, .. }
        | Event::ActivityTimedOut { activity_id, retry_in_ms, place, attempt, details, .. } => {
            let activity = &run.activities[activity_id];
            let mut put = match (activity.place, *place) {
                (Some(place), _) => activity_put(run, activity, activity_id, place, seq),
                (None, Some(place)) => TaskPut {
                    target: activity_id.clone().into(),
                    ..plain_put(run, TaskKind::Retry, place, seq)
                },
                (None, None) => unreachable!("an inline step waits at a place of its own"),
            };
            put.details = details.clone();
            put.delay = retry_in_ms.map(Duration::from_millis);
            put.attempt = put.attempt.max(attempt.as_ref().map_or(0, |a| a.number));
            vec![TaskChange::Put(Box::new(put))]
        }
        Event::TimerStarted { timer_id, duration_ms, place } => {
            vec![TaskChange::Put(Box::new(TaskPut {
                target: timer_id.clone().into(),
                delay: Some(Duration::from_millis(*duration_ms)),
                ..plain_put(run, TaskKind::Timer, *place, seq)
            }))]
        }
        Event::TimerFired { timer_id, .. } | Event::TimerCancelled { timer_id } => {
            vec![TaskChange::Delete(run.timers[timer_id].place)]
        }
        Event::ActivityRetryDue { activity_id, .. } => {
            rows_of_backoff(&run.activities[activity_id]).map(TaskChange::Delete).collect()
        }
        Event::WorkflowStarted { .. }
        | Event::VersionPinned { .. }
        | Event::WorkflowCompleted { .. }
        | Event::WorkflowFailed { .. }
        | Event::WorkflowCancelled { .. }
        | Event::WorkflowTerminated { .. }
        | Event::WorkflowCancelRequested { .. }
        | Event::WorkflowShutdownRequested { .. }
        | Event::WorkflowTimedOut { .. }
        | Event::WorkflowReset { .. }
        | Event::ActivityLost { .. }
        | Event::SignalReceived { .. }
        | Event::ChildWorkflowStarted { .. }
        | Event::ChildWorkflowCompleted { .. }
        | Event::ChildWorkflowFailed { .. } => vec![],
    }
}

/// The rows of an activity; its own task row only if asked for.
fn rows(activity: &Activity, own: bool) -> impl Iterator<Item = Place> + use<> {
    let own = if own { activity.place } else { None };
    let others = [own, activity.start_place, activity.close_place].into_iter().flatten();
    others.chain(rows_of_backoff(activity))
}

fn rows_of_backoff(activity: &Activity) -> impl Iterator<Item = Place> + use<> {
    let place = match activity.phase {
        Phase::Backoff(place, _) => Some(place),
        Phase::Queued | Phase::UnderWay(_) => None,
    };
    place.into_iter()
}

fn of_start(event: &Event, seq: Seq) -> Vec<TaskChange> {
    let Event::WorkflowStarted { timeout_ms: Some(timeout_ms), .. } = event else {
        return vec![];
    };
    vec![TaskChange::Put(Box::new(TaskPut {
        place: Place(1),
        kind: TaskKind::Timeout,
        name: TimeoutKind::Run.name().into(),
        target: Arc::default(),
        watched: None,
        seq,
        delay: Some(Duration::from_millis(*timeout_ms)),
        queue: Queue::default(),
        priority: 0,
        attempt: 0,
        deaths: 0,
        input: None,
        options: None,
        details: None,
    }))]
}

fn of_scheduled(run: &Run, event: &Event, seq: Seq) -> Vec<TaskChange> {
    let Event::ActivityScheduled {
        activity_id,
        activity_type,
        input,
        options,
        place,
        start_place,
        close_place,
        ..
    } = event
    else {
        unreachable!("called for scheduling events only");
    };
    let mut changes = Vec::new();
    if let Some(place) = *place {
        let put = TaskPut {
            name: activity_type.clone().into(),
            target: activity_id.clone().into(),
            input: Some(input.clone()),
            options: Some(options.clone()),
            ..plain_put(run, TaskKind::Activity, place, seq)
        };
        changes.push(TaskChange::Put(Box::new(with_options(put, options))));
    }
    let timeouts = [
        (TimeoutKind::ScheduleToStart, *start_place, options.schedule_to_start),
        (TimeoutKind::ScheduleToClose, *close_place, options.schedule_to_close),
    ];
    for (kind, row, delay) in timeouts {
        if let (Some(row), Some(delay)) = (row, delay) {
            changes.push(TaskChange::Put(Box::new(TaskPut {
                name: kind.name().into(),
                target: activity_id.clone().into(),
                watched: *place,
                delay: Some(delay),
                ..plain_put(run, TaskKind::Timeout, row, seq)
            })));
        }
    }
    changes
}

fn activity_put(
    run: &Run,
    activity: &Activity,
    id: &ActivityId,
    place: Place,
    seq: Seq,
) -> TaskPut {
    let put = TaskPut {
        name: activity.activity_type.clone().into(),
        target: id.clone().into(),
        attempt: activity.attempt,
        deaths: activity.deaths,
        input: Some(activity.input.clone()),
        options: Some(activity.options.clone()),
        ..plain_put(run, TaskKind::Activity, place, seq)
    };
    with_options(put, &activity.options)
}

fn with_options(mut put: TaskPut, options: &ActivityOptions) -> TaskPut {
    if let Some(queue) = &options.queue {
        put.queue = queue.clone();
    }
    put.priority = options.priority.unwrap_or(put.priority);
    put
}

fn plain_put(run: &Run, kind: TaskKind, place: Place, seq: Seq) -> TaskPut {
    TaskPut {
        place,
        kind,
        name: Arc::default(),
        target: Arc::default(),
        watched: None,
        seq,
        delay: None,
        queue: run.identity.queue.clone(),
        priority: run.identity.priority,
        attempt: 0,
        deaths: 0,
        input: None,
        options: None,
        details: None,
    }
}
