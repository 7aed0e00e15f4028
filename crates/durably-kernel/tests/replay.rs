//! Replay: code and history fit, or the place where they part is named; resets are honoured.

mod scene;

use durably_kernel::{
    Action, Divergence, Event, Fact, Payload, Place, ReplayError, Run, RunStatus, Seq, replay,
};
use scene::{
    Scene, Script, complete, give_up, give_up_timer, identity, inline, queued, signal, timer,
};

/// Where a script and a history part.
fn divergence(script: Script, events: &[Event]) -> Divergence {
    match replay(identity(), &mut script.clone(), events) {
        Err(ReplayError::Diverged(divergence)) => divergence,
        other => panic!("no divergence: {other:?}"),
    }
}

fn parted(seq: u64, recorded: &str, asked: &str) -> Divergence {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Divergence { seq: Seq(seq), recorded: text(recorded), asked: text(asked) }
}

fn of_type(id: &str, activity_type: &str, input: &str) -> Action {
    Action::ScheduleActivity {
        id: id.into(),
        activity_type: activity_type.into(),
        input: Payload::of(input).unwrap(),
        options: Default::default(),
        inline: false,
    }
}

const A: &str = r#"ActivityScheduled "a" of type "work""#;
const B: &str = r#"ActivityScheduled "b" of type "work""#;
const C: &str = r#"ActivityScheduled "c" of type "work""#;

/// Events 1 start, 2 version, 3 `a`, 4 `b`, 5 signal.
fn two_steps() -> Vec<Event> {
    let mut scene = Scene::begun(Script::at_start(vec![queued("a"), queued("b")]));
    scene.admit(&signal("s"));
    scene.events
}

#[test]
fn a_step_removed_from_the_code_is_named() {
    let found = divergence(Script::at_start(vec![queued("a")]), &two_steps());
    assert_eq!(found, parted(4, B, ""));
    assert_eq!(
        found.to_string(),
        "code and history part at event 4: recorded was ActivityScheduled \"b\" of type \"work\", \
         the code asked for nothing"
    );
}

#[test]
fn a_step_added_before_a_recorded_one_is_named() {
    let actions = vec![queued("c"), queued("a"), queued("b")];
    let found = divergence(Script::at_start(actions), &two_steps());
    assert_eq!(found, parted(3, A, C));
}

#[test]
fn a_step_added_after_the_recorded_ones_is_named_with_the_fact_that_stands_there() {
    let actions = vec![queued("a"), queued("b"), queued("c")];
    let found = divergence(Script::at_start(actions), &two_steps());
    assert_eq!(found, parted(5, "SignalReceived", C));
}

#[test]
fn a_renamed_step_is_named() {
    let actions = vec![queued("a"), queued("c")];
    let found = divergence(Script::at_start(actions), &two_steps());
    assert_eq!(found, parted(4, B, C));
}

#[test]
fn a_step_of_another_type_is_named() {
    let actions = vec![queued("a"), of_type("b", "other work", "b")];
    let found = divergence(Script::at_start(actions), &two_steps());
    let asked = r#"ActivityScheduled "b" of type "other work""#;
    assert_eq!(found, parted(4, B, asked));
}

#[test]
fn steps_in_another_order_are_named() {
    let actions = vec![queued("b"), queued("a")];
    let found = divergence(Script::at_start(actions), &two_steps());
    assert_eq!(found, parted(3, A, B));
}

#[test]
fn code_that_asks_for_more_at_the_end_is_named() {
    let script = Script::on_signal(vec![queued("a"), queued("b")], vec![queued("c")]);
    let found = divergence(script, &two_steps());
    assert_eq!(found, parted(6, "", C));
    assert_eq!(
        found.to_string(),
        "code and history part at event 6: recorded was the end of the history, \
         the code asked for ActivityScheduled \"c\" of type \"work\""
    );
}

#[test]
fn another_end_is_named() {
    let mut scene = Scene::begun(Script::on_signal(vec![], vec![complete()]));
    scene.admit(&signal("s"));
    let reason = "no".to_owned();
    let script = Script::on_signal(vec![], vec![Action::Cancelled { reason }]);
    let found = divergence(script, &scene.events);
    assert_eq!(found, parted(4, "WorkflowCompleted", "WorkflowCancelled"));
}

#[test]
fn a_timer_in_the_place_of_an_activity_is_named() {
    let found = divergence(Script::at_start(vec![timer("a")]), &two_steps());
    assert_eq!(found, parted(3, A, "TimerStarted \"a\""));
}

#[test]
fn a_cancellation_that_the_code_no_longer_asks_for_is_named() {
    let first = vec![queued("a"), timer("t")];
    let then = vec![give_up("a"), give_up_timer("t")];
    let mut scene = Scene::begun(Script::on_signal(first.clone(), then));
    scene.admit(&signal("s"));
    let found = divergence(Script::at_start(first.clone()), &scene.events);
    assert_eq!(found, parted(6, "ActivityCancelled \"a\"", ""));
    let script = Script::on_signal(first, vec![give_up("a")]);
    let found = divergence(script, &scene.events);
    assert_eq!(found, parted(7, "TimerCancelled \"t\"", ""));
}

#[test]
fn inputs_and_durations_that_differ_do_not_part() {
    let mut scene = Scene::begun(Script::at_start(vec![queued("a"), timer("t")]));
    scene.admit(&signal("s"));
    let delay = std::time::Duration::from_secs(5);
    let longer = Action::StartTimer { id: "t".into(), delay };
    let mut script = Script::at_start(vec![of_type("a", "work", "other input"), longer]);
    let run = replay(identity(), &mut script, &scene.events).unwrap();
    assert_eq!(run, scene.run);
    assert_eq!(run.activities["a"].input, Payload::of("a").unwrap());
}

