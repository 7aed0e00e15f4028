//! Random programs under random facts. The scene checks after every turn that live, folded and
//! replayed run are the same, that every invariant holds, and that the queue's rows are those
//! which the run wants; what must hold of a whole history is checked here.

mod scene;

use durably_kernel::{
    Action, ActivityOptions, Attempt, Event, Fact, Failure, FailureKind, Heard, Loss, LossCause,
    Offered, Payload, Phase, Place, Retry, Run, Seq, TimeoutKind, replay,
};
use proptest::prelude::*;
use scene::{Scene, Script, attempt, identity, loss, signal};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Numbers from a seed; the same ones every time.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn pick<T: Clone>(&mut self, list: &[T]) -> Option<T> {
        (!list.is_empty()).then(|| list[self.below(list.len() as u64) as usize].clone())
    }
}

/// Code that is a function of the seed and of what it hears.
fn program(seed: u64) -> Script {
    Script::new(move |heard, event| {
        let mut dice = Dice(seed ^ heard.seq.0.wrapping_mul(0x0005_deec_e66d));
        if matches!(event, Event::WorkflowCancelRequested { .. }) && !dice.one_in(3) {
            return vec![Action::Cancelled { reason: "as asked".into() }];
        }
        let count = dice.below(4);
        (0..count).map(|nth| action(&mut dice, heard, nth)).collect()
    })
}

fn action(dice: &mut Dice, heard: Heard<'_>, nth: u64) -> Action {
    let fresh = format!("{}-{nth}", heard.seq);
    let activities: Vec<_> = heard.run.activities.keys().cloned().collect();
    let timers: Vec<_> = heard.run.timers.keys().cloned().collect();
    match dice.below(60) {
        0 => Action::Complete { output: Payload::null() },
        1 => Action::Fail { error: Failure::new(FailureKind::Permanent, "enough") },
        2 => Action::ScheduleActivity {
            id: dice.pick(&activities).unwrap_or_else(|| "".into()),
            activity_type: "work".into(),
            input: Payload::null(),
            options: Arc::default(),
            inline: false,
        },
        3..=9 => {
            Action::CancelActivity { id: dice.pick(&activities).unwrap_or_else(|| "nobody".into()) }
        }
        10..=14 => {
            Action::CancelTimer { id: dice.pick(&timers).unwrap_or_else(|| "nobody".into()) }
        }
        15..=29 => {
            let delay = Duration::from_millis(dice.below(100_000));
            Action::StartTimer { id: fresh.into(), delay }
        }
        _ => Action::ScheduleActivity {
            id: fresh.into(),
            activity_type: "work".into(),
            input: Payload::null(),
            options: Arc::new(options(dice)),
            inline: dice.one_in(3),
        },
    }
}

fn options(dice: &mut Dice) -> ActivityOptions {
    let time = |dice: &mut Dice| dice.one_in(3).then(|| Duration::from_secs(1 + dice.below(100)));
    ActivityOptions {
        retry: dice.one_in(2).then(|| Retry::attempts(1 + dice.below(4) as u32)),
        schedule_to_start: time(dice),
        start_to_close: time(dice),
        schedule_to_close: time(dice),
        deaths_max: dice.one_in(3).then(|| 1 + dice.below(3) as u32),
        ..ActivityOptions::default()
    }
}

/// A fact about something that is open, or about the run itself.
fn fact(dice: &mut Dice, run: &Run) -> Fact {
    let open: Vec<_> = run.activities.keys().cloned().collect();
    let timers: Vec<_> = run.timers.keys().cloned().collect();
    match dice.below(100) {
        0 => Fact::CancelRequested { reason: "please".into() },
        1 => Fact::ShutdownRequested {},
        2 => Fact::RunTimedOut {},
        3 => Fact::Begin { version: 9 },
        4..=19 => signal(&dice.next().to_string()),
        20..=34 => match dice.pick(&timers) {
            Some(id) => Fact::TimerFired { seq: run.timers[&id].started, timer_id: id },
            None => Fact::TimerFired { timer_id: "nobody".into(), seq: Seq(2) },
        },
        _ => match dice.pick(&open) {
            Some(id) => about(dice, run, id.as_str()),
            None => signal("nothing is open"),
        },
    }
}

