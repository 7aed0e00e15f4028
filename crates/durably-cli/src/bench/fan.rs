//! B7: a thousand steps side by side, and the one that waits for all of them.

use super::Bench;
use super::flows::{Parcel, SLOTS, Style};
use super::report::Measured;
use durably::EngineBuilder;
use durably::prelude::*;
use std::time::Instant;

const FAN: WorkflowRef<Parcel, u32> = WorkflowRef::new("bench-fan-function");
const STEP: ActivityRef<Parcel, Parcel> = ActivityRef::new("bench-fan-step");

/// B7 in both styles.
pub(super) async fn b7(bench: &Bench) -> anyhow::Result<Vec<Measured>> {
    let mut measured = Vec::new();
    for style in Style::ALL {
        let stage = bench.ground.fresh().await?;
        let engine = engine(style).start_on(stage.store.clone()).await?;
        let width = bench.sizes.fan;
        let mut millis = Vec::new();
        for pass in 0..=bench.runs {
            let began = Instant::now();
            engine.run(workflow(style), &Parcel::new(width)).await?;
            // The first one warms up.
            if pass > 0 {
                millis.push(began.elapsed().as_secs_f64() * 1e3);
            }
            bench.progress.advance(format!("B7 {}", style.name()));
        }
        engine.stop().await?;
        let micros = millis.iter().map(|millis| millis * 1e3 / f64::from(width)).collect();
        measured.push(bench.measured("B7", Some(style.name()), "ms", millis));
        measured.push(bench.measured("B7", Some(style.name()), "us_per_step", micros));
    }
    Ok(measured)
}

fn workflow(style: Style) -> WorkflowRef<Parcel, u32> {
    match style {
        Style::Machine => Fan::REF,
        Style::Function => FAN,
    }
}

fn engine(style: Style) -> EngineBuilder {
    let engine = Engine::builder().slots(SLOTS);
    match style {
        Style::Machine => {
            engine.workflow::<Fan>().activity_fn(STEP, async |_, parcel: Parcel| Ok(parcel))
        }
        Style::Function => engine.function(FAN, fan),
    }
}

async fn fan(ctx: Ctx, parcel: Parcel) -> Result<u32> {
    let step = |number| {
        let given = parcel.clone();
        ctx.step(format!("step-{number}"), async move || Ok(Parcel { number, ..given }))
    };
    let steps: Vec<_> = (1..=parcel.number).map(step).collect();
    let results = futures_util::future::join_all(steps).await;
    for result in results {
        result?;
    }
    Ok(parcel.number)
}

struct Fan {
    parcel: Parcel,
    done: u32,
}

impl Workflow for Fan {
    const TYPE: &'static str = "bench-fan-machine";
    type Input = Parcel;
    type Output = u32;

    fn new(parcel: Parcel) -> Self {
        Fan { parcel, done: 0 }
    }

    fn on_start(&mut self) -> Actions<Self> {
        let step = |number: u32| {
            let parcel = Parcel { number, ..self.parcel.clone() };
            Action::activity(format!("step-{number}"), STEP, &parcel).into()
        };
        Ok((1..=self.parcel.number).map(step).collect())
    }

    fn on_activity_completed(&mut self, _id: &str, _result: &Output) -> Actions<Self> {
        self.done += 1;
        match self.done == self.parcel.number {
            true => actions![Action::complete(&self.done)],
            false => Ok(vec![]),
        }
    }
}
