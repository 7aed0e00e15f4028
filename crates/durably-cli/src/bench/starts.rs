//! Runs that are started before anything is measured.

use super::flows::{Parcel, Style};
use super::now_ms;
use anyhow::Context;
use durably::Client;
use durably_kernel::RunId;
use rand::RngCore;

/// So many starts in one transaction.
pub(super) const STARTS_BATCH: usize = 1000;

/// A version 7 id of now: the engine's own ids grow with time too.
pub(super) fn fresh_id() -> RunId {
    let mut random = [0; 10];
    rand::rng().fill_bytes(&mut random);
    RunId::from_parts(u64::try_from(now_ms()).unwrap_or(0), random)
}

/// How many runs of how many steps each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs {
    pub(super) count: usize,
    pub(super) steps: u32,
}

/// Starts runs in bulk.
pub(super) async fn start_runs(client: &Client, style: Style, runs: Runs) -> anyhow::Result<()> {
    let input = Parcel::new(runs.steps);
    let mut left = runs.count;
    while left > 0 {
        let batch = left.min(STARTS_BATCH);
        let starts = (0..batch).map(|_| client.start(style.workflow(), &input));
        for started in client.start_many(starts).await? {
            started.context("a start was refused")?;
        }
        left -= batch;
    }
    Ok(())
}
