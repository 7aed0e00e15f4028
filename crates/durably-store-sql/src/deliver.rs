//! Facts for inboxes.

use crate::command::Command;
use crate::commit::{Found, load};
use crate::error::Trouble;
use crate::session::Session;
use crate::text::Sql;
use crate::work::{Work, at};
use durably_kernel::RunId;
use durably_store::{Delivered, Delivery};
use std::collections::BTreeSet;

/// A batch of deliveries.
pub(crate) struct Deliver {
    pub(crate) batch: Vec<Delivery>,
}

impl Command for Deliver {
    const NAME: &'static str = "deliver";

    type Answer = Vec<Delivered>;

    async fn act<S: Session>(&self, work: &mut Work<'_, S>) -> Result<Self::Answer, Trouble> {
        let runs: BTreeSet<RunId> = self.batch.iter().map(|delivery| delivery.run).collect();
        work.lock_runs(runs).await?;
        let (mut found, mut places) = (Found::default(), BTreeSet::new());
        let here = |delivery: &&Delivery| work.state.runs.contains(&delivery.run);
        self.batch.iter().filter(here).for_each(|delivery| found.add(delivery, &mut places));
        load(work, [at(Sql::TasksLock, places), None], [None, found.call()]).await?;
        let batch = self.batch.iter().cloned();
        Ok(batch.map(|delivery| work.state.deliver(delivery, work.now)).collect())
    }
}
