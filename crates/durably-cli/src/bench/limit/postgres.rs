//! The bare loop on PostgreSQL: a statement for all rows of a batch. A step's transaction takes two
//! trips: the first looks at the runs and locks them, the second writes and commits.

use super::{EVENTS, OWNER, Rows, RunAt, Texts, UNDER_WAY, Writer};
use crate::bench::flows::Style;
use crate::bench::ground::postgres::Postgres;
use crate::bench::now_ms;
use crate::bench::starts::fresh_id;
use anyhow::ensure;
use futures_util::future::{BoxFuture, FutureExt, MaybeDone, maybe_done};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};
use uuid::Uuid;

/// Where a run's turn and its first activity are.
const TURN: i32 = 0;
const ACTIVITY: i32 = 1;

macro_rules! statements {
    ($($name:ident: $file:literal),* $(,)?) => {
        struct Statements { $($name: Statement),* }

        impl Statements {
            async fn prepared(client: &Client) -> anyhow::Result<Statements> {
                Ok(Statements { $($name: client.prepare(include_str!($file)).await?),* })
            }
        }
    };
}

statements! {
    lock: "../../../sql/postgres/limit_lock.sql",
    step_runs: "../../../sql/postgres/limit_step_runs.sql",
    step_tasks: "../../../sql/postgres/limit_step_tasks.sql",
    turn_runs: "../../../sql/postgres/limit_turn_runs.sql",
    history: "../../../sql/postgres/limit_history.sql",
    runs: "../../../sql/postgres/limit_runs.sql",
    turns: "../../../sql/postgres/limit_turns.sql",
    tasks: "../../../sql/postgres/limit_tasks.sql",
    claim: "../../../sql/postgres/limit_claim.sql",
    remove: "../../../sql/postgres/limit_remove.sql",
}

/// A connection with its statements.
pub(super) struct Connection {
    client: Client,
    statements: Statements,
}

/// A request that is sent when it is first polled, and the number of rows that it changed.
type Request<'a> = BoxFuture<'a, Result<u64, tokio_postgres::Error>>;
type Params<'a> = [&'a (dyn ToSql + Sync)];

/// What all statements of a batch have in common.
struct Batch<'a> {
    ids: Vec<Uuid>,
    heads: Vec<i64>,
    commits: Vec<Uuid>,
    inputs: Vec<&'a str>,
    now: i64,
}

impl<'a> Batch<'a> {
    fn of(runs: &[RunAt], texts: &'a Texts) -> Batch<'a> {
        Batch {
            ids: runs.iter().map(|run| run.id).collect(),
            heads: runs.iter().map(|run| run.head).collect(),
            commits: runs.iter().map(|_| fresh_id().0).collect(),
            inputs: vec![&texts.input; runs.len()],
            now: now_ms(),
        }
    }
}

impl Connection {
    pub(super) async fn open(server: &Postgres, schema: &str) -> anyhow::Result<Connection> {
        let client = server.connect(schema).await?;
        client.query_one(include_str!("../../../sql/postgres/limit_settings.sql"), &[]).await?;
        let statements = Statements::prepared(&client).await?;
        Ok(Connection { client, statements })
    }

    fn execute<'a>(&'a self, statement: &'a Statement, params: &'a Params<'a>) -> Request<'a> {
        self.client.execute(statement, params).boxed()
    }

    fn plain<'a>(&'a self, command: &'static str) -> Request<'a> {
        self.client.batch_execute(command).map(|done| done.map(|()| 0)).boxed()
    }

    /// Writes in one trip, and checks that each statement changed so many rows.
    async fn write_rows(
        &self,
        count: usize,
        first: &'static str,
        writes: Vec<Request<'_>>,
    ) -> anyhow::Result<()> {
        let mut requests = vec![];
        if !first.is_empty() {
            requests.push(self.plain(first));
        }
        let from = requests.len();
        let to = from + writes.len();
        requests.extend(writes);
        requests.push(self.plain("commit"));
        let changed = in_one_trip(requests).await?;
        for changed in &changed[from..to] {
            ensure!(*changed == count as u64, "{changed} rows of {count} were changed");
        }
        Ok(())
    }

