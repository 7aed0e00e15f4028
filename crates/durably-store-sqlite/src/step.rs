//! The commits that make up nearly all work, in as few statements as they need: a task's outcome
//! with the next task at its place, a holder's inline step, and either of them as the last one.
//!
//! One statement checks everything; where it finds no row, the commit goes the long way (`commit`),
//! which says what is wrong. So this one decides nothing of its own: it only writes what the long
//! way would write.

use crate::commit::change_of;
use crate::error::Trouble;
use crate::field::{Fields, json, stored, stored_millis};
use crate::sql;
use crate::task::Owner;
use crate::tx::Tx;
use durably_kernel::{
    Claim, Payload, Place, RunStatus, Seq, Summary, TaskChange, TaskKind, TaskPut, Tenant,
    Timestamp, Waits,
};
use durably_store::{Base, Committed, Committer, RunCommit, TurnAfter, kept_deadline};
use rusqlite::{CachedStatement, Connection, params};

/// The statements of steps, prepared once per transaction.
pub(crate) struct Steps<'a> {
    check_task: CachedStatement<'a>,
    check_turn: CachedStatement<'a>,
    run: CachedStatement<'a>,
    pub(crate) history: CachedStatement<'a>,
    task: CachedStatement<'a>,
    end: CachedStatement<'a>,
}

impl<'a> Steps<'a> {
    pub(crate) fn prepare(conn: &'a Connection) -> Result<Steps<'a>, Trouble> {
        Ok(Steps {
            check_task: conn.prepare_cached(sql::STEP_CHECK_TASK)?,
            check_turn: conn.prepare_cached(sql::STEP_CHECK_TURN)?,
            run: conn.prepare_cached(sql::STEP_RUN)?,
            history: conn.prepare_cached(sql::HISTORY_INSERT)?,
            task: conn.prepare_cached(sql::STEP_TASK)?,
            end: conn.prepare_cached(sql::STEP_END)?,
        })
    }
}

/// A commit that may be a plain step.
#[derive(Clone, Copy)]
struct Step<'c> {
    who: &'c Committer,
    commit: &'c RunCommit,
    head: Seq,
    summary: &'c Summary,
}

/// What the check found of a task.
struct FoundTask {
    row: i64,
    tenant: Tenant,
    /// Whether a claim call took it.
    by_call: bool,
}

/// What the check found of a turn row.
struct FoundTurn {
    row: i64,
    deadline: Timestamp,
    version: u32,
    fresh: bool,
    no_loss: bool,
}

/// What the check found of a run.
struct Found {
    row: i64,
    version: Option<u32>,
    started_at: Option<i64>,
}

impl Found {
    fn read(fields: &mut Fields<'_, '_>) -> Result<Found, Trouble> {
        let (row, version, started_at) = (fields.take()?, fields.take()?, fields.take()?);
        Ok(Found { row, version, started_at })
    }
}

