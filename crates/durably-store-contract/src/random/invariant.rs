//! What must hold of every store at any moment, as far as its reads show it: the invariants of
//! RELIABILITY under their numbers. Simulation asks the same of engines.

use super::flow::FLOW;
use crate::snapshot::{RunShot, Snapshot};
use durably_kernel::{
    Event, Fact, Phase, Place, Run, RunId, RunStatus, Seq, TaskKind, TaskState, Timestamp, Waits,
};
use std::collections::{BTreeMap, BTreeSet};

/// Remembers what may not change any more.
#[derive(Default)]
pub(super) struct Watch {
    before: Option<Snapshot>,
    /// The highest claim number of a row.
    numbers: BTreeMap<(RunId, Place, Seq), u64>,
    /// Signals that were accepted, by run.
    accepted: BTreeMap<RunId, BTreeSet<String>>,
}

/// An invariant that does not hold.
pub type Broken = String;

/// So many unread entries are shown.
const UNREAD_MAX: u64 = 100;

impl Watch {
    /// A signal was accepted under this id.
    pub(super) fn accepted(&mut self, run: RunId, id: &str) {
        self.accepted.entry(run).or_default().insert(id.to_owned());
    }

    /// Checks a moment, and against the one before.
    pub(super) fn check(&mut self, now: &Snapshot, clock: Timestamp) -> Result<(), Broken> {
        for (run, shot) in &now.runs {
            let checked = numbered(shot)
                .and_then(|()| rows(shot))
                .and_then(|()| inbox(shot))
                .and_then(|()| self.numbers_grow(*run, shot))
                .and_then(|()| self.same_as_before(*run, shot))
                .and_then(|()| self.signals(*run, shot, now))
                .and_then(|()| match is_flow(shot) {
                    true => decided(shot, clock),
                    false => Ok(()),
                });
            checked.map_err(|broken| format!("run {run}: {broken}"))?;
        }
        self.before = Some(now.clone());
        Ok(())
    }

    fn numbers_grow(&mut self, run: RunId, shot: &RunShot) -> Result<(), Broken> {
        for row in &shot.tasks {
            let last = self.numbers.entry((run, row.place, row.seq)).or_default();
            hold(row.number >= *last, "I8: a claim number went back")?;
            *last = row.number;
        }
        Ok(())
    }

    fn same_as_before(&self, run: RunId, shot: &RunShot) -> Result<(), Broken> {
        let Some(before) = self.before.as_ref().and_then(|before| before.runs.get(&run)) else {
            return Ok(());
        };
        let (old, new) = (&before.view, &shot.view);
        hold(old.identity == new.identity, "I27: a run changed its tenant or queue")?;
        hold(old.head <= new.head, "I2: the head went back")?;
        hold(shot.history.starts_with(&before.history), "I1: history was rewritten")?;
        hold(old.inbox_last <= new.inbox_last, "I14: inbox numbers went back")?;
        hold(old.inbox_used <= new.inbox_used, "I14: an entry was used up twice")?;
        if !old.status.has_ended() {
            return Ok(());
        }
        hold(old == new && before.history == shot.history, "I28: an ended run changed")?;
        let kept = shot.tasks.iter().all(|row| before.tasks.contains(row));
        hold(kept, "I28: an ended run got a row")
    }

    /// Every accepted signal is in the history, in the inbox or a dead letter; in one of them.
    fn signals(&self, run: RunId, shot: &RunShot, now: &Snapshot) -> Result<(), Broken> {
        let mut seen: Vec<&str> = Vec::new();
        for row in &shot.history {
            if let Event::SignalReceived { signal, .. } = &row.event {
                seen.push(&signal.id);
            }
        }
        for entry in &shot.unread {
            if let Fact::Signal(signal) = &entry.fact {
                seen.push(&signal.id);
            }
        }
        let letters = now.dead_letters.iter().filter(|letter| letter.run == run);
        let letters = letters.filter(|l| l.kind == durably_kernel::DeadLetterKind::Unread);
        seen.extend(letters.map(|letter| letter.activity_id.as_str()));
        let once: BTreeSet<&str> = seen.iter().copied().collect();
        hold(once.len() == seen.len(), "I14: a signal counts twice")?;
        let all_shown = shot.view.inbox_last - shot.view.inbox_used <= UNREAD_MAX;
        if is_flow(shot) && all_shown {
            let none = BTreeSet::new();
            let accepted = self.accepted.get(&run).unwrap_or(&none);
            let lost = accepted.iter().find(|id| !once.contains(id.as_str()));
            hold(lost.is_none(), &format!("I14: the accepted signal {lost:?} vanished"))?;
        }
        Ok(())
    }
}

fn hold(holds: bool, otherwise: &str) -> Result<(), Broken> {
    match holds {
        true => Ok(()),
        false => Err(otherwise.to_owned()),
    }
}

