//! What must hold of every store at any moment ([`durably_store::check`]), and what may not change
//! any more.

use super::flow::FLOW;
use crate::snapshot::Snapshot;
use durably_kernel::{Event, Fact, Place, RunId, Seq, Timestamp};
use durably_store::check::{self, Found, RunShot, UNREAD_MAX};
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
type Broken = String;

impl Watch {
    /// A signal was accepted under this id.
    pub(super) fn accepted(&mut self, run: RunId, id: &str) {
        self.accepted.entry(run).or_default().insert(id.to_owned());
    }

    /// Checks a moment, and against the one before.
    pub(super) fn check(&mut self, now: &Snapshot, clock: Timestamp) -> Result<(), Broken> {
        for (run, shot) in &now.runs {
            let checked = sound(shot, clock)
                .and_then(|()| self.numbers_grow(*run, shot))
                .and_then(|()| self.same_as_before(*run, shot))
                .and_then(|()| self.signals(*run, shot, now));
            checked.map_err(|broken| format!("run {run}: {broken}"))?;
        }
        let before = self.before.as_ref().map(|before| before.leader.term);
        hold(before <= Some(now.leader.term), "the term of the leader went back")?;
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
        let all_shown = shot.view.inbox_last - shot.view.inbox_used <= UNREAD_MAX as u64;
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

/// Runs whose every commit was decided by the kernel are what their events tell.
fn sound(shot: &RunShot, clock: Timestamp) -> Result<(), Broken> {
    let mut found = Found::new();
    check::stored(shot, &mut found);
    if is_flow(shot) {
        check::told_of(shot, clock, &mut found);
    }
    match found.first() {
        None => Ok(()),
        Some(broken) => Err(broken.to_string()),
    }
}
