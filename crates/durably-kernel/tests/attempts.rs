//! The life of an activity from attempt to attempt: retries, time-outs, losses, inline steps.

mod scene;

use durably_kernel::{
    ActivityOptions, DeadLetter, DeadLetterKind, Decision, Event, Fact, Failure, FailureKind,
    LossCause, Payload, Phase, Place, Retry, RunStatus, TaskChange, TaskKind, TaskPut, TimeoutKind,
};
use scene::{
    Scene, Script, after_losses, attempts, completed, failed, inline, inline_with, loss, queued,
    queued_with, time_limits,
};
use std::time::Duration;

/// A run with one open queued activity `a`.
fn with_queued(options: ActivityOptions) -> Scene {
    Scene::begun(Script::at_start(vec![queued_with("a", options)]))
}

/// A run with one open inline step `a`.
fn with_inline(options: ActivityOptions) -> Scene {
    Scene::begun(Script::at_start(vec![inline_with("a", options)]))
}

/// The only row that a decision puts.
fn only_put(decision: &Decision) -> &TaskPut {
    let mut tasks = decision.tasks.values();
    match (tasks.next(), tasks.next()) {
        (Some(TaskChange::Put(put)), None) => put,
        other => panic!("not one put: {other:?}"),
    }
}

fn permanent() -> Failure {
    Failure::new(FailureKind::Permanent, "card declined")
}

#[test]
fn a_failed_attempt_is_queued_again_after_its_backoff() {
    let mut scene = with_queued(attempts(3));
    let row = only_put(&scene.admit(&scene.hiccup("a"))).clone();
    assert_eq!((row.place, row.kind), (Place(1), TaskKind::Activity));
    assert_eq!(row.seq, scene.run.head);
    assert_eq!(row.delay, Some(Duration::from_secs(1)));
    assert_eq!(row.attempt, 1);
    assert_eq!((row.queue.as_str(), row.priority), ("orders", 3));
    assert_eq!(row.input, Some(Payload::of("a").unwrap()));
    let activity = &scene.run.activities["a"];
    assert_eq!((activity.attempt, activity.failures), (1, 1));
    assert_eq!(activity.queued, scene.run.head);
    scene.admit(&scene.done("a"));
    assert_eq!(scene.last_names(2), ["ActivityFailed", "ActivityCompleted"]);
    assert!(scene.run.activities.is_empty());
    assert!(scene.dead_letters.is_empty());
}

#[test]
fn a_retry_gets_the_details_of_the_last_heartbeat() {
    let mut scene = with_queued(attempts(3));
    let page = Payload::of(&17).unwrap();
    let mut fact = scene.hiccup("a");
    if let Fact::ActivityFailed { details, .. } = &mut fact {
        *details = Some(page.clone());
    }
    let decision = scene.admit(&fact);
    assert_eq!(only_put(&decision).details, Some(page));
}

#[test]
fn attempts_used_up_leave_one_dead_letter_with_every_error() {
    let mut scene = with_queued(attempts(3));
    for number in 1..=3 {
        let error = Failure::new(FailureKind::Retryable, format!("failure {number}"));
        scene.admit(&scene.failure("a", error));
    }
    let error = |n: u32| Failure::new(FailureKind::Retryable, format!("failure {n}"));
    let letter = DeadLetter {
        kind: DeadLetterKind::Activity,
        activity_id: "a".into(),
        activity_type: "work".into(),
        input: Payload::of("a").unwrap(),
        attempts: 3,
        errors: vec![error(1), error(2), error(3)],
    };
    assert_eq!(scene.dead_letters, [letter]);
    let last = scene.events.last();
    assert!(matches!(last, Some(Event::ActivityFailed { will_retry: false, dead: true, .. })));
    assert!(scene.run.activities.is_empty());
}

#[test]
fn a_final_failure_is_heard_and_a_retried_one_is_not() {
    let script = Script::new(|_, event| match event {
        Event::VersionPinned { .. } => vec![queued_with("a", attempts(2))],
        Event::ActivityFailed { will_retry, .. } => {
            assert!(!will_retry);
            vec![queued("plan b")]
        }
        _ => vec![],
    });
    let mut scene = Scene::begun(script);
    scene.admit(&scene.hiccup("a"));
    assert!(!scene.run.knows_activity(&"plan b".into()));
    scene.admit(&scene.hiccup("a"));
    assert!(scene.run.knows_activity(&"plan b".into()));
}

