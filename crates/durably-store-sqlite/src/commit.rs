//! Changes of runs: checked first, then written whole. A commit that loses has written nothing, so
//! the others of its batch go on in the same transaction.

use crate::error::Trouble;
use crate::field::{json, stored, stored_millis};
use crate::run::{Namesake, Run};
use crate::sql;
use crate::task::{Fence, Owner, Task, claim_stands};
use crate::tx::Tx;
use durably_kernel::{
    ActivityId, Claim, ClaimNumber, Code, CommitId, DeadLetter, DeadLetterKind, Fact, Failure,
    FailureKind, LossCause, Payload, Place, RunId, Seq, TaskChange, TaskKind, TaskMove, TaskPut,
    TaskState, WorkerId,
};
use durably_store::{
    Base, CommitAnswer, Committed, Committer, Hint, InboxEntry, NewRun, Parked, RunCommit,
    TurnAfter, kept_deadline,
};
use rusqlite::{OptionalExtension, params};
use std::sync::Arc;

/// What a check came to.
enum Checked {
    Refused(CommitAnswer),
    /// The run as it was, or as it begins, and its turn row.
    Fits(Box<Run>, Option<Box<Task>>),
}

impl Tx<'_> {
    pub(crate) fn commit(
        &mut self,
        who: Option<&Committer>,
        commit: &RunCommit,
    ) -> Result<CommitAnswer, Trouble> {
        if let Some(committed) = self.step(who, commit)? {
            return Ok(CommitAnswer::Committed(Box::new(committed)));
        }
        let checked = match &commit.base {
            Base::New(new) => self.check_start(new)?,
            Base::Head(head) => self.check_change(who.map(|who| &who.id), commit, *head)?,
        };
        match checked {
            Checked::Refused(answer) => Ok(answer),
            Checked::Fits(run, turn) => {
                let committed = self.apply(who, commit, *run, turn)?;
                Ok(CommitAnswer::Committed(Box::new(committed)))
            }
        }
    }

    pub(crate) fn look_up(&self, run: RunId, commit: CommitId) -> Result<bool, Trouble> {
        let mut statement = self.conn.prepare_cached(sql::HISTORY_LOOK_UP)?;
        let bound = params![run.0.as_bytes(), commit.0.as_bytes()];
        let found: Option<i64> = statement.query_row(bound, |row| row.get(0)).optional()?;
        Ok(found.is_some())
    }

    fn check_start(&self, new: &NewRun) -> Result<Checked, Trouble> {
        let same_id = Namesake::by_id(self.conn, new.identity.id)?;
        let found = match (same_id, &new.check.key) {
            (Some(found), _) => Some(found),
            (None, Some(key)) => Namesake::by_key(self.conn, &new.identity.tenant, key)?,
            (None, None) => None,
        };
        Ok(match found {
            None => Checked::Fits(Box::new(Run::new(new, self.now)), None),
            Some(found) => Checked::Refused(CommitAnswer::Exists {
                run: found.run,
                same: found.workflow_type == new.workflow_type.as_str()
                    && found.input_hash == new.check.input_hash,
            }),
        })
    }

    fn check_change(
        &self,
        who: Option<&WorkerId>,
        commit: &RunCommit,
        head: Seq,
    ) -> Result<Checked, Trouble> {
        let Some(run) = Run::load(self.conn, commit.run)? else {
            return Ok(Checked::Refused(CommitAnswer::Unknown));
        };
        let turn = Task::load(self.conn, commit.run, Place::TURN)?;
        let mut gone = Vec::new();
        for claim in commit.claims.iter().chain(&commit.holder) {
            let stands = match (claim.place, &turn, who) {
                (Place::TURN, Some(turn), Some(who)) => turn.stands(claim, who),
                _ => claim_stands(self.conn, commit.run, claim, who)?,
            };
            if !stands {
                gone.push(*claim);
            }
        }
        if !gone.is_empty() {
            return Ok(Checked::Refused(CommitAnswer::Fenced(gone)));
        }
        let held = turn.as_ref().is_some_and(|turn| turn.state == TaskState::Claimed);
        if held && commit.holder.is_none() && !commit.operator {
            return Ok(Checked::Refused(CommitAnswer::Held));
        }
        if run.head != head || run.status.has_ended() {
            return Ok(Checked::Refused(CommitAnswer::Conflict));
        }
        let used = commit.inbox_used.max(run.inbox_used);
        if ends(commit) && run.inbox_last > used && !commit.end_anyway {
            return Ok(Checked::Refused(CommitAnswer::EndConflict));
        }
        Ok(Checked::Fits(Box::new(run), turn.map(Box::new)))
    }

    fn apply(
        &mut self,
        who: Option<&Committer>,
        commit: &RunCommit,
        before: Run,
        turn: Option<Box<Task>>,
    ) -> Result<Committed, Trouble> {
        let mut run = before.clone();
        self.write_history(commit, &mut run)?;
        self.write_summary(commit, &mut run);
        let eager = self.write_rows(who, commit, &run)?;
        self.write_dead_letters(commit, &mut run)?;
        let turn = match ends(commit) {
            true => {
                self.end_rows(commit, turn.as_deref())?;
                None
            }
            false => {
                let row = self.turn_now(commit, turn)?;
                self.settle_turn(who, commit, &mut run, row)?
            }
        };
        match &commit.base {
            Base::New(_) => run.insert(self.conn, commit.trace.as_deref())?,
            Base::Head(_) => run.save(self.conn, &before)?,
        }
        self.hint(change_of(commit));
        let delivers = !commit.deliveries.is_empty();
        for delivery in commit.deliveries.iter().cloned() {
            // A delivery to a run that has ended is dropped.
            self.deliver(delivery)?;
        }
        if delivers && turn.is_some() {
            // It may have delivered to itself.
            run = Run::load(self.conn, commit.run)?.unwrap_or(run);
        }
        Ok(Committed {
            head: run.head,
            unread: if turn.is_some() { self.unread(&run)? } else { Vec::new() },
            turn,
            now: self.now,
            eager,
        })
    }

    fn write_history(&mut self, commit: &RunCommit, run: &mut Run) -> Result<(), Trouble> {
        if commit.events.is_empty() {
            return Ok(());
        }
        let count = commit.events.len() as u64;
        self.steps.history.execute(params![
            commit.run.0.as_bytes(),
            stored(run.head.next().0),
            stored(count),
            commit.id.0.as_bytes(),
            self.now.0,
            commit.trace,
            self.events,
        ])?;
        run.head = Seq(run.head.0 + count);
        Ok(())
    }

    fn write_summary(&self, commit: &RunCommit, run: &mut Run) {
        run.inbox_used = run.inbox_used.max(commit.inbox_used);
        let Some(summary) = &commit.summary else {
            return;
        };
        run.status = summary.status;
        run.version = summary.version.or(run.version);
        run.waits = summary.waits.clone();
        run.retries = summary.retries;
        run.last_error = summary.last_error.clone();
        if !matches!(commit.turn, TurnAfter::Park { .. }) {
            run.parked = None;
        }
        if summary.version.is_some() {
            run.started_at.get_or_insert(self.now);
        }
        if summary.status.has_ended() {
            run.ended_at.get_or_insert(self.now);
        }
    }

    /// The claims of those that begin in the committer's hands.
    fn write_rows(
        &mut self,
        who: Option<&Committer>,
        commit: &RunCommit,
        run: &Run,
    ) -> Result<Vec<Claim>, Trouble> {
        let mut eager = Vec::new();
        for claim in &commit.claims {
            if !matches!(commit.tasks.get(&claim.place), Some(TaskChange::Put(_))) {
                Task::delete(self.conn, commit.run, claim.place)?;
            }
        }
        for change in commit.tasks.values() {
            match change {
                TaskChange::Put(put) => eager.extend(self.put(who, commit, run, put)?),
                TaskChange::Delete(place) => Task::delete(self.conn, commit.run, *place)?,
                TaskChange::Cancel(place) => self.cancel(commit.run, *place)?,
            }
        }
        Ok(eager)
    }

    /// Whoever begins a task at once, if that is wanted and nothing else has a better right.
    fn beginner(
        &self,
        who: Option<&Committer>,
        commit: &RunCommit,
        run: &Run,
        put: &TaskPut,
    ) -> Option<Owner> {
        let wanted = put.kind == TaskKind::Activity
            && put.delay.is_none_or(|delay| delay.is_zero())
            && commit.eager.contains(&put.place)
            && !ends(commit);
        let tenant = &run.identity.tenant;
        let who =
            who.filter(|who| wanted && who.may_begin(TaskKind::Activity, put.priority, tenant))?;
        Some(Owner::of_activity(&who.id, self.now, put.options.as_deref()))
    }

    /// Inserts a row, or writes over the one at its place; the claim of a row that begins claimed.
    fn put(
        &mut self,
        who: Option<&Committer>,
        commit: &RunCommit,
        run: &Run,
        put: &TaskPut,
    ) -> Result<Option<Claim>, Trouble> {
        let claimable = matches!(put.kind, TaskKind::Turn | TaskKind::Activity);
        let at_once = put.delay.is_none_or(|delay| delay.is_zero());
        let owner = self.beginner(who, commit, run, put);
        let (state, order, due) = if owner.is_some() {
            (TaskState::Claimed, 0, None)
        } else if claimable && at_once {
            self.hint(Hint::Ready);
            (TaskState::Ready, self.next_order()?, None)
        } else {
            self.hint(Hint::Due);
            let due = self.now.after(put.delay.unwrap_or_default());
            (TaskState::Waiting, 0, Some(due.0))
        };
        let owner = owner.as_ref();
        let options = put.options.as_deref().map(json).transpose()?;
        let bound = params![
            commit.run.0.as_bytes(),
            put.place.0,
            put.kind.name(),
            put.name,
            put.target,
            put.watched.map(|place| place.0),
            put.queue.as_str(),
            run.identity.tenant.as_str(),
            put.priority,
            stored(put.seq.0),
            state.name(),
            stored(order),
            due,
            put.attempt + u32::from(owner.is_some()),
            put.deaths,
            put.input.as_ref().map(Payload::text),
            options,
            put.details.as_ref().map(Payload::text),
            commit.trace,
            owner.map(|owner| owner.who.as_str()),
            owner.map(|owner| owner.claimed_at.0),
            owner.map(|owner| owner.deadline.0),
            owner.and_then(|owner| owner.heartbeat).map(stored_millis),
            owner.and_then(|owner| owner.heartbeat_by).map(|at| at.0),
        ];
        // A claim that is used up left its row there; at other places there is mostly none.
        let used_up = commit.claims.iter().find(|claim| claim.place == put.place);
        let (first, second) = match used_up {
            Some(_) => (sql::TASK_PUT_OVER, sql::TASK_PUT),
            None => (sql::TASK_PUT, sql::TASK_PUT_OVER),
        };
        let mut is_first = true;
        if self.conn.prepare_cached(first)?.execute(bound)? == 0 {
            self.conn.prepare_cached(second)?.execute(bound)?;
            is_first = false;
        }
        if owner.is_none() {
            return Ok(None);
        }
        let number = match (used_up, is_first) {
            (Some(claim), true) => claim.number.next(),
            (None, true) => ClaimNumber(1),
            (_, false) => self.number_at(commit.run, put.place)?,
        };
        Ok(Some(Claim { run: commit.run, place: put.place, seq: put.seq, number }))
    }

    /// The claim number of a row.
    fn number_at(&self, run: RunId, place: Place) -> Result<ClaimNumber, Trouble> {
        let fence = Fence::load(self.conn, run, place)?;
        Ok(ClaimNumber(fence.map_or(0, |fence| fence.number)))
    }

    fn cancel(&mut self, run: RunId, place: Place) -> Result<(), Trouble> {
        let bound = params![run.0.as_bytes(), place.0];
        let in_hands = self.conn.prepare_cached(sql::TASK_CANCEL)?.execute(bound)?;
        match in_hands {
            0 => Task::delete(self.conn, run, place),
            _ => {
                self.hint(Hint::Claims);
                Ok(())
            }
        }
    }

    fn write_dead_letters(&mut self, commit: &RunCommit, run: &mut Run) -> Result<(), Trouble> {
        let newer = run.inbox_used + 1..=run.inbox_last;
        let forced = newer.filter(|_| ends(commit) && commit.end_anyway);
        let mut letters = commit.dead_letters.clone();
        for number in commit.unread.iter().copied().chain(forced) {
            let entry = self.entry(commit.run, number)?;
            letters.extend(entry.and_then(unread_letter));
        }
        if ends(commit) {
            run.inbox_used = run.inbox_last;
        }
        for letter in letters {
            self.write_dead_letter(commit.run, &letter)?;
        }
        Ok(())
    }

    fn write_dead_letter(&self, run: RunId, letter: &DeadLetter) -> Result<(), Trouble> {
        let last_error = letter.errors.last().map(ToString::to_string).unwrap_or_default();
        self.conn.prepare_cached(sql::LETTER_INSERT)?.execute(params![
            run.0.as_bytes(),
            letter.kind.name(),
            letter.activity_id.as_str(),
            letter.activity_type,
            letter.input.text(),
            letter.attempts,
            last_error,
            json(&letter.errors)?,
            self.now.0,
        ])?;
        Ok(())
    }

    /// Nothing of an ended run can be claimed; what a worker has in its hands is cancelling.
    pub(crate) fn end_rows(
        &mut self,
        commit: &RunCommit,
        turn: Option<&Task>,
    ) -> Result<(), Trouble> {
        let taken = turn.is_some_and(|turn| turn.state == TaskState::Claimed);
        if taken && commit.holder.is_none() {
            self.hint(Hint::Claims);
        }
        let bound = params![commit.run.0.as_bytes()];
        self.conn.prepare_cached(sql::END_DELETE)?.execute(bound)?;
        if self.conn.prepare_cached(sql::END_LEFT)?.exists(bound)? {
            self.conn.prepare_cached(sql::END_CANCEL)?.execute(bound)?;
            self.hint(Hint::Claims);
        }
        Ok(())
    }

    /// The turn row as it was checked, unless the commit itself named it as one of its tasks.
    fn turn_now(
        &self,
        commit: &RunCommit,
        checked: Option<Box<Task>>,
    ) -> Result<Option<Task>, Trouble> {
        let named = commit.claims.iter().any(|claim| claim.place == Place::TURN)
            || commit.tasks.contains_key(&Place::TURN);
        match named {
            true => Task::load(self.conn, commit.run, Place::TURN),
            false => Ok(checked.map(|task| *task)),
        }
    }

    /// The turn row of an open run after a commit, and the claim of it that the committer has.
    fn settle_turn(
        &mut self,
        who: Option<&Committer>,
        commit: &RunCommit,
        run: &mut Run,
        row: Option<Task>,
    ) -> Result<Option<Claim>, Trouble> {
        let task = match row {
            None => {
                let Some(task) = self.new_turn(who, commit, run)? else {
                    return Ok(None);
                };
                task.insert_turn(self.conn, commit.trace.as_deref())?;
                task
            }
            Some(task) if commit.holder.is_some() => {
                let Some(task) = self.settle_held(task, commit, run)? else {
                    Task::delete(self.conn, commit.run, Place::TURN)?;
                    return Ok(None);
                };
                task
            }
            Some(task) => self.settle_other(task, commit, run)?,
        };
        let mine =
            task.state == TaskState::Claimed && who.is_some_and(|who| task.is_owned_by(&who.id));
        Ok(mine.then(|| task.claim()))
    }

    /// The committer holds the run. None where it lets go of the row.
    fn settle_held(
        &mut self,
        mut task: Task,
        commit: &RunCommit,
        run: &mut Run,
    ) -> Result<Option<Task>, Trouble> {
        // A parked run's losses stay: no event has recorded them.
        if !matches!(commit.turn, TurnAfter::Park { .. }) {
            task.losses.clear();
            task.deaths = 0;
        }
        let (version, fresh) = (run.version.unwrap_or(0), run.started_at.is_none());
        let same_code = task.version == version && task.fresh == fresh;
        (task.version, task.fresh) = (version, fresh);
        match &commit.turn {
            TurnAfter::Release if !run.has_unread() => return Ok(None),
            TurnAfter::Keep | TurnAfter::Release => {
                let wanted = self.now.after(commit.turn_deadline);
                if let Some(owner) = &mut task.owner {
                    owner.deadline = kept_deadline(owner.deadline, wanted);
                }
                if let (true, Some(owner)) = (same_code, &task.owner) {
                    let bound = params![commit.run.0.as_bytes(), owner.deadline.0];
                    self.conn.prepare_cached(sql::TURN_KEEP)?.execute(bound)?;
                    return Ok(Some(task));
                }
            }
            TurnAfter::Return | TurnAfter::Want { .. } => self.make_ready(&mut task)?,
            TurnAfter::Park { delay, code, reason } => {
                let times = run.parked.as_ref().map_or(0, |parked| parked.times) + 1;
                let (code, reason) = (code.clone(), reason.clone());
                run.parked = Some(Parked { code, reason, times, at: self.now });
                task.go(TaskMove::Park)?;
                task.owner = None;
                task.due = Some(self.now.after(*delay));
                self.hint(Hint::Due);
            }
        }
        task.save(self.conn)?;
        Ok(Some(task))
    }

    /// The row is somebody else's or nobody's: it stays as it is, except under an operator.
    fn settle_other(
        &mut self,
        mut task: Task,
        commit: &RunCommit,
        run: &Run,
    ) -> Result<Task, Trouble> {
        let (version, fresh) = (run.version.unwrap_or(0), run.started_at.is_none());
        let same_code = task.version == version && task.fresh == fresh;
        (task.version, task.fresh) = (version, fresh);
        if commit.operator {
            if task.state == TaskState::Claimed {
                task.note_loss(LossCause::Died, self.now);
                self.hint(Hint::Claims);
            }
            self.make_ready(&mut task)?;
        }
        if commit.operator || !same_code {
            task.save(self.conn)?;
        }
        Ok(task)
    }

    fn new_turn(
        &mut self,
        who: Option<&Committer>,
        commit: &RunCommit,
        run: &mut Run,
    ) -> Result<Option<Task>, Trouble> {
        let wanted = match &commit.turn {
            TurnAfter::Release => run.has_unread() || commit.operator,
            TurnAfter::Park { .. } => run.has_unread(),
            TurnAfter::Keep | TurnAfter::Return | TurnAfter::Want { .. } => true,
        };
        if !wanted {
            return Ok(None);
        }
        let mut task = Tx::new_turn_row(run);
        let tenant = &run.identity.tenant;
        let keeps = who.filter(|who| {
            commit.turn == TurnAfter::Keep && who.may_begin(TaskKind::Turn, task.priority, tenant)
        });
        match (&commit.turn, keeps) {
            (TurnAfter::Want { delay: Some(delay) }, _) if !delay.is_zero() => {
                task.due = Some(self.now.after(*delay));
                self.hint(Hint::Due);
            }
            (_, Some(who)) => {
                task.go(TaskMove::ComeDue)?;
                task.take(Owner::new(&who.id, self.now, commit.turn_deadline))?;
            }
            (_, None) => self.make_ready(&mut task)?,
        }
        Ok(Some(task))
    }
}

/// What whoever watches the run hears.
pub(crate) fn change_of(commit: &RunCommit) -> Hint {
    match commit.events.last().filter(|_| ends(commit)) {
        Some(last) => Hint::Ended(commit.run, Arc::new(last.clone())),
        None => Hint::Changed(commit.run),
    }
}

fn ends(commit: &RunCommit) -> bool {
    commit.summary.as_ref().is_some_and(|summary| summary.status.has_ended())
}

/// What becomes of an entry that nobody read: an acknowledged signal is kept for people; timers,
/// time-outs and outcomes of a run that has ended are of no use to anybody.
fn unread_letter(entry: InboxEntry) -> Option<DeadLetter> {
    let Fact::Signal(signal) = entry.fact else {
        return None;
    };
    let error = Failure::new(FailureKind::Cancelled, "the run ended before it read this signal");
    Some(DeadLetter {
        kind: DeadLetterKind::Unread,
        activity_id: ActivityId::from(entry.id),
        activity_type: signal.signal_type,
        input: signal.payload,
        attempts: 0,
        errors: vec![error.code(Code::RUN_ENDED.as_str())],
    })
}
