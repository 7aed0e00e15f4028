//! Turns, scenario by scenario: what each fact makes of a run, and what it leaves alone.

mod scene;

use durably_kernel::{
    Action, ActivityOptions, Decision, Event, Fact, Failure, FailureKind, Moment, Offered, Payload,
    Place, RunStatus, Seq, TaskChange, TaskKind, Timestamp, Turn, terminate,
};
use scene::{
    Scene, Script, cancel, complete, completed, failed, give_up, inline, queued, queued_with,
    signal, timer,
};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn the_first_turn_pins_the_version_and_asks_the_code() {
    let mut scene = Scene::pending(Script::at_start(vec![queued("a"), timer("t")]), None);
    assert_eq!(scene.run.status, RunStatus::Pending);
    scene.admit(&Fact::Begin { version: 4 });
    assert_eq!(scene.run.version, Some(4));
    assert_eq!(scene.run.status, RunStatus::Running);
    assert_eq!(scene.last_names(3), ["VersionPinned", "ActivityScheduled", "TimerStarted"]);
    scene.refuse(&Fact::Begin { version: 5 });
}

#[test]
fn a_scheduled_activity_becomes_a_row_with_its_options() {
    let options = ActivityOptions {
        queue: Some("slow".into()),
        priority: Some(-1),
        ..ActivityOptions::default()
    };
    let script = Script::at_start(vec![queued("a"), queued_with("b", options.clone())]);
    let mut scene = Scene::pending(script, None);
    let decision = scene.admit(&Fact::Begin { version: 1 });
    let rows: Vec<_> = decision.tasks.values().map(put).collect();
    assert_eq!((rows[0].place, rows[0].kind), (Place(1), TaskKind::Activity));
    assert_eq!((&*rows[0].name, &*rows[0].target), ("work", "a"));
    assert_eq!((rows[0].queue.as_str(), rows[0].priority), ("orders", 3));
    assert_eq!(rows[0].input, Some(Payload::of("a").unwrap()));
    assert_eq!((rows[0].delay, rows[0].attempt), (None, 0));
    assert_eq!((rows[1].queue.as_str(), rows[1].priority), ("slow", -1));
    assert_eq!(rows[1].options, Some(Arc::new(options)));
}

/// The row that a change puts.
fn put(change: &TaskChange) -> durably_kernel::TaskPut {
    match change {
        TaskChange::Put(put) => (**put).clone(),
        other => panic!("no row is put: {other:?}"),
    }
}

#[test]
fn an_activity_id_used_twice_fails_the_run_and_is_named() {
    let script = Script::at_start(vec![queued("a"), queued("b"), queued("a"), queued("c")]);
    let scene = Scene::begun(script);
    assert_eq!(scene.run.status, RunStatus::Failed);
    let error = scene.error();
    assert_eq!(error.code.as_deref(), Some("DUR-0010"));
    assert_eq!(error.origin.as_deref(), Some("a"));
    assert!(error.message.contains("\"a\""), "{}", error.message);
    let given_up = ["ActivityCancelled", "ActivityCancelled", "WorkflowFailed"];
    assert_eq!(scene.last_names(3), given_up);
}

#[test]
fn an_id_stays_used_after_its_activity_has_ended() {
    let mut scene = Scene::begun(Script::on_signal(vec![queued("a")], vec![queued("a")]));
    scene.admit(&scene.done("a"));
    scene.admit(&signal("s"));
    assert_eq!(scene.error().code.as_deref(), Some("DUR-0010"));
}

#[test]
fn a_timer_id_used_twice_fails_the_run_and_is_named() {
    let scene = Scene::begun(Script::at_start(vec![timer("t"), timer("t")]));
    let error = scene.error();
    assert_eq!(error.code.as_deref(), Some("DUR-0010"));
    assert_eq!(error.origin.as_deref(), Some("t"));
    assert!(error.message.contains("\"t\""), "{}", error.message);
}

