//! B5: a thousand workers in four processes claim from one queue.

use super::Bench;
use super::flows::Style;
use super::part::{Part, Task};
use super::report::{Measured, percentile};
use super::starts::{Runs, start_runs};
use super::watched::Watch;
use durably::{RunQuery, RunStatus};
use durably_kernel::{Claim, RunId};
use durably_store::ClaimedTask;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const PROCESSES: usize = 4;
/// Of each process; a worker is a slot.
const SLOTS: usize = 250;
/// Something was claimed twice at once: never.
pub(super) const DUPLICATES: &str = "duplicates";

/// What a process saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Seen {
    /// What claims that took something took, in milliseconds.
    waits: Vec<f64>,
    claims: Vec<Claim>,
    /// The runs whose handlers began.
    began: Vec<RunId>,
}

/// Notes what a process claims.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<Seen>);

impl Claims {
    pub(super) fn began(&self, run: RunId) {
        self.0.lock().began.push(run);
    }

    pub(super) fn seen(&self) -> Seen {
        self.0.lock().clone()
    }
}

impl Watch for Claims {
    fn claimed(&self, tasks: &[ClaimedTask], took: Duration) {
        if tasks.is_empty() {
            return;
        }
        let mut seen = self.0.lock();
        seen.waits.push(took.as_secs_f64() * 1e3);
        seen.claims.extend(tasks.iter().map(|task| task.claim));
    }
}

/// B5; none where there is no server that processes could share.
pub(super) async fn b5(bench: &Bench) -> anyhow::Result<Vec<Measured>> {
    if bench.ground.server().is_none() {
        return Ok(vec![]);
    }
    let (mut rates, mut waits, mut twice) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.runs {
        let pass = pass(bench).await?;
        rates.push(pass.per_s);
        waits.push(percentile(&pass.waits, 99.0));
        twice.push(pass.duplicates as f64);
        bench.progress.advance("B5".into());
    }
    let mut measured = vec![
        bench.measured("B5", None, "tasks_per_s", rates),
        bench.measured("B5", None, "claim_p99_ms", waits),
    ];
    // Not the middle one: each counts.
    measured.push(bench.measured("B5", None, DUPLICATES, vec![twice.iter().sum()]));
    Ok(measured)
}

struct Pass {
    per_s: f64,
    waits: Vec<f64>,
    duplicates: usize,
}

async fn pass(bench: &Bench) -> anyhow::Result<Pass> {
    let stage = bench.ground.fresh().await?;
    let tasks = bench.sizes.shared;
    start_runs(&stage.client, Style::Machine, Runs { count: tasks, steps: 1 }).await?;
    let mut parts = Vec::new();
    for _ in 0..PROCESSES {
        parts.push(Part::start(&stage.url, Task::Claims { slots: SLOTS })?);
    }
    let mut ready = Vec::new();
    for part in parts {
        let (part, _): (Part, String) = part.hear().await?;
        ready.push(part);
    }
    let began = Instant::now();
    ready.iter_mut().try_for_each(|part| part.tell("go"))?;
    until_done(bench, &stage.client, tasks).await?;
    let per_s = tasks as f64 / began.elapsed().as_secs_f64();
    ready.iter_mut().try_for_each(|part| part.tell("stop"))?;
    let mut all = Seen::default();
    for part in ready {
        let (_, seen): (Part, Seen) = part.hear().await?;
        all.waits.extend(seen.waits);
        all.claims.extend(seen.claims);
        all.began.extend(seen.began);
    }
    anyhow::ensure!(all.began.len() >= tasks, "{} handlers of {tasks} began", all.began.len());
    let duplicates = repeats(&all.claims) + repeats(&all.began);
    Ok(Pass { per_s, waits: all.waits, duplicates })
}

/// Looks from time to time, so that those who work are not held up.
async fn until_done(bench: &Bench, client: &durably::Client, tasks: usize) -> anyhow::Result<()> {
    let statuses = vec![RunStatus::Pending, RunStatus::Running];
    let open = RunQuery { statuses, most: 1, ..RunQuery::default() };
    let done = async {
        while !client.runs(open.clone()).await?.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
            bench.progress.note(format!("B5: {tasks} tasks, {PROCESSES} processes"));
        }
        anyhow::Ok(())
    };
    super::patiently("four processes have done all tasks", done).await?
}

/// How many are there more than once.
fn repeats<T: Ord>(all: &[T]) -> usize {
    all.len() - all.iter().collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_twice_is_counted() {
        assert_eq!(repeats(&[1, 2, 3]), 0);
        assert_eq!(repeats(&[1, 2, 1, 1]), 2);
    }
}
