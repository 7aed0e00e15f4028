//! What must hold when all is done: the ledger against the histories, the histories against the
//! plans.

use crate::model::{Expected, expected};
use crate::operator::Receipts;
use crate::outside::Outside;
use crate::plan::{Shot, Work};
use crate::program::host;
use crate::scenario::{Known, Scenario};
use crate::watch::Seen;
use durably::Engine;
use durably_kernel::{Event, Failure, FailureKind, RunId, RunStatus};
use durably_store::check::{Doctor, Weight};
use durably_store::{DeadLetterRow, Store};
use futures_util::FutureExt;
use std::sync::Arc;

type Verdict = Result<(), String>;

pub(crate) fn check(
    scenario: &Scenario,
    outside: &Arc<Outside>,
    receipts: &Receipts,
    letters: &[DeadLetterRow],
) -> Verdict {
    let watch = outside.watch.lock();
    counts(scenario, receipts, watch.runs().map(|(_, seen)| seen))?;
    for (number, run) in &receipts.started {
        let there = watch.run(*run).is_some_and(|seen| seen.plan.number == *number);
        hold(there, || format!("I21: the acknowledged start of run {number} ({run}) is gone"))?;
    }
    for (run, id) in &receipts.signals {
        let seen = watch.run(*run).ok_or_else(|| format!("I21: run {run} is gone"))?;
        signal_is_there(seen, *run, id, letters)?;
    }
    for (run, seen) in watch.runs() {
        let checked = whole(outside, *run, seen)
            .and_then(|()| as_asked(scenario, receipts, *run, seen))
            .and_then(|()| effects(scenario, outside, *run, seen))
            .and_then(|()| output(seen))
            .and_then(|()| replays(outside, seen));
        checked.map_err(|broken| format!("run {run} ({}): {broken}", seen.plan.number))?;
    }
    Ok(())
}

/// What people would be told of the store.
pub(crate) fn doctor(store: &dyn Store) -> Verdict {
    let mut doctor = Doctor::new(store);
    loop {
        let page = doctor.page().now_or_never();
        let page = page.ok_or("the memory store answers at once")?;
        let Some(seen) = page.map_err(|error| error.to_string())? else { return Ok(()) };
        let wrong = seen.findings.iter().find(|finding| finding.weight == Weight::Wrong);
        hold(wrong.is_none(), || format!("doctor: {wrong:?}"))?;
    }
}

fn hold(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    match holds {
        true => Ok(()),
        false => Err(otherwise()),
    }
}

/// The same id or key is one run; without, every call is at most one. A call that says that nothing
/// was done has done nothing.
fn counts<'a>(
    scenario: &Scenario,
    receipts: &Receipts,
    seen: impl Iterator<Item = &'a Seen>,
) -> Verdict {
    let numbers: Vec<usize> = seen.map(|seen| seen.plan.number).collect();
    for spec in &scenario.runs {
        let number = spec.plan.number;
        let runs = numbers.iter().filter(|n| **n == number).count();
        let calls = receipts.start_calls.iter().filter(|n| **n == number).count();
        let failed = receipts.start_failed.iter().filter(|n| **n == number).count();
        let most = if spec.known == Known::Unknown { calls } else { calls.min(1 + failed) };
        hold(runs + failed <= most, || {
            format!(
                "I19: run {number} is there {runs} times, {calls} calls of which {failed} failed"
            )
        })?;
    }
    Ok(())
}

fn signal_is_there(seen: &Seen, run: RunId, id: &str, letters: &[DeadLetterRow]) -> Verdict {
    let heard = seen.shot.history.iter().filter(|row| match &row.event {
        Event::SignalReceived { signal, .. } => signal.id == id,
        _ => false,
    });
    let dead = letters.iter().filter(|letter| {
        letter.run == run && letter.activity_id.as_str() == format!("signal:{id}")
    });
    let times = heard.count() + dead.count();
    hold(times == 1, || format!("I14: the acknowledged signal {id} of run {run} is {times} times"))
}

/// What was watched is what is stored.
fn whole(outside: &Outside, run: RunId, seen: &Seen) -> Verdict {
    let stored = crate::watch::at_once(outside.store.history(run, durably_kernel::Seq(0), 100_000));
    hold(stored.events == seen.shot.history, || "I1: history was rewritten".to_owned())?;
    let view = crate::watch::at_once(outside.store.run(run));
    hold(view.as_ref() == Some(&seen.shot.view), || "I28: an ended run changed".to_owned())
}

