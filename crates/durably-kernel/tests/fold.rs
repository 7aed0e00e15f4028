//! A run is the fold of its events: each kind of event, places, ids, and what a damaged history
//! gives.

mod scene;

use durably_kernel::{
    ActivityOptions, Event, Fact, Failure, FailureKind, LastError, LossCause, Payload, Place,
    Retry, Run, RunStatus, Seq, TimeoutKind, Timestamp,
};
use scene::{
    Scene, Script, cancel, complete, give_up, give_up_timer, identity, inline, queued, queued_with,
    signal, time_limits, timer,
};
use std::time::Duration;

const AT: Timestamp = Timestamp(2_000);

fn started(timeout_ms: Option<u64>) -> Event {
    Event::WorkflowStarted {
        workflow_type: "order".into(),
        input: Payload::null(),
        seed: 7,
        timeout_ms,
        at: Timestamp(1_000),
    }
}

fn pinned() -> Event {
    Event::VersionPinned { version: 2, at: AT }
}

fn scheduled(id: &str, place: u32) -> Event {
    Event::ActivityScheduled {
        activity_id: id.into(),
        activity_type: "work".into(),
        input: Payload::null(),
        options: Default::default(),
        inline: place == 0,
        place: (place > 0).then_some(Place(place)),
        start_place: None,
        close_place: None,
    }
}

fn failed(id: &str, will_retry: bool, place: Option<Place>) -> Event {
    Event::ActivityFailed {
        activity_id: id.into(),
        error: Box::new(Failure::new(FailureKind::Retryable, "hiccup")),
        will_retry,
        retry_in_ms: will_retry.then_some(1_000),
        place,
        attempt: Some(Box::new(scene::attempt(1))),
        details: None,
        dead: !will_retry,
        at: AT,
    }
}

fn timed_out(id: &str, will_retry: bool) -> Event {
    Event::ActivityTimedOut {
        activity_id: id.into(),
        timeout_type: TimeoutKind::StartToClose,
        will_retry,
        retry_in_ms: will_retry.then_some(1_000),
        place: None,
        attempt: Some(Box::new(scene::attempt(1))),
        details: None,
        dead: false,
        at: AT,
    }
}

fn done(id: &str) -> Event {
    Event::ActivityCompleted {
        activity_id: id.into(),
        result: Payload::null(),
        attempt: scene::attempt(1),
        at: AT,
    }
}

fn cancelled(id: &str) -> Event {
    Event::ActivityCancelled { activity_id: id.into(), reason: "no".into() }
}

fn lost(id: &str) -> Event {
    Event::ActivityLost { activity_id: id.into(), attempt: scene::attempt(1), died: true, at: AT }
}

fn due(id: &str) -> Event {
    Event::ActivityRetryDue { activity_id: id.into(), at: AT }
}

fn sleeping(id: &str, place: u32) -> Event {
    Event::TimerStarted { timer_id: id.into(), duration_ms: 5, place: Place(place) }
}

fn fold(events: &[Event]) -> Run {
    Run::fold(identity(), events).unwrap()
}

/// A started and pinned run, then these events.
fn running(more: &[Event]) -> Vec<Event> {
    [&[started(None), pinned()], more].concat()
}

/// Why a history cannot be folded.
fn broken(events: &[Event]) -> String {
    Run::fold(identity(), events).unwrap_err().to_string()
}

#[test]
fn a_start_makes_a_pending_run() {
    let run = fold(&[started(None)]);
    assert_eq!(run.identity, identity());
    assert_eq!(run.workflow_type.as_str(), "order");
    assert_eq!((run.status, run.version, run.head), (RunStatus::Pending, None, Seq(1)));
    assert_eq!((run.seed, run.now), (7, Timestamp(1_000)));
    assert_eq!(run.free_places().next(), Some(Place(1)));
}

#[test]
fn the_time_out_of_a_run_occupies_place_1() {
    let run = fold(&[started(Some(5))]);
    assert_eq!(run.free_places().next(), Some(Place(2)));
}

#[test]
fn each_event_leaves_its_status_and_a_head_without_gaps() {
    let (reason, error) = (|| "r".to_owned(), Failure::new(FailureKind::Permanent, "no"));
    let sleep = sleeping("t", 1);
    let table = [
        (vec![], RunStatus::Running),
        (vec![Event::WorkflowCompleted { result: Payload::null() }], RunStatus::Completed),
        (vec![Event::WorkflowFailed { error: Box::new(error) }], RunStatus::Failed),
        (vec![Event::WorkflowCancelled { reason: reason() }], RunStatus::Cancelled),
        (vec![Event::WorkflowTerminated { reason: reason(), at: AT }], RunStatus::Terminated),
        (vec![Event::WorkflowCancelRequested { reason: reason(), at: AT }], RunStatus::Running),
        (vec![Event::WorkflowShutdownRequested { at: AT }], RunStatus::Running),
        (vec![Event::WorkflowTimedOut { at: AT }], RunStatus::Running),
        (vec![scheduled("a", 1)], RunStatus::Running),
        (vec![scheduled("a", 1), done("a")], RunStatus::Running),
        (vec![scheduled("a", 1), failed("a", true, None)], RunStatus::Running),
        (vec![scheduled("a", 1), timed_out("a", true)], RunStatus::Running),
        (vec![scheduled("a", 1), cancelled("a")], RunStatus::Running),
        (vec![scheduled("a", 1), lost("a")], RunStatus::Running),
        (vec![scheduled("a", 0), failed("a", true, Some(Place(1))), due("a")], RunStatus::Running),
        (
            vec![sleep.clone(), Event::TimerFired { timer_id: "t".into(), at: AT }],
            RunStatus::Running,
        ),
        (vec![sleep, Event::TimerCancelled { timer_id: "t".into() }], RunStatus::Running),
    ];
    for (more, status) in table {
        let events = running(&more);
        let run = fold(&events);
        assert_eq!(run.status, status, "{more:?}");
        assert_eq!(run.head, Seq(events.len() as u64));
    }
}

