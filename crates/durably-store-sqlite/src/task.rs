//! A task's row, and the only ways in which it changes.

use crate::error::Trouble;
use crate::field::{Fields, json, stored, stored_millis};
use crate::sql;
use durably_kernel::{
    ActivityOptions, Attempt, Claim, ClaimNumber, Loss, LossCause, Payload, Place, Queue, RunId,
    Seq, TaskKind, TaskMove, TaskState, Tenant, Timestamp, WorkerId,
};
use durably_store::{CallId, TaskRow};
use rusqlite::{Connection, Row, params};
use std::sync::Arc;
use std::time::Duration;

/// A task's row.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) run: RunId,
    pub(crate) place: Place,
    pub(crate) kind: TaskKind,
    pub(crate) name: String,
    pub(crate) target: String,
    pub(crate) watched: Option<Place>,
    /// 0 where any host of the type will do.
    pub(crate) version: u32,
    pub(crate) queue: Queue,
    pub(crate) tenant: Tenant,
    pub(crate) priority: i32,
    /// The first turn of a run: comes after the tasks of started runs.
    pub(crate) fresh: bool,
    pub(crate) seq: Seq,
    pub(crate) number: ClaimNumber,
    pub(crate) state: TaskState,
    /// When it became ready, among all rows; stays with the claim.
    pub(crate) order: u64,
    pub(crate) due: Option<Timestamp>,
    pub(crate) owner: Option<Owner>,
    pub(crate) attempt: u32,
    pub(crate) deaths: u32,
    pub(crate) losses: Vec<Loss>,
    pub(crate) options: Option<Arc<ActivityOptions>>,
    pub(crate) details: Option<Payload>,
    pub(crate) input: Option<Payload>,
}

/// Who has a row, and until when.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) who: WorkerId,
    pub(crate) call: Option<CallId>,
    pub(crate) claimed_at: Timestamp,
    pub(crate) deadline: Timestamp,
    pub(crate) heartbeat: Option<Duration>,
    pub(crate) heartbeat_by: Option<Timestamp>,
    /// Beats that did not name the claim.
    pub(crate) unnamed: u32,
}

impl Owner {
    pub(crate) fn new(who: &WorkerId, now: Timestamp, deadline: Duration) -> Owner {
        Owner {
            who: who.clone(),
            call: None,
            claimed_at: now,
            deadline: now.after(deadline),
            heartbeat: None,
            heartbeat_by: None,
            unnamed: 0,
        }
    }
}

impl Owner {
    /// Whoever begins an activity, and until when.
    pub(crate) fn of_activity(
        who: &WorkerId,
        now: Timestamp,
        options: Option<&ActivityOptions>,
    ) -> Owner {
        let longest = options.map_or_else(
            || ActivityOptions::default().longest_attempt(),
            ActivityOptions::longest_attempt,
        );
        let heartbeat = options.and_then(|options| options.heartbeat);
        let heartbeat_by = heartbeat.map(|heartbeat| now.after(heartbeat));
        Owner { heartbeat, heartbeat_by, ..Owner::new(who, now, longest) }
    }
}

impl Task {
    pub(crate) fn load(
        conn: &Connection,
        run: RunId,
        place: Place,
    ) -> Result<Option<Task>, Trouble> {
        let mut statement = conn.prepare_cached(sql::TASK_LOAD)?;
        let mut rows = statement.query(params![run.0.as_bytes(), place.0])?;
        rows.next()?.map(Task::read).transpose()
    }

    /// By the number that SQLite gave the row; it holds within a transaction.
    pub(crate) fn load_row(conn: &Connection, row: i64) -> Result<Option<Task>, Trouble> {
        let mut statement = conn.prepare_cached(sql::TASK_LOAD_ROW)?;
        let mut rows = statement.query(params![row])?;
        rows.next()?.map(Task::read).transpose()
    }

    /// Reads a row that was selected with all columns.
    pub(crate) fn read(row: &Row<'_>) -> Result<Task, Trouble> {
        let mut fields = Fields::of(row);
        let run = RunId(fields.uuid()?);
        Task::read_fields(run, fields).map_err(|trouble| trouble.within("durable_tasks", run))
    }

    fn read_fields(run: RunId, mut fields: Fields<'_, '_>) -> Result<Task, Trouble> {
        Ok(Task {
            run,
            place: Place(fields.take()?),
            kind: fields.name(TaskKind::from_name)?,
            name: fields.take()?,
            target: fields.take()?,
            watched: fields.take::<Option<u32>>()?.map(Place),
            version: fields.take()?,
            queue: Queue::from(fields.take::<String>()?),
            tenant: Tenant::from(fields.take::<String>()?),
            priority: fields.take()?,
            fresh: fields.truth()?,
            seq: Seq(fields.count()?),
            number: ClaimNumber(fields.count()?),
            state: fields.name(TaskState::from_name)?,
            order: fields.count()?,
            due: fields.time()?,
            owner: read_owner(&mut fields)?,
            attempt: fields.take()?,
            deaths: fields.take()?,
            losses: fields.json()?.unwrap_or_default(),
            options: fields.json()?,
            details: fields.payload()?,
            input: fields.payload()?,
        })
    }

