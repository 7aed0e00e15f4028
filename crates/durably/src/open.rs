//! From a URL to a store.

use durably_store::check::Patient;
use durably_store::memory::MemoryStore;
use durably_store::{Store, StoreError};
use std::sync::Arc;

/// Opens the store that a URL names.
pub(crate) async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    let wrong = |problem: &str| StoreError::Url { url: redacted(url), problem: problem.into() };
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err(wrong("it has no scheme; write sqlite:FILE or memory:"));
    };
    match scheme.to_ascii_lowercase().as_str() {
        "memory" if rest.is_empty() || rest == "//" => Ok(Arc::new(MemoryStore::new())),
        "memory" => Err(wrong("the memory store takes nothing after memory:")),
        #[cfg(feature = "sqlite")]
        "sqlite" => {
            let store =
                durably_store_sqlite::SqliteStore::open(url, durably_store::Clock::Database)?;
            Ok(Arc::new(store))
        }
        #[cfg(not(feature = "sqlite"))]
        "sqlite" => Err(wrong("this build has no SQLite; enable the feature `sqlite`")),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => {
            durably_store_sql::postgres::open(url, durably_store::Clock::Database).await
        }
        #[cfg(not(feature = "postgres"))]
        "postgres" | "postgresql" => {
            Err(wrong("this build has no PostgreSQL; enable the feature `postgres`"))
        }
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => {
            durably_store_sql::mysql::open(url, durably_store::Clock::Database).await
        }
        #[cfg(not(feature = "mysql"))]
        "mysql" | "mariadb" => Err(wrong("this build has no MySQL; enable the feature `mysql`")),
        "http" | "https" => Err(wrong("this version has no server; use sqlite:FILE or memory:")),
        _ => Err(wrong("the scheme is not known; write sqlite:FILE or memory:")),
    }
}

/// Opens the store that a URL names, to look at it: nothing is made, migrated or changed.
pub(crate) async fn open_to_look(url: &str) -> Result<Patient, StoreError> {
    let clock = durably_store::Clock::Database;
    match url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase()).as_deref() {
        #[cfg(feature = "sqlite")]
        Some("sqlite") => durably_store_sqlite::SqliteStore::open_to_look(url, clock),
        #[cfg(feature = "postgres")]
        Some("postgres" | "postgresql") => {
            durably_store_sql::postgres::open_to_look(url, clock).await
        }
        #[cfg(feature = "mysql")]
        Some("mysql" | "mariadb") => durably_store_sql::mysql::open_to_look(url, clock).await,
        _ => Ok(Patient { store: open(url).await?, wrong: Vec::new() }),
    }
}

/// A URL without what stands between `//` and `@`: secrets never appear anywhere.
fn redacted(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (_, host))) => format!("{scheme}://…@{host}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_appear() {
        assert_eq!(redacted("postgres://me:canary@host/db"), "postgres://…@host/db");
        assert_eq!(redacted("sqlite:a.db"), "sqlite:a.db");
    }
}
