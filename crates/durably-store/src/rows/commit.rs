//! Changes of runs: checked first, then written whole.

use super::UNREAD_MAX;
use super::row::Row;
use super::state::{HistoryRow, RunRecord, State};
use crate::answer::{CommitAnswer, Committed, Parked};
use crate::command::{Base, NewRun, RunCommit, TurnAfter, kept_deadline};
use crate::eager::Committer;
use crate::find::DeadLetterRow;
use crate::hint::Hint;
use durably_kernel::{
    ActivityId, Claim, Code, CommitId, DeadLetter, DeadLetterKind, Fact, Failure, FailureKind,
    LossCause, Payload, Place, RunId, Seq, TaskChange, TaskKind, TaskMove, TaskPut, TaskState,
    Tenant, Timestamp, WorkerId,
};
use std::sync::Arc;

impl State {
    /// Checks a commit, and does it if it fits.
    pub fn commit(
        &mut self,
        who: Option<&Committer>,
        commit: &RunCommit,
        now: Timestamp,
    ) -> CommitAnswer {
        let refused = match &commit.base {
            Base::New(new) => self.refuse_start(new),
            Base::Head(head) => self.refuse_change(who.map(|who| &who.id), commit, *head),
        };
        match refused {
            Some(answer) => answer,
            None => CommitAnswer::Committed(Box::new(self.apply(who, commit, now))),
        }
    }

    pub(crate) fn look_up(&self, run: RunId, commit: CommitId) -> bool {
        self.runs
            .get(&run)
            .is_some_and(|record| record.history.iter().rev().any(|row| row.commit == commit))
    }

    fn refuse_start(&self, new: &NewRun) -> Option<CommitAnswer> {
        let same_id = self.runs.get(&new.identity.id);
        let same_key = || {
            let key = new.check.key.clone()?;
            self.runs.get(self.keys.get(&(new.identity.tenant.clone(), key))?)
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
            let row = record.rows.get(claim.place);
            row.zip(who).is_some_and(|(row, who)| row.stands(commit.run, claim, who))
        };
        let claims = commit.claims.iter().chain(&commit.holder);
        let gone: Vec<Claim> = claims.filter(|claim| !stands(claim)).copied().collect();
        if !gone.is_empty() {
            return Some(CommitAnswer::Fenced(gone));
        }
        let turn = record.rows.get(Place::TURN);
        let held = turn.is_some_and(|row| row.state == TaskState::Claimed);
        if held && commit.holder.is_none() && !commit.operator {
            return Some(CommitAnswer::Held);
        }
        if record.head != head || record.status.has_ended() {
            return Some(CommitAnswer::Conflict);
        }
        let used = commit.inbox_used.max(record.inbox_used);
        if ends(commit) && record.inbox_last > used && !commit.end_anyway {
            return Some(CommitAnswer::EndConflict);
        }
        None
    }

    fn apply(&mut self, who: Option<&Committer>, commit: &RunCommit, now: Timestamp) -> Committed {
        let run = commit.run;
        if let Base::New(new) = &commit.base {
            self.keys
                .extend(new.check.key.clone().map(|k| ((new.identity.tenant.clone(), k), run)));
            self.runs.insert(run, Box::new(RunRecord::new((**new).clone(), now)));
        }
        self.write_record(commit, now);
        let eager = self.write_rows(who, commit, now);
        self.write_dead_letters(commit, now);
        let turn = match ends(commit) {
            true => {
                self.end_rows(commit);
                None
            }
            false => self.settle_turn(who, commit, now),
        };
        for delivery in commit.deliveries.iter().cloned() {
            // A delivery to a run that has ended is dropped.
            self.deliver(delivery, now);
        }
        let record = &self.runs[&run];
        self.hints.note(match commit.events.last().filter(|_| ends(commit)) {
            Some(last) => Hint::Ended(run, Arc::new(last.clone())),
            None => Hint::Changed(run),
        });
        Committed {
            head: record.head,
            unread: if turn.is_some() { record.unread(UNREAD_MAX) } else { Vec::new() },
            turn,
            now,
            eager,
        }
    }

