//! The bare loop (LIM): what the database allows to a program that does nothing else. It writes the
//! rows of a step, of a start or of a whole run into tables of the same schema, in batches, with
//! statements prepared once: on SQLite one for each row on one connection, on a server one for all
//! rows of a batch on several connections.
//!
//! Deliberately absent: events that are put together or parsed, programs, anybody who waits for a
//! result. What the engine spends on them is what the ratio shows.

mod mysql;
mod postgres;
mod sqlite;

use super::flows::{Parcel, Style, step_id};
use super::ground::{Ground, Server, Stage};
use super::now_ms;
use super::pace::Pace;
use super::starts::fresh_id;
use anyhow::Context;
use durably_kernel::{Attempt, Event, Payload, Place, Timestamp};
use std::time::{Duration, Instant};
use uuid::Uuid;

const OWNER: &str = "bench-host-12345-0123456789abcdef";
/// Events of a step, and of the beginning and the end of a run of one step.
const EVENTS: i64 = 2;
/// Runs under way take turns: so many batches of them.
const BATCHES: usize = 20;
/// The head of a run under way: started, its version pinned, its first step scheduled.
const UNDER_WAY: i64 = 3;

/// What is written (BENCH §2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rows {
    /// A step. Of a machine, variant G: the run's row, one history row with both events, the task's
    /// row in place. Of a function with inline steps, variant D: no task row.
    Step(Style),
    /// A start: the run's row, one history row with its first event, its turn row.
    Start,
    /// A run of one step that was started before: its turn is claimed, its step scheduled, its
    /// outcome recorded together with its end.
    Run(Style),
}

/// How the loop is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct BareLoop {
    pub(super) rows: Rows,
    /// So many in one transaction.
    pub(super) batch: usize,
    /// Of a server.
    pub(super) connections: usize,
    pub(super) lasts: Duration,
    /// Runs that are there before, where whole runs are written.
    pub(super) backlog: usize,
}

/// A run as the loop knows it.
#[derive(Clone, Copy, Debug)]
struct RunAt {
    id: Uuid,
    head: i64,
}

/// What is written again and again.
#[derive(Clone, Debug)]
struct Texts {
    /// Of a start, or of a step, or of the beginning of a run.
    events: String,
    /// Of the end of a run.
    last: String,
    input: String,
}

/// A connection that writes.
trait Writer: Send + 'static {
    /// Runs under way, each with a claimed task where there is one; or runs with a ready turn.
    fn prepare(
        &mut self,
        rows: Rows,
        runs: &[RunAt],
        texts: &Texts,
    ) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// One batch of steps of these runs, or of starts of these; or so many whole runs, whichever
    /// are there. Says how many were written.
    fn write(
        &mut self,
        rows: Rows,
        runs: &[RunAt],
        texts: &Texts,
    ) -> impl Future<Output = anyhow::Result<usize>> + Send;
}

impl BareLoop {
    /// Runs the loop on a fresh database; none on a store without one.
    pub(super) async fn pace(self, ground: &Ground) -> anyhow::Result<Option<Pace>> {
        let stage = ground.fresh().await?;
        let pace = async {
            match stage.server() {
                Some((Server::Postgres(server), schema)) => {
                    let mut writers = Vec::new();
                    for _ in 0..self.connections {
                        writers.push(postgres::Connection::open(server, schema).await?);
                    }
                    return self.run(writers, &stage).await.map(Some);
                }
                Some((Server::Mysql(server), database)) => {
                    let mut writers = Vec::new();
                    for _ in 0..self.connections {
                        writers.push(mysql::Connection::open(server, database).await?);
                    }
                    return self.run(writers, &stage).await.map(Some);
                }
                None => {}
            }
            match (stage.file(), self.rows) {
                (Some(file), Rows::Step(_) | Rows::Start) => {
                    let writers = vec![sqlite::Connection::open(&file)?];
                    self.run(writers, &stage).await.map(Some)
                }
                (Some(_), Rows::Run(_)) | (None, _) => anyhow::Ok(None),
            }
        };
        pace.await.context("the bare loop failed")
    }