    /// Writes what may change about a row that is there.
    pub(crate) fn save(&self, conn: &Connection) -> Result<(), Trouble> {
        let owner = self.owner.as_ref();
        conn.prepare_cached(sql::TASK_SAVE)?.execute(params![
            self.run.0.as_bytes(),
            self.place.0,
            self.version,
            self.fresh,
            stored(self.number.0),
            self.state.name(),
            stored(self.order),
            self.due.map(|at| at.0),
            owner.map(|owner| owner.who.as_str()),
            owner.and_then(|owner| owner.call).map(|call| *call.0.as_bytes()),
            owner.map(|owner| owner.claimed_at.0),
            owner.map(|owner| owner.deadline.0),
            owner.and_then(|owner| owner.heartbeat).map(stored_millis),
            owner.and_then(|owner| owner.heartbeat_by).map(|at| at.0),
            owner.map_or(0, |owner| owner.unnamed),
            self.attempt,
            self.deaths,
            stored_losses(&self.losses)?,
        ])?;
        Ok(())
    }

    /// Writes what a claim changes about the row of that number.
    pub(crate) fn save_taken(&self, conn: &Connection, row: i64) -> Result<(), Trouble> {
        let Some(owner) = &self.owner else {
            return Err(self.damaged("a claimed row has no owner"));
        };
        conn.prepare_cached(sql::TASK_TAKE)?.execute(params![
            row,
            stored(self.number.0),
            owner.who.as_str(),
            owner.call.map(|call| *call.0.as_bytes()),
            owner.claimed_at.0,
            owner.deadline.0,
            owner.heartbeat.map(stored_millis),
            owner.heartbeat_by.map(|at| at.0),
            self.attempt,
        ])?;
        Ok(())
    }

    /// Inserts a turn row.
    pub(crate) fn insert_turn(
        &self,
        conn: &Connection,
        trace: Option<&str>,
    ) -> Result<(), Trouble> {
        let owner = self.owner.as_ref();
        conn.prepare_cached(sql::TURN_INSERT)?.execute(params![
            self.run.0.as_bytes(),
            self.name,
            self.version,
            self.queue.as_str(),
            self.tenant.as_str(),
            self.priority,
            self.fresh,
            stored(self.seq.0),
            stored(self.number.0),
            self.state.name(),
            stored(self.order),
            self.due.map(|at| at.0),
            owner.map(|owner| owner.who.as_str()),
            owner.map(|owner| owner.claimed_at.0),
            owner.map(|owner| owner.deadline.0),
            trace,
        ])?;
        Ok(())
    }

    pub(crate) fn delete(conn: &Connection, run: RunId, place: Place) -> Result<(), Trouble> {
        conn.prepare_cached(sql::TASK_DELETE)?.execute(params![run.0.as_bytes(), place.0])?;
        Ok(())
    }

    pub(crate) fn claim(&self) -> Claim {
        Claim { run: self.run, place: self.place, seq: self.seq, number: self.number }
    }

    pub(crate) fn is_owned_by(&self, who: &WorkerId) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.who == *who)
    }

    /// Whether this very claim of this very process stands.
    pub(crate) fn stands(&self, claim: &Claim, who: &WorkerId) -> bool {
        self.state == TaskState::Claimed && self.is_owned_by(who) && self.claim() == *claim
    }

    /// Moves it; a move that is not in the kernel's table means that the row is damaged.
    pub(crate) fn go(&mut self, step: TaskMove) -> Result<(), Trouble> {
        let next = self.state.after(step);
        let next = next.map_err(|illegal| self.damaged(&illegal.to_string()))?;
        self.state = next.ok_or_else(|| self.damaged("a row that goes was to stay"))?;
        Ok(())
    }

    pub(crate) fn take(&mut self, owner: Owner) -> Result<(), Trouble> {
        self.go(TaskMove::Claim)?;
        self.number = self.number.next();
        if self.kind == TaskKind::Activity {
            self.attempt += 1;
        }
        self.due = None;
        self.owner = Some(owner);
        Ok(())
    }

    /// The attempt under way.
    pub(crate) fn attempt_now(&self) -> Option<Attempt> {
        let owner = self.owner.as_ref()?;
        Some(Attempt {
            number: self.attempt,
            worker: owner.who.clone(),
            started_at: owner.claimed_at,
        })
    }

    /// Notes that the attempt under way is lost.
    pub(crate) fn note_loss(&mut self, cause: LossCause, now: Timestamp) {
        if let Some(attempt) = self.attempt_now() {
            self.deaths += u32::from(cause == LossCause::Died);
            self.losses.push(Loss { attempt, lost_at: now, cause });
        }
    }

    pub(crate) fn most_deaths(&self) -> u32 {
        self.options.as_ref().map_or(ActivityOptions::DEATHS_MAX, |options| options.most_deaths())
    }

    pub(crate) fn damaged(&self, problem: &str) -> Trouble {
        let problem = format!("place {}: {problem}", self.place);
        Trouble::Damaged(problem).within("durable_tasks", self.run)
    }

    pub(crate) fn into_row(self) -> TaskRow {
        TaskRow {
            attempt: self.attempt_now(),
            place: self.place,
            kind: self.kind,
            name: self.name,
            target: self.target,
            state: self.state,
            queue: self.queue,
            priority: self.priority,
            seq: self.seq,
            number: self.number.0,
            due_at: self.due,
            attempts: self.attempt,
            losses: self.losses,
            details: self.details,
        }
    }
}