/// A fact about an open activity.
fn about(dice: &mut Dice, run: &Run, id: &str) -> Fact {
    let activity = &run.activities[id];
    let activity_id = || id.into();
    let (seq, number, losses) = match activity.phase {
        Phase::Backoff(_, since) if dice.one_in(2) => {
            return Fact::RetryDue { activity_id: activity_id(), seq: since };
        }
        Phase::UnderWay(seq) if dice.one_in(4) => {
            let loss = loss(activity.attempt, cause(dice));
            return Fact::InlineLost { activity_id: activity_id(), seq, loss };
        }
        Phase::UnderWay(seq) | Phase::Backoff(_, seq) => (seq, activity.attempt, vec![]),
        Phase::Queued => {
            let losses = noted(dice, activity.attempt);
            let last = losses.last().map_or(activity.attempt, |loss| loss.attempt.number);
            (activity.queued, last.max(activity.attempt) + 1, losses)
        }
    };
    let attempt = attempt(number);
    match dice.below(10) {
        0..=3 => {
            let result = Payload::null();
            Fact::ActivityCompleted { activity_id: activity_id(), seq, attempt, result, losses }
        }
        4..=6 => {
            let (activity_id, error, details) = (activity_id(), error(dice), None);
            Fact::ActivityFailed { activity_id, seq, attempt, error, details, losses }
        }
        7 if activity.phase == Phase::Queued => {
            Fact::ActivityLost { activity_id: activity_id(), seq, losses }
        }
        _ => timeout(dice, run, id, (seq, attempt, losses)),
    }
}

fn timeout(dice: &mut Dice, run: &Run, id: &str, of: (Seq, Attempt, Vec<Loss>)) -> Fact {
    let (queued, attempt, losses) = of;
    let scheduled = run.activities[id].scheduled;
    let kinds = [
        (TimeoutKind::ScheduleToStart, scheduled, None),
        (TimeoutKind::StartToClose, queued, Some(attempt.clone())),
        (TimeoutKind::Heartbeat, queued, Some(attempt)),
        (TimeoutKind::ScheduleToClose, scheduled, None),
        (TimeoutKind::Run, scheduled, None),
    ];
    let (timeout, seq, attempt) = dice.pick(&kinds).expect("a list of five");
    Fact::ActivityTimedOut { activity_id: id.into(), seq, timeout, attempt, details: None, losses }
}

fn cause(dice: &mut Dice) -> LossCause {
    if dice.one_in(2) { LossCause::Died } else { LossCause::Stopped }
}

/// Losses noted on a row; now and then with one that is recorded already.
fn noted(dice: &mut Dice, recorded: u32) -> Vec<Loss> {
    let first = if dice.one_in(3) { recorded.max(1) } else { recorded + 1 };
    let last = recorded + dice.below(3) as u32;
    (first..=last).map(|number| loss(number, cause(dice))).collect()
}

fn error(dice: &mut Dice) -> Failure {
    let kinds = [
        FailureKind::Retryable,
        FailureKind::Permanent,
        FailureKind::RateLimited,
        FailureKind::Panicked,
        FailureKind::Contention,
        FailureKind::Contention,
    ];
    let mut error = Failure::new(dice.pick(&kinds).expect("a list of six"), "random");
    error.retry_after_ms = dice.one_in(2).then(|| dice.below(10_000));
    error
}

/// So far after an event that no event of a test stands there.
const FAR: u64 = 1_000_000;

