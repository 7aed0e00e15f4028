//! The schema: ordered migrations, each applied once, whoever comes first. A released migration is
//! never edited: its checksum stands in the database.

use crate::error::Trouble;
use crate::session::Fields;
use crate::text::Dialect;
use durably_store::StoreError;

/// A step from one version of the schema to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    pub(crate) version: u32,
    pub(crate) name: &'static str,
    /// Its statements, before tables have their names.
    pub(crate) text: &'static str,
}

const POSTGRES: &[Migration] = &[Migration {
    version: 1,
    name: "first",
    text: include_str!("../migrations/postgres/0001_first.sql"),
}];

const MYSQL: &[Migration] = &[Migration {
    version: 1,
    name: "first",
    text: include_str!("../migrations/mysql/0001_first.sql"),
}];

/// All migrations of a dialect.
pub(crate) fn migrations(dialect: Dialect) -> &'static [Migration] {
    match dialect {
        Dialect::Postgres => POSTGRES,
        Dialect::Mysql => MYSQL,
    }
}

impl Migration {
    /// The checksum of its text, whatever the user's tables are called.
    pub(crate) fn checksum(&self) -> String {
        blake3::hash(self.text.as_bytes()).to_hex().to_string()
    }
}

/// A migration that the database has.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    pub(crate) version: u32,
    pub(crate) name: String,
    pub(crate) checksum: String,
}

impl Applied {
    /// What a row of `durable_schema` says; none if it is the row that processes lock.
    pub(crate) fn of(mut row: impl Fields) -> Result<Option<Applied>, Trouble> {
        let version = row.int()?.unwrap_or(0);
        let Ok(version) = u32::try_from(version) else {
            return Err(Trouble::Damaged(format!("durable_schema has version {version}")));
        };
        let name = row.text()?.unwrap_or_default();
        let checksum = row.text()?.unwrap_or_default();
        Ok((version > 0).then_some(Applied { version, name, checksum }))
    }
}

/// The next migration that the database needs, if what it has is what this program knows.
pub(crate) fn next<'a>(
    known: &'a [Migration],
    applied: &[Applied],
) -> Result<Option<&'a Migration>, StoreError> {
    let newest = known.iter().map(|migration| migration.version).max().unwrap_or(0);
    for row in applied {
        let Some(migration) = known.iter().find(|known| known.version == row.version) else {
            let found = applied.iter().map(|row| row.version).max().unwrap_or(row.version);
            return Err(StoreError::SchemaNewer { found, known: newest });
        };
        if migration.checksum() != row.checksum {
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
    let has = |version| applied.iter().any(|row| row.version == version);
    Ok(known.iter().find(|migration| !has(migration.version)))
}

/// What is done about a schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// It is made, and brought up to date.
    Work,
    /// It is looked at.
    Look,
}

/// Whether a schema that is only looked at is the one that this program knows.
pub(crate) fn check_current(
    known: &[Migration],
    applied: Option<&[Applied]>,
    store: &str,
) -> Result<(), StoreError> {
    let not = |problem| Err(StoreError::Open { store: store.to_owned(), problem });
    let Some(applied) = applied else {
        let problem = "there are no tables of durably; check database, schema and prefix";
        return not(problem.to_owned());
    };
    match next(known, applied)? {
        None => Ok(()),
        Some(missing) => not(format!(
            "its schema lacks migration {} ({}): start an engine of this version once, which \
             brings it up to date, or use the version of durably that made it",
            missing.version, missing.name
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Naming;

    fn applied(migration: &Migration) -> Applied {
        Applied {
            version: migration.version,
            name: migration.name.to_owned(),
            checksum: migration.checksum(),
        }
    }

    #[test]
    fn migrations_are_in_order_and_without_gaps() {
        for dialect in [Dialect::Postgres, Dialect::Mysql] {
            for (migration, version) in migrations(dialect).iter().zip(1..) {
                assert_eq!(migration.version, version, "{}", migration.name);
            }
        }
    }

    #[test]
    fn the_next_one_is_the_first_that_is_missing() {
        let known = ["a", "b"].iter().zip(1..);
        let known: Vec<Migration> =
            known.map(|(text, version)| Migration { version, name: text, text }).collect();
        let next = |applied: &[Applied]| {
            next(&known, applied).map(|next| next.map(|migration| migration.version))
        };
        assert_eq!(next(&[]), Ok(Some(1)));
        assert_eq!(next(&[applied(&known[0])]), Ok(Some(2)));
        let all: Vec<Applied> = known.iter().map(applied).collect();
        assert_eq!(next(&all), Ok(None));
        let future = Applied { version: 7, ..all[0].clone() };
        let both = [all[0].clone(), future];
        assert_eq!(next(&both), Err(StoreError::SchemaNewer { found: 7, known: 2 }));
        let edited = Applied { checksum: "x".to_owned(), ..all[1].clone() };
        let error = next(&[all[0].clone(), edited]).expect_err("an edited migration");
        assert!(error.to_string().contains("migration 2 (b)"), "{error}");
    }

    /// PostgreSQL keeps 63 bytes of a name, and cuts the rest without an error.
    #[test]
    fn names_are_short_enough_for_the_longest_prefix() {
        for migration in migrations(Dialect::Postgres) {
            let words = migration.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for word in words.filter(|word| word.starts_with("durable_")) {
                assert!(word.len() + Naming::PREFIX_MAX <= 63, "{word}");
            }
        }
    }
}
