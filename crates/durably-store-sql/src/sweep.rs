//! Housekeeping: who is dead, what is lost, what is due, what took too long.
//!
//! What there is to do is looked for without locks; then the runs are locked, their rows are loaded
//! again, and the rules decide by those.

use crate::command::Command;
use crate::commit::{Found, load};
use crate::error::Trouble;
use crate::field::{Columns, limit, time};
use crate::record::read_at;
use crate::session::{Call, Param, Session};
use crate::text::Sql;
use crate::work::{Work, at, ids, worker};
use durably_kernel::{Place, RunId, Timestamp, WorkerId};
use durably_store::rows::{At, Row};
use durably_store::{SweepCall, Swept};
use std::collections::BTreeSet;

/// Housekeeping.
pub(crate) struct Sweep {
    pub(crate) call: SweepCall,
    /// Whether it waits for runs that somebody else has locked, instead of leaving them for later.
    pub(crate) waits: bool,
}

impl Command for Sweep {
    const NAME: &'static str = "sweep";

    type Answer = Swept;

    async fn act<S: Session>(&self, work: &mut Work<'_, S>) -> Result<Swept, Trouble> {
        let dead = self.bury(work).await?;
        let places = self.look(work).await?;
        self.lock(work, places).await?;
        let mut swept =
            work.state.sweep(&SweepCall { may_declare: false, ..self.call.clone() }, work.now);
        swept.dead = dead;
        work.write().await?;
        swept.next_due = self.next_due(work).await?.map(|at| at.since(work.now));
        Ok(swept)
    }
}

impl Sweep {
    /// Dead is who was silent for too long.
    async fn bury<S: Session>(&self, work: &mut Work<'_, S>) -> Result<usize, Trouble> {
        if !self.call.may_declare {
            return Ok(0);
        }
        self.set_back(work).await?;
        let before = Timestamp(work.now.0 - crate::field::stored_millis(self.call.stale_after));
        let sweeper = self.call.who.clone().unwrap_or_else(|| WorkerId::from(""));
        let rows = work.ask(Sql::WorkersStale, vec![time(before), worker(&sweeper)]).await?;
        let dead = rows.into_iter().map(|mut row| row.words("id").map(Some));
        let dead = dead.collect::<Result<Vec<_>, _>>()?;
        let count = dead.len();
        if count > 0 {
            work.ask(Sql::WorkersBury, vec![Param::Texts(dead)]).await?;
        }
        Ok(count)
    }

    /// A beat in the future is one before the clock was set back: it counts as one of now.
    async fn set_back<S: Session>(&self, work: &mut Work<'_, S>) -> Result<(), Trouble> {
        let latest = time(work.now.after(self.call.stale_after));
        let rows = work.ask(Sql::WorkersAhead, vec![latest.clone()]).await?;
        let ahead = rows.into_iter().map(|mut row| row.words("id").map(Some));
        let ahead = ahead.collect::<Result<Vec<_>, _>>()?;
        if !ahead.is_empty() {
            let params = vec![time(work.now), latest, Param::Texts(ahead)];
            work.ask(Sql::WorkersSetBack, params).await?;
        }
        Ok(())
    }

    /// The rows that there seems to be something to do about.
    async fn look<S: Session>(&self, work: &mut Work<'_, S>) -> Result<BTreeSet<At>, Trouble> {
        let most = || limit(self.call.most);
        // Some of them are lost as well and returned first, others go with a time-out that is due.
        let late = limit(self.call.most.saturating_mul(3));
        let calls = vec![
            Call { sql: Sql::SweepLost, params: vec![most()] },
            Call { sql: Sql::SweepDue, params: vec![time(work.now), most()] },
            Call { sql: Sql::SweepLate, params: vec![time(work.now), late] },
        ];
        let answers = work.session.ask(calls).await?;
        answers.into_iter().flatten().map(read_at).collect()
    }

    async fn lock<S: Session>(
        &self,
        work: &mut Work<'_, S>,
        mut places: BTreeSet<At>,
    ) -> Result<(), Trouble> {
        if places.is_empty() {
            return Ok(());
        }
        let runs: BTreeSet<RunId> = places.iter().map(|(run, _)| *run).collect();
        let sql = if self.waits { Sql::RunsLock } else { Sql::RunsLockFree };
        let rows = work.ask(sql, vec![ids(runs)]).await?;
        work.add_runs(rows)?;
        places.retain(|(run, _)| work.state.runs.contains(run));
        let watched = at(Sql::TasksLockWatched, places.iter().copied());
        let turns = work.state.runs.iter().map(|(run, _)| (*run, Place::TURN));
        places.extend(turns.collect::<Vec<_>>());
        load(work, [at(Sql::TasksLock, places), watched], [None, None]).await?;
        let mut found = Found::default();
        for (run, record) in work.state.runs.iter() {
            record.rows.values().flat_map(Row::swept_ids).for_each(|id| found.look_for(*run, id));
        }
        load(work, [None, None], [None, found.call()]).await?;
        let owners = work.state.runs.iter().flat_map(|(_, record)| record.rows.values());
        let owners = owners.filter_map(|row| row.owner.as_ref());
        let owners: BTreeSet<String> = owners.map(|owner| owner.who.to_string()).collect();
        if !owners.is_empty() {
            let owners = Param::Texts(owners.into_iter().map(Some).collect());
            let rows = work.ask(Sql::WorkersRead, vec![owners]).await?;
            work.add_workers(rows)?;
        }
        Ok(())
    }

    /// When the next thing is due; what could not be done at once is due at once.
    async fn next_due<S: Session>(
        &self,
        work: &mut Work<'_, S>,
    ) -> Result<Option<Timestamp>, Trouble> {
        let calls = vec![
            Call { sql: Sql::SweepNext, params: vec![] },
            Call { sql: Sql::SweepLost, params: vec![limit(1)] },
        ];
        let mut answers = work.session.ask(calls).await?.into_iter();
        let mut next = Vec::new();
        for mut row in answers.next().unwrap_or_default() {
            next.extend([row.time()?, row.time()?].into_iter().flatten());
        }
        let lost = answers.next().is_some_and(|rows| !rows.is_empty());
        next.extend(lost.then_some(work.now));
        Ok(next.into_iter().min())
    }
}
