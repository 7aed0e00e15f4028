//! Changes of runs: checked first, then written whole.

use super::UNREAD_MAX;
use super::row::Row;
use super::state::{HistoryRow, RunRecord, State};
use crate::answer::{CommitAnswer, Committed, Parked};
use crate::command::{Base, NewRun, RunCommit, TurnAfter};
use crate::find::DeadLetterRow;
use crate::hint::Hint;
use durably_kernel::{
    ActivityId, Claim, Code, CommitId, DeadLetter, DeadLetterKind, Fact, Failure, FailureKind,
    LossCause, Payload, Place, RunId, Seq, TaskChange, TaskKind, TaskMove, TaskState, Timestamp,
    WorkerId,
};

impl State {
    pub(super) fn commit(
        &mut self,
        who: Option<&WorkerId>,
        commit: RunCommit,
        now: Timestamp,
    ) -> CommitAnswer {
        let refused = match &commit.base {
            Base::New(new) => self.refuse_start(new),
            Base::Head(head) => self.refuse_change(who, &commit, *head),
        };
        match refused {
            Some(answer) => answer,
            None => CommitAnswer::Committed(Box::new(self.apply(who, commit, now))),
        }
    }

    pub(super) fn look_up(&self, run: RunId, commit: CommitId) -> bool {
        self.runs
            .get(&run)
            .is_some_and(|record| record.history.iter().any(|row| row.commit == commit))
    }

    fn refuse_start(&self, new: &NewRun) -> Option<CommitAnswer> {
        let same_id = self.runs.get(&new.identity.id);
        let same_key = || {
            let key = new.check.key.as_ref()?;
            self.runs.values().find(|record| {
                record.new.identity.tenant == new.identity.tenant
                    && record.new.check.key.as_ref() == Some(key)
            })
        };
        let found = same_id.or_else(same_key)?;
        Some(CommitAnswer::Exists {
            run: found.new.identity.id,
            same: found.new.workflow_type == new.workflow_type
                && found.new.check.input_hash == new.check.input_hash,
        })
    }

    fn refuse_change(
        &self,
        who: Option<&WorkerId>,
        commit: &RunCommit,
        head: Seq,
    ) -> Option<CommitAnswer> {
        let Some(record) = self.runs.get(&commit.run) else {
            return Some(CommitAnswer::Unknown);
        };
        let stands = |claim: &Claim| {
            let row = record.rows.get(&claim.place);
            row.zip(who).is_some_and(|(row, who)| row.stands(commit.run, claim, who))
        };
        let claims = commit.claims.iter().chain(&commit.holder);
        let gone: Vec<Claim> = claims.filter(|claim| !stands(claim)).copied().collect();
        if !gone.is_empty() {
            return Some(CommitAnswer::Fenced(gone));
        }
        let turn = record.rows.get(&Place::TURN);
        let held = turn.is_some_and(|row| row.state == TaskState::Claimed);
        if held && commit.holder.is_none() && !commit.operator {
            return Some(CommitAnswer::Held);
        }
        if record.head != head || record.status.has_ended() {
            return Some(CommitAnswer::Conflict);
        }
        let used = commit.inbox_used.max(record.inbox_used);
        if ends(commit) && record.inbox_last() > used && !commit.end_anyway {
            return Some(CommitAnswer::EndConflict);
        }
        None
    }

    fn apply(&mut self, who: Option<&WorkerId>, commit: RunCommit, now: Timestamp) -> Committed {
        let run = commit.run;
        if let Base::New(new) = &commit.base {
            self.runs.insert(run, RunRecord::new((**new).clone(), now));
        }
        self.write_record(&commit, now);
        self.write_rows(&commit, now);
        self.write_dead_letters(&commit, now);
        let turn = match ends(&commit) {
            true => {
                self.end_rows(run);
                None
            }
            false => self.settle_turn(who, &commit, now),
        };
        for delivery in commit.deliveries.iter().cloned() {
            // A delivery to a run that has ended is dropped.
            self.deliver(delivery, now);
        }
        self.hints.push(Hint::Changed(run));
        let record = &self.runs[&run];
        Committed {
            head: record.head,
            unread: if turn.is_some() { record.unread(UNREAD_MAX) } else { Vec::new() },
            turn,
            now,
            waiting_priority: None,
            other_tenant_waits: false,
        }
    }

