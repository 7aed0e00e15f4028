//! Trails: what people read about each task, attempt by attempt.

mod scene;

use durably_kernel::{
    Event, Fact, Failure, FailureKind, LiveTask, LossCause, TaskKind, TaskState, TaskTrail,
    TimeoutKind, Timestamp, TrailStep, trail,
};
use scene::{
    START, Scene, Script, after_losses, attempt, attempts, complete, completed, give_up, inline,
    loss, queued, queued_with, signal, timer,
};

/// The steps of one trail without their times.
fn steps(trail: &TaskTrail) -> Vec<TrailStep> {
    trail.entries.iter().map(|entry| entry.what.clone()).collect()
}

fn started(attempt: u32) -> TrailStep {
    let worker = format!("worker-{attempt}").into();
    TrailStep::Started { attempt, worker }
}

fn lost(attempt: u32, died: bool) -> TrailStep {
    let worker = format!("worker-{attempt}").into();
    TrailStep::Lost { attempt, worker, died }
}

fn hiccup() -> Failure {
    Failure::new(FailureKind::Retryable, "hiccup")
}

fn live(id: &str, state: TaskState) -> LiveTask {
    LiveTask { id: id.into(), state, attempt: None, losses: vec![] }
}

#[test]
fn a_task_that_waits_is_queued() {
    let scene = Scene::begun(Script::at_start(vec![queued("a")]));
    let trails = trail(&scene.events, &[live("a", TaskState::Ready)]);
    assert_eq!(trails.len(), 1);
    assert_eq!(trails[0].id, "a");
    assert_eq!(trails[0].kind, TaskKind::Activity);
    assert_eq!(trails[0].name, "work");
    assert_eq!(steps(&trails[0]), [TrailStep::Queued]);
    assert_eq!(trails[0].entries[0].at, scene.run.now);
}

#[test]
fn failures_and_losses_stand_between_the_queue_and_the_result() {
    let mut scene = Scene::begun(Script::at_start(vec![queued_with("a", attempts(3))]));
    scene.admit(&scene.hiccup("a"));
    let seq = scene.run.activities["a"].queued;
    let noted = vec![loss(2, LossCause::Died), loss(3, LossCause::Stopped)];
    scene.admit(&after_losses(completed("a", seq, 4), noted));
    let trails = trail(&scene.events, &[]);
    let expected = [
        TrailStep::Queued,
        started(1),
        TrailStep::Retrying { attempt: 1, error: hiccup(), in_ms: 1_000 },
        started(2),
        lost(2, true),
        started(3),
        lost(3, false),
        started(4),
        TrailStep::Completed { attempt: 4 },
    ];
    assert_eq!(steps(&trails[0]), expected);
    let times: Vec<_> = trails[0].entries.iter().map(|entry| entry.at).collect();
    let (first, second) = (Timestamp(START.0 + 1_000), Timestamp(START.0 + 2_000));
    assert_eq!(times[..3], [first, START, second]);
    assert_eq!(times[4], loss(2, LossCause::Died).lost_at);
    assert_eq!(times[7..], [START, Timestamp(START.0 + 3_000)]);
}

#[test]
fn a_task_that_used_up_its_attempts_failed_and_is_dead() {
    let mut scene = Scene::begun(Script::at_start(vec![queued_with("a", attempts(1))]));
    scene.admit(&scene.hiccup("a"));
    let failed = TrailStep::Failed { attempt: Some(1), error: hiccup(), dead: true };
    let trails = trail(&scene.events, &[]);
    assert_eq!(steps(&trails[0]), [TrailStep::Queued, started(1), failed]);
}

#[test]
fn a_task_whose_workers_died_shows_every_death() {
    let mut scene = Scene::begun(Script::at_start(vec![queued("a")]));
    let seq = scene.run.activities["a"].queued;
    let losses = [1, 2, 3].map(|n| loss(n, LossCause::Died)).to_vec();
    scene.admit(&Fact::ActivityLost { activity_id: "a".into(), seq, losses });
    let seen = steps(&trail(&scene.events, &[])[0]);
    assert_eq!(seen.len(), 8);
    assert_eq!(seen[5..7], [started(3), lost(3, true)]);
    assert!(matches!(
        &seen[7],
        TrailStep::Failed { attempt: None, error, dead: true } if error.kind == FailureKind::Lost
    ));
}