#[test]
fn an_activity_and_a_timer_may_share_an_id() {
    let scene = Scene::begun(Script::at_start(vec![queued("x"), timer("x")]));
    assert_eq!(scene.run.status, RunStatus::Running);
}

#[test]
fn a_result_is_heard_by_the_code() {
    let script = Script::new(|heard, event| match event {
        Event::VersionPinned { .. } => vec![queued("a")],
        Event::ActivityCompleted { result, .. } => {
            assert!(heard.run.activities.is_empty());
            assert_eq!(heard.seq, heard.run.head);
            vec![Action::Complete { output: result.clone() }]
        }
        _ => vec![],
    });
    let mut scene = Scene::begun(script);
    let decision = scene.admit(&scene.done("a"));
    assert_eq!(scene.last_names(2), ["ActivityCompleted", "WorkflowCompleted"]);
    assert_eq!(decision.tasks[&Place(1)], TaskChange::Delete(Place(1)));
    let result = Payload::of(&1).unwrap();
    assert_eq!(scene.events.last(), Some(&Event::WorkflowCompleted { result }));
}

#[test]
fn a_result_after_the_result_changes_nothing() {
    let mut scene = Scene::begun(Script::at_start(vec![queued("a")]));
    let done = scene.done("a");
    let failure = scene.hiccup("a");
    scene.admit(&done);
    scene.refuse(&done);
    scene.refuse(&failure);
}

#[test]
fn a_repeat_within_one_turn_is_recorded_once() {
    let mut scene = Scene::begun(Script::at_start(vec![queued("a"), timer("t")]));
    let (done, fired) = (scene.done("a"), scene.fired("t"));
    let facts = [done.clone(), fired.clone(), done, fired];
    let (offered, decision) = scene.turn(&facts);
    let (yes, no) = (Offered::Admitted, Offered::Late);
    assert_eq!(offered, [yes, yes, no, no]);
    assert_eq!(decision.events.len(), 2);
}

#[test]
fn a_result_of_an_attempt_before_the_retry_changes_nothing() {
    let mut scene = Scene::begun(Script::at_start(vec![queued("a")]));
    let old = scene.done("a");
    scene.admit(&scene.hiccup("a"));
    scene.refuse(&old);
    scene.admit(&scene.done("a"));
}

#[test]
fn a_result_after_the_cancellation_changes_nothing() {
    let mut scene = Scene::begun(Script::on_signal(vec![queued("a")], vec![give_up("a")]));
    let done = scene.done("a");
    scene.admit(&signal("s"));
    assert_eq!(scene.last_names(1), ["ActivityCancelled"]);
    scene.refuse(&done);
}

#[test]
fn a_result_of_a_foreign_activity_or_event_changes_nothing() {
    let mut scene = Scene::begun(Script::at_start(vec![queued("a"), timer("t")]));
    let queued = scene.run.activities["a"].queued;
    scene.refuse(&completed("b", queued, 1));
    scene.refuse(&completed("a", queued.next(), 1));
    scene.refuse(&completed("a", Seq(0), 1));
    let error = Failure::new(FailureKind::Permanent, "no");
    scene.refuse(&failed("a", Seq(1), 1, error));
    let started = scene.run.timers["t"].started;
    let (unknown, old) = (
        Fact::TimerFired { timer_id: "u".into(), seq: started },
        Fact::TimerFired { timer_id: "t".into(), seq: queued },
    );
    scene.refuse(&unknown);
    scene.refuse(&old);
    scene.refuse(&Fact::RetryDue { activity_id: "a".into(), seq: queued });
}

#[test]
fn a_timer_row_waits_as_long_as_the_timer() {
    let mut scene = Scene::pending(Script::at_start(vec![timer("t")]), None);
    let decision = scene.admit(&Fact::Begin { version: 1 });
    let row = put(&decision.tasks[&Place(1)]);
    assert_eq!((row.kind, &*row.target), (TaskKind::Timer, "t"));
    assert_eq!((row.delay, row.seq), (Some(Duration::from_secs(60)), scene.run.head));
}

