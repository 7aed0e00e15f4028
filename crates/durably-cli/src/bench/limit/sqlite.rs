//! The bare loop on SQLite: one writer, a statement for each row.

use super::{EVENTS, OWNER, Rows, RunAt, Texts, Writer};
use crate::bench::flows::Style;
use crate::bench::now_ms;
use crate::bench::starts::fresh_id;
use anyhow::{bail, ensure};
use rusqlite::params;
use std::path::Path;

/// A connection with the settings of the store's own.
pub(super) struct Connection(rusqlite::Connection);

impl Connection {
    pub(super) fn open(file: &Path) -> anyhow::Result<Connection> {
        let conn = rusqlite::Connection::open(file)?;
        conn.pragma_update(None, "synchronous", "full")?;
        conn.pragma_update(None, "temp_store", "memory")?;
        conn.pragma_update(None, "cache_size", -16_384)?;
        conn.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
        let mode: String = conn.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        ensure!(mode == "wal", "the bare loop's database has the journal mode {mode}, not wal");
        Ok(Connection(conn))
    }

    fn insert_run(&self, run: RunAt, status: &str) -> anyhow::Result<()> {
        let hash = "0123456789abcdef".repeat(4);
        self.0
            .prepare_cached(include_str!("../../../sql/sqlite/limit_run.sql"))?
            .execute(params![run.id.as_bytes(), hash, now_ms(), status, run.head])?;
        Ok(())
    }

    fn start(&self, run: RunAt, texts: &Texts) -> anyhow::Result<()> {
        let (id, now) = (run.id.as_bytes(), now_ms());
        self.insert_run(RunAt { head: 1, ..run }, "pending")?;
        let commit_id = *fresh_id().0.as_bytes();
        self.0
            .prepare_cached(include_str!("../../../sql/sqlite/limit_step_history.sql"))?
            .execute(params![id, 0, commit_id, now, texts.events, 1])?;
        self.0
            .prepare_cached(include_str!("../../../sql/sqlite/limit_turn.sql"))?
            .execute(params![id, now])?;
        Ok(())
    }

    fn step(&self, style: Style, run: RunAt, texts: &Texts) -> anyhow::Result<()> {
        let (id, head, now) = (run.id.as_bytes(), run.head, now_ms());
        let mut changed = self
            .0
            .prepare_cached(include_str!("../../../sql/sqlite/limit_step_run.sql"))?
            .execute(params![id, head])?;
        // Unique and growing, as the engine's commit ids are.
        let mut commit_id = *id;
        commit_id[..8].copy_from_slice(&(now << 16 | head & 0xffff).to_be_bytes());
        changed += self
            .0
            .prepare_cached(include_str!("../../../sql/sqlite/limit_step_history.sql"))?
            .execute(params![id, head, commit_id, now, texts.events, EVENTS])?;
        if style == Style::Machine {
            changed += self
                .0
                .prepare_cached(include_str!("../../../sql/sqlite/limit_step_task.sql"))?
                .execute(params![id, head, OWNER, now, "step-2", texts.input])?;
        }
        let wanted = if style == Style::Machine { 3 } else { 2 };
        ensure!(changed == wanted, "a step of the bare loop changed {changed} rows");
        Ok(())
    }
}

impl Writer for Connection {
    async fn prepare(&mut self, rows: Rows, runs: &[RunAt], texts: &Texts) -> anyhow::Result<()> {
        self.0.execute_batch("begin immediate")?;
        for run in runs {
            self.insert_run(*run, "running")?;
            if rows == Rows::Step(Style::Machine) {
                let (id, now) = (run.id.as_bytes(), now_ms());
                self.0
                    .prepare_cached(include_str!("../../../sql/sqlite/limit_task.sql"))?
                    .execute(params![id, OWNER, now, texts.input])?;
            }
        }
        self.0.execute_batch("commit")?;
        Ok(())
    }

    async fn write(&mut self, rows: Rows, runs: &[RunAt], texts: &Texts) -> anyhow::Result<usize> {
        self.0.execute_batch("begin immediate")?;
        for run in runs {
            match rows {
                Rows::Step(style) => self.step(style, *run, texts)?,
                Rows::Start => self.start(*run, texts)?,
                Rows::Run(_) => bail!("the bare loop writes no whole runs on SQLite"),
            }
        }
        self.0.execute_batch("commit")?;
        Ok(runs.len())
    }
}