impl Tx<'_> {
    /// Makes a commit that is a plain step; none where it is not, or does not fit.
    pub(crate) fn step(
        &mut self,
        who: Option<&Committer>,
        commit: &RunCommit,
    ) -> Result<Option<Committed>, Trouble> {
        let (Some(who), Some(summary), Base::Head(head)) = (who, &commit.summary, &commit.base)
        else {
            return Ok(None);
        };
        let plain = !commit.operator
            && !commit.events.is_empty()
            && commit.unread.is_empty()
            && commit.dead_letters.is_empty()
            && commit.deliveries.is_empty();
        if !plain {
            return Ok(None);
        }
        let step = Step { who, commit, head: *head, summary };
        let goes_on = summary.status == RunStatus::Running;
        let ends = summary.status.has_ended() && commit.tasks.is_empty();
        match (&commit.turn, &commit.holder, commit.claims.as_slice()) {
            (TurnAfter::Release, None, [claim]) if goes_on => self.step_task(&step, claim),
            (TurnAfter::Release, None, [claim]) if ends => self.end_task(&step, claim),
            (TurnAfter::Keep, Some(holder), []) if goes_on && commit.tasks.is_empty() => {
                self.step_turn(&step, holder)
            }
            (TurnAfter::Release, Some(holder), []) if ends => self.end_turn(&step, holder),
            _ => Ok(None),
        }
    }

    /// An outcome, and the next task at the same place in the same hands.
    fn step_task(&mut self, step: &Step<'_>, claim: &Claim) -> Result<Option<Committed>, Trouble> {
        let Step { who, commit, .. } = *step;
        let Some(put) = next_at(commit, claim) else { return Ok(None) };
        let Some((found, task)) = self.check_task(step, claim)? else { return Ok(None) };
        if !who.may_begin(TaskKind::Activity, put.priority, &task.tenant) {
            return Ok(None);
        }
        if task.by_call {
            self.conn.prepare_cached(sql::STEP_CALL)?.execute(params![task.row])?;
        }
        let number = claim.number.next();
        let owner = Owner::of_activity(&who.id, self.now, put.options.as_deref());
        self.steps.task.execute(params![
            task.row,
            put.details.as_ref().map(Payload::text),
            put.name,
            put.target,
            put.queue.as_str(),
            put.priority,
            stored(put.seq.0),
            stored(number.0),
            owner.claimed_at.0,
            owner.deadline.0,
            owner.heartbeat.map(stored_millis),
            owner.heartbeat_by.map(|at| at.0),
            put.attempt + 1,
            put.deaths,
            put.input.as_ref().map(Payload::text),
            put.options.as_deref().map(json).transpose()?,
            commit.trace,
        ])?;
        let head = self.step_run(step, &found)?;
        let next = Claim { run: commit.run, place: put.place, seq: put.seq, number };
        let (unread, eager) = (Vec::new(), vec![next]);
        Ok(Some(Committed { head, turn: None, unread, now: self.now, eager }))
    }

    /// A holder's step; it goes on.
    fn step_turn(&mut self, step: &Step<'_>, holder: &Claim) -> Result<Option<Committed>, Trouble> {
        let Step { commit, summary, .. } = *step;
        let Some((found, turn)) = self.check_turn(step, holder)? else { return Ok(None) };
        let pinned = summary.version.or(found.version);
        if turn.version != pinned.unwrap_or(0) || turn.fresh || found.started_at.is_none() {
            return Ok(None);
        }
        let kept = kept_deadline(turn.deadline, self.now.after(commit.turn_deadline));
        if !turn.no_loss || kept != turn.deadline {
            let bound = params![commit.run.0.as_bytes(), kept.0];
            self.conn.prepare_cached(sql::TURN_KEEP)?.execute(bound)?;
        }
        let head = self.step_run(step, &found)?;
        let (turn, unread, eager) = (Some(*holder), Vec::new(), Vec::new());
        Ok(Some(Committed { head, turn, unread, now: self.now, eager }))
    }

    /// An outcome that ends the run.
    fn end_task(&mut self, step: &Step<'_>, claim: &Claim) -> Result<Option<Committed>, Trouble> {
        let Some((found, task)) = self.check_task(step, claim)? else { return Ok(None) };
        self.conn.prepare_cached(sql::TASK_DELETE_ROW)?.execute(params![task.row])?;
        self.end_run(step, &found).map(Some)
    }

    /// A holder's last step.
    fn end_turn(&mut self, step: &Step<'_>, holder: &Claim) -> Result<Option<Committed>, Trouble> {
        let Some((found, turn)) = self.check_turn(step, holder)? else { return Ok(None) };
        self.conn.prepare_cached(sql::TASK_DELETE_ROW)?.execute(params![turn.row])?;
        self.end_run(step, &found).map(Some)
    }

    /// The run has ended; whatever rows it still has go the long way.
    fn end_run(&mut self, step: &Step<'_>, found: &Found) -> Result<Committed, Trouble> {
        let bound = params![step.commit.run.0.as_bytes()];
        if self.conn.prepare_cached(sql::END_LEFT)?.exists(bound)? {
            self.end_rows(step.commit, None)?;
        }
        let head = self.step_run(step, found)?;
        let (unread, eager) = (Vec::new(), Vec::new());
        Ok(Committed { head, turn: None, unread, now: self.now, eager })
    }

    fn check_task(
        &mut self,
        step: &Step<'_>,
        claim: &Claim,
    ) -> Result<Option<(Found, FoundTask)>, Trouble> {
        let Step { who, commit, head, .. } = *step;
        if claim.run != commit.run || claim.place == Place::TURN {
            return Ok(None);
        }
        let mut rows = self.steps.check_task.query(params![
            commit.run.0.as_bytes(),
            claim.place.0,
            stored(claim.seq.0),
            stored(claim.number.0),
            who.id.as_str(),
            stored(head.0),
            stored(commit.inbox_used),
        ])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let mut fields = Fields::of(row);
        let found = Found::read(&mut fields)?;
        let tenant = Tenant::from(fields.take::<String>()?);
        let (row, by_call) = (fields.take()?, fields.take()?);
        Ok(Some((found, FoundTask { row, tenant, by_call })))
    }

    fn check_turn(
        &mut self,
        step: &Step<'_>,
        holder: &Claim,
    ) -> Result<Option<(Found, FoundTurn)>, Trouble> {
        let Step { who, commit, head, .. } = *step;
        if holder.run != commit.run || holder.place != Place::TURN {
            return Ok(None);
        }
        let mut rows = self.steps.check_turn.query(params![
            commit.run.0.as_bytes(),
            stored(holder.seq.0),
            stored(holder.number.0),
            who.id.as_str(),
            stored(head.0),
            stored(commit.inbox_used),
        ])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let mut fields = Fields::of(row);
        let found = Found::read(&mut fields)?;
        let turn = FoundTurn {
            row: fields.take()?,
            deadline: Timestamp(fields.take()?),
            version: fields.take()?,
            fresh: fields.take()?,
            no_loss: fields.take()?,
        };
        Ok(Some((found, turn)))
    }

    /// The run's row and its history.
    fn step_run(&mut self, step: &Step<'_>, found: &Found) -> Result<Seq, Trouble> {
        let Step { commit, summary, head, .. } = *step;
        let count = commit.events.len() as u64;
        let new_head = Seq(head.0 + count);
        let started_at = match summary.version {
            Some(_) => found.started_at.or(Some(self.now.0)),
            None => found.started_at,
        };
        let waits = match &summary.waits {
            Waits::Any => None,
            Waits::Signals(names) => Some(json(names)?),
        };
        let (version, retries) = (summary.version.or(found.version), summary.retries);
        let last_error = summary.last_error.as_ref().map(json).transpose()?;
        let (row, stored_head) = (found.row, stored(new_head.0));
        if summary.status.has_ended() {
            let (status, now) = (summary.status.name(), self.now.0);
            self.steps.end.execute(params![
                row,
                stored_head,
                version,
                started_at,
                waits,
                retries,
                last_error,
                status,
                now
            ])?;
        } else {
            let run = &mut self.steps.run;
            let bound = params![row, stored_head, version, started_at, waits, retries, last_error];
            run.execute(bound)?;
        }
        self.steps.history.execute(params![
            commit.run.0.as_bytes(),
            stored(head.next().0),
            stored(count),
            commit.id.0.as_bytes(),
            self.now.0,
            commit.trace,
            self.events,
        ])?;
        self.hint(change_of(commit));
        Ok(new_head)
    }
}

/// The next task at the place of a claim, if that is all that the commit does to rows and it is to
/// begin at once.
fn next_at<'a>(commit: &'a RunCommit, claim: &Claim) -> Option<&'a TaskPut> {
    let fits = commit.tasks.len() == 1;
    let Some(TaskChange::Put(put)) = commit.tasks.get(&claim.place).filter(|_| fits) else {
        return None;
    };
    let at_once = put.delay.is_none_or(|delay| delay.is_zero());
    let begins = put.kind == TaskKind::Activity
        && at_once
        && put.watched.is_none()
        && put.place == claim.place
        && commit.eager.contains(&put.place);
    begins.then_some(put)
}