/// What decides whether a claim of a row stands.
pub(crate) struct Fence {
    pub(crate) state: TaskState,
    owner: Option<String>,
    seq: u64,
    pub(crate) number: u64,
}

impl Fence {
    pub(crate) fn load(
        conn: &Connection,
        run: RunId,
        place: Place,
    ) -> Result<Option<Fence>, Trouble> {
        let mut statement = conn.prepare_cached(sql::TASK_FENCE)?;
        let mut rows = statement.query(params![run.0.as_bytes(), place.0])?;
        rows.next()?
            .map(|row| Fence::read(row).map_err(|trouble| trouble.within("durable_tasks", run)))
            .transpose()
    }

    fn read(row: &Row<'_>) -> Result<Fence, Trouble> {
        let mut fields = Fields::of(row);
        Ok(Fence {
            state: fields.name(TaskState::from_name)?,
            owner: fields.take()?,
            seq: fields.count()?,
            number: fields.count()?,
        })
    }

    /// Whether this very claim of this very process stands.
    pub(crate) fn stands(&self, claim: &Claim, who: &WorkerId) -> bool {
        self.state == TaskState::Claimed
            && self.owner.as_deref() == Some(who.as_str())
            && self.seq == claim.seq.0
            && self.number == claim.number.0
    }
}

/// Whether this very claim of this very process stands in a run.
pub(crate) fn claim_stands(
    conn: &Connection,
    run: RunId,
    claim: &Claim,
    who: Option<&WorkerId>,
) -> Result<bool, Trouble> {
    let Some(who) = who.filter(|_| claim.run == run) else { return Ok(false) };
    let fence = Fence::load(conn, run, claim.place)?;
    Ok(fence.is_some_and(|fence| fence.stands(claim, who)))
}

/// A row in the hands of a process, as the owner's index finds it.
pub(crate) struct Owned {
    pub(crate) claim: Claim,
    pub(crate) state: TaskState,
    pub(crate) unnamed: u32,
}

impl Owned {
    /// The rows of a process, by run and place.
    pub(crate) fn all(conn: &Connection, who: &WorkerId) -> Result<Vec<Owned>, Trouble> {
        let mut statement = conn.prepare_cached(sql::TASKS_OF_OWNER)?;
        let mut rows = statement.query(params![who.as_str()])?;
        let mut owned = Vec::new();
        while let Some(row) = rows.next()? {
            owned.push(Owned::read(row)?);
        }
        Ok(owned)
    }

    fn read(row: &Row<'_>) -> Result<Owned, Trouble> {
        let mut fields = Fields::of(row);
        let run = RunId(fields.uuid()?);
        let read = |mut fields: Fields<'_, '_>| -> Result<Owned, Trouble> {
            let place = Place(fields.take()?);
            let state = fields.name(TaskState::from_name)?;
            let (seq, number) = (Seq(fields.count()?), ClaimNumber(fields.count()?));
            let claim = Claim { run, place, seq, number };
            Ok(Owned { claim, state, unnamed: fields.take()? })
        };
        read(fields).map_err(|trouble| trouble.within("durable_tasks", run))
    }
}

fn read_owner(fields: &mut Fields<'_, '_>) -> Result<Option<Owner>, Trouble> {
    let who: Option<String> = fields.take()?;
    let call: Option<[u8; 16]> = fields.take()?;
    let claimed_at = fields.time()?;
    let deadline = fields.time()?;
    let heartbeat = fields.count_if_set()?;
    let heartbeat_by = fields.time()?;
    let unnamed = fields.take()?;
    let Some(who) = who else { return Ok(None) };
    let (Some(claimed_at), Some(deadline)) = (claimed_at, deadline) else {
        return Err(Trouble::Damaged("an owner without a time".into()));
    };
    Ok(Some(Owner {
        who: WorkerId::from(who),
        call: call.map(|call| CallId(uuid::Uuid::from_bytes(call))),
        claimed_at,
        deadline,
        heartbeat: heartbeat.map(Duration::from_millis),
        heartbeat_by,
        unnamed,
    }))
}

/// Losses as SQLite stores them; mostly there are none.
pub(crate) fn stored_losses(losses: &[Loss]) -> Result<Option<String>, Trouble> {
    match losses {
        [] => Ok(None),
        losses => json(losses).map(Some),
    }
}