    /// Keeps the events of a commit that was done.
    pub(crate) fn record(&mut self, commit: &RunCommit, now: Timestamp) {
        let Some(record) = self.runs.get_mut(&commit.run) else { return };
        let events = commit.events.clone();
        if !events.is_empty() {
            let first = Seq(record.head.0 + 1 - events.len() as u64);
            record.history.push(HistoryRow { first, commit: commit.id, events, at: now });
        }
    }

    fn write_record(&mut self, commit: &RunCommit, now: Timestamp) {
        let record = self.record_mut(commit.run);
        record.head = Seq(record.head.0 + commit.events.len() as u64);
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

    /// The claims of those that begin in the committer's hands.
    fn write_rows(
        &mut self,
        who: Option<&Committer>,
        commit: &RunCommit,
        now: Timestamp,
    ) -> Vec<Claim> {
        let run = commit.run;
        let mut eager = Vec::new();
        for claim in &commit.claims {
            if !matches!(commit.tasks.get(&claim.place), Some(TaskChange::Put(_))) {
                self.take_out(run, claim.place);
            }
        }
        for (&place, change) in &commit.tasks {
            match change {
                TaskChange::Put(put) => eager.extend(self.put(who, commit, put, now)),
                TaskChange::Delete(_) => drop(self.take_out(run, place)),
                TaskChange::Cancel(_) => self.cancel(run, place),
            }
        }
        eager
    }

    /// The claim of a row that begins in the committer's hands.
    fn put(
        &mut self,
        who: Option<&Committer>,
        commit: &RunCommit,
        put: &TaskPut,
        now: Timestamp,
    ) -> Option<Claim> {
        let record = &self.runs[&commit.run];
        let tenant = &record.new.identity.tenant;
        let (begins, delay) = (beginner(who, commit, put, tenant), put.delay);
        let mut row = Box::new(Row::put(put, record.rows.get(put.place)));
        match begins {
            Some(who) => {
                row.go(TaskMove::ComeDue);
                row.take(row.owner_of(&who.id, now));
            }
            None => self.schedule(&mut row, delay, now),
        }
        let claim = begins.map(|_| row.claim(commit.run));
        self.put_over(commit.run, row);
        claim
    }

    /// What a worker has in its hands is cancelling; another row goes.
    fn cancel(&mut self, run: RunId, place: Place) {
        let row = self.take_out(run, place);
        if let Some(mut row) = row.filter(|row| row.state.after(TaskMove::Cancel) != Ok(None)) {
            row.go(TaskMove::Cancel);
            self.put_in(run, row);
            self.hints.note(Hint::Claims);
        }
    }

    fn write_dead_letters(&mut self, commit: &RunCommit, now: Timestamp) {
        let record = &self.runs[&commit.run];
        let newer = record.inbox_used + 1..=record.inbox_last;
        let forced = newer.filter(|_| ends(commit) && commit.end_anyway);
        let unread: Vec<DeadLetter> = commit
            .unread
            .iter()
            .copied()
            .chain(forced)
            .filter_map(|number| record.inbox.get(&number))
            .filter_map(|entry| unread_letter(&entry.id, &entry.fact))
            .collect();
        if ends(commit) {
            let record = self.record_mut(commit.run);
            record.inbox_used = record.inbox_last;
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
    fn end_rows(&mut self, commit: &RunCommit) {
        let run = commit.run;
        let turn = self.take_out(run, Place::TURN);
        if turn.is_some_and(|turn| turn.state == TaskState::Claimed) && commit.holder.is_none() {
            self.hints.note(Hint::Claims);
        }
        let places: Vec<Place> = self.runs[&run].rows.values().map(|row| row.place).collect();
        for place in places {
            self.cancel(run, place);
        }
    }

    /// The turn row of an open run after a commit, and the claim of it that the committer has.
    fn settle_turn(
        &mut self,
        who: Option<&Committer>,
        commit: &RunCommit,
        now: Timestamp,
    ) -> Option<Claim> {
        let record = &self.runs[&commit.run];
        let more = record.inbox_last > record.inbox_used;
        if let Some(row) =
            record.rows.get(Place::TURN).filter(|row| stays(row, record, commit, now))
        {
            return Some(row.claim(commit.run));
        }
        let row = self.take_out(commit.run, Place::TURN);
        let row = match (row, &commit.holder) {
            (Some(row), Some(_)) => self.settle_held(row, commit, more, now),
            (Some(row), None) => Some(self.settle_other(row, commit, now)),
            (None, _) => self.new_turn(who, commit, more, now),
        };
        let mut row = row?;
        let record = &self.runs[&commit.run];
        row.version = record.version.unwrap_or(0);
        row.fresh = record.started_at.is_none();
        let mine =
            row.state == TaskState::Claimed && who.is_some_and(|who| row.is_owned_by(&who.id));
        let claim = mine.then(|| row.claim(commit.run));
        self.put_in(commit.run, row);
        claim
    }

    /// The committer holds the run.
    fn settle_held(
        &mut self,
        mut row: Box<Row>,
        commit: &RunCommit,
        more: bool,
        now: Timestamp,
    ) -> Option<Box<Row>> {
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
                self.make_ready(&mut row);
                return Some(row);
            }
            TurnAfter::Park { delay, code, reason } => {
                let record = self.record_mut(commit.run);
                let times = record.parked.as_ref().map_or(0, |parked| parked.times) + 1;
                let (code, reason) = (code.clone(), reason.clone());
                record.parked = Some(Parked { code, reason, times, at: now });
                row.go(TaskMove::Park);
                row.owner = None;
                row.due = Some(now.after(*delay));
                self.hints.note(Hint::Due);
                return Some(row);
            }
        }
        if let Some(owner) = &mut row.owner {
            owner.deadline = kept_deadline(owner.deadline, now.after(commit.turn_deadline));
        }
        Some(row)
    }

    /// The row is somebody else's or nobody's: it stays as it is, except under an operator.
    fn settle_other(&mut self, mut row: Box<Row>, commit: &RunCommit, now: Timestamp) -> Box<Row> {
        if commit.operator {
            if row.state == TaskState::Claimed {
                row.note_loss(LossCause::Died, now);
                self.hints.note(Hint::Claims);
            }
            self.make_ready(&mut row);
        }
        row
    }

    fn new_turn(
        &mut self,
        who: Option<&Committer>,
        commit: &RunCommit,
        more: bool,
        now: Timestamp,
    ) -> Option<Box<Row>> {
        let wanted = match &commit.turn {
            TurnAfter::Release => more || commit.operator,
            TurnAfter::Park { .. } => more,
            TurnAfter::Keep | TurnAfter::Return | TurnAfter::Want { .. } => true,
        };
        if !wanted {
            return None;
        }
        let record = self.record_mut(commit.run);
        let mut row = record.turn_row();
        let tenant = record.new.identity.tenant.clone();
        let keeps = who.filter(|who| {
            commit.turn == TurnAfter::Keep && who.may_begin(TaskKind::Turn, row.priority, &tenant)
        });
        match (&commit.turn, keeps) {
            (_, Some(who)) => {
                row.go(TaskMove::ComeDue);
                row.take(State::owner(&who.id, now, commit.turn_deadline));
            }
            (TurnAfter::Want { delay }, _) => self.schedule(&mut row, *delay, now),
            _ => self.schedule(&mut row, None, now),
        }
        Some(row)
    }
}

/// Whether the holder keeps its turn row just as it is: so it does with most steps.
fn stays(row: &Row, record: &RunRecord, commit: &RunCommit, now: Timestamp) -> bool {
    let deadline = row.owner.as_ref().map(|owner| owner.deadline);
    let kept = deadline.map(|before| kept_deadline(before, now.after(commit.turn_deadline)));
    commit.holder.is_some()
        && commit.turn == TurnAfter::Keep
        && (row.losses.is_empty() && row.deaths == 0)
        && deadline == kept
        && row.version == record.version.unwrap_or(0)
        && row.fresh == record.started_at.is_none()
}

/// Whoever begins a task at once, if that is wanted and nothing else has a better right.
fn beginner<'a>(
    who: Option<&'a Committer>,
    commit: &RunCommit,
    put: &TaskPut,
    tenant: &Tenant,
) -> Option<&'a Committer> {
    let wanted = put.kind == TaskKind::Activity
        && put.delay.is_none_or(|delay| delay.is_zero())
        && commit.eager.contains(&put.place)
        && !ends(commit);
    who.filter(|who| wanted && who.may_begin(TaskKind::Activity, put.priority, tenant))
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
