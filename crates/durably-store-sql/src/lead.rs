//! Leadership: one row, which its leader renews. Its lock comes after all others.

use crate::command::{Command, Question};
use crate::error::Trouble;
use crate::field::{Columns, stored, stored_millis, time};
use crate::session::{Call, Param, Session};
use crate::text::Sql;
use crate::work::Work;
use durably_kernel::WorkerId;
use durably_store::{LeadCall, LeaderRow, Led, Term};
use std::time::Duration;

/// Asks to lead.
pub(crate) struct Lead {
    pub(crate) call: LeadCall,
}

impl Command for Lead {
    const NAME: &'static str = "lead";

    type Answer = Led;

    async fn act<S: Session>(&self, work: &mut Work<'_, S>) -> Result<Led, Trouble> {
        // Most who ask follow: they lock nothing.
        let rows = work.ask(Sql::LeaderRead, vec![]).await?;
        if let Some(left) = read(rows)?.left_of_another(&self.call.who, work.now) {
            return Ok(Led::Follows { left });
        }
        work.lock_worker(&self.call.who).await?;
        lock(work).await?;
        let led = work.state.lead(&self.call, work.now);
        match led {
            Led::Leads { .. } => save(work),
            Led::Follows { .. } => {}
        }
        Ok(led)
    }
}

/// A process that leads leaves.
pub(crate) async fn stop_leading<S: Session>(
    work: &mut Work<'_, S>,
    who: &WorkerId,
) -> Result<(), Trouble> {
    lock(work).await?;
    if work.state.leader.leave(who) {
        save(work);
    }
    Ok(())
}

async fn lock<S: Session>(work: &mut Work<'_, S>) -> Result<(), Trouble> {
    let rows = work.ask(Sql::LeaderLock, vec![]).await?;
    work.state.leader = read(rows)?;
    Ok(())
}

fn save<S: Session>(work: &mut Work<'_, S>) {
    let row = &work.state.leader;
    let params = vec![
        Param::Text(row.who.as_ref().map(WorkerId::to_string)),
        Param::Int(Some(stored(row.term.0))),
        time(row.renewed_at),
        Param::Int(Some(stored_millis(row.lease))),
    ];
    work.also.push(Call { sql: Sql::LeaderSave, params });
}

fn read(rows: Vec<impl Columns>) -> Result<LeaderRow, Trouble> {
    let Some(mut row) = rows.into_iter().next() else {
        return Err(Trouble::Damaged("table durable_leader: its row is gone".to_owned()));
    };
    Ok(LeaderRow {
        who: row.text()?.map(WorkerId::from),
        term: Term(row.number("term")?),
        renewed_at: row.time_set("renewed_at")?,
        lease: Duration::from_millis(row.number("lease_ms")?),
    })
}

/// Who leads.
pub(crate) struct FindLeader;

impl Question for FindLeader {
    const NAME: &'static str = "leader";

    type Answer = LeaderRow;

    async fn ask<S: Session>(&self, session: &mut S) -> Result<LeaderRow, Trouble> {
        let calls = vec![Call { sql: Sql::LeaderRead, params: vec![] }];
        read(session.ask(calls).await?.into_iter().next().unwrap_or_default())
    }
}