    fn write_record(&mut self, commit: &RunCommit, now: Timestamp) {
        let record = self.runs.get_mut(&commit.run).expect("checked before");
        if !commit.events.is_empty() {
            let (first, events) = (record.head.next(), commit.events.clone());
            record.head = Seq(record.head.0 + events.len() as u64);
            record.history.push(HistoryRow { first, commit: commit.id, events, at: now });
        }
        record.inbox_used = record.inbox_used.max(commit.inbox_used);
        let Some(summary) = &commit.summary else {
            return;
        };
        record.status = summary.status;
        record.version = summary.version.or(record.version);
        record.waits = summary.waits.clone();
        record.retries = summary.retries;
        record.last_error = summary.last_error.clone();
        if !matches!(commit.turn, TurnAfter::Park { .. }) {
            record.parked = None;
        }
        if summary.version.is_some() {
            record.started_at.get_or_insert(now);
        }
        if summary.status.has_ended() {
            record.ended_at.get_or_insert(now);
        }
    }

    fn write_rows(&mut self, commit: &RunCommit, now: Timestamp) {
        let mut rows = std::mem::take(&mut self.runs.get_mut(&commit.run).expect("checked").rows);
        for claim in &commit.claims {
            if !matches!(commit.tasks.get(&claim.place), Some(TaskChange::Put(_))) {
                rows.remove(&claim.place);
            }
        }
        for change in commit.tasks.values() {
            match change {
                TaskChange::Put(put) => {
                    let mut row = Row::put((**put).clone(), rows.get(&put.place), 0);
                    self.schedule(&mut row, put.delay, now);
                    rows.insert(put.place, row);
                }
                TaskChange::Delete(place) => {
                    rows.remove(place);
                }
                TaskChange::Cancel(place) => {
                    let stays =
                        |row: &Row| row.state.after(TaskMove::Cancel).expect("any row").is_some();
                    if let Some(mut row) = rows.remove(place).filter(stays) {
                        row.go(TaskMove::Cancel);
                        rows.insert(*place, row);
                        self.hints.push(Hint::Claims);
                    }
                }
            }
        }
        self.runs.get_mut(&commit.run).expect("checked").rows = rows;
    }

    fn write_dead_letters(&mut self, commit: &RunCommit, now: Timestamp) {
        let record = &self.runs[&commit.run];
        let newer = record.inbox_used + 1..=record.inbox_last();
        let forced = newer.filter(|_| ends(commit) && commit.end_anyway);
        let unread: Vec<DeadLetter> = commit
            .unread
            .iter()
            .copied()
            .chain(forced)
            .filter_map(|number| record.inbox.get(number as usize - 1))
            .filter_map(|entry| unread_letter(&entry.id, &entry.fact))
            .collect();
        if ends(commit) {
            let record = self.runs.get_mut(&commit.run).expect("checked before");
            record.inbox_used = record.inbox_last();
        }
        for letter in commit.dead_letters.iter().cloned().chain(unread) {
            let id = self.dead_letters.len() as i64 + 1;
            self.dead_letters.push(DeadLetterRow {
                id,
                run: commit.run,
                kind: letter.kind,
                activity_id: letter.activity_id,
                activity_type: letter.activity_type,
                input: letter.input,
                attempts: letter.attempts,
                errors: letter.errors,
                dead_at: now,
            });
        }
    }

    /// Nothing of an ended run can be claimed; what a worker has in its hands is cancelling.
    fn end_rows(&mut self, run: RunId) {
        let record = self.runs.get_mut(&run).expect("checked before");
        record.rows.remove(&Place::TURN);
        record.rows.retain(|_, row| match row.state.after(TaskMove::Cancel) {
            Ok(Some(next)) => {
                row.state = next;
                true
            }
            Ok(None) | Err(_) => false,
        });
        self.hints.push(Hint::Claims);
    }

