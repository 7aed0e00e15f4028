//! Commits put together by chance: a store takes what fits, whatever it means.

use super::decide::park;
use super::dice::Dice;
use super::flow::KINDS;
use crate::sample::{activity, json, noted, retry, secs, summary, timeout, timer};
use durably_kernel::{
    ActivityOptions, Claim, DeadLetter, DeadLetterKind, Failure, FailureKind, Place, RunStatus,
    Seq, Summary, TaskChange, TaskPut, TimeoutKind, Waits,
};
use durably_store::{RunCommit, RunView, TurnAfter};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The type of runs whose commits are put together by chance.
pub(super) const RAW: &str = "raw";

/// Highest place in use.
const PLACES: usize = 5;

/// Fills a commit on the run's head.
pub(super) fn fill(
    dice: &mut Dice,
    view: &RunView,
    holder: Option<Claim>,
    claims: Vec<Claim>,
    commit: RunCommit,
) -> RunCommit {
    let count = [0, 1, 1, 2, 3][dice.below(5)];
    let events = (0..count).map(|_| noted(&dice.below(100).to_string())).collect::<Vec<_>>();
    let seq = Seq(view.head.0 + events.len() as u64);
    let unread = view.inbox_last - view.inbox_used;
    let inbox_used = view.inbox_used + dice.below(unread as usize + 1) as u64;
    let ends = dice.chance(8);
    let read: Vec<u64> = (view.inbox_used + 1..=inbox_used).collect();
    RunCommit {
        holder,
        claims,
        events,
        tasks: changes(dice, (count > 0).then_some(seq)),
        inbox_used,
        unread: if ends { dice.some(&read, 50) } else { Vec::new() },
        dead_letters: if dice.chance(8) { vec![letter(dice)] } else { Vec::new() },
        summary: told(dice, ends),
        turn: after(dice),
        turn_deadline: dice.one(&[secs(20), secs(70)]),
        end_anyway: dice.chance(30),
        operator: dice.chance(8),
        ..commit
    }
}

/// Decides the first turn of a start by chance; now and then it ends the run.
pub(super) fn decide_start(dice: &mut Dice, commit: &mut RunCommit) {
    let ends = dice.chance(20);
    commit.events.push(noted("first turn"));
    commit.summary = told(dice, ends);
    commit.turn = after(dice);
}

fn told(dice: &mut Dice, ends: bool) -> Option<Summary> {
    let status = match ends {
        true => dice.one(&[RunStatus::Completed, RunStatus::Failed, RunStatus::Terminated]),
        false => RunStatus::Running,
    };
    let waits =
        dice.one(&[Waits::Any, Waits::Signals(vec![]), Waits::Signals(vec!["go on".into()])]);
    let told = Summary { waits, retries: dice.below(3) as u32, ..summary(status) };
    (ends || dice.chance(80)).then_some(told)
}

fn after(dice: &mut Dice) -> TurnAfter {
    match dice.below(100) {
        0..40 => TurnAfter::Release,
        40..65 => TurnAfter::Keep,
        65..85 => TurnAfter::Return,
        _ => park(dice),
    }
}

fn letter(dice: &mut Dice) -> DeadLetter {
    DeadLetter {
        kind: DeadLetterKind::Activity,
        activity_id: "dead".into(),
        activity_type: dice.one(&KINDS).to_owned(),
        input: json("{}"),
        attempts: dice.below(4) as u32,
        errors: vec![Failure::new(FailureKind::Permanent, "dead")],
    }
}

/// Changes of some places. Rows are only put by an event, so that no two have the same fence.
pub(super) fn changes(dice: &mut Dice, seq: Option<Seq>) -> BTreeMap<Place, TaskChange> {
    let mut changes = BTreeMap::new();
    for _ in 0..dice.below(4) {
        let place = Place(dice.upto(PLACES) as u32);
        let change = match (dice.below(10), seq) {
            (2.., Some(seq)) => TaskChange::Put(Box::new(put(dice, place, seq))),
            (1, _) => TaskChange::Cancel(place),
            _ => TaskChange::Delete(place),
        };
        changes.insert(place, change);
    }
    changes
}

fn put(dice: &mut Dice, place: Place, seq: Seq) -> TaskPut {
    let id = format!("r{}", dice.below(3));
    let delay = secs(dice.below(30) as u64);
    match dice.below(10) {
        0 => timer(place, &id, seq, delay),
        1 => retry(place, &id, seq, delay),
        2 | 3 => {
            let kinds = [TimeoutKind::ScheduleToStart, TimeoutKind::ScheduleToClose];
            let watched = activity(Place(dice.upto(PLACES) as u32), &id, seq);
            timeout(dice.one(&kinds), &watched, place, delay)
        }
        _ => {
            let options = ActivityOptions {
                start_to_close: dice.chance(50).then(|| secs(dice.upto(40) as u64)),
                heartbeat: dice.chance(20).then(|| secs(dice.upto(20) as u64)),
                deaths_max: dice.chance(60).then(|| dice.upto(3) as u32),
                ..ActivityOptions::default()
            };
            TaskPut {
                name: dice.one(&KINDS).into(),
                delay: dice.chance(20).then_some(delay),
                queue: dice.one(&["default", "default", "second"]).into(),
                priority: dice.below(3) as i32 - 1,
                attempt: dice.below(3) as u32,
                deaths: dice.below(2) as u32,
                options: Some(Arc::new(options)),
                details: dice.chance(15).then(|| json("0.50")),
                ..activity(place, &id, seq)
            }
        }
    }
}
