//! The bare loop (LIM): what the database allows to a program that does nothing else. It writes the
//! rows of a step, or of a start, into tables of the same schema, in batches as large as the engine's largest,
//! with one prepared statement for each row.
//!
//! Deliberately absent: events that are put together or parsed, programs, claims of new runs, a
//! second thread. What the engine spends on them is what the ratio shows.

use super::flows::{Parcel, step_id};
use super::ground::Ground;
use super::now_ms;
use super::pace::{Cpu, Pace};
use super::starts::fresh_id;
use anyhow::{Context, ensure};
use durably_kernel::{Attempt, Event, Payload, Place, Timestamp};
use rusqlite::{Connection, params};
use std::path::Path;
use std::time::{Duration, Instant};

const OWNER: &str = "bench-host-12345-0123456789abcdef";

/// What a step writes (BENCH §2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rows {
    /// Variant G, state machines: the run's row, one history row with both events, the task's row
    /// in place.
    WithTask,
    /// Variant D, functions with inline steps: no task row.
    WithoutTask,
    /// A start: the run's row, one history row with its first event, its turn row.
    Start,
}

/// How the loop is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct BareLoop {
    pub(super) rows: Rows,
    /// Steps in one transaction.
    pub(super) batch: usize,
    pub(super) lasts: Duration,
    /// Runs that take turns in their steps.
    pub(super) runs: usize,
}

impl BareLoop {
    /// Runs the loop on a fresh database; none on a store without one.
    pub(super) async fn pace(self, ground: &Ground) -> anyhow::Result<Option<Pace>> {
        let stage = ground.fresh().await?;
        let Some(file) = stage.file() else { return Ok(None) };
        let pace = tokio::task::spawn_blocking(move || self.run(&file)).await?;
        pace.context("the bare loop failed").map(Some)
    }

    fn run(self, file: &Path) -> anyhow::Result<Pace> {
        let conn = connect(file)?;
        let mut runs = self.prepare(&conn)?;
        let (events, input) = (self.events()?, Payload::of(&Parcel::new(2))?);
        let (began, cpu) = (Instant::now(), Cpu::now());
        let mut written = 0;
        while began.elapsed() < self.lasts {
            conn.execute_batch("begin immediate")?;
            for one in written..written + self.batch {
                match runs.len() {
                    0 => self.start(&conn, &events)?,
                    all => self.step(&conn, &mut runs[one % all], &events, input.text())?,
                }
            }
            conn.execute_batch("commit")?;
            written += self.batch;
        }
        Ok(Pace::of(written, began.elapsed(), cpu))
    }

    fn start(self, conn: &Connection, events: &str) -> anyhow::Result<()> {
        let (id, now) = (*fresh_id().0.as_bytes(), now_ms());
        insert_run(conn, id, "pending", 1)?;
        let commit_id = *fresh_id().0.as_bytes();
        conn.prepare_cached(include_str!("../../sql/limit_step_history.sql"))?
            .execute(params![id, 0, commit_id, now, events, 1])?;
        conn.prepare_cached(include_str!("../../sql/limit_turn.sql"))?.execute(params![id, now])?;
        Ok(())
    }

    fn step(
        self,
        conn: &Connection,
        run: &mut ([u8; 16], i64),
        events: &str,
        input: &str,
    ) -> anyhow::Result<()> {
        let (id, head) = *run;
        let now = now_ms();
        let mut changed = conn
            .prepare_cached(include_str!("../../sql/limit_step_run.sql"))?
            .execute(params![id, head])?;
        // Unique and growing, as the engine's commit ids are.
        let mut commit_id = id;
        commit_id[..8].copy_from_slice(&(now << 16 | head & 0xffff).to_be_bytes());
        changed += conn
            .prepare_cached(include_str!("../../sql/limit_step_history.sql"))?
            .execute(params![id, head, commit_id, now, events, 2])?;
        if self.rows == Rows::WithTask {
            changed += conn
                .prepare_cached(include_str!("../../sql/limit_step_task.sql"))?
                .execute(params![id, head, OWNER, now, "step-2", input])?;
        }
        ensure!(changed == self.rows.per_step(), "a step of the bare loop changed {changed} rows");
        run.1 += 2;
        Ok(())
    }

    /// Runs under way, each with a claimed task where there is one.
    fn prepare(self, conn: &Connection) -> anyhow::Result<Vec<([u8; 16], i64)>> {
        let input = Payload::of(&Parcel::new(1))?;
        let mut runs = Vec::new();
        conn.execute_batch("begin immediate")?;
        for _ in 0..self.runs {
            let id = *fresh_id().0.as_bytes();
            insert_run(conn, id, "running", 3)?;
            if self.rows == Rows::WithTask {
                conn.prepare_cached(include_str!("../../sql/limit_task.sql"))?.execute(params![
                    id,
                    OWNER,
                    now_ms(),
                    input.text()
                ])?;
            }
            runs.push((id, 3));
        }
        conn.execute_batch("commit")?;
        Ok(runs)
    }

    /// The event of a start, or the two of a step: its outcome, and the next one scheduled.
    fn events(self) -> anyhow::Result<String> {
        let at = Timestamp(now_ms());
        if self.rows == Rows::Start {
            let input = Payload::of(&Parcel::new(1))?;
            let (workflow_type, seed) = ("bench-machine".into(), u64::MAX);
            let event = Event::WorkflowStarted { workflow_type, input, seed, timeout_ms: None, at };
            return Ok(Event::list_to_json(&[event]));
        }
        let inline = self.rows == Rows::WithoutTask;
        let done = Event::ActivityCompleted {
            activity_id: step_id(1).into(),
            result: Payload::of(&Parcel::new(1))?,
            attempt: Attempt { number: 1, worker: OWNER.to_owned().into(), started_at: at },
            at,
        };
        let next = Event::ActivityScheduled {
            activity_id: step_id(2).into(),
            activity_type: if inline { "step-2".into() } else { "bench-step".into() },
            input: if inline { Payload::null() } else { Payload::of(&Parcel::new(2))? },
            options: Default::default(),
            inline,
            place: (!inline).then_some(Place(1)),
            start_place: None,
            close_place: None,
        };
        Ok(Event::list_to_json(&[done, next]))
    }
}

impl Rows {
    fn per_step(self) -> usize {
        match self {
            Rows::WithTask | Rows::Start => 3,
            Rows::WithoutTask => 2,
        }
    }
}

fn insert_run(conn: &Connection, id: [u8; 16], status: &str, head: i64) -> anyhow::Result<()> {
    let hash = "0123456789abcdef".repeat(4);
    conn.prepare_cached(include_str!("../../sql/limit_run.sql"))?.execute(params![
        id,
        hash,
        now_ms(),
        status,
        head
    ])?;
    Ok(())
}

/// A connection with the settings of the store's own.
fn connect(file: &Path) -> anyhow::Result<Connection> {
    let conn = Connection::open(file)?;
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "cache_size", -16_384)?;
    conn.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
    let mode: String = conn.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    ensure!(mode == "wal", "the bare loop's database has the journal mode {mode}, not wal");
    Ok(conn)
}
