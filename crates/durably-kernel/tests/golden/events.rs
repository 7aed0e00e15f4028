//! One sample of every event, with all its optional fields, and a minimal one where it has some.

use super::{attempt, failure, json, order, signal, small_failure};
use durably_kernel::{
    ActivityOptions, Event, FailureKind, Place, Retry, RunId, Seq, TimeoutKind, Timestamp,
};
use std::time::Duration;

variants! {
    Event: WorkflowStarted, VersionPinned, WorkflowCompleted, WorkflowFailed, WorkflowCancelled,
    WorkflowTerminated, WorkflowCancelRequested, WorkflowShutdownRequested, WorkflowTimedOut,
    WorkflowReset, ActivityScheduled, ActivityCompleted, ActivityFailed, ActivityTimedOut,
    ActivityCancelled, ActivityLost, ActivityRetryDue, TimerStarted, TimerFired, TimerCancelled,
    SignalReceived, ChildWorkflowStarted, ChildWorkflowCompleted, ChildWorkflowFailed,
}

const AT: Timestamp = Timestamp(1_700_000_000_123);

fn child() -> RunId {
    "0190f3c8-0000-7000-8000-000000000002".parse().unwrap()
}

fn options() -> ActivityOptions {
    let retry = Retry::exponential()
        .not_kind(FailureKind::Panicked)
        .not_code("E42")
        .total(Duration::from_secs(3_600));
    ActivityOptions {
        retry: Some(retry),
        schedule_to_start: Some(Duration::from_secs(60)),
        start_to_close: Some(Duration::from_millis(1_500)),
        heartbeat: Some(Duration::from_secs(5)),
        schedule_to_close: Some(Duration::from_secs(300)),
        priority: Some(-2),
        queue: Some("payments".into()),
        key: Some("card/17".into()),
        deaths_max: Some(5),
    }
}

/// Each sample under the name of its file.
pub(crate) fn samples() -> Vec<(String, Event)> {
    let full = runs().into_iter().chain(activities()).chain(others());
    let full = full.map(|event| (event.name().to_owned(), event));
    let minimal = minimal().into_iter().map(|event| (format!("{}.minimal", event.name()), event));
    full.chain(minimal).collect()
}

fn runs() -> Vec<Event> {
    let reason = || "asked by \"support\"".to_owned();
    vec![
        Event::WorkflowStarted {
            workflow_type: "order".into(),
            input: order(),
            seed: u64::MAX,
            timeout_ms: Some(86_400_000),
            at: AT,
        },
        Event::VersionPinned { version: 3, at: AT },
        Event::WorkflowCompleted { result: order() },
        Event::WorkflowFailed { error: Box::new(failure()) },
        Event::WorkflowCancelled { reason: reason() },
        Event::WorkflowTerminated { reason: reason(), at: AT },
        Event::WorkflowCancelRequested { reason: reason(), at: AT },
        Event::WorkflowShutdownRequested { at: AT },
        Event::WorkflowTimedOut { at: AT },
        Event::WorkflowReset { to: Seq(4), reason: reason(), at: AT },
    ]
}

/// No activity is inline and has a place at once; the format does not mind.
fn activities() -> Vec<Event> {
    let activity_id = || "charge#2".into();
    vec![
        Event::ActivityScheduled {
            activity_id: activity_id(),
            activity_type: "charge".into(),
            input: order(),
            options: options().into(),
            inline: true,
            place: Some(Place(1)),
            start_place: Some(Place(2)),
            close_place: Some(Place(3)),
        },
        Event::ActivityCompleted {
            activity_id: activity_id(),
            result: order(),
            attempt: attempt(),
            at: AT,
        },
        Event::ActivityFailed {
            activity_id: activity_id(),
            error: Box::new(failure()),
            will_retry: true,
            retry_in_ms: Some(1_087),
            place: Some(Place(4)),
            attempt: Some(Box::new(attempt())),
            dead: true,
            details: Some(json("{\"page\":3}")),
            at: AT,
        },
        Event::ActivityTimedOut {
            activity_id: activity_id(),
            timeout_type: TimeoutKind::StartToClose,
            will_retry: true,
            retry_in_ms: Some(1_087),
            place: Some(Place(4)),
            attempt: Some(Box::new(attempt())),
            dead: true,
            details: Some(json("{\"page\":3}")),
            at: AT,
        },
        Event::ActivityCancelled { activity_id: activity_id(), reason: "the run failed".into() },
        Event::ActivityLost { activity_id: activity_id(), attempt: attempt(), died: true, at: AT },
        Event::ActivityRetryDue { activity_id: activity_id(), at: AT },
    ]
}

fn others() -> Vec<Event> {
    let workflow_id = child();
    vec![
        Event::TimerStarted { timer_id: "reminder".into(), duration_ms: 60_000, place: Place(2) },
        Event::TimerFired { timer_id: "reminder".into(), at: AT },
        Event::TimerCancelled { timer_id: "reminder".into() },
        Event::SignalReceived { signal: signal(), at: AT },
        Event::ChildWorkflowStarted { workflow_id, workflow_type: "shipment".into() },
        Event::ChildWorkflowCompleted { workflow_id, result: order(), at: AT },
        Event::ChildWorkflowFailed { workflow_id, error: Box::new(failure()), at: AT },
    ]
}

fn minimal() -> Vec<Event> {
    let activity_id = || "charge".into();
    vec![
        Event::WorkflowStarted {
            workflow_type: "order".into(),
            input: json("null"),
            seed: 0,
            timeout_ms: None,
            at: AT,
        },
        Event::WorkflowFailed { error: Box::new(small_failure()) },
        Event::ActivityScheduled {
            activity_id: activity_id(),
            activity_type: "charge".into(),
            input: json("null"),
            options: Default::default(),
            inline: false,
            place: None,
            start_place: None,
            close_place: None,
        },
        Event::ActivityFailed {
            activity_id: activity_id(),
            error: Box::new(small_failure()),
            will_retry: false,
            retry_in_ms: None,
            place: None,
            attempt: None,
            dead: false,
            details: None,
            at: AT,
        },
        Event::ActivityTimedOut {
            activity_id: activity_id(),
            timeout_type: TimeoutKind::ScheduleToStart,
            will_retry: false,
            retry_in_ms: None,
            place: None,
            attempt: None,
            dead: false,
            details: None,
            at: AT,
        },
        Event::ChildWorkflowFailed {
            workflow_id: child(),
            error: Box::new(small_failure()),
            at: AT,
        },
    ]
}
