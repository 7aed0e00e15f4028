//! A run's row.

use crate::error::Trouble;
use crate::field::{Fields, json, stored};
use crate::sql;
use durably_kernel::{
    LastError, Payload, Queue, RunId, RunIdentity, RunStatus, Seq, Tenant, Timestamp, Waits,
    WorkflowType,
};
use durably_store::{NewRun, Parked, RunView};
use rusqlite::{Connection, OptionalExtension, Row, params};

/// A run's row.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Run {
    pub(crate) identity: RunIdentity,
    pub(crate) workflow_type: WorkflowType,
    pub(crate) version: Option<u32>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) input_hash: String,
    pub(crate) attributes: Option<Payload>,
    pub(crate) status: RunStatus,
    pub(crate) head: Seq,
    pub(crate) inbox_last: u64,
    pub(crate) inbox_used: u64,
    pub(crate) turn_counter: u64,
    pub(crate) parked: Option<Parked>,
    pub(crate) waits: Waits,
    pub(crate) retries: u32,
    pub(crate) last_error: Option<Box<LastError>>,
    pub(crate) created_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
}

impl Run {
    pub(crate) fn new(new: &NewRun, now: Timestamp) -> Run {
        Run {
            identity: new.identity.clone(),
            workflow_type: new.workflow_type.clone(),
            version: new.version,
            idempotency_key: new.check.key.clone(),
            input_hash: new.check.input_hash.clone(),
            attributes: new.attributes.clone(),
            status: RunStatus::Pending,
            head: Seq(0),
            inbox_last: 0,
            inbox_used: 0,
            turn_counter: 0,
            parked: None,
            waits: Waits::Any,
            retries: 0,
            last_error: None,
            created_at: now,
            started_at: None,
            ended_at: None,
        }
    }

    pub(crate) fn id(&self) -> RunId {
        self.identity.id
    }

    pub(crate) fn has_unread(&self) -> bool {
        self.inbox_last > self.inbox_used
    }

    pub(crate) fn load(conn: &Connection, id: RunId) -> Result<Option<Run>, Trouble> {
        let mut statement = conn.prepare_cached(sql::RUN_LOAD)?;
        let mut rows = statement.query(params![id.0.as_bytes()])?;
        rows.next()?.map(Run::read).transpose()
    }

    /// Reads a row that was selected with all columns.
    pub(crate) fn read(row: &Row<'_>) -> Result<Run, Trouble> {
        let mut fields = Fields::of(row);
        let id = RunId(fields.uuid()?);
        Run::read_fields(id, fields).map_err(|trouble| trouble.within("durable_runs", id))
    }

    fn read_fields(id: RunId, mut fields: Fields<'_, '_>) -> Result<Run, Trouble> {
        let tenant = Tenant::from(fields.take::<String>()?);
        let workflow_type = WorkflowType::from(fields.take::<String>()?);
        let version = fields.take()?;
        let queue = Queue::from(fields.take::<String>()?);
        let priority = fields.take()?;
        Ok(Run {
            identity: RunIdentity { id, tenant, queue, priority },
            workflow_type,
            version,
            idempotency_key: fields.take()?,
            input_hash: fields.take()?,
            attributes: fields.payload()?,
            status: fields.name(RunStatus::from_name)?,
            head: Seq(fields.count()?),
            inbox_last: fields.count()?,
            inbox_used: fields.count()?,
            turn_counter: fields.count()?,
            parked: read_parked(&mut fields)?,
            waits: fields.json::<Vec<String>>()?.map_or(Waits::Any, Waits::Signals),
            retries: fields.take()?,
            last_error: fields.json()?,
            created_at: fields.time_set()?,
            started_at: fields.time()?,
            ended_at: fields.time()?,
        })
    }

    /// Inserts a row that is not there yet.
    pub(crate) fn insert(&self, conn: &Connection, trace: Option<&str>) -> Result<(), Trouble> {
        let parked = self.parked.as_ref();
        conn.prepare_cached(sql::RUN_INSERT)?.execute(params![
            self.id().0.as_bytes(),
            self.version,
            stored(self.head.0),
            stored(self.inbox_used),
            stored(self.turn_counter),
            self.stored_waits()?,
            self.retries,
            self.stored_error()?,
            self.started_at.map(|at| at.0),
            self.status.name(),
            parked.map(|parked| &parked.code),
            parked.map(|parked| &parked.reason),
            parked.map(|parked| parked.times),
            parked.map(|parked| parked.at.0),
            self.ended_at.map(|at| at.0),
            self.identity.tenant.as_str(),
            self.workflow_type.as_str(),
            self.identity.queue.as_str(),
            self.identity.priority,
            self.idempotency_key,
            self.input_hash,
            self.attributes.as_ref().map(Payload::text),
            trace,
            self.created_at.0,
        ])?;
        Ok(())
    }

