//! From a fact to events, or to nothing where it is late or a repeat.
//!
//! An outcome counts only if it names the event that queued its task (or, inline, began its
//! attempt): whatever happened to the activity since makes it late.

use crate::code::Code;
use crate::event::{Attempt, Event, TimeoutKind};
use crate::fact::{Fact, Loss, LossCause};
use crate::failure::{Failure, FailureKind};
use crate::id::{ActivityId, Seq};
use crate::payload::Payload;
use crate::retry::{NotAgain, Tried, Verdict};
use crate::run::{Activity, Phase, Run};
use crate::time::{Timestamp, to_millis};
use crate::turn::Moment;

/// What is recorded when a time-out passed.
pub fn timeout_failure(kind: TimeoutKind) -> Failure {
    let message = match kind {
        TimeoutKind::ScheduleToStart => "no worker began it in time (schedule-to-start)",
        TimeoutKind::StartToClose => "the attempt took too long (start-to-close)",
        TimeoutKind::Heartbeat => "the attempt was silent for too long (heartbeat)",
        TimeoutKind::ScheduleToClose => {
            "it took too long with all its attempts (schedule-to-close)"
        }
        TimeoutKind::Run => "the run took too long (run time-out)",
    };
    let code = match kind {
        TimeoutKind::Run => Code::RUN_TIMED_OUT,
        _ => Code::ACTIVITY_TIMED_OUT,
    };
    Failure::new(FailureKind::TimedOut, message).code(code.as_str())
}

/// The events that a fact becomes.
pub(crate) fn admit(run: &Run, fact: &Fact, moment: Moment) -> Vec<Event> {
    let at = run.now.max(moment.now);
    match fact {
        Fact::Begin { version } if run.version.is_none() && !run.status.has_ended() => {
            vec![Event::VersionPinned { version: *version, at }]
        }
        Fact::Begin { .. } => vec![],
        Fact::ActivityCompleted { .. }
        | Fact::ActivityFailed { .. }
        | Fact::ActivityTimedOut { .. }
        | Fact::ActivityLost { .. }
        | Fact::InlineLost { .. }
        | Fact::RetryDue { .. } => of_activity(run, fact, at, moment).unwrap_or_default(),
        Fact::TimerFired { timer_id, seq } => match run.timers.get(timer_id) {
            Some(timer) if timer.started == *seq => {
                vec![Event::TimerFired { timer_id: timer_id.clone(), at }]
            }
            _ => vec![],
        },
        Fact::Signal(signal) => vec![Event::SignalReceived { signal: signal.clone(), at }],
        Fact::CancelRequested { .. } if run.cancel_requested.is_some() => vec![],
        Fact::CancelRequested { reason } => {
            vec![Event::WorkflowCancelRequested { reason: reason.clone(), at }]
        }
        Fact::ShutdownRequested {} if run.shutting_down => vec![],
        Fact::ShutdownRequested {} => vec![Event::WorkflowShutdownRequested { at }],
        Fact::RunTimedOut {} => vec![Event::WorkflowTimedOut { at }],
    }
}

/// As [`admit`], for facts about an activity; none where it does not wait for them.
fn of_activity(run: &Run, fact: &Fact, at: Timestamp, moment: Moment) -> Option<Vec<Event>> {
    match fact {
        Fact::ActivityCompleted { activity_id, seq, attempt, result, losses } => {
            let activity = awaited(run, activity_id, *seq)?;
            let mut events = lost_before(activity_id, activity, losses);
            events.push(Event::ActivityCompleted {
                activity_id: activity_id.clone(),
                result: result.clone(),
                attempt: attempt.clone(),
                at,
            });
            Some(events)
        }
        Fact::ActivityFailed { activity_id, seq, attempt, error, details, losses } => {
            let activity = awaited(run, activity_id, *seq)?;
            let mut events = lost_before(activity_id, activity, losses);
            let attempt = Some(attempt);
            let failed = Failed { id: activity_id, activity, attempt, details, at, moment };
            events.push(failed.with_error(run, error));
            Some(events)
        }
        Fact::ActivityTimedOut { activity_id, seq, timeout, attempt, details, losses } => {
            let activity = timed(run, activity_id, *seq, *timeout)?;
            let mut events = lost_before(activity_id, activity, losses);
            let attempt = attempt.as_ref();
            let failed = Failed { id: activity_id, activity, attempt, details, at, moment };
            events.push(failed.by_timeout(run, *timeout));
            Some(events)
        }
        Fact::ActivityLost { activity_id, seq, losses } => {
            let activity = awaited(run, activity_id, *seq)?;
            let mut events = lost_before(activity_id, activity, losses);
            events.push(lost_for_good(activity_id, at));
            Some(events)
        }
        Fact::InlineLost { activity_id, seq, loss } => {
            let activity = awaited(run, activity_id, *seq)?;
            let mut events = vec![lost(activity_id, loss)];
            let deaths = activity.deaths + u32::from(loss.cause == LossCause::Died);
            if loss.cause == LossCause::Died && deaths >= activity.options.most_deaths() {
                events.push(lost_for_good(activity_id, at));
            }
            Some(events)
        }
        Fact::RetryDue { activity_id, seq } => match run.activities.get(activity_id) {
            Some(Activity { phase: Phase::Backoff(_, since), .. }) if since == seq => {
                Some(vec![Event::ActivityRetryDue { activity_id: activity_id.clone(), at }])
            }
            _ => None,
        },
        Fact::Begin { .. }
        | Fact::TimerFired { .. }
        | Fact::Signal(_)
        | Fact::CancelRequested { .. }
        | Fact::ShutdownRequested {}
        | Fact::RunTimedOut {} => None,
    }
}

