//! Housekeeping: who is dead, what is lost, what is due, what took too long.

use crate::desk::Writer;
use crate::error::Trouble;
use crate::field::{Fields, limit};
use crate::sql;
use crate::task::Task;
use crate::tx::Tx;
use durably_kernel::{
    ActivityId, Fact, LossCause, Place, RunId, TaskKind, TaskPut, TaskState, TimeoutKind, TimerId,
    Timestamp, WorkerId,
};
use durably_store::{Delivery, Hint, StoreError, SweepCall, Swept};
use rusqlite::{OptionalExtension, Row, params};
use std::collections::BTreeSet;

/// A process that may be dead.
struct Suspect {
    who: WorkerId,
    host: String,
    locked: bool,
    beat_at: Timestamp,
}

impl Writer {
    pub(crate) fn sweep(&mut self, call: &SweepCall) -> Result<Swept, StoreError> {
        let (swept, dead) = self.transact("sweep", |tx| tx.sweep(call))?;
        for who in dead {
            self.locks.remove(&who);
        }
        Ok(swept)
    }
}

impl Tx<'_> {
    /// Gives the processes that were declared dead as well, so that their lock files can go once
    /// that is committed.
    pub(crate) fn sweep(&mut self, call: &SweepCall) -> Result<(Swept, Vec<WorkerId>), Trouble> {
        let mut swept = Swept::default();
        let dead = self.declare_dead(call)?;
        swept.dead = dead.len();
        self.return_lost(call.most, &mut swept)?;
        self.fire_due(call.most, &mut swept)?;
        self.time_out(call.most, &mut swept)?;
        // What the bound kept from being returned is due at once.
        let lost = if self.lost_owners()?.is_empty() { None } else { Some(self.now) };
        let next = self.next_due()?.into_iter().chain(lost).min();
        swept.next_due = next.map(|at| at.since(self.now));
        Ok((swept, dead))
    }

    /// Dead is who was silent for too long, and who had a lock file on this host that is free or
    /// gone.
    fn declare_dead(&mut self, call: &SweepCall) -> Result<Vec<WorkerId>, Trouble> {
        if call.may_declare {
            let bound = params![self.now.0, self.now.after(call.stale_after).0];
            self.conn.prepare_cached(sql::WORKERS_AHEAD)?.execute(bound)?;
        }
        let here = self.hosts_here(call.who.as_ref())?;
        let mut dead = Vec::new();
        for suspect in self.suspects()? {
            if call.who.as_ref() == Some(&suspect.who) {
                continue;
            }
            let silent = self.now.since(suspect.beat_at) > call.stale_after;
            let by_time = call.may_declare && silent;
            let judged = suspect.locked && here.contains(&suspect.host);
            if by_time || (judged && self.locks.proves_dead(&suspect.who)) {
                let bound = params![suspect.who.as_str()];
                self.conn.prepare_cached(sql::WORKER_STALE)?.execute(bound)?;
                dead.push(suspect.who);
            }
        }
        Ok(dead)
    }

    /// The names of this host: the sweeper's, or those under which processes registered here. A
    /// lock on another host says nothing.
    fn hosts_here(&self, sweeper: Option<&WorkerId>) -> Result<BTreeSet<String>, Trouble> {
        let Some(sweeper) = sweeper else {
            return Ok(self.locks.hosts());
        };
        let mut statement = self.conn.prepare_cached(sql::WORKER_HOST)?;
        let host: Option<String> =
            statement.query_row(params![sweeper.as_str()], |row| row.get(0)).optional()?;
        Ok(host.into_iter().collect())
    }

    fn suspects(&self) -> Result<Vec<Suspect>, Trouble> {
        let mut statement = self.conn.prepare_cached(sql::WORKERS_ALIVE)?;
        let mut rows = statement.query([])?;
        let mut suspects = Vec::new();
        while let Some(row) = rows.next()? {
            let mut fields = Fields::of(row);
            suspects.push(Suspect {
                who: WorkerId::from(fields.take::<String>()?),
                host: fields.take()?,
                locked: fields.truth()?,
                beat_at: fields.time_set()?,
            });
        }
        Ok(suspects)
    }

    /// Claims whose owner is missing or gone, whenever it went.
    fn return_lost(&mut self, most: usize, swept: &mut Swept) -> Result<(), Trouble> {
        let mut lost = BTreeSet::new();
        for owner in self.lost_owners()? {
            let mut statement = self.conn.prepare_cached(sql::SWEEP_LOST)?;
            let mut rows = statement.query(params![owner, limit(most)])?;
            while let Some(row) = rows.next()? {
                lost.insert(read_place(row)?);
            }
        }
        for (run, place) in lost.into_iter().take(most) {
            if let Some(task) = Task::load(self.conn, run, place)? {
                swept.returned += 1;
                self.return_row(task, swept)?;
            }
        }
        Ok(())
    }

    /// Processes that have rows and are missing or gone.
    fn lost_owners(&self) -> Result<Vec<String>, Trouble> {
        let mut statement = self.conn.prepare_cached(sql::SWEEP_OWNERS)?;
        let owners = statement.query_map([], |row| row.get(0))?;
        Ok(owners.collect::<Result<_, _>>()?)
    }

    fn return_row(&mut self, mut task: Task, swept: &mut Swept) -> Result<(), Trouble> {
        if task.state == TaskState::Cancelling {
            return Task::delete(self.conn, task.run, task.place);
        }
        task.note_loss(LossCause::Died, self.now);
        if task.kind == TaskKind::Activity && task.deaths >= task.most_deaths() {
            Task::delete(self.conn, task.run, task.place)?;
            let id = format!("lost:{}:{}", task.target, task.seq);
            let fact = Fact::ActivityLost {
                activity_id: ActivityId::from(task.target),
                seq: task.seq,
                losses: task.losses,
            };
            return self.deliver_own(task.run, id, fact, swept);
        }
        self.make_ready(&mut task)?;
        task.save(self.conn)?;
        swept.ready += 1;
        Ok(())
    }

    fn deliver_own(
        &mut self,
        run: RunId,
        id: String,
        fact: Fact,
        swept: &mut Swept,
    ) -> Result<(), Trouble> {
        self.deliver(Delivery { run, id, fact, claim: None })?;
        swept.delivered += 1;
        Ok(())
    }

    /// Waiting rows whose time has come, oldest first.
    fn fire_due(&mut self, most: usize, swept: &mut Swept) -> Result<(), Trouble> {
        let mut due = Vec::new();
        {
            let mut statement = self.conn.prepare_cached(sql::SWEEP_DUE)?;
            let mut rows = statement.query(params![self.now.0, limit(most)])?;
            while let Some(row) = rows.next()? {
                due.push(read_place(row)?);
            }
        }
        for (run, place) in due {
            // An earlier row of this very sweep may have taken it away.
            if let Some(task) = Task::load(self.conn, run, place)? {
                self.fire(task, swept)?;
            }
        }
        Ok(())
    }

    fn fire(&mut self, mut task: Task, swept: &mut Swept) -> Result<(), Trouble> {
        let (run, seq) = (task.run, task.seq);
        match task.kind {
            TaskKind::Turn | TaskKind::Activity => {
                self.make_ready(&mut task)?;
                task.save(self.conn)?;
                swept.ready += 1;
                Ok(())
            }
            TaskKind::Timer => {
                Task::delete(self.conn, run, task.place)?;
                let id = format!("timer:{}:{seq}", task.target);
                let timer_id = TimerId::from(task.target);
                self.deliver_own(run, id, Fact::TimerFired { timer_id, seq }, swept)
            }
            TaskKind::Retry => {
                Task::delete(self.conn, run, task.place)?;
                let id = format!("retry:{}:{seq}", task.target);
                let activity_id = ActivityId::from(task.target);
                self.deliver_own(run, id, Fact::RetryDue { activity_id, seq }, swept)
            }
            TaskKind::Timeout => self.fire_timeout(task, swept),
        }
    }

    fn fire_timeout(&mut self, task: Task, swept: &mut Swept) -> Result<(), Trouble> {
        let (run, seq) = (task.run, task.seq);
        Task::delete(self.conn, run, task.place)?;
        let Some(kind) = TaskPut::timeout_kind(&task.name) else {
            return Err(task.damaged(&format!("time-out {:?}", task.name)));
        };
        if kind == TimeoutKind::Run {
            return self.deliver_own(run, "timeout:run".into(), Fact::RunTimedOut {}, swept);
        }
        let watched = match task.watched {
            Some(place) => Task::load(self.conn, run, place)?,
            None => None,
        };
        if kind == TimeoutKind::ScheduleToStart {
            // A worker has begun it, now or before: the time-out is met.
            let waits = watched.as_ref().is_some_and(|task| {
                task.attempt == 0 && matches!(task.state, TaskState::Ready | TaskState::Gated)
            });
            if !waits {
                return Ok(());
            }
        }
        if let Some(watched) = &watched {
            Task::delete(self.conn, run, watched.place)?;
        }
        let id = format!("timeout:{}:{}:{seq}", kind.name(), task.target);
        let fact = Fact::ActivityTimedOut {
            activity_id: ActivityId::from(task.target),
            seq,
            timeout: kind,
            attempt: watched.as_ref().and_then(Task::attempt_now),
            details: None,
            losses: watched.map(|watched| watched.losses).unwrap_or_default(),
        };
        self.deliver_own(run, id, fact, swept)
    }

    /// Claimed rows that took too long or were silent for too long.
    fn time_out(&mut self, most: usize, swept: &mut Swept) -> Result<(), Trouble> {
        let mut late = Vec::new();
        {
            let mut statement = self.conn.prepare_cached(sql::SWEEP_LATE)?;
            let mut rows = statement.query(params![self.now.0, limit(most)])?;
            while let Some(row) = rows.next()? {
                let timeout = match row.get(2)? {
                    true => TimeoutKind::StartToClose,
                    false => TimeoutKind::Heartbeat,
                };
                late.push((read_place(row)?, timeout));
            }
        }
        for ((run, place), timeout) in late {
            let Some(task) = Task::load(self.conn, run, place)? else {
                continue;
            };
            if task.state == TaskState::Cancelling || task.kind == TaskKind::Turn {
                swept.returned += 1;
                self.return_row(task, swept)?;
                continue;
            }
            Task::delete(self.conn, run, place)?;
            self.hint(Hint::Claims);
            let id = format!("timeout:{}:{}:{}", task.target, task.seq, task.number);
            let fact = Fact::ActivityTimedOut {
                attempt: task.attempt_now(),
                activity_id: ActivityId::from(task.target),
                seq: task.seq,
                timeout,
                details: task.details,
                losses: task.losses,
            };
            self.deliver_own(run, id, fact, swept)?;
        }
        Ok(())
    }

    /// When the next thing is due.
    fn next_due(&self) -> Result<Option<Timestamp>, Trouble> {
        let mut statement = self.conn.prepare_cached(sql::SWEEP_NEXT)?;
        let next: Option<i64> = statement.query_row([], |row| row.get(0))?;
        Ok(next.map(Timestamp))
    }
}

fn read_place(row: &Row<'_>) -> Result<(RunId, Place), Trouble> {
    let mut fields = Fields::of(row);
    Ok((RunId(fields.uuid()?), Place(fields.take()?)))
}
