//! One sample of every fact, with all its optional fields, and a minimal one where it has some.

use super::{attempt, failure, json, loss, order, signal, small_failure};
use durably_kernel::{Fact, LossCause, Seq, TimeoutKind};

variants! {
    Fact: Begin, ActivityCompleted, ActivityFailed, ActivityTimedOut, ActivityLost, InlineLost,
    RetryDue, TimerFired, Signal, CancelRequested, ShutdownRequested, RunTimedOut,
}

/// Each sample under the name of its file.
pub(crate) fn samples() -> Vec<(String, Fact)> {
    let full = outcomes().into_iter().chain(others());
    let full = full.map(|fact| (fact.name().to_owned(), fact));
    let minimal = minimal().into_iter().map(|fact| (format!("{}.minimal", fact.name()), fact));
    full.chain(minimal).collect()
}

fn outcomes() -> Vec<Fact> {
    let activity_id = || "charge#2".into();
    let losses = || vec![loss(LossCause::Died), loss(LossCause::Stopped)];
    vec![
        Fact::ActivityCompleted {
            activity_id: activity_id(),
            seq: Seq(9),
            attempt: attempt(),
            result: order(),
            losses: losses(),
        },
        Fact::ActivityFailed {
            activity_id: activity_id(),
            seq: Seq(9),
            attempt: attempt(),
            error: failure(),
            details: Some(json("{\"page\":3}")),
            losses: losses(),
        },
        Fact::ActivityTimedOut {
            activity_id: activity_id(),
            seq: Seq(9),
            timeout: TimeoutKind::Heartbeat,
            attempt: Some(attempt()),
            details: Some(json("{\"page\":3}")),
            losses: losses(),
        },
        Fact::ActivityLost { activity_id: activity_id(), seq: Seq(9), losses: losses() },
        Fact::InlineLost { activity_id: activity_id(), seq: Seq(9), loss: loss(LossCause::Died) },
    ]
}

fn others() -> Vec<Fact> {
    vec![
        Fact::Begin { version: 3 },
        Fact::RetryDue { activity_id: "charge".into(), seq: Seq(9) },
        Fact::TimerFired { timer_id: "reminder".into(), seq: Seq(9) },
        Fact::Signal(signal()),
        Fact::CancelRequested { reason: "asked by \"support\"".into() },
        Fact::ShutdownRequested {},
        Fact::RunTimedOut {},
    ]
}

fn minimal() -> Vec<Fact> {
    let activity_id = || "charge".into();
    vec![
        Fact::ActivityCompleted {
            activity_id: activity_id(),
            seq: Seq(9),
            attempt: attempt(),
            result: json("null"),
            losses: vec![],
        },
        Fact::ActivityFailed {
            activity_id: activity_id(),
            seq: Seq(9),
            attempt: attempt(),
            error: small_failure(),
            details: None,
            losses: vec![],
        },
        Fact::ActivityTimedOut {
            activity_id: activity_id(),
            seq: Seq(9),
            timeout: TimeoutKind::ScheduleToClose,
            attempt: None,
            details: None,
            losses: vec![],
        },
    ]
}