#[test]
fn a_permanent_failure_is_not_retried_and_leaves_no_dead_letter() {
    for kind in [FailureKind::Permanent, FailureKind::InvalidInput, FailureKind::Cancelled] {
        let mut scene = with_queued(attempts(3));
        let decision = scene.admit(&scene.failure("a", Failure::new(kind, "no")));
        assert_eq!(decision.tasks[&Place(1)], TaskChange::Delete(Place(1)));
        assert!(scene.dead_letters.is_empty(), "{kind}");
        assert!(scene.run.activities.is_empty(), "{kind}");
    }
}

#[test]
fn kinds_and_codes_that_the_policy_excludes_are_not_retried() {
    let retry = Retry::attempts(3).not_kind(FailureKind::Panicked).not_code("E7");
    let options = ActivityOptions { retry: Some(retry), ..ActivityOptions::default() };
    for error in [
        Failure::new(FailureKind::Panicked, "boom"),
        Failure::new(FailureKind::Retryable, "no").code("E7"),
    ] {
        let mut scene = with_queued(options.clone());
        scene.admit(&scene.failure("a", error));
        assert!(scene.run.activities.is_empty());
        assert!(scene.dead_letters.is_empty());
    }
}

#[test]
fn a_rate_limited_attempt_waits_as_long_as_the_other_side_asks() {
    let mut scene = with_queued(attempts(3));
    let mut error = Failure::new(FailureKind::RateLimited, "429");
    error.retry_after_ms = Some(90_000);
    let decision = scene.admit(&scene.failure("a", error));
    assert_eq!(only_put(&decision).delay, Some(Duration::from_secs(90)));
}

#[test]
fn contention_uses_no_attempt() {
    let mut scene = with_queued(attempts(1));
    let busy = || Failure::new(FailureKind::Contention, "locked");
    for number in 1..=Retry::CONTENTIONS_MAX {
        let decision = scene.admit(&scene.failure("a", busy()));
        assert!(only_put(&decision).delay < Some(Duration::from_secs(1)));
        let activity = &scene.run.activities["a"];
        assert_eq!((activity.failures, activity.attempt), (0, number));
    }
    scene.admit(&scene.failure("a", busy()));
    assert!(scene.run.activities.is_empty(), "contention without end counts");
    assert_eq!(scene.dead_letters.len(), 1);
}

#[test]
fn contention_counts_in_a_row() {
    let mut scene = with_queued(attempts(3));
    let busy = || Failure::new(FailureKind::Contention, "locked");
    for _ in 0..Retry::CONTENTIONS_MAX {
        scene.admit(&scene.failure("a", busy()));
    }
    scene.admit(&scene.hiccup("a"));
    assert_eq!(scene.run.activities["a"].failures, 1);
    scene.admit(&scene.failure("a", busy()));
    let activity = &scene.run.activities["a"];
    assert_eq!((activity.failures, activity.contentions), (1, 1));
}

#[test]
fn the_error_history_is_bounded() {
    let mut scene = with_queued(attempts(60));
    for number in 1..=60 {
        let error = Failure::new(FailureKind::Retryable, number.to_string());
        scene.admit(&scene.failure("a", error));
    }
    let errors = &scene.dead_letters[0].errors;
    assert_eq!(scene.dead_letters[0].attempts, 60);
    assert_eq!(errors.len(), 51);
    assert_eq!(errors[0].message, "10");
    assert_eq!(errors[50].message, "60");
}

