//! Workflow code for random runs: it has no state but the run, and a seed decides all it does.

use super::dice::Dice;
use crate::sample::{json, secs};
use durably_kernel::{
    Action, ActivityOptions, Event, Failure, FailureKind, Fault, Heard, Program, Retry, Run, Waits,
};
use std::sync::Arc;

/// The workflow's type.
pub(super) const FLOW: &str = "flow";
/// Types of its activities.
pub(super) const KINDS: [&str; 2] = ["x", "y"];

/// So long a history may become before the code ends the run.
const HISTORY_MAX: u64 = 50;

/// The code. Deaf runs wait for no signal: they must always have something else that goes on.
pub(super) struct Flow {
    deaf: bool,
}

impl Flow {
    pub(super) fn of(seed: u64) -> Flow {
        Flow { deaf: seed.is_multiple_of(2) }
    }
}

impl Program for Flow {
    fn react(&mut self, heard: Heard<'_>, event: &Event) -> Result<Vec<Action>, Fault> {
        let mut dice = Dice::new(heard.run.seed ^ heard.seq.0.wrapping_mul(0x2545_f491));
        if let Event::WorkflowCancelRequested { reason, .. } = event {
            return Ok(vec![Action::Cancelled { reason: reason.clone() }]);
        }
        if heard.seq.0 > HISTORY_MAX {
            return Ok(vec![complete()]);
        }
        let mut actions = Vec::new();
        if let Event::VersionPinned { .. } = event {
            actions.push(schedule(&mut dice, heard.seq.0, 9));
        }
        for n in 0..dice.below(3) {
            actions.extend(action(&mut dice, heard, n));
        }
        if self.deaf && open_after(heard.run, &actions) == 0 {
            actions.push(complete());
        }
        Ok(actions)
    }

    fn waits(&self) -> Waits {
        match self.deaf {
            true => Waits::Signals(Vec::new()),
            false => Waits::Any,
        }
    }
}

fn complete() -> Action {
    Action::Complete { output: json(r#"{"ok" :1.0}"#) }
}

fn action(dice: &mut Dice, heard: Heard<'_>, n: usize) -> Option<Action> {
    let (run, seq) = (heard.run, heard.seq.0);
    Some(match dice.below(100) {
        0..45 => schedule(dice, seq, n),
        45..65 => Action::StartTimer {
            id: format!("t{seq}.{n}").into(),
            delay: secs(dice.below(30) as u64),
        },
        65..77 => {
            let ids: Vec<_> = run.activities.keys().cloned().collect();
            Action::CancelActivity { id: dice.pick(&ids)?.clone() }
        }
        77..83 => {
            let ids: Vec<_> = run.timers.keys().cloned().collect();
            Action::CancelTimer { id: dice.pick(&ids)?.clone() }
        }
        83..86 => complete(),
        86..88 => Action::Fail { error: Failure::new(FailureKind::Permanent, "given up") },
        _ => return None,
    })
}

/// What is open once the actions are taken, at least; one that is cancelled may be named twice.
fn open_after(run: &Run, actions: &[Action]) -> usize {
    let (mut open, mut given_up) = (run.activities.len() + run.timers.len(), 0);
    for action in actions {
        match action {
            Action::ScheduleActivity { .. } | Action::StartTimer { .. } => open += 1,
            Action::CancelActivity { .. } | Action::CancelTimer { .. } => given_up += 1,
            Action::Complete { .. } | Action::Fail { .. } | Action::Cancelled { .. } => return 1,
        }
    }
    open.saturating_sub(given_up)
}

fn schedule(dice: &mut Dice, seq: u64, n: usize) -> Action {
    let inline = dice.chance(25);
    Action::ScheduleActivity {
        id: format!("a{seq}.{n}").into(),
        activity_type: dice.one(&KINDS).into(),
        input: json(r#"{"b":1.0,"a":[1e2],  "b":2}"#),
        options: Arc::new(options(dice)),
        inline,
    }
}

fn options(dice: &mut Dice) -> ActivityOptions {
    let mut sometimes =
        |percent, most: usize| dice.chance(percent).then(|| secs(dice.upto(most) as u64));
    let mut options = ActivityOptions {
        schedule_to_start: sometimes(20, 20),
        start_to_close: sometimes(40, 60),
        heartbeat: sometimes(20, 20),
        schedule_to_close: sometimes(20, 60),
        ..ActivityOptions::default()
    };
    if dice.chance(30) {
        options.retry = Some(Retry { attempts: dice.upto(4) as u32, ..Retry::default() });
    }
    options.priority = dice.chance(20).then(|| dice.below(3) as i32 - 1);
    options.queue = dice.chance(20).then(|| "second".into());
    options.deaths_max = dice.chance(50).then(|| dice.upto(2) as u32);
    options
}
