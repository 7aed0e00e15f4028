//! Reads for people. They have a connection of their own, so that they never wait for writes.

use crate::error::Trouble;
use crate::field::{Fields, limit};
use crate::load::page;
use crate::run::Run;
use crate::sql;
use crate::task::Task;
use durably_kernel::{ActivityId, DeadLetterKind, RunId, Seq, WorkerId};
use durably_store::{
    DeadLetterRow, HistoryPage, RunQuery, RunView, TaskRow, WorkerRow, WorkerStatus,
};
use rusqlite::{Connection, Params, Row, params};
use std::cmp::Reverse;

pub(crate) fn run(conn: &Connection, run: RunId) -> Result<Option<RunView>, Trouble> {
    Ok(Run::load(conn, run)?.map(Run::into_view))
}

pub(crate) fn runs(conn: &Connection, query: &RunQuery) -> Result<Vec<RunView>, Trouble> {
    let before = query.before.map(|run| *run.0.as_bytes());
    let tenant = query.tenant.as_ref().map(durably_kernel::Tenant::as_str);
    let workflow_type = query.workflow_type.as_ref().map(durably_kernel::WorkflowType::as_str);
    let most = limit(query.most);
    if let Some(key) = &query.idempotency_key {
        let bound = params![before, tenant, workflow_type, i64::MAX, key];
        let mut runs = read_runs(conn, sql::RUNS_BY_KEY, bound)?;
        runs.retain(|run| query.statuses.is_empty() || query.statuses.contains(&run.status));
        runs.truncate(query.most);
        return Ok(runs);
    }
    if query.statuses.is_empty() {
        return read_runs(conn, sql::RUNS_ALL, params![before, tenant, workflow_type, most]);
    }
    let mut statuses = query.statuses.clone();
    statuses.sort();
    statuses.dedup();
    let mut runs = Vec::new();
    for status in statuses {
        let bound = params![before, tenant, workflow_type, most, status.name()];
        runs.extend(read_runs(conn, sql::RUNS_BY_STATUS, bound)?);
    }
    runs.sort_by_key(|run| Reverse(run.identity.id));
    runs.truncate(query.most);
    Ok(runs)
}

fn read_runs(conn: &Connection, sql: &str, bound: impl Params) -> Result<Vec<RunView>, Trouble> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(bound)?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        runs.push(Run::read(row)?.into_view());
    }
    Ok(runs)
}

pub(crate) fn history(
    conn: &Connection,
    run: RunId,
    after: Seq,
    most: usize,
) -> Result<HistoryPage, Trouble> {
    match Run::load(conn, run)? {
        Some(run) => page(conn, &run, after, most),
        None => Ok(HistoryPage::default()),
    }
}

pub(crate) fn tasks(conn: &Connection, run: RunId) -> Result<Vec<TaskRow>, Trouble> {
    let mut statement = conn.prepare_cached(sql::TASKS_OF_RUN)?;
    let mut rows = statement.query(params![run.0.as_bytes()])?;
    let mut tasks = Vec::new();
    while let Some(row) = rows.next()? {
        tasks.push(Task::read(row)?.into_row());
    }
    Ok(tasks)
}

pub(crate) fn dead_letters(
    conn: &Connection,
    run: Option<RunId>,
    most: usize,
) -> Result<Vec<DeadLetterRow>, Trouble> {
    let most = limit(most);
    match run {
        None => read_letters(conn, sql::LETTERS_ALL, params![most]),
        Some(run) => read_letters(conn, sql::LETTERS_OF_RUN, params![most, run.0.as_bytes()]),
    }
}

fn read_letters(
    conn: &Connection,
    sql: &str,
    bound: impl Params,
) -> Result<Vec<DeadLetterRow>, Trouble> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(bound)?;
    let mut letters = Vec::new();
    while let Some(row) = rows.next()? {
        letters.push(read_letter(row)?);
    }
    Ok(letters)
}

fn read_letter(row: &Row<'_>) -> Result<DeadLetterRow, Trouble> {
    let mut fields = Fields::of(row);
    let id = fields.take()?;
    let run = RunId(fields.uuid()?);
    let read = |mut fields: Fields<'_, '_>| -> Result<DeadLetterRow, Trouble> {
        Ok(DeadLetterRow {
            id,
            run,
            kind: fields.name(letter_kind)?,
            activity_id: ActivityId::from(fields.take::<String>()?),
            activity_type: fields.take()?,
            input: fields.payload()?.unwrap_or_else(durably_kernel::Payload::null),
            attempts: fields.take()?,
            errors: fields.json()?.unwrap_or_default(),
            dead_at: fields.time_set()?,
        })
    };
    read(fields).map_err(|trouble| trouble.within("durable_dead_letter_queue", run))
}

fn letter_kind(name: &str) -> Option<DeadLetterKind> {
    [DeadLetterKind::Activity, DeadLetterKind::Unread].into_iter().find(|kind| kind.name() == name)
}

pub(crate) fn workers(conn: &Connection) -> Result<Vec<WorkerRow>, Trouble> {
    let mut statement = conn.prepare_cached(sql::WORKERS_ALL)?;
    let mut rows = statement.query([])?;
    let mut workers = Vec::new();
    while let Some(row) = rows.next()? {
        workers.push(read_worker(row)?);
    }
    Ok(workers)
}

fn read_worker(row: &Row<'_>) -> Result<WorkerRow, Trouble> {
    let mut fields = Fields::of(row);
    let who = WorkerId::from(fields.take::<String>()?);
    let name = who.to_string();
    let read = |mut fields: Fields<'_, '_>| -> Result<WorkerRow, Trouble> {
        Ok(WorkerRow {
            who,
            group: fields.take()?,
            status: fields.name(WorkerStatus::from_name)?,
            capacity: fields.take()?,
            load: fields.take()?,
            queues: fields.json()?.unwrap_or_default(),
            can: fields.json()?.unwrap_or_default(),
            host: fields.take()?,
            version: fields.take()?,
            started_at: fields.time_set()?,
            beat_at: fields.time_set()?,
            beats: fields.count()?,
        })
    };
    read(fields).map_err(|trouble| match trouble {
        Trouble::Damaged(problem) => {
            Trouble::Damaged(format!("table durable_workers, worker {name}: {problem}"))
        }
        trouble => trouble,
    })
}
