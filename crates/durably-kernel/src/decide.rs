//! From an action to events. Pure: the run is looked at, not changed.
//!
//! An action that cannot be carried out (an id used twice, a name that is none) ends the run with
//! an error that names it: such code would do the same again at every attempt.

use crate::action::Action;
use crate::code::Code;
use crate::event::Event;
use crate::failure::{Failure, FailureKind};
use crate::id::{ActivityId, ActivityType};
use crate::options::ActivityOptions;
use crate::payload::Payload;
use crate::run::Run;
use crate::time::to_millis;
use crate::validate::{self, Invalid};
use std::sync::Arc;

/// The events that an action becomes; none once the run has ended.
pub(crate) fn decide(run: &Run, action: Action) -> Vec<Event> {
    if run.status.has_ended() {
        return vec![];
    }
    match action {
        Action::ScheduleActivity { id, activity_type, input, options, inline } => {
            let asked = Scheduled { id, activity_type, input, options, inline };
            match asked.check(run) {
                Ok(()) => vec![asked.event(run)],
                Err(error) => end_failed(run, error.from_origin(asked.id.as_str())),
            }
        }
        Action::CancelActivity { id } if run.activities.contains_key(&id) => {
            vec![cancelled(&id, "cancelled by the workflow")]
        }
        Action::StartTimer { id, delay } => {
            if run.knows_timer(&id) {
                return end_failed(run, used_twice("timer", id.as_str()).from_origin(id.as_str()));
            }
            let checked = validate::check_name("timer id", id.as_str())
                .and_then(|()| validate::check_delay("timer", delay));
            if let Err(invalid) = checked {
                return end_failed(run, invalid_action(&invalid).from_origin(id.as_str()));
            }
            let place = run.free_places().next().expect("places never end");
            vec![Event::TimerStarted { timer_id: id, duration_ms: to_millis(delay), place }]
        }
        Action::CancelTimer { id } if run.timers.contains_key(&id) => {
            vec![Event::TimerCancelled { timer_id: id }]
        }
        Action::CancelActivity { .. } | Action::CancelTimer { .. } => vec![],
        Action::Complete { output } => match validate::check_payload("output", &output) {
            Ok(()) => end(run, "the run completed", Event::WorkflowCompleted { result: output }),
            Err(invalid) => end_failed(run, invalid_action(&invalid)),
        },
        Action::Fail { error } => end_failed(run, error),
        Action::Cancelled { reason } => {
            end(run, &reason, Event::WorkflowCancelled { reason: reason.clone() })
        }
    }
}

/// What the kernel itself makes of a fact; none leaves it to the workflow's code.
pub(crate) fn own_actions(run: &Run, event: &Event) -> Option<Vec<Action>> {
    match event {
        Event::WorkflowTimedOut { .. } => {
            let error = crate::admit::timeout_failure(crate::event::TimeoutKind::Run);
            Some(vec![Action::Fail { error }])
        }
        Event::WorkflowCancelRequested { reason, .. }
            if run.shutting_down || run.version.is_none() =>
        {
            Some(vec![Action::Cancelled { reason: reason.clone() }])
        }
        _ if run.shutting_down => {
            let mut actions: Vec<Action> =
                run.timers.keys().map(|id| Action::CancelTimer { id: id.clone() }).collect();
            if run.activities.is_empty() {
                actions.push(Action::Cancelled { reason: "shutdown".into() });
            }
            Some(actions)
        }
        _ => None,
    }
}

/// Everything open is given up, then the run ends.
pub(crate) fn end(run: &Run, reason: &str, last: Event) -> Vec<Event> {
    let mut events: Vec<Event> = run.activities.keys().map(|id| cancelled(id, reason)).collect();
    events.extend(run.timers.keys().map(|id| Event::TimerCancelled { timer_id: id.clone() }));
    events.push(last);
    events
}

fn end_failed(run: &Run, error: Failure) -> Vec<Event> {
    end(run, "the run failed", Event::WorkflowFailed { error: Box::new(error) })
}

fn cancelled(id: &ActivityId, reason: &str) -> Event {
    Event::ActivityCancelled { activity_id: id.clone(), reason: reason.to_owned() }
}

/// An activity that is asked for.
struct Scheduled {
    id: ActivityId,
    activity_type: ActivityType,
    input: Payload,
    options: Arc<ActivityOptions>,
    inline: bool,
}

impl Scheduled {
    fn check(&self, run: &Run) -> Result<(), Failure> {
        if run.knows_activity(&self.id) {
            return Err(used_twice("activity", self.id.as_str()));
        }
        validate::check_name("activity id", self.id.as_str())
            .and_then(|()| validate::check_name("activity type", self.activity_type.as_str()))
            .and_then(|()| validate::check_payload("activity input", &self.input))
            .and_then(|()| self.options.check())
            .map_err(|invalid| invalid_action(&invalid))
    }

    fn event(self, run: &Run) -> Event {
        let Scheduled { id, activity_type, input, options, inline } = self;
        let mut free = run.free_places();
        let mut place_if = |wanted: bool| wanted.then(|| free.next()).flatten();
        let place = place_if(!inline);
        let start_place = place_if(options.schedule_to_start.is_some() && !inline);
        let close_place = place_if(options.schedule_to_close.is_some());
        Event::ActivityScheduled {
            activity_id: id,
            activity_type,
            input,
            options,
            inline,
            place,
            start_place,
            close_place,
        }
    }
}

fn used_twice(what: &str, id: &str) -> Failure {
    let message =
        format!("the workflow used the {what} id {id:?} twice; ids are unique within a run");
    Failure::new(FailureKind::Permanent, message).code(Code::ID_TWICE.as_str())
}

fn invalid_action(invalid: &Invalid) -> Failure {
    Failure::new(FailureKind::InvalidInput, invalid.to_string()).code(invalid.code().as_str())
}
