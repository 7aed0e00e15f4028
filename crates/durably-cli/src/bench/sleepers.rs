//! B8: a million runs that sleep, and an engine that starts beside them.
//!
//! The sleepers are written through the store's port, as copies of one that an engine has put to
//! sleep: starting them is not what is measured. The engine is a process of its own, so that its
//! memory is not mixed up with that of the benchmark.

use super::Bench;
use super::flows::{Parcel, SLOTS, Style};
use super::ground::{Ground, Stage};
use super::part::{Part, Seen, Task};
use super::report::Measured;
use super::starts::{Runs, fresh_id, start_runs};
use anyhow::{bail, ensure};
use durably::prelude::*;
use durably::{RunView, Seq, TaskRow};
use durably_kernel::{CommitId, Event, RunIdentity, Summary, TaskChange, TaskPut, WorkerId};
use durably_store::{
    Base, CallId, ClaimCall, Claimable, Claimed, CommitAnswer, KeyCheck, NewRun, Registration,
    RunCommit, Store, Want,
};
use std::time::Instant;

pub(super) const SLEEPER: WorkflowRef<Parcel, u32> = WorkflowRef::new("bench-sleeper");
const ASLEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// So many are written in one transaction.
const WRITTEN_TOGETHER: usize = 1000;
/// Tasks of one claim.
const CLAIMED_TOGETHER: usize = 64;

/// B8; none where the store is in the engine's own memory.
pub(super) async fn b8(bench: &Bench) -> anyhow::Result<Vec<Measured>> {
    if let Ground::Memory = bench.ground {
        return Ok(vec![]);
    }
    let (none, asleep) = (bench.ground.fresh().await?, bench.ground.fresh().await?);
    let template = Template::made(bench).await?;
    template.copy(asleep.store.as_ref(), bench).await?;
    let (mut mb, mut start_up) = (Vec::new(), Vec::new());
    for _ in 0..bench.runs {
        let seen = engine_process(&asleep).await?;
        mb.extend(seen.mb);
        start_up.push(seen.start_up_s);
        bench.progress.advance("B8 engine".into());
    }
    let (mut with, mut without) = (Vec::new(), Vec::new());
    claim_micros(&none, bench.sizes.claims).await?;
    claim_micros(&asleep, bench.sizes.claims).await?;
    for _ in 0..bench.runs {
        without.push(claim_micros(&none, bench.sizes.claims).await?);
        with.push(claim_micros(&asleep, bench.sizes.claims).await?);
        bench.progress.advance("B8 claims".into());
    }
    let ratios = with.iter().zip(&without).map(|(with, without)| with / without).collect();
    let mut measured = vec![
        bench.measured("B8", None, "sleepers", vec![bench.sizes.sleepers as f64]),
        bench.measured("B8", None, "startup_s", start_up),
        bench.measured("B8", None, "claim_us", with),
        bench.measured("B8", None, "claim_us_none", without),
        bench.measured("B8", None, "claim_ratio", ratios),
    ];
    if !mb.is_empty() {
        measured.insert(1, bench.measured("B8", None, "engine_mb", mb));
    }
    Ok(measured)
}

pub(super) async fn sleeper(ctx: Ctx, parcel: Parcel) -> Result<u32> {
    match parcel.number {
        0 => ctx.step("awake", async || Ok(1)).await?,
        _ => {
            ctx.sleep(ASLEEP).await?;
            0
        }
    };
    Ok(parcel.number)
}

/// A sleeper as the store has it.
struct Template {
    view: RunView,
    events: Vec<Event>,
    timer: TaskRow,
}

