//! Rows of tables as the rules know them (`durably_store::rows`).

use crate::error::Trouble;
use crate::field::Columns;
use durably_kernel::{
    ActivityId, ClaimNumber, CommitId, DeadLetterKind, Event, Fact, Place, Queue, RunId,
    RunIdentity, RunStatus, Seq, TaskKind, TaskState, Tenant, Waits, WorkerId, WorkflowType,
};
use durably_store::rows::{Entry, HistoryRow, Mark, Owner, Row, RunRecord};
use durably_store::{
    CallId, DeadLetterRow, Examined, KeyCheck, NewRun, Parked, WorkerRow, WorkerStatus,
};
use std::time::Duration;

/// A run, without what belongs to it.
pub(crate) fn read_run(mut row: impl Columns) -> Result<RunRecord, Trouble> {
    let id = RunId(row.uuid("id")?);
    read_run_columns(id, &mut row).map_err(|trouble| trouble.within("durable_runs", id))
}

/// The same, with its stamp.
pub(crate) fn read_stamped_run(mut row: impl Columns) -> Result<(RunRecord, i64), Trouble> {
    let id = RunId(row.uuid("id")?);
    let mut read = || Ok((read_run_columns(id, &mut row)?, row.number("stamp")?));
    read().map_err(|trouble: Trouble| trouble.within("durable_runs", id))
}

fn read_run_columns(id: RunId, row: &mut impl Columns) -> Result<RunRecord, Trouble> {
    let tenant = Tenant::from(row.words("tenant")?);
    let workflow_type = WorkflowType::from(row.words("workflow_type")?);
    let version = row.number_if_set("version")?;
    let queue = Queue::from(row.words("queue")?);
    let priority = row.number("priority")?;
    let check = KeyCheck { key: row.text()?, input_hash: row.words("input_hash")? };
    let attributes = row.payload("attributes")?;
    let identity = RunIdentity { id, tenant, queue, priority };
    let new = NewRun { identity, workflow_type, version, check, attributes };
    let mut record = RunRecord::new(new, durably_kernel::Timestamp(0));
    record.status = row.name("status", RunStatus::from_name)?;
    record.head = Seq(row.number("head")?);
    record.inbox_last = row.number("inbox_last")?;
    record.inbox_used = row.number("inbox_used")?;
    record.turn_counter = row.number("turn_counter")?;
    record.parked = read_parked(row)?;
    record.waits = row.json::<Vec<String>>("waits")?.map_or(Waits::Any, Waits::Signals);
    record.retries = row.number("retries")?;
    record.last_error = row.json("last_error")?;
    record.created_at = row.time_set("created_at")?;
    record.started_at = row.time()?;
    record.ended_at = row.time()?;
    record.changed = false;
    Ok(record)
}

fn read_parked(row: &mut impl Columns) -> Result<Option<Parked>, Trouble> {
    let code = row.text()?;
    let (reason, times, at) = (row.text()?, row.number_if_set("parked_times")?, row.time()?);
    let Some(code) = code else { return Ok(None) };
    Ok(Some(Parked {
        code,
        reason: row.set("parked_reason", reason)?,
        times: row.set("parked_times", times)?,
        at: row.set("parked_at", at)?,
    }))
}

/// A live task and its run.
pub(crate) fn read_task(mut row: impl Columns) -> Result<(RunId, Row), Trouble> {
    let run = RunId(row.uuid("run")?);
    let task = read_task_columns(row).map_err(|trouble| trouble.within("durable_tasks", run))?;
    Ok((run, task))
}

fn read_task_columns(mut row: impl Columns) -> Result<Row, Trouble> {
    Ok(Row {
        place: Place(row.number("place")?),
        kind: row.name("kind", TaskKind::from_name)?,
        name: row.words("name")?.into(),
        target: row.words("target")?.into(),
        watched: row.number_if_set("watched")?.map(Place),
        version: row.number("version")?,
        queue: Queue::from(row.words("queue")?),
        priority: row.number("priority")?,
        fresh: row.truth("fresh")?,
        seq: Seq(row.number("seq")?),
        number: ClaimNumber(row.number("claim_number")?),
        state: row.name("state", TaskState::from_name)?,
        order: row.number("ready_order")?,
        due: row.time()?,
        owner: read_owner(&mut row)?,
        attempt: row.number("attempt")?,
        deaths: row.number("deaths")?,
        losses: row.json("losses")?.unwrap_or_default(),
        options: row.json("options")?,
        details: row.payload("details")?,
        input: row.payload("input")?,
        mark: Mark::Same,
    })
}

