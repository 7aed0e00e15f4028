//! The workflows that are measured: steps in a line that do nothing, in both styles.

use durably::EngineBuilder;
use durably::prelude::*;
use durably_kernel::RunId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// So many activities at a time: room for all that is in flight.
pub(super) const SLOTS: usize = 512;

const FUNCTION: WorkflowRef<Parcel, Parcel> = WorkflowRef::new("bench-function");
const STEP: ActivityRef<Parcel, Parcel> = ActivityRef::new("bench-step");

/// About a hundred bytes of JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Parcel {
    /// Of a run: how many steps. Of a step: which one, from 1.
    pub(super) number: u32,
    pub(super) note: String,
}

impl Parcel {
    pub(super) fn new(number: u32) -> Parcel {
        Parcel {
            number,
            note: "durable execution on the database you already have ".repeat(2)[..78].into(),
        }
    }
}

/// Called by a handler as it begins: the run, and the step's number from 1.
pub(super) type Began = Arc<dyn Fn(RunId, u32) + Send + Sync>;

/// How the workflow is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Style {
    /// A state machine with activities.
    Machine,
    /// A durable function with inline steps.
    Function,
}

impl Style {
    pub(super) const ALL: [Style; 2] = [Style::Machine, Style::Function];

    pub(super) fn name(self) -> &'static str {
        match self {
            Style::Machine => "machine",
            Style::Function => "function",
        }
    }

    /// The workflow, by its typed name.
    pub(super) fn workflow(self) -> WorkflowRef<Parcel, Parcel> {
        match self {
            Style::Machine => Line::REF,
            Style::Function => FUNCTION,
        }
    }

    /// An engine that hosts it.
    pub(super) fn engine(self, began: Began) -> EngineBuilder {
        let engine = Engine::builder().slots(SLOTS);
        match self {
            Style::Machine => engine.workflow::<Line>().activity_fn(
                STEP,
                async move |ctx: ActivityContext, parcel: Parcel| {
                    began(ctx.run_id(), parcel.number);
                    Ok(parcel)
                },
            ),
            Style::Function => engine.function(FUNCTION, move |ctx: Ctx, parcel: Parcel| {
                line(ctx, parcel, began.clone())
            }),
        }
    }
}

/// The id of a step's activity, in both styles.
pub(super) fn step_id(number: u32) -> String {
    format!("step-{number}")
}

async fn line(ctx: Ctx, parcel: Parcel, began: Began) -> Result<Parcel> {
    let run = ctx.run_id();
    let mut last = parcel.clone();
    for number in 1..=parcel.number {
        let began = &began;
        let given = &parcel;
        last = ctx
            .step(step_id(number), async move || {
                began(run, number);
                Ok(Parcel { number, ..given.clone() })
            })
            .await?;
    }
    Ok(last)
}

struct Line {
    parcel: Parcel,
    done: u32,
}

impl Line {
    fn next(&self) -> Actions<Self> {
        let number = self.done + 1;
        let parcel = Parcel { number, ..self.parcel.clone() };
        actions![Action::activity(step_id(number), STEP, &parcel)]
    }
}

impl Workflow for Line {
    const TYPE: &'static str = "bench-machine";
    type Input = Parcel;
    type Output = Parcel;

    fn new(parcel: Parcel) -> Self {
        Line { parcel, done: 0 }
    }

    fn on_start(&mut self) -> Actions<Self> {
        self.next()
    }

    fn on_activity_completed(&mut self, _id: &str, result: &Output) -> Actions<Self> {
        let Some(last) = result.of(STEP)? else { return Ok(vec![]) };
        self.done += 1;
        match self.done < self.parcel.number {
            true => self.next(),
            false => actions![Action::complete(&last)],
        }
    }
}
