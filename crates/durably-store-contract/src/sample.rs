//! Values that cases are made of. A store looks into none of the events and facts, so that the
//! plainest ones do.

use durably_kernel::{
    ActivityOptions, Attempt, Event, Fact, Payload, Place, RunStatus, Seq, Signal, Summary,
    TaskChange, TaskKind, TaskPut, TimeoutKind, Timestamp, Waits,
};
use durably_store::{CommitAnswer, Committed};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The workflow of all cases that do not say otherwise.
pub(crate) const ORDER: &str = "order";
/// The activity of all cases that do not say otherwise.
pub(crate) const CHARGE: &str = "charge";
/// Place 1, where the first activity or timer of a run is.
pub(crate) const FIRST: Place = Place(1);

pub(crate) fn json(text: &str) -> Payload {
    Payload::from_text(text.to_owned()).expect("a sample is JSON")
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Event 1.
pub(crate) fn started() -> Event {
    Event::WorkflowStarted {
        workflow_type: ORDER.into(),
        input: json(r#"{"of":"everything"}"#),
        seed: 7,
        timeout_ms: None,
        at: Timestamp(1),
    }
}

/// The first turn.
pub(crate) fn pinned() -> Event {
    Event::VersionPinned { version: 1, at: Timestamp(2) }
}

/// Any event; the text tells it from others.
pub(crate) fn noted(text: &str) -> Event {
    Event::WorkflowCancelRequested { reason: text.to_owned(), at: Timestamp(3) }
}

pub(crate) fn completed() -> Event {
    Event::WorkflowCompleted { result: json("true") }
}

/// A run under way.
pub(crate) fn running() -> Summary {
    summary(RunStatus::Running)
}

pub(crate) fn summary(status: RunStatus) -> Summary {
    Summary { status, version: Some(1), waits: Waits::Any, retries: 0, last_error: None }
}

/// A signal as it is delivered.
pub(crate) fn signal(id: &str) -> Fact {
    Fact::Signal(Signal {
        id: id.to_owned(),
        signal_type: "approval".to_owned(),
        payload: json(r#"{"by":"hand"}"#),
        sent_at: Timestamp(0),
    })
}

pub(crate) fn cancel() -> Fact {
    Fact::CancelRequested { reason: "enough".to_owned() }
}

/// An attempt's outcome, with the event that queued its task.
pub(crate) fn outcome(activity: &str, seq: Seq, attempt: &Attempt) -> Fact {
    Fact::ActivityCompleted {
        activity_id: activity.into(),
        seq,
        attempt: attempt.clone(),
        result: json("42"),
        losses: Vec::new(),
    }
}

/// A row for an activity, ready at once.
pub(crate) fn activity(place: Place, id: &str, seq: Seq) -> TaskPut {
    TaskPut {
        place,
        kind: TaskKind::Activity,
        name: CHARGE.into(),
        target: id.into(),
        watched: None,
        seq,
        delay: None,
        queue: "default".into(),
        priority: 0,
        attempt: 0,
        deaths: 0,
        input: Some(json(r#"{"amount":1}"#)),
        options: Some(Arc::new(ActivityOptions::default())),
        details: None,
    }
}

/// A row with a time that becomes an inbox entry.
pub(crate) fn timer(place: Place, id: &str, seq: Seq, delay: Duration) -> TaskPut {
    TaskPut {
        kind: TaskKind::Timer,
        name: "".into(),
        delay: Some(delay),
        input: None,
        options: None,
        ..activity(place, id, seq)
    }
}

/// The backoff of an inline step.
pub(crate) fn retry(place: Place, id: &str, seq: Seq, delay: Duration) -> TaskPut {
    TaskPut { kind: TaskKind::Retry, ..timer(place, id, seq, delay) }
}

/// A time-out that can pass while nothing is claimed; `watched` is the activity's row.
pub(crate) fn timeout(
    kind: TimeoutKind,
    watched: &TaskPut,
    place: Place,
    delay: Duration,
) -> TaskPut {
    TaskPut {
        kind: TaskKind::Timeout,
        name: kind.name().into(),
        watched: Some(watched.place),
        ..timer(place, &watched.target, watched.seq, delay)
    }
}

/// Changes that put rows.
pub(crate) fn puts(rows: impl IntoIterator<Item = TaskPut>) -> BTreeMap<Place, TaskChange> {
    rows.into_iter().map(|put| (put.place, TaskChange::Put(Box::new(put)))).collect()
}

/// What a commit says that must have succeeded.
#[track_caller]
pub(crate) fn done(answer: CommitAnswer) -> Committed {
    match answer {
        CommitAnswer::Committed(committed) => *committed,
        other => panic!("the commit was to succeed: {other:?}"),
    }
}