    /// The first trip: begins, locks the runs, and checks their heads.
    async fn lock(&self, runs: &[RunAt], ids: &Vec<Uuid>) -> anyhow::Result<()> {
        let params: [&(dyn ToSql + Sync); 1] = [ids];
        let begin = self.plain("begin").map(|begun| begun.map(|_| vec![]));
        let lock = self.client.query(&self.statements.lock, &params);
        let answers: Vec<Vec<Row>> = in_one_trip(vec![begin.boxed(), lock.boxed()]).await?;
        let found = answers.iter().flatten();
        let mut heads = BTreeMap::new();
        for row in found {
            heads.insert(row.try_get::<_, Uuid>(0)?, row.try_get::<_, i64>(1)?);
        }
        let as_known = runs.iter().all(|run| heads.get(&run.id) == Some(&run.head));
        ensure!(as_known, "somebody else has changed runs of the bare loop");
        Ok(())
    }

    async fn step(&self, style: Style, runs: &[RunAt], texts: &Texts) -> anyhow::Result<()> {
        let batch = Batch::of(runs, texts);
        let events = vec![texts.events.as_str(); runs.len()];
        self.lock(runs, &batch.ids).await?;
        let statements = &self.statements;
        let of_runs: [&(dyn ToSql + Sync); 2] = [&batch.ids, &batch.heads];
        let count = i32::try_from(EVENTS)?;
        let of_history: [&(dyn ToSql + Sync); 6] =
            [&batch.ids, &batch.heads, &batch.commits, &events, &count, &batch.now];
        let places = vec![ACTIVITY; runs.len()];
        let of_tasks: [&(dyn ToSql + Sync); 7] =
            [&batch.ids, &places, &batch.heads, &batch.inputs, &OWNER, &"step-2", &batch.now];
        let mut writes = vec![
            self.execute(&statements.step_runs, &of_runs),
            self.execute(&statements.history, &of_history),
        ];
        if style == Style::Machine {
            writes.push(self.execute(&statements.step_tasks, &of_tasks));
        }
        self.write_rows(runs.len(), "", writes).await
    }

    async fn start(&self, runs: &[RunAt], texts: &Texts) -> anyhow::Result<()> {
        let batch = Batch::of(runs, texts);
        let events = vec![texts.events.as_str(); runs.len()];
        let hash = "0123456789abcdef".repeat(4);
        let statements = &self.statements;
        let nothing = vec![0_i64; runs.len()];
        let of_runs: [&(dyn ToSql + Sync); 5] = [&batch.ids, &hash, &"pending", &1_i64, &batch.now];
        let of_history: [&(dyn ToSql + Sync); 6] =
            [&batch.ids, &nothing, &batch.commits, &events, &1_i32, &batch.now];
        let of_turns: [&(dyn ToSql + Sync); 2] = [&batch.ids, &batch.now];
        let writes = vec![
            self.execute(&statements.runs, &of_runs),
            self.execute(&statements.history, &of_history),
            self.execute(&statements.turns, &of_turns),
        ];
        self.write_rows(runs.len(), "begin", writes).await
    }

    /// Claims so many turns.
    async fn claim(&self, most: usize) -> anyhow::Result<Vec<RunAt>> {
        let (call, most, now) = (fresh_id().0, i64::try_from(most)?, now_ms());
        let rows = self.client.query(&self.statements.claim, &[&OWNER, &call, &now, &most]).await?;
        rows.iter().map(|row| Ok(RunAt { id: row.try_get(0)?, head: 1 })).collect()
    }

    /// The first step is scheduled: the turn is done, unless the step is executed within it.
    async fn begin_runs(&self, style: Style, runs: &[RunAt], texts: &Texts) -> anyhow::Result<()> {
        let batch = Batch::of(runs, texts);
        let events = vec![texts.events.as_str(); runs.len()];
        self.lock(runs, &batch.ids).await?;
        let statements = &self.statements;
        let count = i32::try_from(EVENTS)?;
        let of_runs: [&(dyn ToSql + Sync); 5] =
            [&batch.ids, &batch.heads, &"running", &batch.now, &None::<i64>];
        let of_history: [&(dyn ToSql + Sync); 6] =
            [&batch.ids, &batch.heads, &batch.commits, &events, &count, &batch.now];
        let places = vec![TURN; runs.len()];
        let of_turns: [&(dyn ToSql + Sync); 3] = [&batch.ids, &places, &OWNER];
        let of_tasks: [&(dyn ToSql + Sync); 4] = [&batch.ids, &batch.inputs, &OWNER, &batch.now];
        let mut writes = vec![
            self.execute(&statements.turn_runs, &of_runs),
            self.execute(&statements.history, &of_history),
        ];
        if style == Style::Machine {
            writes.push(self.execute(&statements.remove, &of_turns));
            writes.push(self.execute(&statements.tasks, &of_tasks));
        }
        self.write_rows(runs.len(), "", writes).await
    }