    /// Writes what differs from how it was loaded. Columns that an index has are written only if
    /// they changed: a step does not touch an index.
    pub(crate) fn save(&self, conn: &Connection, before: &Run) -> Result<(), Trouble> {
        if self == before {
            return Ok(());
        }
        let same_indexes = self.status == before.status
            && self.parked == before.parked
            && self.ended_at == before.ended_at;
        if same_indexes {
            conn.prepare_cached(sql::RUN_STEP)?.execute(params![
                self.id().0.as_bytes(),
                self.version,
                stored(self.head.0),
                stored(self.inbox_used),
                stored(self.turn_counter),
                self.stored_waits()?,
                self.retries,
                self.stored_error()?,
                self.started_at.map(|at| at.0),
            ])?;
            return Ok(());
        }
        let parked = self.parked.as_ref();
        conn.prepare_cached(sql::RUN_SAVE)?.execute(params![
            self.id().0.as_bytes(),
            self.version,
            stored(self.head.0),
            stored(self.inbox_used),
            stored(self.turn_counter),
            self.stored_waits()?,
            self.retries,
            self.stored_error()?,
            self.started_at.map(|at| at.0),
            self.status.name(),
            parked.map(|parked| &parked.code),
            parked.map(|parked| &parked.reason),
            parked.map(|parked| parked.times),
            parked.map(|parked| parked.at.0),
            self.ended_at.map(|at| at.0),
        ])?;
        Ok(())
    }

    fn stored_waits(&self) -> Result<Option<String>, Trouble> {
        match &self.waits {
            Waits::Any => Ok(None),
            Waits::Signals(names) => json(names).map(Some),
        }
    }

    fn stored_error(&self) -> Result<Option<String>, Trouble> {
        self.last_error.as_ref().map(json).transpose()
    }

    /// Writes what a delivery changes.
    pub(crate) fn save_inbox(&self, conn: &Connection) -> Result<(), Trouble> {
        conn.prepare_cached(sql::RUN_INBOX)?.execute(params![
            self.id().0.as_bytes(),
            stored(self.inbox_last),
            stored(self.turn_counter),
        ])?;
        Ok(())
    }

    pub(crate) fn into_view(self) -> RunView {
        RunView {
            identity: self.identity,
            workflow_type: self.workflow_type,
            version: self.version,
            idempotency_key: self.idempotency_key,
            attributes: self.attributes,
            head: self.head,
            status: self.status,
            parked: self.parked,
            waits: self.waits,
            retries: self.retries,
            last_error: self.last_error,
            inbox_last: self.inbox_last,
            inbox_used: self.inbox_used,
            created_at: self.created_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
        }
    }
}

/// A run that is in the way of a start.
pub(crate) struct Namesake {
    pub(crate) run: RunId,
    pub(crate) workflow_type: String,
    pub(crate) input_hash: String,
}

impl Namesake {
    /// The run of this id.
    pub(crate) fn by_id(conn: &Connection, run: RunId) -> Result<Option<Namesake>, Trouble> {
        let mut statement = conn.prepare_cached(sql::RUN_BY_ID)?;
        let found = statement.query_row(params![run.0.as_bytes()], Namesake::read);
        Ok(found.optional()?)
    }

    /// The run that a tenant started under a key.
    pub(crate) fn by_key(
        conn: &Connection,
        tenant: &Tenant,
        key: &str,
    ) -> Result<Option<Namesake>, Trouble> {
        let mut statement = conn.prepare_cached(sql::RUN_BY_KEY)?;
        let found = statement.query_row(params![tenant.as_str(), key], Namesake::read);
        Ok(found.optional()?)
    }

    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Namesake> {
        Ok(Namesake {
            run: RunId(uuid::Uuid::from_bytes(row.get(0)?)),
            workflow_type: row.get(1)?,
            input_hash: row.get(2)?,
        })
    }
}

fn read_parked(fields: &mut Fields<'_, '_>) -> Result<Option<Parked>, Trouble> {
    let code: Option<String> = fields.take()?;
    let reason: Option<String> = fields.take()?;
    let times: Option<u32> = fields.take()?;
    let at = fields.time()?;
    let parked = code.zip(reason).zip(times).zip(at);
    Ok(parked.map(|(((code, reason), times), at)| Parked { code, reason, times, at }))
}