/// The open activity whose present attempt the number names.
fn awaited<'r>(run: &'r Run, id: &ActivityId, seq: Seq) -> Option<&'r Activity> {
    let activity = run.activities.get(id)?;
    let expected = match activity.phase {
        Phase::Queued => activity.queued,
        Phase::UnderWay(began) => began,
        Phase::Backoff(..) => return None,
    };
    (expected == seq).then_some(activity)
}

/// As [`awaited`]; time-outs of the whole activity name its scheduling. Once an attempt began,
/// the wait for the first one cannot be too long any more.
fn timed<'r>(run: &'r Run, id: &ActivityId, seq: Seq, kind: TimeoutKind) -> Option<&'r Activity> {
    match kind {
        TimeoutKind::ScheduleToStart => run
            .activities
            .get(id)
            .filter(|activity| activity.scheduled == seq && activity.attempt == 0),
        TimeoutKind::ScheduleToClose => {
            run.activities.get(id).filter(|activity| activity.scheduled == seq)
        }
        TimeoutKind::StartToClose | TimeoutKind::Heartbeat => awaited(run, id, seq),
        TimeoutKind::Run => None,
    }
}

fn lost(id: &ActivityId, loss: &Loss) -> Event {
    Event::ActivityLost {
        activity_id: id.clone(),
        attempt: loss.attempt.clone(),
        died: loss.cause == LossCause::Died,
        at: loss.lost_at,
    }
}

/// The losses that were noted on the row and are not in the history yet.
fn lost_before(id: &ActivityId, activity: &Activity, losses: &[Loss]) -> Vec<Event> {
    losses
        .iter()
        .filter(|loss| loss.attempt.number > activity.attempt)
        .map(|loss| lost(id, loss))
        .collect()
}

fn lost_for_good(id: &ActivityId, at: Timestamp) -> Event {
    let error = Failure::new(
        FailureKind::Lost,
        "the processes that executed it died as often as its options allow",
    );
    Event::ActivityFailed {
        activity_id: id.clone(),
        error: Box::new(error.code(Code::LOST.as_str())),
        will_retry: false,
        retry_in_ms: None,
        place: None,
        attempt: None,
        details: None,
        dead: true,
        at,
    }
}

/// A failed attempt, and all that decides whether there is another.
struct Failed<'a> {
    id: &'a ActivityId,
    activity: &'a Activity,
    attempt: Option<&'a Attempt>,
    details: &'a Option<Payload>,
    at: Timestamp,
    moment: Moment,
}

/// What follows a failed attempt.
struct Sequel {
    will_retry: bool,
    retry_in_ms: Option<u64>,
    place: Option<crate::id::Place>,
    dead: bool,
}

impl Failed<'_> {
    fn with_error(&self, run: &Run, error: &Failure) -> Event {
        let sequel = self.sequel(run, error);
        Event::ActivityFailed {
            activity_id: self.id.clone(),
            error: Box::new(error.clone()),
            will_retry: sequel.will_retry,
            retry_in_ms: sequel.retry_in_ms,
            place: sequel.place,
            attempt: self.attempt.cloned().map(Box::new),
            details: self.details.clone().filter(|_| sequel.will_retry),
            dead: sequel.dead,
            at: self.at,
        }
    }

    fn by_timeout(&self, run: &Run, timeout: TimeoutKind) -> Event {
        let sequel = match timeout {
            TimeoutKind::StartToClose | TimeoutKind::Heartbeat => {
                self.sequel(run, &timeout_failure(timeout))
            }
            TimeoutKind::ScheduleToStart | TimeoutKind::ScheduleToClose | TimeoutKind::Run => {
                Sequel { will_retry: false, retry_in_ms: None, place: None, dead: false }
            }
        };
        Event::ActivityTimedOut {
            activity_id: self.id.clone(),
            timeout_type: timeout,
            will_retry: sequel.will_retry,
            retry_in_ms: sequel.retry_in_ms,
            place: sequel.place,
            attempt: self.attempt.cloned().map(Box::new),
            details: self.details.clone().filter(|_| sequel.will_retry),
            dead: sequel.dead,
            at: self.at,
        }
    }

    fn sequel(&self, run: &Run, error: &Failure) -> Sequel {
        let never = |dead| Sequel { will_retry: false, retry_in_ms: None, place: None, dead };
        let tried = Tried {
            failures: self.activity.failures + u32::from(self.activity.uses_attempt(error.kind)),
            contentions: self.activity.contentions + 1,
            elapsed: self.at.since(self.activity.scheduled_at),
            random: self.moment.random_for(self.activity.queued),
        };
        match self.activity.options.retry_policy().verdict(error, tried) {
            Verdict::Never(NotAgain::Exhausted) => never(true),
            Verdict::Never(NotAgain::NotRetryable) => never(false),
            // Nothing new is scheduled while the run shuts down.
            Verdict::Again(_) if run.shutting_down => never(false),
            Verdict::Again(delay) => Sequel {
                will_retry: true,
                retry_in_ms: Some(to_millis(delay)),
                place: match self.activity.place {
                    Some(_) => None,
                    None => run.free_places().next(),
                },
                dead: false,
            },
        }
    }
}
