//! A run for a turn.

use crate::command::Command;
use crate::commit::load;
use crate::error::Trouble;
use crate::field::{id, limit, stored};
use crate::record::read_history;
use crate::session::{Call, Param, Session};
use crate::text::Sql;
use crate::work::{Work, at, unread};
use durably_kernel::{RunId, Seq};
use durably_store::rows::{At, HistoryRow, UNREAD_MAX};
use durably_store::{LoadCall, Loaded};
use std::collections::BTreeSet;

/// Reads a run under its lock.
pub(crate) struct Load {
    pub(crate) call: LoadCall,
}

impl Command for Load {
    const NAME: &'static str = "load";

    type Answer = Option<Loaded>;

    async fn act<S: Session>(&self, work: &mut Work<'_, S>) -> Result<Self::Answer, Trouble> {
        let call = &self.call;
        work.lock_runs([call.run]).await?;
        let Some(record) = work.state.runs.get(&call.run) else { return Ok(None) };
        let (used, head) = (record.inbox_used, record.head);
        let unread = unread([(record, (used, UNREAD_MAX))].into_iter());
        let places = call.claims.iter().map(|claim| (call.run, claim.place));
        let places: BTreeSet<At> = places.collect();
        load(work, [at(Sql::TasksLock, places), None], [unread, None]).await?;
        if call.events_max > 0 && call.after < head {
            let history = history(work.session, call.run, call.after, call.events_max).await?;
            if let Some(record) = work.state.runs.get_mut(&call.run) {
                record.history = history;
            }
        }
        Ok(work.state.load(call, work.now))
    }
}

/// The rows that hold the events after one; at least so many events, if there are.
pub(crate) async fn history<S: Session>(
    session: &mut S,
    run: RunId,
    after: Seq,
    most: usize,
) -> Result<Vec<HistoryRow>, Trouble> {
    let mut history: Vec<HistoryRow> = Vec::new();
    let (mut after, mut missing) = (after, most);
    while missing > 0 {
        // A row has an event at least; a few rows have more than one.
        let page = missing.min(1_000);
        let params = vec![id(run.0), Param::Int(Some(stored(after.0))), limit(page)];
        let answers = session.ask(vec![Call { sql: Sql::HistoryPage, params }]).await?;
        let rows = answers.into_iter().next().unwrap_or_default();
        let is_last = rows.len() < page;
        for row in rows {
            let (_, row) = read_history(row)?;
            let last = Seq(row.first.0 + row.events.len() as u64 - 1);
            missing = missing.saturating_sub((last.0.saturating_sub(after.0)) as usize);
            after = last;
            history.push(row);
        }
        if is_last {
            break;
        }
    }
    Ok(history)
}