#[test]
fn a_terminated_run_replays() {
    let script = Script::at_start(vec![queued("a"), inline("b"), timer("t")]);
    let mut scene = Scene::begun(script.clone());
    scene.terminate("stuck");
    let run = replay(identity(), &mut script.clone(), &scene.events).unwrap();
    assert_eq!(run.status, RunStatus::Terminated);
    assert_eq!(run, scene.run);
}

#[test]
fn a_history_that_does_not_begin_with_a_start_is_damaged() {
    let mut script = Script::at_start(vec![]);
    let events = two_steps();
    for damaged in [&events[..0], &events[1..]] {
        let error = replay(identity(), &mut script, damaged).unwrap_err();
        assert!(matches!(error, ReplayError::Broken(_)), "{error}");
        assert!(Run::fold(identity(), damaged).is_err());
    }
}

/// Two steps one after the other; `b` once `a` is done, the end once `b` is.
fn chain() -> Script {
    Script::new(|_, event| match event {
        Event::VersionPinned { .. } => vec![queued("a"), timer("t")],
        Event::ActivityCompleted { activity_id, .. } if activity_id.as_str() == "a" => {
            vec![give_up_timer("t"), queued("b")]
        }
        Event::ActivityCompleted { .. } => vec![complete()],
        _ => vec![],
    })
}

/// The run that the first events tell, with another head.
fn prefix(events: &[Event], to: Seq, head: Seq) -> Run {
    let mut run = Run::fold(identity(), &events[..to.0 as usize]).unwrap();
    run.head = head;
    run
}

#[test]
fn a_reset_run_is_what_its_prefix_tells() {
    let mut scene = Scene::begun(chain());
    let to = scene.run.head;
    scene.admit(&scene.done("a"));
    scene.admit(&scene.done("b"));
    assert_eq!(scene.run.status, RunStatus::Completed);
    scene.reset(to);
    assert_eq!(scene.run, prefix(&scene.events, to, scene.run.head));
    assert_eq!(scene.run.status, RunStatus::Running);
    assert_eq!(scene.run.head, Seq(scene.events.len() as u64));
}

#[test]
fn an_ended_run_that_was_reset_runs_again_with_ever_higher_numbers() {
    let mut scene = Scene::begun(chain());
    let to = scene.run.head;
    scene.admit(&scene.done("a"));
    let old_b = scene.done("b");
    scene.admit(&old_b);
    scene.reset(to);
    assert!(!scene.run.knows_activity(&"b".into()));
    assert_eq!(scene.run.free_places().next(), Some(Place(3)));
    scene.admit(&scene.done("a"));
    assert_eq!(scene.run.activities["b"].scheduled, scene.run.head);
    assert_eq!(scene.last_names(1), ["ActivityScheduled"]);
    scene.refuse(&old_b);
    scene.admit(&scene.done("b"));
    assert_eq!(scene.run.status, RunStatus::Completed);
    let scheduled =
        scene.events.iter().filter(|event| event.signature().1.as_deref() == Some("b")).count();
    assert_eq!(scheduled, 2);
}

#[test]
fn outcomes_from_before_a_reset_count_for_what_the_reset_kept() {
    let mut scene = Scene::begun(chain());
    let (to, done) = (scene.run.head, scene.done("a"));
    scene.admit(&done);
    scene.reset(to);
    scene.admit(&done);
    assert_eq!(scene.run.activities.len(), 1);
}

#[test]
fn a_reset_of_a_reset_is_honoured() {
    let mut scene = Scene::begun(chain());
    let start = scene.run.head;
    scene.admit(&scene.done("a"));
    let after_a = scene.run.head;
    scene.admit(&scene.done("b"));
    scene.reset(after_a);
    assert_eq!(scene.run, prefix(&scene.events, after_a, scene.run.head));
    scene.admit(&scene.done("b"));
    assert_eq!(scene.run.status, RunStatus::Completed);
    scene.reset(start);
    assert_eq!(scene.run, prefix(&scene.events, start, scene.run.head));
    scene.admit(&scene.done("a"));
    let after_second_a = scene.run.head;
    scene.admit(&scene.done("b"));
    scene.reset(after_second_a);
    scene.admit(&scene.done("b"));
    assert_eq!(scene.run.status, RunStatus::Completed);
}

#[test]
fn a_reset_to_the_start_pins_the_version_anew() {
    let mut scene = Scene::begun(chain());
    scene.admit(&scene.done("a"));
    scene.reset(Seq(1));
    assert_eq!(scene.run.status, RunStatus::Pending);
    scene.admit(&Fact::Begin { version: 2 });
    assert_eq!(scene.run.version, Some(2));
    assert_eq!(scene.rows.places(), [Place(1), Place(2)]);
}

#[test]
fn a_terminated_run_that_was_reset_goes_on() {
    let mut scene = Scene::begun(chain());
    let to = scene.run.head;
    scene.terminate("stuck");
    scene.reset(to);
    scene.admit(&scene.done("a"));
    scene.admit(&scene.done("b"));
    assert_eq!(scene.run.status, RunStatus::Completed);
}

#[test]
fn a_divergence_after_a_reset_has_the_number_of_the_recorded_event() {
    let mut scene = Scene::begun(chain());
    let to = scene.run.head;
    scene.admit(&scene.done("a"));
    scene.reset(to);
    scene.admit(&scene.done("a"));
    let scheduled = scene.run.head;
    let script = Script::at_start(vec![queued("a"), timer("t")]);
    let found = divergence(script, &scene.events);
    assert_eq!(found, parted(scheduled.0 - 1, "TimerCancelled \"t\"", ""));
}