fn is_flow(shot: &RunShot) -> bool {
    shot.view.workflow_type.as_str() == FLOW
}

fn is_end(event: &Event) -> bool {
    matches!(
        event,
        Event::WorkflowCompleted { .. }
            | Event::WorkflowFailed { .. }
            | Event::WorkflowCancelled { .. }
            | Event::WorkflowTerminated { .. }
    )
}

/// Events count from 1 without gaps up to the head, and their times do not go back.
pub fn numbered(shot: &RunShot) -> Result<(), Broken> {
    let gapless = shot.history.iter().zip(1..).all(|(row, seq)| row.seq == Seq(seq));
    hold(gapless, "I1: events are not numbered 1..n")?;
    hold(shot.history.len() as u64 == shot.view.head.0, "I2: the head is not the last event")?;
    let times = shot.history.windows(2).all(|two| two[0].committed_at <= two[1].committed_at);
    hold(times, "I1: commit times go back")
}

/// Every row is in a state that makes sense by itself.
pub fn rows(shot: &RunShot) -> Result<(), Broken> {
    let places = shot.tasks.windows(2).all(|two| two[0].place < two[1].place);
    hold(places, "I5: two rows at a place, or not in order")?;
    for row in &shot.tasks {
        let owned = matches!(row.state, TaskState::Claimed | TaskState::Cancelling);
        hold(owned == row.attempt.is_some(), "I9: claimed without an owner, or owned unclaimed")?;
        hold(!owned || row.number > 0, "I9: claimed without a number")?;
        let waits = row.state == TaskState::Waiting;
        hold(waits == row.due_at.is_some(), "I9: a time without waiting, or waiting for no time")?;
        let ended = shot.view.status.has_ended();
        let cancelling = row.state == TaskState::Cancelling;
        hold(!ended || cancelling, "I10: a live row of an ended run")?;
        hold(row.place != Place::TURN || row.kind == TaskKind::Turn, "place 0 is the turn row")?;
        hold(
            row.place == Place::TURN || row.kind != TaskKind::Turn,
            "a turn row at another place",
        )?;
        let claimable = matches!(row.kind, TaskKind::Turn | TaskKind::Activity);
        hold(claimable || waits, "I9: a row that nobody claims does not wait")?;
        let losses = row.losses.iter().all(|loss| loss.lost_at >= loss.attempt.started_at);
        hold(losses, "a loss before its beginning")?;
    }
    Ok(())
}

/// The inbox has no gaps, and what is unread has a turn row.
pub fn inbox(shot: &RunShot) -> Result<(), Broken> {
    let view = &shot.view;
    hold(view.inbox_used <= view.inbox_last, "I14: more used up than delivered")?;
    let unread = view.inbox_last - view.inbox_used;
    hold(shot.unread.len() as u64 == unread.min(UNREAD_MAX), "I14: entries are missing")?;
    let gapless = shot.unread.iter().zip(view.inbox_used + 1..).all(|(e, n)| e.number == n);
    hold(gapless, "I14: inbox numbers have gaps")?;
    let ids: BTreeSet<&str> = shot.unread.iter().map(|entry| entry.id.as_str()).collect();
    hold(ids.len() == shot.unread.len(), "I14: one id twice in the inbox")?;
    let ended = view.status.has_ended();
    hold(!ended || unread == 0, "I14: unread entries of an ended run")?;
    hold(ended || unread == 0 || has_turn(shot), "I11: unread entries without a turn row")
}

fn has_turn(shot: &RunShot) -> bool {
    shot.tasks.iter().any(|row| row.place == Place::TURN)
}

/// One end, and it is last.
pub fn ended(shot: &RunShot) -> Result<(), Broken> {
    let end = shot.history.iter().position(|row| is_end(&row.event));
    let last = shot.history.len() - 1;
    hold(end.is_none_or(|at| at == last), "I3: an event after the end")
}

/// Never before its time, by the store's clock.
pub fn timers(shot: &RunShot, clock: Timestamp) -> Result<(), Broken> {
    let due = |id: &durably_kernel::TimerId| {
        shot.history.iter().find_map(|row| match &row.event {
            Event::TimerStarted { timer_id, duration_ms, .. } if timer_id == id => {
                Some(Timestamp(row.committed_at.0 + *duration_ms as i64))
            }
            _ => None,
        })
    };
    let mut fired = BTreeSet::new();
    for row in &shot.history {
        if let Event::TimerFired { timer_id, .. } = &row.event {
            hold(fired.insert(timer_id), "I13: a timer fired twice")?;
            let due = due(timer_id).ok_or("I13: a timer fired that was never started")?;
            hold(due <= row.committed_at, "I13: a timer fired before its time")?;
        }
    }
    for entry in &shot.unread {
        if let Fact::TimerFired { timer_id, .. } = &entry.fact {
            hold(fired.insert(timer_id), "I13: a timer fired twice")?;
            let due = due(timer_id).ok_or("I13: a timer fired that was never started")?;
            hold(due <= clock, "I13: a timer fired before its time")?;
        }
    }
    Ok(())
}