#[test]
fn a_timer_fires_once_and_a_cancelled_one_never() {
    let script = Script::on_signal(vec![timer("t"), timer("u")], vec![scene::give_up_timer("u")]);
    let mut scene = Scene::begun(script);
    let (fired, other) = (scene.fired("t"), scene.fired("u"));
    scene.admit(&fired);
    scene.refuse(&fired);
    let decision = scene.admit(&signal("s"));
    assert_eq!(decision.tasks[&Place(2)], TaskChange::Delete(Place(2)));
    scene.refuse(&other);
}

#[test]
fn giving_up_what_is_not_open_is_left_alone() {
    let actions = vec![give_up("a"), scene::give_up_timer("t")];
    let mut scene = Scene::begun(Script::on_signal(vec![], actions));
    scene.admit(&signal("s"));
    assert_eq!(scene.last_names(1), ["SignalReceived"]);
}

#[test]
fn signals_are_recorded_in_order_before_anybody_waits() {
    let mut scene = Scene::pending(Script::at_start(vec![queued("a")]), None);
    let facts = [Fact::Begin { version: 1 }, signal("1"), signal("2"), signal("3")];
    let (offered, _) = scene.turn(&facts);
    assert_eq!(offered, [Offered::Admitted; 4]);
    let ids: Vec<_> = scene
        .events
        .iter()
        .filter_map(|event| match event {
            Event::SignalReceived { signal, .. } => Some(signal.id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["1", "2", "3"]);
}

#[test]
fn a_row_that_is_put_and_cancelled_in_one_turn_is_deleted() {
    let actions = vec![queued("a"), give_up("a"), queued("b")];
    let mut scene = Scene::pending(Script::at_start(actions), None);
    let decision = scene.admit(&Fact::Begin { version: 1 });
    assert_eq!(decision.tasks[&Place(1)], TaskChange::Delete(Place(1)));
    assert_eq!(&*put(&decision.tasks[&Place(2)]).target, "b");
}

#[test]
fn a_row_of_an_earlier_turn_is_cancelled() {
    let mut scene = Scene::begun(Script::on_signal(vec![queued("a")], vec![give_up("a")]));
    let decision = scene.admit(&signal("s"));
    assert_eq!(decision.tasks[&Place(1)], TaskChange::Cancel(Place(1)));
}

#[test]
fn a_row_is_written_over_by_the_next_step() {
    let script = Script::new(|_, event| match event {
        Event::VersionPinned { .. } => vec![queued("a")],
        Event::ActivityCompleted { .. } => vec![queued("b")],
        _ => vec![],
    });
    let mut scene = Scene::begun(script);
    let decision = scene.admit(&scene.done("a"));
    assert_eq!(decision.tasks.len(), 1);
    assert_eq!(&*put(&decision.tasks[&Place(1)]).target, "b");
}

#[test]
fn completing_gives_up_what_is_open_before_the_end() {
    let first = vec![queued("a"), inline("b"), timer("t")];
    let mut scene = Scene::begun(Script::on_signal(first, vec![complete(), queued("never")]));
    scene.admit(&signal("s"));
    let end = [
        "SignalReceived",
        "ActivityCancelled",
        "ActivityCancelled",
        "TimerCancelled",
        "WorkflowCompleted",
    ];
    assert_eq!(scene.last_names(5), end);
    assert_eq!(scene.run.status, RunStatus::Completed);
}

#[test]
fn facts_after_the_end_are_after_the_end() {
    let mut scene = Scene::begun(Script::on_signal(vec![queued("a")], vec![complete()]));
    let (done, head) = (scene.done("a"), scene.run.head);
    let facts = [
        signal("s"),
        signal("t"),
        done,
        cancel("late"),
        Fact::Begin { version: 1 },
        Fact::ShutdownRequested {},
        Fact::RunTimedOut {},
    ];
    let (offered, _) = scene.turn(&facts);
    assert_eq!(offered[0], Offered::Admitted);
    assert_eq!(offered[1..], [Offered::AfterEnd; 6]);
    assert_eq!(scene.run.head, Seq(head.0 + 3));
}

#[test]
fn actions_that_are_not_valid_fail_the_run_with_their_code() {
    let zero =
        ActivityOptions { start_to_close: Some(Duration::ZERO), ..ActivityOptions::default() };
    let no_attempt = scene::attempts(0);
    let nul = Action::ScheduleActivity {
        id: "a".into(),
        activity_type: "work".into(),
        input: Payload::of("\0").unwrap(),
        options: Arc::default(),
        inline: false,
    };
    let no_type = Action::ScheduleActivity {
        id: "a".into(),
        activity_type: "".into(),
        input: Payload::null(),
        options: Arc::default(),
        inline: true,
    };
    let for_ever = Action::StartTimer { id: "t".into(), delay: Duration::MAX };
    let nul_output = Action::Complete { output: Payload::of("\0").unwrap() };
    let table = [
        (queued(""), "DUR-0001"),
        (queued("a\0b"), "DUR-0001"),
        (no_type, "DUR-0001"),
        (timer(""), "DUR-0001"),
        (nul, "DUR-0002"),
        (nul_output, "DUR-0002"),
        (queued_with("a", zero), "DUR-0003"),
        (for_ever, "DUR-0003"),
        (queued_with("a", no_attempt), "DUR-0004"),
    ];
    for (action, code) in table {
        let scene = Scene::begun(Script::at_start(vec![timer("open"), action.clone()]));
        assert_eq!(scene.error().code.as_deref(), Some(code), "{action:?}");
        assert_eq!(scene.error().kind, FailureKind::InvalidInput);
        assert_eq!(scene.last_names(2), ["TimerCancelled", "WorkflowFailed"]);
    }
}

#[test]
fn an_error_that_names_a_hostile_id_can_be_stored() {
    let scene = Scene::begun(Script::at_start(vec![queued("a\0b")]));
    let stored = Event::list_to_json(&scene.events);
    assert!(!stored.contains("\\u0000"), "{stored}");
}

#[test]
fn a_panic_of_the_code_ends_the_turn_with_an_error() {
    struct Panics;
    impl durably_kernel::Program for Panics {
        fn react(
            &mut self,
            _: durably_kernel::Heard<'_>,
            _: &Event,
        ) -> Result<Vec<Action>, durably_kernel::Fault> {
            let message = "index out of bounds".to_owned();
            Err(durably_kernel::Fault::Panicked { message })
        }
    }
    let mut scene = Scene::pending(Script::at_start(vec![]), None);
    let moment = Moment { now: scene::START, random: 0 };
    let mut turn = Turn::new(&mut scene.run, moment);
    let error = turn.offer(&mut Panics, &Fact::Begin { version: 1 }).unwrap_err();
    assert_eq!(error.to_string(), "workflow code panicked: index out of bounds");
}

#[test]
fn a_cancel_before_the_first_turn_ends_the_run_without_its_code() {
    let script = Script::new(|_, event| panic!("the code heard {event:?}"));
    let mut scene = Scene::pending(script, None);
    let (offered, _) = scene.turn(&[cancel("changed my mind"), Fact::Begin { version: 1 }]);
    assert_eq!(offered, [Offered::Admitted, Offered::AfterEnd]);
    assert_eq!(scene.last_names(2), ["WorkflowCancelRequested", "WorkflowCancelled"]);
    assert_eq!(scene.run.status, RunStatus::Cancelled);
    assert_eq!(scene.run.cancel_requested.as_deref(), Some("changed my mind"));
}

#[test]
fn a_cancel_is_heard_once() {
    let script = Script::new(|_, event| match event {
        Event::VersionPinned { .. } => vec![queued("a")],
        Event::WorkflowCancelRequested { .. } => vec![give_up("a"), queued("compensate")],
        Event::ActivityCompleted { .. } => vec![Action::Cancelled { reason: "compensated".into() }],
        _ => vec![],
    });
    let mut scene = Scene::begun(script);
    scene.admit(&cancel("first"));
    scene.refuse(&cancel("second"));
    assert_eq!(scene.run.cancel_requested.as_deref(), Some("first"));
    assert_eq!(scene.run.status, RunStatus::Running);
    scene.admit(&scene.done("compensate"));
    assert_eq!(scene.run.status, RunStatus::Cancelled);
    let reason = "compensated".to_owned();
    assert_eq!(scene.events.last(), Some(&Event::WorkflowCancelled { reason }));
}

#[test]
fn a_shutdown_lets_open_activities_finish_and_schedules_nothing_new() {
    let script = Script::new(|_, event| match event {
        Event::VersionPinned { .. } => vec![queued("a"), inline("b"), timer("t")],
        Event::ActivityCompleted { .. } => vec![queued("next")],
        _ => vec![],
    });
    let mut scene = Scene::begun(script);
    let (fired, decision) = (scene.fired("t"), scene.admit(&Fact::ShutdownRequested {}));
    assert_eq!(scene.last_names(2), ["WorkflowShutdownRequested", "TimerCancelled"]);
    assert_eq!(decision.tasks.len(), 1);
    scene.refuse(&Fact::ShutdownRequested {});
    scene.refuse(&fired);
    scene.admit(&scene.done("a"));
    assert_eq!(scene.last_names(1), ["ActivityCompleted"]);
    assert_eq!(scene.run.status, RunStatus::Running);
    scene.admit(&scene.done("b"));
    assert_eq!(ended_as_cancelled(&scene), "shutdown");
}

/// The reason of a run that ended as cancelled.
fn ended_as_cancelled(scene: &Scene) -> &str {
    assert_eq!(scene.run.status, RunStatus::Cancelled);
    match scene.events.last() {
        Some(Event::WorkflowCancelled { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_shutdown_with_nothing_open_ends_the_run_at_once() {
    let mut scene = Scene::begun(Script::at_start(vec![timer("t")]));
    scene.admit(&Fact::ShutdownRequested {});
    assert_eq!(ended_as_cancelled(&scene), "shutdown");
}

#[test]
fn a_shutdown_before_the_first_turn_ends_the_run_without_its_code() {
    let script = Script::new(|_, event| panic!("the code heard {event:?}"));
    let mut scene = Scene::pending(script, None);
    scene.admit(&Fact::ShutdownRequested {});
    assert_eq!(ended_as_cancelled(&scene), "shutdown");
}

#[test]
fn a_shutdown_does_not_retry() {
    let mut scene = Scene::begun(Script::at_start(vec![queued("a")]));
    scene.admit(&Fact::ShutdownRequested {});
    scene.admit(&scene.hiccup("a"));
    assert_eq!(ended_as_cancelled(&scene), "shutdown");
    assert!(scene.dead_letters.is_empty());
    assert_eq!(scene.run.retries, 0);
}

#[test]
fn attempts_used_up_during_a_shutdown_leave_a_dead_letter_too() {
    let actions = vec![queued_with("a", scene::attempts(1))];
    let mut scene = Scene::begun(Script::at_start(actions));
    scene.admit(&Fact::ShutdownRequested {});
    scene.admit(&scene.hiccup("a"));
    assert_eq!(scene.dead_letters.len(), 1);
    assert_eq!(ended_as_cancelled(&scene), "shutdown");
}

#[test]
fn signals_during_a_shutdown_are_recorded_and_not_heard() {
    let mut scene = Scene::begun(Script::on_signal(vec![queued("a")], vec![queued("b")]));
    scene.admit(&Fact::ShutdownRequested {});
    scene.admit(&signal("s"));
    assert_eq!(scene.last_names(1), ["SignalReceived"]);
    assert!(!scene.run.knows_activity(&"b".into()));
}

#[test]
fn a_cancel_during_a_shutdown_ends_the_run_at_once() {
    let mut scene = Scene::begun(Script::at_start(vec![queued("a")]));
    scene.admit(&Fact::ShutdownRequested {});
    scene.admit(&cancel("now"));
    assert_eq!(
        scene.last_names(3),
        ["WorkflowCancelRequested", "ActivityCancelled", "WorkflowCancelled"]
    );
    assert_eq!(ended_as_cancelled(&scene), "now");
}

#[test]
fn a_shutdown_after_a_cancel_ends_the_compensation_with_what_is_open() {
    let script = Script::new(|_, event| match event {
        Event::WorkflowCancelRequested { .. } => vec![queued("undo")],
        Event::ActivityCompleted { .. } => vec![queued("undo more")],
        _ => vec![],
    });
    let mut scene = Scene::begun(script);
    scene.admit(&cancel("stop"));
    scene.admit(&Fact::ShutdownRequested {});
    scene.admit(&scene.done("undo"));
    assert_eq!(ended_as_cancelled(&scene), "shutdown");
}

#[test]
fn the_time_out_of_a_run_fails_it() {
    let script = Script::at_start(vec![queued("a")]);
    let timeout = Some(Duration::from_secs(60));
    for begun in [true, false] {
        let mut scene = Scene::pending(script.clone(), timeout);
        assert_eq!(scene.rows.places(), [Place(1)]);
        if begun {
            scene.admit(&Fact::Begin { version: 1 });
            assert_eq!(scene.rows.places(), [Place(1), Place(2)]);
        }
        scene.rows.sweep(Place(1));
        scene.admit(&Fact::RunTimedOut {});
        assert_eq!(scene.run.status, RunStatus::Failed);
        assert_eq!(scene.error().kind, FailureKind::TimedOut);
        assert_eq!(scene.error().code.as_deref(), Some("DUR-0014"));
        assert!(scene.events.iter().any(|e| e.name() == "WorkflowTimedOut"));
    }
}

#[test]
fn a_termination_before_the_first_turn_is_the_second_event() {
    let mut scene = Scene::pending(Script::at_start(vec![queued("a")]), None);
    scene.terminate("stuck");
    assert_eq!(scene.last_names(2), ["WorkflowStarted", "WorkflowTerminated"]);
    assert_eq!(scene.run.status, RunStatus::Terminated);
}

#[test]
fn a_termination_gives_up_what_is_open_without_the_code() {
    let mut scene = Scene::begun(Script::new(|_, event| match event {
        Event::VersionPinned { .. } => vec![queued("a"), inline("b"), timer("t")],
        other => panic!("the code heard {other:?}"),
    }));
    let decision = scene.terminate("stuck");
    let end = ["ActivityCancelled", "ActivityCancelled", "TimerCancelled", "WorkflowTerminated"];
    assert_eq!(scene.last_names(4), end);
    assert_eq!(decision.tasks[&Place(1)], TaskChange::Cancel(Place(1)));
    assert!(scene.run.activities.is_empty());
    let moment = Moment { now: Timestamp(0), random: 0 };
    assert!(terminate(&mut scene.run, "again", moment).is_err());
}

#[test]
fn time_does_not_go_back() {
    let mut scene = Scene::begun(Script::at_start(vec![]));
    let before = scene.run.now;
    let moment = Moment { now: Timestamp(0), random: 0 };
    let mut turn = Turn::new(&mut scene.run, moment);
    turn.offer(&mut scene.script, &signal("s")).unwrap();
    let Decision { events, .. } = turn.finish();
    assert_eq!(events[0].at(), Some(before));
    assert_eq!(scene.run.now, before);
}