impl Template {
    /// Has an engine put one to sleep.
    async fn made(bench: &Bench) -> anyhow::Result<Template> {
        let stage = bench.ground.fresh().await?;
        let engine =
            Engine::builder().function(SLEEPER, sleeper).start_on(stage.store.clone()).await?;
        let run = engine.start(SLEEPER, &Parcel::new(1)).await?;
        let timer = loop {
            match &run.tasks().await?[..] {
                [timer] if timer.due_at.is_some() => break timer.clone(),
                _ => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        let view = run.status().await?;
        let page = run.history(Seq(0), 100).await?;
        engine.stop().await?;
        let events = page.events.into_iter().map(|row| row.event).collect();
        Ok(Template { view, events, timer })
    }

    async fn copy(&self, store: &dyn Store, bench: &Bench) -> anyhow::Result<()> {
        let mut left = bench.sizes.sleepers;
        while left > 0 {
            let together = left.min(WRITTEN_TOGETHER);
            let commits: Vec<_> = (0..together).map(|_| self.commit()).collect();
            for answer in store.commit(None, commits.into()).await? {
                let CommitAnswer::Committed(_) = answer else {
                    bail!("a sleeper was refused: {answer:?}")
                };
            }
            left -= together;
            bench.progress.note(format!("B8: {left} sleepers to write"));
        }
        Ok(())
    }

    fn commit(&self) -> RunCommit {
        let (run, view, timer) = (fresh_id(), &self.view, &self.timer);
        let new = NewRun {
            identity: RunIdentity { id: run, ..view.identity.clone() },
            workflow_type: view.workflow_type.clone(),
            version: view.version,
            check: KeyCheck { key: None, input_hash: "0123456789abcdef".repeat(4) },
            attributes: None,
        };
        let put = TaskPut {
            place: timer.place,
            kind: timer.kind,
            name: timer.name.as_str().into(),
            target: timer.target.as_str().into(),
            watched: None,
            seq: timer.seq,
            delay: Some(ASLEEP),
            queue: timer.queue.clone(),
            priority: timer.priority,
            attempt: 0,
            deaths: 0,
            input: None,
            options: None,
            details: None,
        };
        let base = Base::New(Box::new(new));
        let mut commit = RunCommit::empty(CommitId(fresh_id().0), run, base);
        commit.events = self.events.clone();
        commit.tasks = [(put.place, TaskChange::Put(Box::new(put)))].into();
        commit.summary = Some(Summary {
            status: view.status,
            version: view.version,
            waits: view.waits.clone(),
            retries: 0,
            last_error: None,
        });
        commit
    }
}

/// The input of one that does not sleep.
pub(super) fn awake() -> Parcel {
    Parcel::new(0)
}

/// Has this program start an engine in a process of its own.
async fn engine_process(stage: &Stage) -> anyhow::Result<Seen> {
    let part = Part::start(&stage.url, Task::StartUp)?;
    Ok(part.hear().await?.1)
}

/// What a claim costs for each task that it takes, in microseconds.
async fn claim_micros(stage: &Stage, tasks: usize) -> anyhow::Result<f64> {
    let can =
        Claimable::Turn { workflow_type: Style::Machine.workflow().name().into(), version: 1 };
    let who = WorkerId::from(format!("bench-{}", fresh_id()));
    let registration = Registration {
        who: who.clone(),
        group: "bench".into(),
        queues: vec![Default::default()],
        can: vec![can.clone()],
        capacity: SLOTS as u32,
        host: "bench".into(),
        version: env!("CARGO_PKG_VERSION").into(),
    };
    stage.store.register(registration).await?;
    start_runs(&stage.client, Style::Machine, Runs { count: tasks, steps: 1 }).await?;
    let mut call = ClaimCall {
        id: CallId(fresh_id().0),
        who,
        queues: vec![Default::default()],
        wants: vec![Want { any: vec![can], most: CLAIMED_TOGETHER }],
        cursor: None,
        turn_deadline: Duration::from_secs(600),
    };
    let began = Instant::now();
    let mut left = tasks;
    while left > 0 {
        call.id = CallId(fresh_id().0);
        let Claimed::Tasks { tasks, cursor, .. } = stage.store.claim(call.clone()).await? else {
            bail!("a claim was refused");
        };
        ensure!(!tasks.is_empty(), "{left} tasks that are ready were not claimed");
        left = left.saturating_sub(tasks.len());
        call.cursor = cursor;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / tasks as f64)
}