/// Runs end in a way that somebody wanted.
fn as_asked(scenario: &Scenario, receipts: &Receipts, run: RunId, seen: &Seen) -> Verdict {
    let status = seen.shot.view.status;
    let spec = &scenario.runs[seen.plan.number];
    let has = |wanted: fn(&Event) -> bool| seen.shot.history.iter().any(|row| wanted(&row.event));
    let asked = has(|event| {
        matches!(
            event,
            Event::WorkflowCancelRequested { .. } | Event::WorkflowShutdownRequested { .. }
        )
    });
    let timed_out = has(|event| matches!(event, Event::WorkflowTimedOut { .. }));
    hold(!asked || receipts.cancel_tried.contains(&run), || "nobody cancelled it".to_owned())?;
    hold(!timed_out || spec.timeout_ms.is_some(), || "it has no time-out".to_owned())?;
    let terminated = receipts.terminated.contains(&run);
    hold(!terminated || status == RunStatus::Terminated, || {
        format!("I21: its acknowledged termination is gone, it is {status}")
    })?;
    match status {
        RunStatus::Cancelled => hold(asked, || "it ended as cancelled by itself".to_owned()),
        RunStatus::Terminated => {
            let tried = receipts.terminate_tried.contains(&run);
            hold(tried, || "nobody terminated it".to_owned())
        }
        RunStatus::Completed => hold(!asked, || "it was cancelled, and completed".to_owned()),
        RunStatus::Failed | RunStatus::Pending | RunStatus::Running | RunStatus::Continued => {
            Ok(())
        }
    }
}

/// The ledger agrees with the history.
fn effects(scenario: &Scenario, outside: &Outside, run: RunId, seen: &Seen) -> Verdict {
    for row in &seen.shot.history {
        match &row.event {
            Event::ActivityCompleted { activity_id, result, attempt, .. } => {
                let work = work(seen, activity_id.as_str())?;
                let result: String = result.decode().map_err(|error| error.to_string())?;
                came_to(outside, run, work, &result, |shot| shot == Shot::Done)?;
                begun_at_most(scenario, outside, run, work, attempt.number)?;
            }
            Event::ActivityFailed { activity_id, error, will_retry, attempt, .. } => {
                let work = work(seen, activity_id.as_str())?;
                failed_as_planned(outside, run, work, error)?;
                if let (Some(attempt), false) = (attempt, will_retry) {
                    begun_at_most(scenario, outside, run, work, attempt.number)?;
                }
            }
            Event::ActivityTimedOut { activity_id, .. } => {
                let work = work(seen, activity_id.as_str())?;
                let timed = [work.timeout_ms, work.heartbeat_ms, work.start_ms, work.deadline_ms];
                hold(timed.iter().any(Option::is_some), || {
                    format!("work {} timed out, but it has no time-out", work.number)
                })?;
            }
            _ => {}
        }
    }
    attempts_within_policy(seen)
}

fn work<'a>(seen: &'a Seen, id: &str) -> Result<&'a Work, String> {
    let number = seen.works.get(id).ok_or_else(|| format!("{id} is no work of the plan"))?;
    seen.plan.work(*number).ok_or_else(|| format!("work {number} is not in the plan"))
}

/// A recorded result is that of an effect.
fn came_to(
    outside: &Outside,
    run: RunId,
    work: &Work,
    result: &str,
    fits: impl Fn(Shot) -> bool,
) -> Verdict {
    let wrong = || format!("I22: work {} never came to {result:?}", work.number);
    let beginning = result.split_once(':').filter(|(number, _)| *number == work.number.to_string());
    let beginning: u32 = beginning.and_then(|(_, b)| b.parse().ok()).ok_or_else(wrong)?;
    let ledger = outside.ledger.lock();
    let effect = ledger.of(run, work.number).get(beginning as usize - 1).ok_or_else(wrong)?;
    hold(effect.ended.is_some() && fits(work.shot(beginning)), wrong)
}

