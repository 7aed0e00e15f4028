//! The workflows of the simulation: interpreters of plans, one for each style, and the activities
//! that they ask for.

mod function;
mod machine;

use crate::outside::Outside;
use crate::plan::{ACTIVITIES, Plan, Stage, Work};
use durably::{ActivityRef, EngineBuilder, Failure, WorkflowRef};
use durably_kernel::{Event, FailureKind};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a workflow gives: one entry for each thing it waited for.
pub(crate) type Entries = Vec<String>;

/// The state machine.
pub(crate) const MACHINE: WorkflowRef<Plan, Entries> = WorkflowRef::new("machine");
/// The durable function.
pub(crate) const FUNCTION: WorkflowRef<Plan, Entries> = WorkflowRef::new("function");

/// What an activity gets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) work: Work,
}

fn activity(index: usize) -> ActivityRef<Call, String> {
    ActivityRef::new(ACTIVITIES[index])
}

/// What an engine hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hosts {
    /// State machines.
    pub machine: bool,
    /// Durable functions.
    pub function: bool,
    /// Activities, by the index of their type.
    pub activities: [bool; 3],
}

/// Registers what an engine of the scenario hosts.
pub(crate) fn host(
    mut builder: EngineBuilder,
    hosts: &Hosts,
    (engine, broken): (usize, bool),
    outside: &Arc<Outside>,
) -> EngineBuilder {
    if hosts.machine {
        builder = builder.workflow::<machine::Machine>();
    }
    if hosts.function {
        let outside = outside.clone();
        builder = builder.function(FUNCTION, move |ctx, plan| {
            function::interpret(outside.clone(), (engine, broken), ctx, plan)
        });
    }
    for (index, hosted) in hosts.activities.iter().enumerate() {
        if *hosted {
            let outside = outside.clone();
            builder = builder.activity_fn(activity(index), move |context, call: Call| async move {
                let run = context.run_id();
                outside.perform(engine, run, &call.work, Some(context)).await
            });
        }
    }
    builder
}

/// Applies the options of a work to whatever takes options.
macro_rules! with_options {
    ($asked:expr, $work:expr) => {{
        let work = $work;
        let ms = Duration::from_millis;
        let mut asked = $asked.retry(Retry::fixed(work.attempts, ms(work.backoff_ms)));
        if let Some(timeout) = work.timeout_ms {
            asked = asked.timeout(ms(timeout));
        }
        if let Some(heartbeat) = work.heartbeat_ms {
            asked = asked.heartbeat_timeout(ms(heartbeat));
        }
        if let Some(start) = work.start_ms {
            asked = asked.start_timeout(ms(start));
        }
        if let Some(deadline) = work.deadline_ms {
            asked = asked.deadline(ms(deadline));
        }
        if let Some(deaths) = work.deaths_max {
            asked = asked.deaths_max(deaths);
        }
        asked
    }};
}
use with_options;

/// How the end of a work stands in the workflow's result.
pub(crate) fn entry(work: u32, ended: &Result<String, FailureKind>) -> String {
    match ended {
        Ok(result) => format!("w{work}=ok:{result}"),
        Err(kind) => format!("w{work}=failed:{kind}"),
    }
}

/// How the end of a wait for a signal stands in the workflow's result.
pub(crate) fn heard(name: &str, says: Option<&str>) -> String {
    format!("{name}={}", says.unwrap_or("timeout"))
}

/// What a finished stage adds to the result, or the failure that ends the run.
fn settle(
    works: &[Work],
    ended: &[(u32, Result<String, Failure>)],
    entries: &mut Entries,
) -> Result<(), Failure> {
    // Who is cancelled does not look at anything else.
    let cancelled = |failure: &&Failure| failure.kind == FailureKind::Cancelled;
    let mut failures = ended.iter().filter_map(|(_, result)| result.as_ref().err());
    if let Some(failure) = failures.find(cancelled) {
        return Err(failure.clone());
    }
    for (number, result) in ended {
        let tolerated = works.iter().any(|work| work.number == *number && work.tolerated);
        match result {
            Err(failure) if !tolerated => return Err(failure.clone()),
            result => {
                let result = result.clone().map_err(|failure| failure.kind);
                entries.push(entry(*number, &result));
            }
        }
    }
    Ok(())
}

/// The number of the work that a scheduling event is about.
pub(crate) fn work_of(event: &Event) -> Option<u32> {
    let Event::ActivityScheduled { activity_id, input, inline, .. } = event else { return None };
    match inline {
        true => activity_id.as_str().strip_prefix('w')?.parse().ok(),
        false => Some(input.decode::<Call>().ok()?.work.number),
    }
}

/// The stage of a work; none for the compensation.
pub(crate) fn stage_of(plan: &Plan, number: u32) -> Option<usize> {
    plan.stages.iter().position(|stage| match stage {
        Stage::All(works) | Stage::First(works) => works.iter().any(|work| work.number == number),
        Stage::Sleep { .. } | Stage::Signal { .. } => false,
    })
}
