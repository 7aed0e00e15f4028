//! The bare loop on MySQL and MariaDB: a statement for all rows of a batch, in which what stands
//! between `<<` and `>>` is repeated for each row.

use super::{EVENTS, OWNER, Rows, RunAt, Texts, UNDER_WAY, Writer};
use crate::bench::flows::Style;
use crate::bench::ground::mysql::Mysql;
use crate::bench::now_ms;
use crate::bench::starts::fresh_id;
use anyhow::{Context, ensure};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Statement, Value};
use std::collections::BTreeMap;
use uuid::Uuid;

const LOCK: &str = include_str!("../../../sql/mysql/limit_lock.sql");
const STEP_RUNS: &str = include_str!("../../../sql/mysql/limit_step_runs.sql");
const STEP_TASKS: &str = include_str!("../../../sql/mysql/limit_step_tasks.sql");
const TURN_RUNS: &str = include_str!("../../../sql/mysql/limit_turn_runs.sql");
const HISTORY: &str = include_str!("../../../sql/mysql/limit_history.sql");
const RUNS: &str = include_str!("../../../sql/mysql/limit_runs.sql");
const TURNS: &str = include_str!("../../../sql/mysql/limit_turns.sql");
const TASKS: &str = include_str!("../../../sql/mysql/limit_tasks.sql");
const CLAIM_FIND: &str = include_str!("../../../sql/mysql/limit_claim_find.sql");
const CLAIM_TAKE: &str = include_str!("../../../sql/mysql/limit_claim_take.sql");
const REMOVE: &str = include_str!("../../../sql/mysql/limit_remove.sql");

/// Where a run's turn and its first activity are.
const TURN: i64 = 0;
const ACTIVITY: i64 = 1;
/// How long a claim lasts, in milliseconds.
const CLAIMED_MS: i64 = 600_000;

/// A connection with the statements that it has prepared, each for so many rows.
pub(super) struct Connection {
    conn: Conn,
    prepared: BTreeMap<(&'static str, usize), Statement>,
}

/// The values of one row.
type Row = Vec<Value>;

fn id(id: Uuid) -> Value {
    Value::Bytes(id.as_bytes().to_vec())
}

impl Connection {
    pub(super) async fn open(server: &Mysql, database: &str) -> anyhow::Result<Connection> {
        Ok(Connection { conn: server.connect(database).await?, prepared: BTreeMap::new() })
    }

    async fn statement(&mut self, sql: &'static str, rows: usize) -> anyhow::Result<Statement> {
        if let Some(statement) = self.prepared.get(&(sql, rows)) {
            return Ok(statement.clone());
        }
        let statement = self.conn.prep(repeated(sql, rows)?).await?;
        self.prepared.insert((sql, rows), statement.clone());
        Ok(statement)
    }

    async fn execute(&mut self, sql: &'static str, rows: Vec<Row>) -> anyhow::Result<u64> {
        let statement = self.statement(sql, rows.len()).await?;
        self.conn.exec_drop(statement, rows.concat()).await?;
        Ok(self.conn.affected_rows())
    }

    async fn plain(&mut self, command: &'static str) -> anyhow::Result<()> {
        Ok(self.conn.query_drop(command).await?)
    }

    /// Begins, locks the runs, and checks their heads.
    async fn lock(&mut self, runs: &[RunAt]) -> anyhow::Result<()> {
        self.plain("start transaction").await?;
        let statement = self.statement(LOCK, runs.len()).await?;
        let ids: Row = runs.iter().map(|run| id(run.id)).collect();
        let found: Vec<(Vec<u8>, i64)> = self.conn.exec(statement, ids).await?;
        let heads: BTreeMap<Vec<u8>, i64> = found.into_iter().collect();
        let known = |run: &RunAt| heads.get(run.id.as_bytes().as_slice()) == Some(&run.head);
        ensure!(runs.iter().all(known), "somebody else has changed runs of the bare loop");
        Ok(())
    }

    async fn add_history(
        &mut self,
        runs: &[RunAt],
        events: &str,
        count: i64,
    ) -> anyhow::Result<()> {
        let now = now_ms();
        let row = |run: &RunAt| {
            vec![
                id(run.id),
                (run.head + 1).into(),
                count.into(),
                id(fresh_id().0),
                now.into(),
                events.into(),
            ]
        };
        self.execute(HISTORY, runs.iter().map(row).collect()).await?;
        Ok(())
    }

    async fn add_tasks(&mut self, runs: &[RunAt], texts: &Texts) -> anyhow::Result<()> {
        let now = now_ms();
        let input = texts.input.as_str();
        let row = |run: &RunAt| {
            vec![id(run.id), OWNER.into(), now.into(), (now + CLAIMED_MS).into(), input.into()]
        };
        self.execute(TASKS, runs.iter().map(row).collect()).await?;
        Ok(())
    }

    async fn step(&mut self, style: Style, runs: &[RunAt], texts: &Texts) -> anyhow::Result<()> {
        self.lock(runs).await?;
        let heads = runs.iter().map(|run| vec![id(run.id), (run.head + EVENTS).into()]);
        self.execute(STEP_RUNS, heads.collect()).await?;
        self.add_history(runs, &texts.events, EVENTS).await?;
        if style == Style::Machine {
            let now = now_ms();
            let row = |run: &RunAt| {
                vec![
                    id(run.id),
                    "step-2".into(),
                    (run.head + EVENTS).into(),
                    OWNER.into(),
                    now.into(),
                    (now + CLAIMED_MS).into(),
                    texts.input.as_str().into(),
                ]
            };
            self.execute(STEP_TASKS, runs.iter().map(row).collect()).await?;
        }
        self.plain("commit").await
    }