/// The same fact, about another event than the one that counts, or about nobody.
fn misdirect(dice: &mut Dice, mut fact: Fact) -> Fact {
    match &mut fact {
        Fact::ActivityCompleted { activity_id, seq, .. }
        | Fact::ActivityFailed { activity_id, seq, .. }
        | Fact::ActivityTimedOut { activity_id, seq, .. }
        | Fact::ActivityLost { activity_id, seq, .. }
        | Fact::InlineLost { activity_id, seq, .. }
        | Fact::RetryDue { activity_id, seq } => match dice.below(3) {
            0 => *activity_id = "foreign".into(),
            1 => *seq = Seq(seq.0 + FAR),
            _ => *seq = Seq(seq.0 - 1),
        },
        Fact::TimerFired { seq, .. } => *seq = Seq(dice.below(seq.0)),
        _ => {}
    }
    fact
}

/// Rows that the store removes before the run hears of it: what is due, and delivered outcomes.
fn sweep(dice: &mut Dice, scene: &mut Scene, fact: &Fact) {
    let place = match fact {
        Fact::TimerFired { timer_id, seq } => {
            let timer = scene.run.timers.get(timer_id);
            timer.filter(|timer| timer.started == *seq).map(|timer| timer.place)
        }
        Fact::RetryDue { activity_id, .. } => match scene.run.activities.get(activity_id) {
            Some(activity) => match activity.phase {
                Phase::Backoff(place, _) => Some(place),
                _ => None,
            },
            None => None,
        },
        Fact::ActivityCompleted { activity_id, seq, .. }
        | Fact::ActivityFailed { activity_id, seq, .. } => {
            let activity = scene.run.activities.get(activity_id);
            activity.filter(|activity| activity.queued == *seq).and_then(|activity| activity.place)
        }
        Fact::RunTimedOut {} => Some(Place(1)),
        _ => None,
    };
    if let Some(place) = place.filter(|_| dice.one_in(2)) {
        scene.rows.sweep(place);
    }
}

/// A turn's facts: mostly fitting, some repeated from before, some astray.
fn facts(dice: &mut Dice, scene: &Scene, before: &[Fact]) -> Vec<Fact> {
    let count = 1 + dice.below(3);
    let one = |_| match dice.below(8) {
        0 => dice.pick(before).unwrap_or(Fact::Begin { version: 1 }),
        1 => {
            let fitting = fact(dice, &scene.run);
            misdirect(dice, fitting)
        }
        _ => fact(dice, &scene.run),
    };
    (0..count).map(one).collect()
}

/// A run that took so many turns, or ended before.
fn drive(program_seed: u64, turns: &[u64], timeout: bool) -> (Scene, Vec<Seq>) {
    let timeout = timeout.then(|| Duration::from_secs(1_000));
    let mut scene = Scene::pending(program(program_seed), timeout);
    scene.admit(&Fact::Begin { version: 1 });
    let (mut before, mut heads) = (vec![], vec![scene.run.head]);
    for turn in turns {
        let mut dice = Dice(*turn);
        if dice.one_in(200) && !scene.run.status.has_ended() {
            scene.terminate("random");
        }
        let facts = facts(&mut dice, &scene, &before);
        if let [only] = &facts[..] {
            sweep(&mut dice, &mut scene, only);
        }
        let had_ended = scene.run.status.has_ended();
        let (offered, _) = scene.turn(&facts);
        if had_ended {
            assert!(offered.iter().all(|offered| *offered == Offered::AfterEnd));
        }
        before.extend(facts);
        heads.push(scene.run.head);
    }
    (scene, heads)
}

fn ends_the_run(event: &Event) -> bool {
    matches!(
        event,
        Event::WorkflowCompleted { .. }
            | Event::WorkflowFailed { .. }
            | Event::WorkflowCancelled { .. }
            | Event::WorkflowTerminated { .. }
    )
}

/// The activity that the event is the final outcome of.
fn final_outcome(event: &Event) -> Option<&str> {
    match event {
        Event::ActivityCompleted { activity_id, .. }
        | Event::ActivityFailed { activity_id, will_retry: false, .. }
        | Event::ActivityTimedOut { activity_id, will_retry: false, .. }
        | Event::ActivityCancelled { activity_id, .. } => Some(activity_id.as_str()),
        _ => None,
    }
}