#[test]
fn open_activities_and_timers_are_those_without_an_outcome() {
    let ends = [done("a"), failed("a", false, None), timed_out("a", false), cancelled("a")];
    for end in ends {
        let open = fold(&running(&[scheduled("a", 1), scheduled("b", 2)]));
        assert_eq!(open.activities.keys().map(|id| id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let run = fold(&running(&[scheduled("a", 1), scheduled("b", 2), end]));
        assert_eq!(run.activities.keys().map(|id| id.as_str()).collect::<Vec<_>>(), ["b"]);
        assert!(run.knows_activity(&"a".into()));
    }
    let run = fold(&running(&[sleeping("t", 1)]));
    assert_eq!((run.timers["t"].started, run.timers["t"].place), (Seq(3), Place(1)));
}

#[test]
fn retries_and_the_last_error_are_counted() {
    let run = fold(&running(&[
        scheduled("a", 1),
        scheduled("b", 2),
        failed("a", true, None),
        timed_out("b", true),
        failed("a", false, None),
    ]));
    assert_eq!(run.retries, 2);
    let error = Failure::new(FailureKind::Retryable, "hiccup").from_origin("a");
    assert_eq!(run.last_error, Some(Box::new(LastError { error, at: AT })));
    let summary = run.summary(durably_kernel::Waits::Any);
    assert_eq!((summary.retries, summary.version), (2, Some(2)));
    assert_eq!((summary.status, summary.last_error), (run.status, run.last_error));
}

#[test]
fn the_error_of_a_failed_run_is_its_last_error() {
    let error = Failure::new(FailureKind::Permanent, "no stock");
    let run = fold(&running(&[Event::WorkflowFailed { error: Box::new(error.clone()) }]));
    assert_eq!(run.last_error.unwrap().error, error);
}

#[test]
fn requests_to_end_are_remembered() {
    let run = fold(&running(&[
        Event::WorkflowCancelRequested { reason: "why not".into(), at: AT },
        Event::WorkflowShutdownRequested { at: AT },
    ]));
    assert_eq!(run.cancel_requested.as_deref(), Some("why not"));
    assert!(run.shutting_down);
    let run = fold(&running(&[]));
    assert_eq!((run.cancel_requested, run.shutting_down), (None, false));
}

#[test]
fn the_smallest_free_place_is_taken() {
    let mut scene = Scene::begun(Script::on_signal(
        vec![queued("a"), timer("t"), queued("b")],
        vec![queued("c"), timer("u")],
    ));
    scene.admit(&scene.fired("t"));
    assert_eq!(scene.rows.places(), [Place(1), Place(3)]);
    scene.admit(&signal("s"));
    assert_eq!(scene.run.activities["c"].place, Some(Place(2)));
    assert_eq!(scene.run.timers["u"].place, Place(4));
}

#[test]
fn a_place_is_free_again_after_an_outcome() {
    let permanent = Failure::new(FailureKind::Permanent, "no");
    let facts: [fn(&Scene, Failure) -> Fact; 4] = [
        |scene, _| scene.done("a"),
        |scene, error| scene.failure("a", error),
        |scene, _| scene.timeout("a", TimeoutKind::ScheduleToStart),
        |scene, _| scene.timeout("a", TimeoutKind::ScheduleToClose),
    ];
    for fact in facts {
        let script = Script::on_signal(vec![queued_with("a", time_limits())], vec![queued("b")]);
        let mut scene = Scene::begun(script);
        assert_eq!(scene.rows.places(), [Place(1), Place(2), Place(3)]);
        scene.admit(&fact(&scene, permanent.clone()));
        scene.admit(&signal("s"));
        assert_eq!(scene.rows.places(), [Place(1)]);
    }
}

#[test]
fn the_place_of_a_cancelled_activity_is_never_given_out_again() {
    let script = Script::on_signal(
        vec![queued_with("a", time_limits()), timer("t")],
        vec![give_up("a"), give_up_timer("t"), queued("b"), queued("c"), queued("d"), queued("e")],
    );
    let mut scene = Scene::begun(script);
    scene.admit(&signal("s"));
    // The rows of its time-outs and the timer's are gone for sure: nobody works there.
    assert_eq!(scene.rows.places(), [Place(2), Place(3), Place(4), Place(5)]);
}

#[test]
fn a_queued_retry_keeps_its_place() {
    let mut scene = Scene::begun(Script::at_start(vec![queued("a"), queued("b")]));
    scene.admit(&scene.hiccup("a"));
    assert_eq!(scene.run.activities["a"].place, Some(Place(1)));
    assert_eq!(scene.run.free_places().next(), Some(Place(3)));
}

#[test]
fn an_inline_step_takes_places_only_while_it_waits() {
    let options = ActivityOptions {
        retry: Some(Retry::attempts(2)),
        schedule_to_start: Some(Duration::from_secs(1)),
        ..ActivityOptions::default()
    };
    let mut scene =
        Scene::begun(Script::at_start(vec![scene::inline_with("a", options), inline("b")]));
    assert_eq!(scene.rows.places(), []);
    scene.admit(&scene.hiccup("b"));
    assert_eq!(scene.rows.places(), [Place(1)]);
    let seq = scene.run.activities["b"].queued;
    scene.admit(&Fact::RetryDue { activity_id: "b".into(), seq });
    assert_eq!(scene.rows.places(), []);
    assert_eq!(scene.run.free_places().next(), Some(Place(1)));
}

#[test]
fn attempts_failures_and_deaths_are_counted_apart() {
    let mut scene = Scene::begun(Script::at_start(vec![inline("a")]));
    scene.admit(&scene.inline_lost("a", LossCause::Died));
    scene.admit(&scene.inline_lost("a", LossCause::Stopped));
    scene.admit(&scene.hiccup("a"));
    let activity = &scene.run.activities["a"];
    assert_eq!((activity.attempt, activity.failures, activity.deaths), (3, 1, 1));
    assert_eq!(activity.errors.len(), 1);
}

#[test]
fn a_damaged_history_is_an_error_and_no_panic() {
    let end = || Event::WorkflowCompleted { result: Payload::null() };
    let fired = || Event::TimerFired { timer_id: "t".into(), at: AT };
    let both = match scheduled("a", 1) {
        Event::ActivityScheduled { activity_id, activity_type, input, options, place, .. } => {
            let (start_place, close_place) = (None, None);
            Event::ActivityScheduled {
                activity_id,
                activity_type,
                input,
                options,
                inline: true,
                place,
                start_place,
                close_place,
            }
        }
        other => other,
    };
    let table = [
        (vec![], "without events"),
        (vec![pinned()], "VersionPinned, not a start"),
        (vec![started(None), started(None)], "WorkflowStarted is not a legal move from pending"),
        (vec![started(None), end()], "not a legal move from pending"),
        (running(&[pinned()]), "not a legal move from running"),
        (running(&[end(), end()]), "not a legal move from completed"),
        (running(&[scheduled("a", 1), end()]), "ended with open activities"),
        (running(&[sleeping("t", 1), end()]), "ended with open timers"),
        (running(&[scheduled("a", 1), scheduled("a", 2)]), "scheduled twice"),
        (running(&[scheduled("a", 1), done("a"), scheduled("a", 1)]), "scheduled twice"),
        (running(&[sleeping("t", 1), fired(), sleeping("t", 1)]), "started twice"),
        (running(&[scheduled("a", 1), done("a"), done("a")]), "not open"),
        (running(&[scheduled("a", 1), done("a"), failed("a", true, None)]), "not open"),
        (running(&[cancelled("a")]), "not open"),
        (running(&[lost("a")]), "not open"),
        (running(&[fired()]), "not open"),
        (running(&[scheduled("a", 1), scheduled("b", 1)]), "place 1 is not free"),
        (running(&[sleeping("t", 0)]), "place 0 is not free"),
        (running(&[scheduled("a", u32::MAX)]), "is not free"),
        (vec![started(Some(5)), pinned(), scheduled("a", 1)], "place 1 is not free"),
        (running(&[both]), "a place or inline"),
        (running(&[scheduled("a", 1), failed("a", true, Some(Place(2)))]), "wrong place"),
        (running(&[scheduled("a", 0), failed("a", true, None)]), "wrong place"),
        (running(&[scheduled("a", 1), due("a")]), "without a backoff"),
    ];
    for (events, message) in table {
        let error = broken(&events);
        assert!(error.contains(message), "{error:?} does not say {message:?}");
    }
}

#[test]
fn an_event_is_taken_in_one_by_one_as_by_the_fold() {
    let script = Script::on_signal(vec![queued("a"), timer("t")], vec![complete()]);
    let mut scene = Scene::begun(script);
    for fact in [scene.hiccup("a"), cancel("x"), signal("s")] {
        scene.admit(&fact);
    }
    let mut run = Run::begin(identity(), &scene.events[0]).unwrap();
    for (at, event) in scene.events.iter().enumerate().skip(1) {
        run.apply(event).unwrap();
        assert_eq!(run, fold(&scene.events[..=at]));
    }
}

#[test]
fn a_reset_is_for_the_fold_only() {
    let mut run = fold(&running(&[]));
    let reset = Event::WorkflowReset { to: Seq(1), reason: String::new(), at: AT };
    assert!(run.apply(&reset).is_err());
}