fn read_owner(row: &mut impl Columns) -> Result<Option<Owner>, Trouble> {
    let (who, call) = (row.text()?, row.id()?);
    let (claimed_at, deadline) = (row.time()?, row.time()?);
    let (heartbeat, heartbeat_by) = (row.number_if_set("heartbeat_ms")?, row.time()?);
    let unnamed = row.number("unnamed")?;
    let Some(who) = who else { return Ok(None) };
    Ok(Some(Owner {
        who: WorkerId::from(who),
        call: call.map(CallId),
        claimed_at: row.set("claimed_at", claimed_at)?,
        deadline: row.set("deadline", deadline)?,
        heartbeat: heartbeat.map(Duration::from_millis),
        heartbeat_by,
        unnamed,
    }))
}

/// Where a live task is.
pub(crate) fn read_at(mut row: impl Columns) -> Result<(RunId, Place), Trouble> {
    Ok((RunId(row.uuid("run")?), Place(row.number("place")?)))
}

/// One commit's events.
pub(crate) fn read_history(mut row: impl Columns) -> Result<(RunId, HistoryRow), Trouble> {
    let run = RunId(row.uuid("run")?);
    let damaged = |trouble: Trouble| trouble.within("durable_history", run);
    let first = Seq(row.number("first_seq").map_err(damaged)?);
    let commit = CommitId(row.uuid("commit_id").map_err(damaged)?);
    let at = row.time_set("committed_at").map_err(damaged)?;
    let text = row.words("events").map_err(damaged)?;
    let events = Event::list_from_json(&text).map_err(|error| Trouble::of_events(error, run))?;
    Ok((run, HistoryRow { first, commit, events, at }))
}

/// An inbox entry, its run and its number.
pub(crate) fn read_entry(mut row: impl Columns) -> Result<(RunId, u64, Entry), Trouble> {
    let run = RunId(row.uuid("run")?);
    let mut read = || -> Result<(u64, Entry), Trouble> {
        let (number, id) = (row.number("number")?, row.words("id")?);
        Ok((number, Entry { id, fact: Fact::from_json(&row.words("fact")?)? }))
    };
    let (number, entry) = read().map_err(|trouble| trouble.within("durable_inbox", run))?;
    Ok((run, number, entry))
}

/// A process.
pub(crate) fn read_worker(mut row: impl Columns) -> Result<WorkerRow, Trouble> {
    let who = WorkerId::from(row.words("id")?);
    let name = who.to_string();
    read_worker_columns(&mut row, who).map_err(|trouble| match trouble {
        Trouble::Damaged(problem) => {
            Trouble::Damaged(format!("table durable_workers, worker {name}: {problem}"))
        }
        trouble => trouble,
    })
}

fn read_worker_columns(row: &mut impl Columns, who: WorkerId) -> Result<WorkerRow, Trouble> {
    Ok(WorkerRow {
        who,
        group: row.words("worker_group")?,
        status: row.name("status", WorkerStatus::from_name)?,
        capacity: row.number("max_concurrency")?,
        load: row.number("current_load")?,
        queues: row.json("queues")?.unwrap_or_default(),
        can: row.json("can")?.unwrap_or_default(),
        host: row.words("hostname")?,
        version: row.words("version")?,
        started_at: row.time_set("started_at")?,
        beat_at: row.time_set("last_heartbeat_at")?,
        beats: row.number("beats")?,
    })
}

/// Work that was given up.
pub(crate) fn read_letter(mut row: impl Columns) -> Result<DeadLetterRow, Trouble> {
    let letter = row.number("id")?;
    let run = RunId(row.uuid("workflow_id")?);
    read_letter_columns(&mut row, letter, run)
        .map_err(|trouble| trouble.within("durable_dead_letter_queue", run))
}

fn read_letter_columns(
    row: &mut impl Columns,
    id: i64,
    run: RunId,
) -> Result<DeadLetterRow, Trouble> {
    Ok(DeadLetterRow {
        id,
        run,
        kind: row.name("kind", letter_kind)?,
        activity_id: ActivityId::from(row.words("activity_id")?),
        activity_type: row.words("activity_type")?,
        input: row.payload("input")?.unwrap_or_else(durably_kernel::Payload::null),
        attempts: row.number("attempts")?,
        errors: row.json("error_history")?.unwrap_or_default(),
        dead_at: row.time_set("dead_at")?,
    })
}

fn letter_kind(name: &str) -> Option<DeadLetterKind> {
    [DeadLetterKind::Activity, DeadLetterKind::Unread].into_iter().find(|kind| kind.name() == name)
}

/// What the tables hold under an id.
pub(crate) fn read_examined(mut row: impl Columns) -> Result<Examined, Trouble> {
    Ok(Examined {
        run: RunId(row.uuid("run")?),
        known: row.truth("known")?,
        commits: row.number("commits")?,
        events: row.number("events")?,
        tasks: row.number("tasks")?,
        foreign_tasks: row.number("foreign tasks")?,
        entries: row.number("entries")?,
        last_entry: row.number("the last entry")?,
        letters: row.number("letters")?,
        same_key: row.number("same key")?,
    })
}
