//! Reads that show what stands in the tables, whether or not it belongs to a run.

use crate::error::Trouble;
use crate::field::{Fields, limit, stored};
use crate::sql;
use durably_kernel::{Fact, RunId};
use durably_store::{Examined, InboxEntry};
use rusqlite::{Connection, Row, params};

pub(crate) fn inbox(
    conn: &Connection,
    run: RunId,
    after: u64,
    most: usize,
) -> Result<Vec<InboxEntry>, Trouble> {
    let mut statement = conn.prepare_cached(sql::INBOX_PAGE)?;
    let mut rows = statement.query(params![run.0.as_bytes(), stored(after), limit(most)])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(read_entry(row).map_err(|trouble| trouble.within("durable_inbox", run))?);
    }
    Ok(entries)
}

fn read_entry(row: &Row<'_>) -> Result<InboxEntry, Trouble> {
    let mut fields = Fields::of(row);
    let (number, id) = (fields.count()?, fields.take()?);
    Ok(InboxEntry { number, id, fact: Fact::from_json(&fields.take::<String>()?)? })
}

pub(crate) fn examine(
    conn: &Connection,
    from: RunId,
    most: usize,
) -> Result<Vec<Examined>, Trouble> {
    let mut statement = conn.prepare_cached(sql::EXAMINE)?;
    let mut rows = statement.query(params![from.0.as_bytes(), limit(most)])?;
    let mut examined = Vec::new();
    while let Some(row) = rows.next()? {
        examined.push(read_examined(row)?);
    }
    Ok(examined)
}

fn read_examined(row: &Row<'_>) -> Result<Examined, Trouble> {
    let mut fields = Fields::of(row);
    Ok(Examined {
        run: RunId(fields.uuid()?),
        known: fields.truth()?,
        commits: fields.count()?,
        events: fields.count()?,
        tasks: fields.count()?,
        foreign_tasks: fields.count()?,
        entries: fields.count()?,
        last_entry: fields.count()?,
        letters: fields.count()?,
        same_key: fields.count()?,
    })
}