    async fn run<W: Writer>(self, mut writers: Vec<W>, stage: &Stage) -> anyhow::Result<Pace> {
        let texts = Texts::of(self.rows)?;
        let mut loops = Vec::new();
        for mut writer in writers.drain(..) {
            let runs = self.prepare(&mut writer, &texts).await?;
            loops.push((writer, runs));
        }
        let connections = loops.len();
        let (began, cpu) = (Instant::now(), stage.cpu());
        let loops = loops.into_iter().map(|(writer, runs)| {
            let lasts = began + self.lasts;
            let write = Looping { rows: self.rows, batch: self.batch, lasts, runs };
            tokio::spawn(write.write_all(writer, texts.clone()))
        });
        let mut written = 0;
        for each in loops.collect::<Vec<_>>() {
            written += each.await??;
        }
        tracing::debug!("the bare loop wrote {written} on {connections} connections");
        Ok(Pace::of(written, began.elapsed(), cpu))
    }

    /// What a connection finds before it begins.
    async fn prepare<W: Writer>(self, to: &mut W, texts: &Texts) -> anyhow::Result<Vec<RunAt>> {
        const WRITTEN_TOGETHER: usize = 1000;
        let (count, head) = match self.rows {
            Rows::Step(_) => (self.batch * BATCHES, UNDER_WAY),
            Rows::Start => return Ok(vec![]),
            Rows::Run(_) => (self.backlog.div_ceil(self.connections), 1),
        };
        let runs: Vec<RunAt> = (0..count).map(|_| RunAt { id: fresh_id().0, head }).collect();
        for some in runs.chunks(WRITTEN_TOGETHER) {
            to.prepare(self.rows, some, texts).await?;
        }
        Ok(runs)
    }
}

/// The loop of one connection.
struct Looping {
    rows: Rows,
    batch: usize,
    lasts: Instant,
    runs: Vec<RunAt>,
}

impl Looping {
    async fn write_all<W: Writer>(mut self, mut to: W, texts: Texts) -> anyhow::Result<usize> {
        let (mut written, mut at) = (0, 0);
        while Instant::now() < self.lasts {
            let some = match self.rows {
                Rows::Start => {
                    let new = (0..self.batch).map(|_| RunAt { id: fresh_id().0, head: 0 });
                    to.write(self.rows, &new.collect::<Vec<_>>(), &texts).await?
                }
                Rows::Run(_) => {
                    let most = self.batch.min(self.runs.len());
                    to.write(self.rows, &self.runs[..most], &texts).await?
                }
                Rows::Step(_) => {
                    let batch = &mut self.runs[at..at + self.batch];
                    let some = to.write(self.rows, batch, &texts).await?;
                    batch.iter_mut().for_each(|run| run.head += EVENTS);
                    at = (at + self.batch) % self.runs.len();
                    some
                }
            };
            if some == 0 {
                // All of the backlog is done.
                break;
            }
            written += some;
        }
        Ok(written)
    }
}

impl Texts {
    fn of(rows: Rows) -> anyhow::Result<Texts> {
        let at = Timestamp(now_ms());
        let input = Payload::of(&Parcel::new(2))?.text().to_owned();
        let done = Event::ActivityCompleted {
            activity_id: step_id(1).into(),
            result: Payload::of(&Parcel::new(1))?,
            attempt: Attempt { number: 1, worker: OWNER.to_owned().into(), started_at: at },
            at,
        };
        let events = match rows {
            Rows::Start => vec![Event::WorkflowStarted {
                workflow_type: "bench-machine".into(),
                input: Payload::of(&Parcel::new(1))?,
                seed: u64::MAX,
                timeout_ms: None,
                at,
            }],
            Rows::Step(style) => vec![done.clone(), scheduled(style)?],
            Rows::Run(style) => vec![Event::VersionPinned { version: 1, at }, scheduled(style)?],
        };
        let result = Payload::of(&Parcel::new(1))?;
        let last = [done, Event::WorkflowCompleted { result }];
        let [events, last] = [&events[..], &last].map(Event::list_to_json);
        Ok(Texts { events, last, input })
    }
}

/// The next step.
fn scheduled(style: Style) -> anyhow::Result<Event> {
    let inline = style == Style::Function;
    Ok(Event::ActivityScheduled {
        activity_id: step_id(2).into(),
        activity_type: if inline { "step-2".into() } else { "bench-step".into() },
        input: if inline { Payload::null() } else { Payload::of(&Parcel::new(2))? },
        options: Default::default(),
        inline,
        place: (!inline).then_some(Place(1)),
        start_place: None,
        close_place: None,
    })
}