    /// The outcome of the step, and the end.
    async fn end_runs(&self, style: Style, runs: &[RunAt], texts: &Texts) -> anyhow::Result<()> {
        let batch = Batch::of(runs, texts);
        let events = vec![texts.last.as_str(); runs.len()];
        self.lock(runs, &batch.ids).await?;
        let statements = &self.statements;
        let count = i32::try_from(EVENTS)?;
        let of_runs: [&(dyn ToSql + Sync); 5] =
            [&batch.ids, &batch.heads, &"completed", &batch.now, &Some(batch.now)];
        let of_history: [&(dyn ToSql + Sync); 6] =
            [&batch.ids, &batch.heads, &batch.commits, &events, &count, &batch.now];
        let places = vec![if style == Style::Machine { ACTIVITY } else { TURN }; runs.len()];
        let of_tasks: [&(dyn ToSql + Sync); 3] = [&batch.ids, &places, &OWNER];
        let writes = vec![
            self.execute(&statements.turn_runs, &of_runs),
            self.execute(&statements.history, &of_history),
            self.execute(&statements.remove, &of_tasks),
        ];
        self.write_rows(runs.len(), "", writes).await
    }

    /// Runs under way, each with a claimed task where there is one.
    async fn put_under_way(
        &self,
        style: Style,
        runs: &[RunAt],
        texts: &Texts,
    ) -> anyhow::Result<()> {
        let batch = Batch::of(runs, texts);
        let hash = "0123456789abcdef".repeat(4);
        let of_runs: [&(dyn ToSql + Sync); 5] =
            [&batch.ids, &hash, &"running", &UNDER_WAY, &batch.now];
        let of_tasks: [&(dyn ToSql + Sync); 4] = [&batch.ids, &batch.inputs, &OWNER, &batch.now];
        let mut writes = vec![self.execute(&self.statements.runs, &of_runs)];
        if style == Style::Machine {
            writes.push(self.execute(&self.statements.tasks, &of_tasks));
        }
        self.write_rows(runs.len(), "begin", writes).await
    }
}

impl Writer for Connection {
    async fn prepare(&mut self, rows: Rows, runs: &[RunAt], texts: &Texts) -> anyhow::Result<()> {
        match rows {
            Rows::Step(style) => self.put_under_way(style, runs, texts).await,
            Rows::Start | Rows::Run(_) => self.start(runs, texts).await,
        }
    }

    async fn write(&mut self, rows: Rows, runs: &[RunAt], texts: &Texts) -> anyhow::Result<usize> {
        match rows {
            Rows::Step(style) => self.step(style, runs, texts).await?,
            Rows::Start => self.start(runs, texts).await?,
            Rows::Run(style) => {
                let mut claimed = self.claim(runs.len()).await?;
                if claimed.is_empty() {
                    return Ok(0);
                }
                self.begin_runs(style, &claimed, texts).await?;
                claimed.iter_mut().for_each(|run| run.head += EVENTS);
                self.end_runs(style, &claimed, texts).await?;
                return Ok(claimed.len());
            }
        }
        Ok(runs.len())
    }
}

/// Sends all requests, in order, before the first answer is waited for. All answers are taken.
async fn in_one_trip<T>(
    requests: Vec<BoxFuture<'_, Result<T, tokio_postgres::Error>>>,
) -> Result<Vec<T>, tokio_postgres::Error> {
    let mut requests: Vec<_> = requests.into_iter().map(maybe_done).map(Box::pin).collect();
    poll_fn(|context| {
        for request in &mut requests {
            let _ = request.poll_unpin(context);
        }
        Poll::Ready(())
    })
    .await;
    let mut answers = Vec::with_capacity(requests.len());
    for request in &mut requests {
        request.as_mut().await;
        answers.extend(MaybeDone::take_output(request.as_mut()));
    }
    answers.into_iter().collect()
}