#[test]
fn a_time_out_reads_like_a_failure() {
    let mut scene = Scene::begun(Script::at_start(vec![queued_with("a", attempts(2))]));
    scene.admit(&scene.timeout("a", TimeoutKind::Heartbeat));
    scene.admit(&scene.timeout("a", TimeoutKind::ScheduleToClose));
    let seen = steps(&trail(&scene.events, &[])[0]);
    assert!(matches!(
        &seen[2],
        TrailStep::Retrying { attempt: 1, error, .. } if error.message.contains("heartbeat")
    ));
    assert!(matches!(
        &seen[4],
        TrailStep::Failed { attempt: Some(2), error, dead: false }
            if error.message.contains("schedule-to-close")
    ));
}

#[test]
fn a_task_that_is_no_longer_wanted_is_cancelled() {
    let script = Script::new(|_, event| match event {
        Event::VersionPinned { .. } => vec![queued("a"), queued("b"), timer("t")],
        Event::SignalReceived { .. } => vec![give_up("a")],
        Event::ActivityCompleted { .. } => vec![complete()],
        _ => vec![],
    });
    let mut scene = Scene::begun(script);
    scene.admit(&signal("s"));
    let at = scene.run.now;
    scene.admit(&scene.done("b"));
    let trails = trail(&scene.events, &[]);
    let cancelled = |reason: &str| TrailStep::Cancelled { reason: reason.into() };
    let by_code = cancelled("cancelled by the workflow");
    assert_eq!(steps(&trails[0]), [TrailStep::Queued, by_code]);
    assert_eq!(trails[0].entries[1].at, at);
    assert_eq!(steps(&trails[2])[1], cancelled(""));
}

#[test]
fn a_timer_sleeps_and_is_woken() {
    let mut scene = Scene::begun(Script::at_start(vec![timer("t")]));
    let sleeping = TrailStep::Sleeping { for_ms: 60_000 };
    let trails = trail(&scene.events, &[]);
    assert_eq!(steps(&trails[0]), std::slice::from_ref(&sleeping));
    scene.admit(&scene.fired("t"));
    let trails = trail(&scene.events, &[]);
    assert_eq!(trails[0].kind, TaskKind::Timer);
    assert_eq!(steps(&trails[0]), [sleeping, TrailStep::Woken]);
    assert_eq!(trails[0].entries[1].at, scene.run.now);
}

#[test]
fn trails_stand_in_the_order_in_which_tasks_were_asked_for() {
    let actions = vec![queued("z"), timer("z"), inline("a")];
    let scene = Scene::begun(Script::at_start(actions));
    let trails = trail(&scene.events, &[]);
    let seen: Vec<_> = trails.iter().map(|t| (t.kind, t.id.as_str())).collect();
    let (activity, timer) = (TaskKind::Activity, TaskKind::Timer);
    assert_eq!(seen, [(activity, "z"), (timer, "z"), (activity, "a")]);
}

#[test]
fn live_rows_add_what_the_history_has_not() {
    let mut scene = Scene::begun(Script::at_start(vec![queued("a"), queued("b")]));
    scene.admit(&scene.hiccup("a"));
    let row = LiveTask {
        attempt: Some(attempt(3)),
        losses: vec![loss(2, LossCause::Died)],
        ..live("a", TaskState::Claimed)
    };
    let unknown = live("c", TaskState::Ready);
    let trails = trail(&scene.events, &[row, unknown]);
    let tail = [started(2), lost(2, true), started(3)];
    assert_eq!(steps(&trails[0])[3..], tail);
    assert_eq!(steps(&trails[1]), [TrailStep::Queued]);
    assert_eq!(trails.len(), 2);
}

#[test]
fn a_live_row_older_than_the_history_adds_nothing_twice() {
    let mut scene = Scene::begun(Script::at_start(vec![queued("a")]));
    let seq = scene.run.activities["a"].queued;
    let noted = vec![loss(1, LossCause::Died)];
    scene.admit(&after_losses(completed("a", seq, 2), noted.clone()));
    let row =
        LiveTask { attempt: Some(attempt(2)), losses: noted, ..live("a", TaskState::Claimed) };
    assert_eq!(trail(&scene.events, &[row]), trail(&scene.events, &[]));
}

#[test]
fn what_a_reset_took_back_is_not_shown() {
    let script = Script::on_signal(vec![queued("a")], vec![queued("b")]);
    let mut scene = Scene::begun(script);
    let kept = scene.run.head;
    scene.admit(&scene.hiccup("a"));
    scene.admit(&signal("s"));
    scene.reset(kept);
    let trails = trail(&scene.events, &[]);
    assert_eq!(trails.len(), 1);
    assert_eq!(steps(&trails[0]), [TrailStep::Queued]);
}