/// What must hold of every history without resets.
fn check_history(scene: &Scene) {
    let ends = scene.events.iter().filter(|event| ends_the_run(event)).count();
    let has_ended = scene.run.status.has_ended();
    assert_eq!(ends, usize::from(has_ended), "ends of the run");
    assert_eq!(ends_the_run(scene.events.last().unwrap()), has_ended, "the end is last");
    let mut outcomes = BTreeMap::new();
    for id in scene.events.iter().filter_map(final_outcome) {
        *outcomes.entry(id).or_insert(0) += 1;
    }
    assert!(outcomes.values().all(|count| *count == 1), "{outcomes:?}");
    let dead = scene.events.iter().filter(|event| match event {
        Event::ActivityFailed { dead, .. } | Event::ActivityTimedOut { dead, .. } => *dead,
        _ => false,
    });
    assert_eq!(scene.dead_letters.len(), dead.count(), "dead letters");
    let mut lost = BTreeMap::new();
    for event in &scene.events {
        if let Event::ActivityLost { activity_id, attempt, .. } = event {
            let last = lost.insert(activity_id.clone(), attempt.number);
            assert!(last < Some(attempt.number), "losses of {activity_id} are not in order");
        }
    }
}

/// A seed that fails is printed by proptest; it belongs into a test of its own then.
fn config() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_prefix_of_a_random_run_is_sound(
        program_seed in any::<u64>(),
        turns in prop::collection::vec(any::<u64>(), 1..40),
        timeout in any::<bool>(),
    ) {
        let (scene, _) = drive(program_seed, &turns, timeout);
        check_history(&scene);
        for end in 1..=scene.events.len() {
            let run = Run::fold(identity(), &scene.events[..end]).unwrap();
            prop_assert_eq!(run.head, Seq(end as u64));
            run.check_all().unwrap();
        }
    }

    #[test]
    fn a_reset_run_is_its_prefix_and_goes_on(
        program_seed in any::<u64>(),
        turns in prop::collection::vec(any::<u64>(), 1..15),
        to in any::<prop::sample::Index>(),
        more in prop::collection::vec(any::<u64>(), 1..15),
        timeout in any::<bool>(),
    ) {
        let (mut scene, heads) = drive(program_seed, &turns, timeout);
        let to = *to.get(&heads);
        let mut prefix = Run::fold(identity(), &scene.events[..to.0 as usize]).unwrap();
        scene.reset(to);
        prefix.head = scene.run.head;
        prop_assert_eq!(&scene.run, &prefix);
        for turn in more {
            let facts = facts(&mut Dice(turn), &scene, &[]);
            scene.turn(&facts);
        }
        let stored = Event::list_to_json(&scene.events);
        let read = Event::list_from_json(&stored).unwrap();
        let run = replay(identity(), &mut scene.script.clone(), &read).unwrap();
        prop_assert_eq!(run, scene.run);
    }
}

#[test]
fn random_runs_see_every_event_that_a_turn_can_make() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let turns: Vec<_> = (0..30).map(|_| dice.next()).collect();
        let (scene, _) = drive(dice.next(), &turns, dice.one_in(2));
        for event in &scene.events {
            *seen.entry(event.name()).or_default() += 1;
        }
    }
    let names: Vec<_> = seen.keys().copied().collect();
    let events: usize = seen.values().sum();
    assert!(events > 300 * 20, "runs end too early: {events} events in 300 runs");
    let expected = [
        "ActivityCancelled",
        "ActivityCompleted",
        "ActivityFailed",
        "ActivityLost",
        "ActivityRetryDue",
        "ActivityScheduled",
        "ActivityTimedOut",
        "SignalReceived",
        "TimerCancelled",
        "TimerFired",
        "TimerStarted",
        "VersionPinned",
        "WorkflowCancelRequested",
        "WorkflowCancelled",
        "WorkflowCompleted",
        "WorkflowFailed",
        "WorkflowShutdownRequested",
        "WorkflowStarted",
        "WorkflowTerminated",
        "WorkflowTimedOut",
    ];
    assert_eq!(names, expected, "{seen:?}");
}
