//! Reads of runs and their histories, for turns and for people.

use crate::error::Trouble;
use crate::field::{Fields, stored};
use crate::run::Run;
use crate::sql;
use crate::task::claim_stands;
use crate::tx::Tx;
use durably_kernel::{Event, RunId, Seq};
use durably_store::{EventRow, HistoryPage, LoadCall, Loaded};
use rusqlite::{Connection, params};

impl Tx<'_> {
    pub(crate) fn load(&self, call: &LoadCall) -> Result<Option<Loaded>, Trouble> {
        let Some(run) = Run::load(self.conn, call.run)? else {
            return Ok(None);
        };
        let page = page(self.conn, &run, call.after, call.events_max)?;
        let mut standing = Vec::new();
        for claim in &call.claims {
            if claim_stands(self.conn, call.run, claim, call.who.as_ref())? {
                standing.push(*claim);
            }
        }
        Ok(Some(Loaded {
            unread: self.unread(&run)?,
            view: run.into_view(),
            events: page.events.into_iter().map(|row| row.event).collect(),
            more: page.more,
            standing,
            now: self.now,
        }))
    }
}

/// The events after one, at most so many.
pub(crate) fn page(
    conn: &Connection,
    run: &Run,
    after: Seq,
    most: usize,
) -> Result<HistoryPage, Trouble> {
    if most == 0 || after >= run.head {
        return Ok(HistoryPage::default());
    }
    let id = run.id();
    let mut statement = conn.prepare_cached(sql::HISTORY_PAGE)?;
    let mut rows = statement.query(params![id.0.as_bytes(), stored(after.0)])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let mut fields = Fields::of(row);
        let read = |trouble: Trouble| trouble.within("durable_history", id);
        let first = fields.count().map_err(read)?;
        let committed_at = fields.time_set().map_err(read)?;
        let text: String = fields.take().map_err(read)?;
        let list = Event::list_from_json(&text);
        let list = list.map_err(|error| Trouble::of_events(error, id))?;
        for (seq, event) in (first..).map(Seq).zip(list) {
            if seq > after && events.len() < most {
                events.push(EventRow { seq, event, committed_at });
            }
        }
        if events.len() == most {
            break;
        }
    }
    let more = events.last().is_some_and(|last| last.seq < run.head);
    Ok(HistoryPage { events, more })
}

/// Event 1 of a run.
pub(crate) fn first_event(conn: &Connection, run: RunId) -> Result<Option<Event>, Trouble> {
    let mut statement = conn.prepare_cached(sql::HISTORY_FIRST)?;
    let mut rows = statement.query(params![run.0.as_bytes()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut fields = Fields::of(row);
    let text: String = fields.take().map_err(|trouble| trouble.within("durable_history", run))?;
    let list = Event::list_from_json(&text);
    let list = list.map_err(|error| Trouble::of_events(error, run))?;
    Ok(list.into_iter().next())
}
