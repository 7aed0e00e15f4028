//! Leadership: one row, which its leader renews.

use crate::error::Trouble;
use crate::field::{Fields, stored, stored_millis};
use crate::life::worker_status;
use crate::sql;
use crate::tx::Tx;
use durably_kernel::WorkerId;
use durably_store::{LeadCall, LeaderRow, Led, Term};
use rusqlite::{Connection, params};
use std::time::Duration;

impl Tx<'_> {
    pub(crate) fn lead(&mut self, call: &LeadCall) -> Result<Led, Trouble> {
        let mut row = load(self.conn)?;
        let led = row.lead(call, worker_status(self.conn, &call.who)?, self.now);
        match led {
            Led::Leads { .. } => save(self.conn, &row)?,
            Led::Follows { .. } => {}
        }
        Ok(led)
    }

    /// A process that leads leaves.
    pub(crate) fn stop_leading(&mut self, who: &WorkerId) -> Result<(), Trouble> {
        let mut row = load(self.conn)?;
        match row.leave(who) {
            true => save(self.conn, &row),
            false => Ok(()),
        }
    }
}

/// Who leads.
pub(crate) fn load(conn: &Connection) -> Result<LeaderRow, Trouble> {
    let mut statement = conn.prepare_cached(sql::LEADER_LOAD)?;
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else {
        return Err(Trouble::Damaged("table durable_leader: its row is gone".to_owned()));
    };
    let mut fields = Fields::of(row);
    Ok(LeaderRow {
        who: fields.take::<Option<String>>()?.map(WorkerId::from),
        term: Term(fields.count()?),
        renewed_at: fields.time_set()?,
        lease: Duration::from_millis(fields.count()?),
    })
}

fn save(conn: &Connection, row: &LeaderRow) -> Result<(), Trouble> {
    conn.prepare_cached(sql::LEADER_SAVE)?.execute(params![
        row.who.as_ref().map(WorkerId::as_str),
        stored(row.term.0),
        row.renewed_at.0,
        stored_millis(row.lease),
    ])?;
    Ok(())
}