    async fn start(&mut self, runs: &[RunAt], texts: &Texts) -> anyhow::Result<()> {
        self.plain("start transaction").await?;
        self.add_runs(runs, "pending", 1).await?;
        let fresh: Vec<RunAt> = runs.iter().map(|run| RunAt { head: 0, ..*run }).collect();
        self.add_history(&fresh, &texts.events, 1).await?;
        let now = now_ms();
        let turns = runs.iter().map(|run| vec![id(run.id), now.into()]).collect();
        self.execute(TURNS, turns).await?;
        self.plain("commit").await
    }

    async fn add_runs(
        &mut self,
        runs: &[RunAt],
        status: &'static str,
        head: i64,
    ) -> anyhow::Result<()> {
        let (hash, now) = ("0123456789abcdef".repeat(4), now_ms());
        let row = |run: &RunAt| {
            vec![id(run.id), hash.as_str().into(), status.into(), head.into(), now.into()]
        };
        self.execute(RUNS, runs.iter().map(row).collect()).await?;
        Ok(())
    }

    /// Claims so many turns.
    async fn claim(&mut self, most: usize) -> anyhow::Result<Vec<RunAt>> {
        self.plain("start transaction").await?;
        let statement = self.statement(CLAIM_FIND, 1).await?;
        let found: Vec<Vec<u8>> = self.conn.exec(statement, (most as u64,)).await?;
        let (call, now) = (fresh_id().0, now_ms());
        if !found.is_empty() {
            let sql = self.statement(CLAIM_TAKE, found.len()).await?;
            let mut params: Row =
                vec![OWNER.into(), id(call), now.into(), (now + CLAIMED_MS).into()];
            params.extend(found.iter().cloned().map(Value::Bytes));
            self.conn.exec_drop(sql, params).await?;
        }
        self.plain("commit").await?;
        found.iter().map(|run| Ok(RunAt { id: Uuid::from_slice(run)?, head: 1 })).collect()
    }

    async fn turn_runs(&mut self, runs: &[RunAt], status: &'static str) -> anyhow::Result<()> {
        let now = now_ms();
        let ended = if status == "completed" { now.into() } else { Value::NULL };
        let row = |run: &RunAt| {
            let head = (run.head + EVENTS).into();
            vec![id(run.id), head, status.into(), now.into(), ended.clone()]
        };
        self.execute(TURN_RUNS, runs.iter().map(row).collect()).await?;
        Ok(())
    }

    async fn remove(&mut self, runs: &[RunAt], place: i64) -> anyhow::Result<()> {
        let rows = runs.iter().map(|run| vec![id(run.id), place.into()]).collect();
        let removed = self.execute(REMOVE, rows).await?;
        ensure!(removed == runs.len() as u64, "{removed} rows of {} were removed", runs.len());
        Ok(())
    }

    async fn whole_runs(
        &mut self,
        style: Style,
        most: usize,
        texts: &Texts,
    ) -> anyhow::Result<usize> {
        let mut runs = self.claim(most).await?;
        if runs.is_empty() {
            return Ok(0);
        }
        self.lock(&runs).await?;
        self.turn_runs(&runs, "running").await?;
        self.add_history(&runs, &texts.events, EVENTS).await?;
        if style == Style::Machine {
            self.remove(&runs, TURN).await?;
            self.add_tasks(&runs, texts).await?;
        }
        self.plain("commit").await?;
        runs.iter_mut().for_each(|run| run.head += EVENTS);
        self.lock(&runs).await?;
        self.turn_runs(&runs, "completed").await?;
        self.add_history(&runs, &texts.last, EVENTS).await?;
        self.remove(&runs, if style == Style::Machine { ACTIVITY } else { TURN }).await?;
        self.plain("commit").await?;
        Ok(runs.len())
    }
}

impl Writer for Connection {
    async fn prepare(&mut self, rows: Rows, runs: &[RunAt], texts: &Texts) -> anyhow::Result<()> {
        let Rows::Step(style) = rows else { return self.start(runs, texts).await };
        self.plain("start transaction").await?;
        self.add_runs(runs, "running", UNDER_WAY).await?;
        if style == Style::Machine {
            self.add_tasks(runs, texts).await?;
        }
        self.plain("commit").await
    }

    async fn write(&mut self, rows: Rows, runs: &[RunAt], texts: &Texts) -> anyhow::Result<usize> {
        match rows {
            Rows::Step(style) => self.step(style, runs, texts).await?,
            Rows::Start => self.start(runs, texts).await?,
            Rows::Run(style) => return self.whole_runs(style, runs.len(), texts).await,
        }
        Ok(runs.len())
    }
}

/// The text of a statement for so many rows.
fn repeated(sql: &str, rows: usize) -> anyhow::Result<String> {
    let Some((before, rest)) = sql.split_once("<<") else { return Ok(sql.to_owned()) };
    let (row, after) = rest.split_once(">>").context("a repeated part has no end")?;
    Ok([before, &vec![row; rows].join(", "), after].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_repeated() {
        assert_eq!(repeated("a <<(?)>> b", 3).unwrap(), "a (?), (?), (?) b");
        assert_eq!(repeated("a ?", 3).unwrap(), "a ?");
        assert!(repeated("a <<(?)", 3).is_err());
    }
}
