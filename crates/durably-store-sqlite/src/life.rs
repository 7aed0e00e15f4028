//! Life of processes: registration, beats, hand-backs, the end.

use crate::desk::Writer;
use crate::error::Trouble;
use crate::field::{Fields, json, stored, stored_millis};
use crate::sql;
use crate::task::{Owned, Task};
use crate::tx::Tx;
use durably_kernel::{
    ActivityOptions, Claim, LossCause, Payload, Place, RunId, TaskKind, TaskState, Timestamp,
    WorkerId,
};
use durably_store::{
    AskAnswer, Beat, BeatAnswer, Claimable, ClaimedTask, Class, HandBack, Registration, Returned,
    StoreError, WorkerStatus,
};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{BTreeMap, BTreeSet};

/// A claim that so many beats in a row did not name goes back.
const UNNAMED_MAX: u32 = 3;

impl Writer {
    /// The lock comes before the row: a row without a held lock would be proof of a death. Where
    /// it is not known whether the row was written, the lock stays.
    pub(crate) fn register(&mut self, new: &Registration) -> Result<Timestamp, StoreError> {
        let had_lock = self.locks.holds(&new.who);
        let locked = self.locks.take(&new.who, &new.host)?;
        let registered = self.transact("register", |tx| {
            let at = tx.register(new, locked)?;
            Ok((at, tx.alive()?))
        });
        match &registered {
            Ok((_, alive)) => self.note_others(*alive),
            Err(error) if had_lock || error.class() == Class::Ambiguous => {}
            Err(_) => self.locks.release(&new.who),
        }
        registered.map(|(at, _)| at)
    }

    /// The row says that the process stopped before its lock is free.
    pub(crate) fn leave(&mut self, who: &WorkerId) -> Result<(), StoreError> {
        self.transact("leave", |tx| tx.leave(who))?;
        self.locks.release(who);
        Ok(())
    }

    pub(crate) fn beat(&mut self, beat: &Beat) -> Result<BeatAnswer, StoreError> {
        let (answer, alive) = self.transact("beat", |tx| {
            let answer = tx.beat(beat)?;
            Ok((answer, tx.alive()?))
        })?;
        self.note_others(alive);
        Ok(answer)
    }

    fn note_others(&mut self, alive: usize) {
        self.others = alive > self.locks.count();
    }
}