/// Runs whose every commit was decided by the kernel.
fn decided(shot: &RunShot, clock: Timestamp) -> Result<(), Broken> {
    ended(shot)?;
    timers(shot, clock)?;
    let events: Vec<Event> = shot.history.iter().map(|row| row.event.clone()).collect();
    let run = Run::fold(shot.view.identity.clone(), &events)
        .map_err(|broken| format!("I4: the history does not fold: {broken}"))?;
    folded(shot, &run)
}

/// The run's row and the rows of its work are those of its events.
pub fn folded(shot: &RunShot, run: &Run) -> Result<(), Broken> {
    let view = &shot.view;
    hold(run.status == view.status, "I4: the status is not that of the events")?;
    let version = run.version.or(view.version);
    hold(version == view.version, "I4: the version is not that of the events")?;
    let begun = run.status != RunStatus::Pending;
    let told = run.retries == view.retries && run.last_error == view.last_error;
    hold(!begun || told, "I4: the summary is not that of the events")?;
    if run.status.has_ended() {
        return hold(view.ended_at.is_some(), "I4: ended without a time");
    }
    work(shot, run)?;
    let goes_on = !shot.tasks.is_empty() || view.waits != Waits::Signals(Vec::new());
    hold(goes_on, "I11: an open run that waits for nothing")
}

/// Every open activity and timer has a row or an entry; every row belongs to something open.
fn work(shot: &RunShot, run: &Run) -> Result<(), Broken> {
    let row = |place: Place, kind: TaskKind, seq: Seq| {
        let fits = |row: &&durably_store::TaskRow| {
            (row.place, row.kind, row.seq) == (place, kind, seq)
                && row.state != TaskState::Cancelling
        };
        shot.tasks.iter().any(|task| fits(&task))
    };
    let entry = |id: &str| shot.unread.iter().any(|entry| concerns(&entry.fact, id));
    let mut wanted = BTreeSet::from([Place::TURN]);
    for (id, activity) in &run.activities {
        let known = match activity.phase {
            Phase::Queued => {
                let place = activity.place.ok_or("a queued activity has a place")?;
                wanted.insert(place);
                let queued = row(place, TaskKind::Activity, activity.queued);
                hold(
                    !(queued && outcome(shot, id.as_str(), activity.queued)),
                    "I5: row and outcome",
                )?;
                queued || entry(id.as_str())
            }
            Phase::Backoff(place, since) => {
                wanted.insert(place);
                row(place, TaskKind::Retry, since) || entry(id.as_str())
            }
            Phase::UnderWay(_) => has_turn(shot),
        };
        hold(known, &format!("I5: activity {id} has neither a row nor an outcome"))?;
        wanted.extend(activity.start_place.into_iter().chain(activity.close_place));
    }
    for (id, timer) in &run.timers {
        wanted.insert(timer.place);
        let known = row(timer.place, TaskKind::Timer, timer.started) || entry(id.as_str());
        hold(known, &format!("I5: timer {id} has neither a row nor an entry"))?;
    }
    let of_run =
        |row: &durably_store::TaskRow| row.kind == TaskKind::Timeout && row.target.is_empty();
    for row in &shot.tasks {
        let live = row.state != TaskState::Cancelling && !of_run(row);
        hold(!live || wanted.contains(&row.place), &format!("I5: nobody wants {row:?}"))?;
    }
    Ok(())
}

fn concerns(fact: &Fact, id: &str) -> bool {
    match fact {
        Fact::ActivityCompleted { activity_id, .. }
        | Fact::ActivityFailed { activity_id, .. }
        | Fact::ActivityTimedOut { activity_id, .. }
        | Fact::ActivityLost { activity_id, .. }
        | Fact::InlineLost { activity_id, .. }
        | Fact::RetryDue { activity_id, .. } => activity_id.as_str() == id,
        Fact::TimerFired { timer_id, .. } => timer_id.as_str() == id,
        Fact::Begin { .. }
        | Fact::Signal(_)
        | Fact::CancelRequested { .. }
        | Fact::ShutdownRequested {}
        | Fact::RunTimedOut {} => false,
    }
}

/// Whether an outcome of the task that this event queued waits in the inbox.
fn outcome(shot: &RunShot, id: &str, queued: Seq) -> bool {
    shot.unread.iter().any(|entry| match &entry.fact {
        Fact::ActivityCompleted { activity_id, seq, .. }
        | Fact::ActivityFailed { activity_id, seq, .. }
        | Fact::ActivityLost { activity_id, seq, .. } => {
            activity_id.as_str() == id && *seq == queued
        }
        _ => false,
    })
}