fn failed_as_planned(outside: &Outside, run: RunId, work: &Work, error: &Failure) -> Verdict {
    let named = |fits: Shot| came_to(outside, run, work, &error.message, |shot| shot == fits);
    let begun = outside.ledger.lock().of(run, work.number).len() as u32;
    let ever = |shot| {
        hold((1..=begun).any(|b| work.shot(b) == shot), || {
            format!("I22: work {} never came to {shot:?}", work.number)
        })
    };
    match error.kind {
        FailureKind::Retryable => named(Shot::Retryable),
        FailureKind::Permanent => named(Shot::Permanent),
        FailureKind::Contention => named(Shot::Contention),
        FailureKind::Panicked => ever(Shot::Panics),
        FailureKind::RateLimited => ever(Shot::RateLimited),
        FailureKind::Lost => Ok(()),
        FailureKind::TimedOut | FailureKind::Cancelled | FailureKind::InvalidInput => {
            Err(format!("work {} failed with {error}, which is not planned", work.number))
        }
    }
}

/// No more effects than attempts; where nothing goes wrong, exactly as many.
fn begun_at_most(
    scenario: &Scenario,
    outside: &Outside,
    run: RunId,
    work: &Work,
    attempts: u32,
) -> Verdict {
    let ledger = outside.ledger.lock();
    let effects = ledger.of(run, work.number);
    let begun = effects.len() as u32;
    hold(begun <= attempts, || {
        let all: Vec<String> = effects.iter().map(ToString::to_string).collect();
        let number = work.number;
        format!("I23: work {number} began {begun} times in {attempts} attempts: {all:?}")
    })?;
    // An attempt whose claim was answered too late for its time-out does not begin.
    let exact = scenario.is_calm() && work.timeout_ms.is_none() && work.heartbeat_ms.is_none();
    hold(!exact || begun == attempts, || {
        format!("I23: work {} began {begun} times, though attempt {attempts} ended", work.number)
    })
}

/// Attempts that count stay within the policy.
fn attempts_within_policy(seen: &Seen) -> Verdict {
    for work in seen.plan.works() {
        let id = seen.works.iter().find(|(_, number)| **number == work.number);
        let Some((id, _)) = id else { continue };
        let counted = seen.shot.history.iter().filter(|row| match &row.event {
            Event::ActivityFailed { activity_id, error, .. } => {
                let counts =
                    error.kind != FailureKind::Contention && error.kind != FailureKind::Lost;
                activity_id.as_str() == id && counts
            }
            Event::ActivityTimedOut { activity_id, attempt: Some(_), .. } => {
                activity_id.as_str() == id
            }
            _ => false,
        });
        let counted = counted.count();
        hold(counted <= work.attempts as usize, || {
            format!("I17: work {} failed {counted} times, {} allowed", work.number, work.attempts)
        })?;
    }
    Ok(())
}

/// The result is what the plan makes of what happened.
fn output(seen: &Seen) -> Verdict {
    let events = seen.events();
    let Some(last) = events.last() else { return Ok(()) };
    let timed_out = events.iter().any(|event| matches!(event, Event::WorkflowTimedOut { .. }));
    match (last, expected(&seen.plan, &events)) {
        (Event::WorkflowCompleted { result }, Expected::Output(entries)) => {
            let got: Vec<String> = result.decode().map_err(|error| error.to_string())?;
            hold(got == entries, || format!("it gave {got:?}, the plan says {entries:?}"))
        }
        (Event::WorkflowFailed { error }, Expected::Fails(kind)) => {
            hold(error.kind == kind, || format!("it failed with {error}, the plan says {kind}"))
        }
        (Event::WorkflowFailed { error }, _) if timed_out => {
            hold(error.kind == FailureKind::TimedOut, || format!("it timed out with {error}"))
        }
        (Event::WorkflowCancelled { .. } | Event::WorkflowTerminated { .. }, _) => Ok(()),
        (last, wanted) => Err(format!("it ended with {}, the plan says {wanted:?}", last.name())),
    }
}

/// The shipped code, given the history, asks for what the history has.
fn replays(outside: &Arc<Outside>, seen: &Seen) -> Verdict {
    let hosts = crate::program::Hosts { machine: true, function: true, activities: [false; 3] };
    let builder = host(Engine::builder(), &hosts, (0, false), outside);
    let view = &seen.shot.view;
    let replayed =
        builder.replay(view.identity.clone(), &view.workflow_type, view.version, &seen.events());
    match replayed {
        Ok(run) => hold(run.status == view.status, || "I24: replay ends otherwise".to_owned()),
        Err(error) => Err(format!("I24: {error}")),
    }
}