impl Tx<'_> {
    /// How many processes are registered and live, as far as is known.
    fn alive(&self) -> Result<usize, Trouble> {
        let mut statement = self.conn.prepare_cached(sql::WORKERS_COUNT)?;
        let alive: u32 = statement.query_row([], |row| row.get(0))?;
        Ok(alive as usize)
    }

    /// `locked` says whether the process has a lock file, which was taken before.
    pub(crate) fn register(
        &mut self,
        new: &Registration,
        locked: bool,
    ) -> Result<Timestamp, Trouble> {
        self.wake_parked(&new.can)?;
        self.conn.prepare_cached(sql::WORKER_INSERT)?.execute(params![
            new.who.as_str(),
            new.group,
            json(&new.queues)?,
            json(&new.can)?,
            new.capacity,
            new.host,
            new.version,
            locked,
            self.now.0,
        ])?;
        Ok(self.now)
    }

    /// New code may fit where old code did not: parked runs of its types are due at once.
    fn wake_parked(&mut self, can: &[Claimable]) -> Result<(), Trouble> {
        let mut hosted = Vec::new();
        let mut statement = self.conn.prepare_cached(sql::RUNS_PARKED)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let mut fields = Fields::of(row);
            let run = RunId(fields.uuid()?);
            let (name, version): (String, u32) = (fields.take()?, fields.take()?);
            let key = (TaskKind::Turn, name.as_str(), version);
            if can.iter().any(|can| can.keys().contains(&key)) {
                hosted.push(run);
            }
        }
        for run in hosted {
            if let Some(mut task) = Task::load(self.conn, run, Place::TURN)? {
                self.make_ready(&mut task)?;
                task.save(self.conn)?;
            }
        }
        Ok(())
    }

    pub(crate) fn drain(&mut self, who: &WorkerId) -> Result<(), Trouble> {
        self.conn.prepare_cached(sql::WORKER_DRAIN)?.execute(params![who.as_str()])?;
        Ok(())
    }

    pub(crate) fn leave(&mut self, who: &WorkerId) -> Result<(), Trouble> {
        self.stop_leading(who)?;
        let left = self.conn.prepare_cached(sql::WORKER_LEAVE)?.execute(params![who.as_str()])?;
        if left == 0 {
            return Ok(());
        }
        for owned in Owned::all(self.conn, who)? {
            self.give_up(&owned.claim, Returned::Stopped)?;
        }
        Ok(())
    }

    pub(crate) fn hand_back(&mut self, who: &WorkerId, back: HandBack) -> Result<(), Trouble> {
        let Some(task) = Task::load(self.conn, back.claim.run, back.claim.place)? else {
            return Ok(());
        };
        if task.claim() == back.claim && task.is_owned_by(who) {
            self.give_up(&back.claim, back.how)?;
        }
        Ok(())
    }

    /// A claimed row goes back to the queue, a cancelling one goes.
    fn give_up(&mut self, claim: &Claim, how: Returned) -> Result<(), Trouble> {
        let Some(mut task) = Task::load(self.conn, claim.run, claim.place)? else {
            return Ok(());
        };
        if task.state == TaskState::Cancelling {
            return Task::delete(self.conn, task.run, task.place);
        }
        match (how, task.kind) {
            // Only a cancelling row can be confirmed away: this one was revived meanwhile.
            (Returned::Confirmed, _) => return Ok(()),
            (Returned::Unstarted, TaskKind::Activity) => {
                task.attempt = task.attempt.saturating_sub(1);
            }
            (Returned::Stopped, _) => task.note_loss(LossCause::Stopped, self.now),
            (Returned::Unstarted, _) => {}
        }
        self.make_ready(&mut task)?;
        task.save(self.conn)
    }

    pub(crate) fn beat(&mut self, beat: &Beat) -> Result<BeatAnswer, Trouble> {
        if !worker_status(self.conn, &beat.who)?.is_some_and(WorkerStatus::holds_claims) {
            return Ok(BeatAnswer::Refused);
        }
        let bound = params![beat.who.as_str(), self.now.0, beat.load, stored(beat.number)];
        let in_order = self.conn.prepare_cached(sql::WORKER_BEAT)?.execute(bound)? > 0;
        if in_order {
            self.take_heartbeats(beat)?;
        }
        let owned = Owned::all(self.conn, &beat.who)?;
        let states: BTreeMap<Claim, TaskState> =
            owned.iter().map(|owned| (owned.claim, owned.state)).collect();
        let (mut lost, mut cancelling) = (Vec::new(), Vec::new());
        for claim in &beat.claims {
            match states.get(claim) {
                Some(TaskState::Claimed) => {}
                Some(TaskState::Cancelling) => cancelling.push(*claim),
                _ => lost.push(*claim),
            }
        }
        let unnamed = if in_order { self.count_unnamed(beat, owned)? } else { Vec::new() };
        let unread = self.unread_of(&beat.who)?;
        Ok(BeatAnswer::Alive { lost, cancelling, unnamed, unread, now: self.now })
    }

    fn take_heartbeats(&mut self, beat: &Beat) -> Result<(), Trouble> {
        for heartbeat in &beat.heartbeats {
            let claim = &heartbeat.claim;
            let Some(task) = Task::load(self.conn, claim.run, claim.place)? else {
                continue;
            };
            let (true, Some(owner)) = (task.stands(claim, &beat.who), &task.owner) else {
                continue;
            };
            let every = owner.heartbeat.unwrap_or(ActivityOptions::HEARTBEAT);
            self.conn.prepare_cached(sql::TASK_HEARTBEAT)?.execute(params![
                claim.run.0.as_bytes(),
                claim.place.0,
                stored_millis(every),
                self.now.after(every).0,
                heartbeat.details.as_ref().map(Payload::text),
            ])?;
        }
        Ok(())
    }

    /// Claims that the process did not name: reported, and given back after three beats.
    fn count_unnamed(
        &mut self,
        beat: &Beat,
        owned: Vec<Owned>,
    ) -> Result<Vec<ClaimedTask>, Trouble> {
        let named: BTreeSet<Claim> = beat.claims.iter().copied().collect();
        let mut reported = Vec::new();
        for Owned { claim, state, unnamed } in owned {
            let missing = state == TaskState::Claimed && !named.contains(&claim);
            let count = if missing { unnamed + 1 } else { 0 };
            if count >= UNNAMED_MAX {
                self.give_up(&claim, Returned::Unstarted)?;
                continue;
            }
            if count != unnamed {
                let bound = params![claim.run.0.as_bytes(), claim.place.0, count];
                self.conn.prepare_cached(sql::TASK_UNNAMED)?.execute(bound)?;
            }
            if missing && let Some(task) = Task::load(self.conn, claim.run, claim.place)? {
                reported.push(self.claimed_task(task)?);
            }
        }
        Ok(reported)
    }

    /// Runs that the process holds and that have unread inbox entries.
    fn unread_of(&self, who: &WorkerId) -> Result<Vec<RunId>, Trouble> {
        let mut statement = self.conn.prepare_cached(sql::OWNER_UNREAD)?;
        let mut rows = statement.query(params![who.as_str()])?;
        let mut runs = Vec::new();
        while let Some(row) = rows.next()? {
            runs.push(RunId(Fields::of(row).uuid()?));
        }
        Ok(runs)
    }

    pub(crate) fn ask(&self, who: &WorkerId) -> Result<AskAnswer, Trouble> {
        let status = worker_status(self.conn, who)?;
        let mut answer = AskAnswer {
            active: status.is_some_and(WorkerStatus::holds_claims),
            unread: self.unread_of(who)?,
            ..AskAnswer::default()
        };
        for owned in Owned::all(self.conn, who)? {
            match owned.state {
                TaskState::Cancelling => answer.cancelling.push(owned.claim),
                _ => answer.standing.push(owned.claim),
            }
        }
        Ok(answer)
    }
}

/// Where a process stands, if it is registered.
pub(crate) fn worker_status(
    conn: &Connection,
    who: &WorkerId,
) -> Result<Option<WorkerStatus>, Trouble> {
    let mut statement = conn.prepare_cached(sql::WORKER_STATUS)?;
    let name: Option<String> =
        statement.query_row(params![who.as_str()], |row| row.get(0)).optional()?;
    name.map(|name| {
        let problem = || format!("table durable_workers, worker {who}: status {name:?}");
        WorkerStatus::from_name(&name).ok_or_else(|| Trouble::Damaged(problem()))
    })
    .transpose()
}
