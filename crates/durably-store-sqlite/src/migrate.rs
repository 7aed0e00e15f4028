//! The schema: ordered migrations, each applied once, whoever comes first. A released migration is
//! never edited: its checksum stands in the database.

use crate::error::Trouble;
use crate::sql;
use durably_kernel::Timestamp;
use durably_store::StoreError;
use rusqlite::{Connection, params};

struct Migration {
    version: u32,
    name: &'static str,
    text: &'static str,
}

const MIGRATIONS: [Migration; 1] =
    [Migration { version: 1, name: "first", text: include_str!("../migrations/0001_first.sql") }];

/// A migration that the database has.
struct Applied {
    version: u32,
    name: String,
    checksum: String,
}

/// Brings the schema up to date. The caller holds the write lock, so that of many processes that
/// start at once one applies and the others find it done.
pub(crate) fn migrate(conn: &Connection, now: Timestamp) -> Result<(), Trouble> {
    conn.execute(sql::SCHEMA_CREATE, [])?;
    let applied = applied(conn)?;
    check(&applied).map_err(Trouble::Store)?;
    for migration in &MIGRATIONS {
        if applied.iter().any(|applied| applied.version == migration.version) {
            continue;
        }
        conn.execute_batch(migration.text)?;
        conn.execute(
            sql::SCHEMA_INSERT,
            params![migration.version, migration.name, checksum(migration.text), now.0],
        )?;
    }
    Ok(())
}

/// Whether the schema is there and the one that this program knows; changes nothing.
pub(crate) fn check_current(conn: &Connection, store: &str) -> Result<(), Trouble> {
    let not = |problem| {
        let store = store.to_owned();
        Err(Trouble::Store(StoreError::Open { store, problem }))
    };
    let there: i64 = conn.query_row(sql::SCHEMA_THERE, [], |row| row.get(0))?;
    if there == 0 {
        return not("it is a database without the tables of durably; check the name".to_owned());
    }
    let applied = applied(conn)?;
    check(&applied).map_err(Trouble::Store)?;
    match MIGRATIONS.iter().find(|known| applied.iter().all(|row| row.version != known.version)) {
        None => Ok(()),
        Some(missing) => not(format!(
            "its schema lacks migration {} ({}): start an engine of this version once, which \
             brings it up to date, or use the version of durably that made it",
            missing.version, missing.name
        )),
    }
}

fn applied(conn: &Connection) -> Result<Vec<Applied>, Trouble> {
    let mut statement = conn.prepare(sql::SCHEMA_LOAD)?;
    let rows = statement.query_map([], |row| {
        Ok(Applied { version: row.get(0)?, name: row.get(1)?, checksum: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whether what was applied is what this program knows.
fn check(applied: &[Applied]) -> Result<(), StoreError> {
    let known = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0);
    for row in applied {
        let Some(migration) = MIGRATIONS.iter().find(|known| known.version == row.version) else {
            let found = applied.iter().map(|row| row.version).max().unwrap_or(row.version);
            return Err(StoreError::SchemaNewer { found, known });
        };
        if checksum(migration.text) != row.checksum {
            return Err(StoreError::Corrupt {
                operation: "open",
                problem: format!(
                    "migration {} ({}) was applied with another text than this program has: the \
                     database was made by a build of durably that was never released, or \
                     durable_schema was changed by hand",
                    row.version, row.name
                ),
            });
        }
    }
    Ok(())
}

fn checksum(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_are_in_order_and_without_gaps() {
        for (migration, version) in MIGRATIONS.iter().zip(1..) {
            assert_eq!(migration.version, version, "{}", migration.name);
        }
    }
}
