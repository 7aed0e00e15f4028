//! B10: a run with a long history: what a step costs at its end, and what its recovery costs.

use super::flows::{Began, Parcel, SLOTS, Style, step_id};
use super::ground::Stage;
use super::report::{Measured, median};
use super::{Bench, patiently};
use anyhow::Context;
use durably::EngineBuilder;
use durably::prelude::*;
use durably_kernel::RunId;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

const LONG: WorkflowRef<Parcel, u32> = WorkflowRef::new("bench-long-function");
const STEP: ActivityRef<Parcel, Parcel> = ActivityRef::new("bench-long-step");
const GO: SignalRef<u32> = SignalRef::new("go");
/// A step is two events: scheduled and completed.
const EVENTS_PER_STEP: u32 = 2;
/// Events before the first step: started, version pinned.
const BEGINNING: u64 = 2;
/// From this event on, steps are early.
const EARLY_EVENT: u32 = 100;
/// Steps that follow one signal.
const BURST: u32 = 10;
/// Signals to each run in a pass.
const BURSTS: u32 = 10;

/// B10 in both styles: a long run and a short one, in turns.
pub(super) async fn b10(bench: &Bench) -> anyhow::Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for style in Style::ALL {
        let pair = Pair::written(bench, style).await?;
        let of = |metric, values| bench.measured("B10", Some(style.name()), metric, values);
        let growth = pair.late.iter().zip(&pair.early).map(|(late, early)| late / early).collect();
        measured.push(of("early_step_us", pair.early.clone()));
        measured.push(of("late_step_us", pair.late.clone()));
        measured.push(of("late_to_early", growth));
        let (mut millis, mut rates) = (Vec::new(), Vec::new());
        // The first recovery warms up.
        for pass in 0..=bench.runs {
            let without = pair.recover(pair.short).await?;
            let with = pair.recover(pair.long).await?;
            if pass > 0 {
                millis.push(with.as_secs_f64() * 1e3);
                let replay = with.saturating_sub(without).as_secs_f64().max(1e-6);
                rates.push(f64::from(pair.more_steps) / replay);
            }
            bench.progress.advance(format!("B10 {}", style.name()));
        }
        measured.push(of("recover_ms", millis));
        measured.push(of("replay_steps_per_s", rates));
    }
    Ok(measured)
}

/// A long run and a short one, both waiting for a signal before they go on.
struct Pair {
    stage: Stage,
    style: Style,
    long: RunId,
    short: RunId,
    /// So many more the long one has in its history.
    more_steps: u32,
    /// What steps of the short one cost while it was cached, in microseconds, a value for each
    /// pass.
    early: Vec<f64>,
    /// The same of the long one.
    late: Vec<f64>,
}

impl Pair {
    async fn written(bench: &Bench, style: Style) -> anyhow::Result<Pair> {
        let stage = bench.ground.fresh().await?;
        let (began, mut begun) = begins();
        let engine = engine(style, began).start_on(stage.store.clone()).await?;
        let client = engine.client();
        let steps = [bench.sizes.events, EARLY_EVENT.min(bench.sizes.events / 2)]
            .map(|events| (events / EVENTS_PER_STEP).max(1));
        let long = write(&client, style, steps[0], &mut begun).await?;
        let short = write(&client, style, steps[1], &mut begun).await?;
        let (mut early, mut late) = (Vec::new(), Vec::new());
        for _ in 0..bench.runs {
            // In turns, so that a slow moment of the disk is neither's alone.
            let (mut of_short, mut of_long) = (Vec::new(), Vec::new());
            for _ in 0..BURSTS {
                of_short.extend(burst(&client, short, &mut begun).await?);
                of_long.extend(burst(&client, long, &mut begun).await?);
            }
            early.push(median(&of_short));
            late.push(median(&of_long));
        }
        engine.stop().await?;
        Ok(Pair { stage, style, long, short, more_steps: steps[0] - steps[1], early, late })
    }

    /// A new engine, which knows nothing of the run: from a signal to the next step running.
    async fn recover(&self, run: RunId) -> anyhow::Result<Duration> {
        let (began, mut begun) = begins();
        let engine = engine(self.style, began).start_on(self.stage.store.clone()).await?;
        let called = Instant::now();
        engine.handle(workflow(self.style), run).signal(GO, &1).await?;
        let at = next(&mut begun).await?;
        engine.stop().await?;
        Ok(at.saturating_duration_since(called))
    }
}