    /// The turn row of an open run after a commit, and the claim of it that the committer has.
    fn settle_turn(
        &mut self,
        who: Option<&WorkerId>,
        commit: &RunCommit,
        now: Timestamp,
    ) -> Option<Claim> {
        let record = self.runs.get_mut(&commit.run).expect("checked before");
        let more = record.inbox_last() > record.inbox_used;
        let row = record.rows.remove(&Place::TURN);
        let row = match (row, &commit.holder) {
            (Some(row), Some(_)) => self.settle_held(row, commit, more, now),
            (Some(row), None) => Some(self.settle_other(row, commit, now)),
            (None, _) => self.new_turn(who, commit, more, now),
        };
        let mut row = row?;
        let record = self.runs.get_mut(&commit.run).expect("checked before");
        row.version = record.version.unwrap_or(0);
        row.fresh = record.started_at.is_none();
        let mine = row.state == TaskState::Claimed && who.is_some_and(|who| row.is_owned_by(who));
        let claim = mine.then(|| row.claim(commit.run));
        record.rows.insert(Place::TURN, row);
        claim
    }

    /// The committer holds the run.
    fn settle_held(
        &mut self,
        mut row: Row,
        commit: &RunCommit,
        more: bool,
        now: Timestamp,
    ) -> Option<Row> {
        // A parked run's losses stay: no event has recorded them.
        if !matches!(commit.turn, TurnAfter::Park { .. }) {
            row.losses.clear();
            row.deaths = 0;
        }
        match &commit.turn {
            TurnAfter::Keep => {}
            TurnAfter::Release if more => {}
            TurnAfter::Release => return None,
            TurnAfter::Return | TurnAfter::Want { .. } => {
                State::make_ready(&mut self.order, &mut self.hints, &mut row);
                return Some(row);
            }
            TurnAfter::Park { delay, code, reason } => {
                let record = self.runs.get_mut(&commit.run).expect("checked before");
                let times = record.parked.as_ref().map_or(0, |parked| parked.times) + 1;
                let (code, reason) = (code.clone(), reason.clone());
                record.parked = Some(Parked { code, reason, times, at: now });
                row.go(TaskMove::Park);
                row.owner = None;
                row.due = Some(now.after(*delay));
                self.hints.push(Hint::Due);
                return Some(row);
            }
        }
        if let Some(owner) = &mut row.owner {
            owner.deadline = now.after(commit.turn_deadline);
        }
        Some(row)
    }

    /// The row is somebody else's or nobody's: it stays as it is, except under an operator.
    fn settle_other(&mut self, mut row: Row, commit: &RunCommit, now: Timestamp) -> Row {
        if commit.operator {
            if row.state == TaskState::Claimed {
                row.note_loss(LossCause::Died, now);
                self.hints.push(Hint::Claims);
            }
            State::make_ready(&mut self.order, &mut self.hints, &mut row);
        }
        row
    }

    fn new_turn(
        &mut self,
        who: Option<&WorkerId>,
        commit: &RunCommit,
        more: bool,
        now: Timestamp,
    ) -> Option<Row> {
        let wanted = match &commit.turn {
            TurnAfter::Release => more || commit.operator,
            TurnAfter::Park { .. } => more,
            TurnAfter::Keep | TurnAfter::Return | TurnAfter::Want { .. } => true,
        };
        if !wanted {
            return None;
        }
        let record = self.runs.get_mut(&commit.run).expect("checked before");
        let mut row = record.turn_row();
        let delay = match &commit.turn {
            TurnAfter::Want { delay } => *delay,
            _ => None,
        };
        self.schedule(&mut row, delay, now);
        if let (TurnAfter::Keep, Some(who)) = (&commit.turn, who) {
            row.take(State::owner(who, now, commit.turn_deadline));
        }
        Some(row)
    }
}

fn ends(commit: &RunCommit) -> bool {
    commit.summary.as_ref().is_some_and(|summary| summary.status.has_ended())
}

/// What becomes of an entry that nobody read: an acknowledged signal is kept for people; timers,
/// time-outs and outcomes of a run that has ended are of no use to anybody.
fn unread_letter(id: &str, fact: &Fact) -> Option<DeadLetter> {
    let Fact::Signal(signal) = fact else {
        return None;
    };
    let error = Failure::new(FailureKind::Cancelled, "the run ended before it read this signal");
    Some(DeadLetter {
        kind: DeadLetterKind::Unread,
        activity_id: ActivityId::from(id),
        activity_type: signal.signal_type.clone(),
        input: Payload::clone(&signal.payload),
        attempts: 0,
        errors: vec![error.code(Code::RUN_ENDED.as_str())],
    })
}

/// Kinds that a worker claims.
pub(super) fn is_claimable(kind: TaskKind) -> bool {
    matches!(kind, TaskKind::Turn | TaskKind::Activity)
}