#[test]
fn noted_losses_are_recorded_before_the_outcome_in_order_and_once() {
    let (died, stopped) = (LossCause::Died, LossCause::Stopped);
    let mut scene = with_queued(attempts(3));
    let seq = scene.run.activities["a"].queued;
    let error = Failure::new(FailureKind::Retryable, "hiccup");
    let noted = vec![loss(1, died), loss(2, stopped)];
    let fact = after_losses(failed("a", seq, 3, error), noted.clone());
    let row = only_put(&scene.admit(&fact)).clone();
    assert_eq!(scene.last_names(3), ["ActivityLost", "ActivityLost", "ActivityFailed"]);
    assert_eq!((row.attempt, row.deaths), (3, 1));
    let seq = scene.run.activities["a"].queued;
    let noted = [noted, vec![loss(4, died)]].concat();
    scene.admit(&after_losses(completed("a", seq, 5), noted));
    let numbers: Vec<_> = scene
        .events
        .iter()
        .filter_map(|event| match event {
            Event::ActivityLost { attempt, died, .. } => Some((attempt.number, *died)),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, [(1, true), (2, false), (4, true)]);
    assert_eq!(scene.last_names(2), ["ActivityLost", "ActivityCompleted"]);
}

#[test]
fn a_late_outcome_records_no_losses() {
    let mut scene = with_queued(attempts(3));
    let late = after_losses(scene.done("a"), vec![loss(1, LossCause::Died)]);
    scene.admit(&scene.hiccup("a"));
    scene.refuse(&late);
}

#[test]
fn the_third_death_fails_the_activity_as_lost_and_leaves_a_dead_letter() {
    let mut scene = with_queued(attempts(3));
    let seq = scene.run.activities["a"].queued;
    let losses = [1, 2, 3].map(|n| loss(n, LossCause::Died)).to_vec();
    let fact = Fact::ActivityLost { activity_id: "a".into(), seq, losses };
    let decision = scene.admit(&fact);
    assert_eq!(
        scene.last_names(4),
        ["ActivityLost", "ActivityLost", "ActivityLost", "ActivityFailed"]
    );
    assert_eq!(decision.tasks[&Place(1)], TaskChange::Delete(Place(1)));
    assert_eq!(scene.dead_letters.len(), 1);
    assert_eq!(scene.dead_letters[0].attempts, 3);
    let error = &scene.dead_letters[0].errors[0];
    assert_eq!((error.kind, error.code.as_deref()), (FailureKind::Lost, Some("DUR-0015")));
    assert_eq!(scene.run.last_error.as_ref().unwrap().error.kind, error.kind);
    scene.refuse(&fact);
}

#[test]
fn start_to_close_and_heartbeat_time_outs_are_retried() {
    for kind in [TimeoutKind::StartToClose, TimeoutKind::Heartbeat] {
        let mut scene = with_queued(time_limits());
        let done = scene.done("a");
        let decision = scene.admit(&scene.timeout("a", kind));
        assert_eq!(only_put(&decision).delay, Some(Duration::from_secs(1)));
        scene.refuse(&done);
        let activity = &scene.run.activities["a"];
        assert_eq!(activity.failures, 1);
        assert_eq!(activity.errors[0].kind, FailureKind::TimedOut);
        assert_eq!(activity.errors[0].code.as_deref(), Some("DUR-0016"));
        scene.admit(&scene.timeout("a", kind));
        scene.admit(&scene.timeout("a", kind));
        assert!(scene.run.activities.is_empty());
        assert_eq!(scene.dead_letters.len(), 1);
        assert_eq!(scene.dead_letters[0].errors.len(), 3);
        assert_eq!(scene.dead_letters[0].attempts, 3);
    }
}

#[test]
fn schedule_to_start_and_schedule_to_close_time_outs_are_not_retried() {
    for kind in [TimeoutKind::ScheduleToStart, TimeoutKind::ScheduleToClose] {
        let mut scene = with_queued(time_limits());
        assert_eq!(scene.rows.places(), [Place(1), Place(2), Place(3)]);
        let (done, timeout) = (scene.done("a"), scene.timeout("a", kind));
        let decision = scene.admit(&timeout);
        let deleted = [1, 2, 3].map(|n| TaskChange::Delete(Place(n)));
        assert_eq!(decision.tasks.into_values().collect::<Vec<_>>(), deleted);
        assert!(scene.run.activities.is_empty());
        assert!(scene.dead_letters.is_empty());
        assert_eq!(scene.run.retries, 0);
        scene.refuse(&done);
        scene.refuse(&timeout);
    }
}

#[test]
fn the_rows_of_time_outs_name_what_they_watch() {
    let script = Script::at_start(vec![queued_with("a", time_limits())]);
    let mut scene = Scene::pending(script, None);
    let decision = scene.admit(&Fact::Begin { version: 1 });
    let rows: Vec<_> = decision.tasks.values().collect();
    let [_, TaskChange::Put(start), TaskChange::Put(close)] = rows[..] else {
        panic!("{rows:?}");
    };
    for (row, kind, secs) in
        [(start, TimeoutKind::ScheduleToStart, 60), (close, TimeoutKind::ScheduleToClose, 300)]
    {
        assert_eq!(row.kind, TaskKind::Timeout);
        assert_eq!(TaskPut::timeout_kind(&row.name), Some(kind));
        assert_eq!((&*row.target, row.watched), ("a", Some(Place(1))));
        assert_eq!(row.delay, Some(Duration::from_secs(secs)));
        assert_eq!(row.seq, scene.run.activities["a"].scheduled);
    }
}

#[test]
fn schedule_to_start_is_late_once_an_attempt_began() {
    let mut scene = with_queued(time_limits());
    let timeout = scene.timeout("a", TimeoutKind::ScheduleToStart);
    scene.admit(&scene.hiccup("a"));
    scene.refuse(&timeout);
}

#[test]
fn schedule_to_close_passes_during_a_backoff_too() {
    for mut scene in [with_queued(time_limits()), with_inline(time_limits())] {
        scene.admit(&scene.hiccup("a"));
        scene.admit(&scene.timeout("a", TimeoutKind::ScheduleToClose));
        assert!(scene.run.activities.is_empty());
        assert_eq!(scene.rows.places(), []);
        assert_eq!(scene.run.free_places().next(), Some(Place(1)));
    }
}

#[test]
fn the_total_time_of_the_policy_ends_the_retries() {
    let retry = Retry::fixed(100, Duration::from_secs(1)).total(Duration::from_millis(3_500));
    let mut scene =
        with_queued(ActivityOptions { retry: Some(retry), ..ActivityOptions::default() });
    scene.admit(&scene.hiccup("a"));
    scene.admit(&scene.hiccup("a"));
    assert!(scene.dead_letters.is_empty());
    scene.admit(&scene.hiccup("a"));
    assert_eq!(scene.dead_letters[0].attempts, 3);
}

#[test]
fn an_inline_step_has_no_row_and_is_under_way_at_once() {
    let scene = with_inline(ActivityOptions::default());
    assert_eq!(scene.rows.places(), []);
    let scheduled = scene.run.head;
    let activity = &scene.run.activities["a"];
    assert_eq!(activity.phase, Phase::UnderWay(scheduled));
    assert_eq!((activity.attempt, activity.place), (1, None));
    let under_way: Vec<_> = scene.run.under_way().collect();
    assert_eq!(under_way.len(), 1);
    assert_eq!((under_way[0].0.as_str(), under_way[0].2), ("a", scheduled));
}

#[test]
fn an_inline_result_names_the_event_that_began_its_attempt() {
    let mut scene = with_inline(ActivityOptions::default());
    let first = scene.done("a");
    scene.admit(&scene.inline_lost("a", LossCause::Died));
    scene.refuse(&first);
    let second = scene.done("a");
    scene.admit(&scene.hiccup("a"));
    scene.refuse(&second);
    let since = scene.run.activities["a"].queued;
    scene.refuse(&completed("a", since, 3));
    scene.admit(&due("a", &scene));
    scene.refuse(&second);
    scene.refuse(&completed("a", since, 3));
    scene.admit(&scene.done("a"));
    assert_eq!(scene.last_names(1), ["ActivityCompleted"]);
}

/// The backoff of an inline step is over.
fn due(id: &str, scene: &Scene) -> Fact {
    Fact::RetryDue { activity_id: id.into(), seq: scene.run.activities[id].queued }
}

#[test]
fn a_lost_inline_attempt_begins_again() {
    let mut scene = with_inline(ActivityOptions::default());
    let lost = scene.inline_lost("a", LossCause::Died);
    let decision = scene.admit(&lost);
    assert!(decision.tasks.is_empty());
    let activity = &scene.run.activities["a"];
    assert_eq!(activity.phase, Phase::UnderWay(scene.run.head));
    assert_eq!((activity.attempt, activity.deaths, activity.failures), (2, 1, 0));
    scene.refuse(&lost);
}

#[test]
fn the_third_death_fails_an_inline_step_and_graceful_stops_are_free() {
    let (died, stopped) = (LossCause::Died, LossCause::Stopped);
    let mut scene = with_inline(ActivityOptions::default());
    for cause in [stopped, died, stopped, died, stopped, stopped] {
        scene.admit(&scene.inline_lost("a", cause));
        assert_eq!(scene.last_names(1), ["ActivityLost"]);
    }
    scene.admit(&scene.inline_lost("a", died));
    assert_eq!(scene.last_names(2), ["ActivityLost", "ActivityFailed"]);
    assert!(scene.run.activities.is_empty());
    assert_eq!(scene.dead_letters.len(), 1);
    assert_eq!(scene.dead_letters[0].attempts, 7);
    assert_eq!(scene.dead_letters[0].errors[0].kind, FailureKind::Lost);
}

#[test]
fn the_bound_on_deaths_is_an_option() {
    let options = ActivityOptions { deaths_max: Some(1), ..ActivityOptions::default() };
    let mut scene = with_inline(options);
    scene.admit(&scene.inline_lost("a", LossCause::Died));
    assert!(scene.run.activities.is_empty());
    assert_eq!(scene.dead_letters[0].attempts, 1);
}

#[test]
fn an_inline_backoff_has_a_place_and_its_end_begins_the_next_attempt() {
    let mut scene = with_inline(attempts(3));
    let row = only_put(&scene.admit(&scene.hiccup("a"))).clone();
    assert_eq!((row.place, row.kind), (Place(1), TaskKind::Retry));
    assert_eq!((&*row.target, row.seq), ("a", scene.run.head));
    assert_eq!(row.delay, Some(Duration::from_secs(1)));
    assert_eq!(scene.run.activities["a"].phase, Phase::Backoff(Place(1), row.seq));
    let fact = due("a", &scene);
    scene.rows.sweep(Place(1));
    let decision = scene.admit(&fact);
    assert_eq!(decision.tasks[&Place(1)], TaskChange::Delete(Place(1)));
    assert_eq!(scene.last_names(1), ["ActivityRetryDue"]);
    let activity = &scene.run.activities["a"];
    assert_eq!(activity.phase, Phase::UnderWay(scene.run.head));
    assert_eq!((activity.attempt, activity.failures), (2, 1));
    scene.refuse(&fact);
}

#[test]
fn an_inline_step_is_retried_until_its_attempts_are_used_up() {
    let mut scene = with_inline(attempts(2));
    scene.admit(&scene.hiccup("a"));
    scene.admit(&due("a", &scene));
    scene.admit(&scene.hiccup("a"));
    assert!(scene.run.activities.is_empty());
    assert_eq!(scene.dead_letters[0].attempts, 2);
    assert_eq!(scene.dead_letters[0].errors.len(), 2);
    assert_eq!(scene.rows.places(), []);
}

#[test]
fn two_inline_steps_fail_apart_and_wait_apart() {
    let mut scene = Scene::begun(Script::at_start(vec![inline("a"), inline("b")]));
    let facts = [scene.hiccup("a"), scene.hiccup("b")];
    let (_, decision) = scene.turn(&facts);
    assert_eq!(scene.rows.places(), [Place(1), Place(2)]);
    let delays: Vec<_> = decision
        .tasks
        .values()
        .map(|change| match change {
            TaskChange::Put(put) => put.delay,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_ne!(delays[0], delays[1], "their random parts differ");
}

#[test]
fn a_cancelled_inline_backoff_frees_its_place() {
    let script = Script::on_signal(vec![inline("a")], vec![scene::give_up("a")]);
    let mut scene = Scene::begun(script);
    scene.admit(&scene.hiccup("a"));
    let fact = due("a", &scene);
    let decision = scene.admit(&scene::signal("s"));
    assert_eq!(decision.tasks[&Place(1)], TaskChange::Delete(Place(1)));
    assert_eq!(scene.run.free_places().next(), Some(Place(1)));
    scene.refuse(&fact);
}

#[test]
fn a_failure_is_noted_with_the_activity_it_came_from() {
    let mut scene = with_queued(attempts(3));
    scene.admit(&scene.hiccup("a"));
    assert_eq!(scene.run.retries, 1);
    scene.admit(&scene.failure("a", permanent()));
    assert_eq!(scene.run.retries, 1);
    let last = scene.run.last_error.clone().unwrap();
    assert_eq!(last.error, permanent().from_origin("a"));
    assert_eq!(last.at, scene.run.now);
    assert_eq!(scene.run.status, RunStatus::Running);
}