/// Starts a run, and waits until its steps are in its history.
async fn write(
    client: &Client,
    style: Style,
    steps: u32,
    begun: &mut Begins,
) -> anyhow::Result<RunId> {
    let run = client.start(workflow(style), &Parcel::new(steps)).await?;
    for _ in 0..steps {
        next(begun).await?;
    }
    let head = BEGINNING + u64::from(steps * EVENTS_PER_STEP);
    let recorded = async {
        while run.status().await?.head.0 < head {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        anyhow::Ok(())
    };
    patiently("the last step is recorded", recorded).await??;
    Ok(run.id())
}

/// Has a run do a few steps; what each but the first cost, in microseconds.
async fn burst(client: &Client, run: RunId, begun: &mut Begins) -> anyhow::Result<Vec<f64>> {
    client.handle_by_id(run).signal(GO, &BURST).await?;
    let mut began = Vec::new();
    for _ in 0..BURST {
        began.push(next(begun).await?);
    }
    Ok(began.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e6).collect())
}

async fn next(begun: &mut Begins) -> anyhow::Result<Instant> {
    patiently("a step begins", begun.recv()).await?.context("the engine is gone")
}

type Begins = mpsc::UnboundedReceiver<Instant>;

fn begins() -> (Began, Begins) {
    let (begun, begins) = mpsc::unbounded_channel();
    let began = move |_, _| {
        // The receiver is gone when nothing is measured any more.
        let _ = begun.send(Instant::now());
    };
    (Arc::new(began), begins)
}

fn workflow(style: Style) -> WorkflowRef<Parcel, u32> {
    match style {
        Style::Machine => LongMachine::REF,
        Style::Function => LONG,
    }
}

fn engine(style: Style, began: Began) -> EngineBuilder {
    let engine = Engine::builder().slots(SLOTS);
    match style {
        Style::Machine => engine.workflow::<LongMachine>().activity_fn(
            STEP,
            async move |ctx: ActivityContext, parcel: Parcel| {
                began(ctx.run_id(), parcel.number);
                Ok(parcel)
            },
        ),
        Style::Function => {
            engine.function(LONG, move |ctx: Ctx, parcel: Parcel| long(ctx, parcel, began.clone()))
        }
    }
}

/// Steps without a pause, then as many as a signal asks for, for ever.
async fn long(ctx: Ctx, parcel: Parcel, began: Began) -> Result<u32> {
    let run = ctx.run_id();
    let mut until = parcel.number;
    for number in 1.. {
        if number > until {
            until += ctx.signal(GO).await?;
        }
        let (began, given) = (&began, &parcel);
        let step = ctx.step(step_id(number), async move || {
            began(run, number);
            Ok(Parcel { number, ..given.clone() })
        });
        step.await?;
    }
    Ok(until)
}

struct LongMachine {
    parcel: Parcel,
    done: u32,
    until: u32,
}

impl LongMachine {
    fn next(&self) -> Actions<Self> {
        let number = self.done + 1;
        let parcel = Parcel { number, ..self.parcel.clone() };
        actions![Action::activity(step_id(number), STEP, &parcel)]
    }
}

impl Workflow for LongMachine {
    const TYPE: &'static str = "bench-long-machine";
    type Input = Parcel;
    type Output = u32;

    fn new(parcel: Parcel) -> Self {
        LongMachine { done: 0, until: parcel.number, parcel }
    }

    fn on_start(&mut self) -> Actions<Self> {
        self.next()
    }

    fn on_activity_completed(&mut self, _id: &str, _result: &Output) -> Actions<Self> {
        self.done += 1;
        match self.done < self.until {
            true => self.next(),
            false => Ok(vec![]),
        }
    }

    fn on_signal(&mut self, signal: &Signal) -> Actions<Self> {
        let idle = self.done == self.until;
        self.until += signal.of(GO)?.unwrap_or(0);
        match idle {
            true => self.next(),
            // The step under way goes on by itself.
            false => Ok(vec![]),
        }
    }
}
