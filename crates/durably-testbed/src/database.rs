//! A place in a server that one test has for itself.

use crate::{Kind, TestbedError, mysql, postgres};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rand::Rng;
use std::fmt::Write as _;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage};
use url::Url;

const LABEL_BYTES_MAX: usize = 32;

/// A new schema (PostgreSQL) or database (MySQL) with a name that nobody else has. Dropping it
/// drops what is in it, as well as that can be done: a server that is gone is not asked.
#[derive(Debug)]
pub struct Database {
    kind: Kind,
    name: String,
    url: Url,
    server_url: String,
}

impl Database {
    /// A schema of the server that [`postgres`] gives. `label` goes into its name, to be recognised.
    ///
    /// # Errors
    ///
    /// If there is no server, or it refuses.
    pub fn postgres(label: &str) -> Result<Database, TestbedError> {
        Database::on(&postgres()?, label)
    }

    /// A database of the server that [`mysql`] gives. `label` goes into its name, to be recognised.
    ///
    /// # Errors
    ///
    /// If there is no server, or it refuses.
    pub fn mysql(label: &str) -> Result<Database, TestbedError> {
        Database::on(&mysql()?, label)
    }

    /// A schema or database of the server at a URL, whose scheme says which of the two.
    ///
    /// # Errors
    ///
    /// If the URL is wrong, the server cannot be reached, or it refuses.
    pub fn on(server_url: &str, label: &str) -> Result<Database, TestbedError> {
        let bad =
            |problem: String| TestbedError::BadUrl { url: without_password(server_url), problem };
        let mut url = Url::parse(server_url).map_err(|error| bad(error.to_string()))?;
        let name = unique(label);
        let kind = kind_of(server_url)?;
        match kind {
            Kind::Postgres => drop(url.query_pairs_mut().append_pair("schema", &name)),
            Kind::Mysql => url.set_path(&name),
        }
        let database = Database { kind, name, url, server_url: server_url.to_owned() };
        match kind {
            Kind::Postgres => database.run(&[&format!("CREATE SCHEMA {}", database.name)])?,
            Kind::Mysql => database.run(&[&format!("CREATE DATABASE {}", database.name)])?,
        }
        Ok(database)
    }

    /// What a store takes: for PostgreSQL with the parameter `schema`, which drivers do not know,
    /// for MySQL with the database as its path.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// What a driver takes: the URL of the server, which says nothing of this schema or database.
    pub fn server_url(&self) -> &str {
        &self.server_url
    }

    /// The name of the schema or database. It needs no quotes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs statements one after the other in this schema or database, on one connection.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or refuses one of them.
    pub fn execute(&self, statements: &[&str]) -> Result<(), TestbedError> {
        let here = match self.kind {
            Kind::Postgres => format!("SET search_path TO {}", self.name),
            Kind::Mysql => format!("USE {}", self.name),
        };
        self.run(&[&[here.as_str()], statements].concat())
    }

    fn run(&self, statements: &[&str]) -> Result<(), TestbedError> {
        run(self.kind, &self.server_url, statements)
    }
}

/// Runs statements one after the other on the server of a URL, whose scheme says which kind it is.
/// It does not matter whether the caller is within an async runtime.
///
/// # Errors
///
/// If the URL is wrong, the server cannot be reached, or it refuses.
pub fn execute(server_url: &str, statements: &[&str]) -> Result<(), TestbedError> {
    run(kind_of(server_url)?, server_url, statements)
}

/// The first value that the server of a URL answers to a question, as text. It does not matter
/// whether the caller is within an async runtime.
///
/// # Errors
///
/// If the URL is wrong, the server cannot be reached, or it refuses.
pub fn ask(server_url: &str, question: &str) -> Result<Option<String>, TestbedError> {
    let kind = kind_of(server_url)?;
    alone(async {
        match kind {
            Kind::Postgres => ask_postgres(server_url, question).await,
            Kind::Mysql => ask_mysql(server_url, question).await,
        }
    })
}

fn kind_of(server_url: &str) -> Result<Kind, TestbedError> {
    match server_url.split(':').next() {
        Some("postgres" | "postgresql") => Ok(Kind::Postgres),
        Some("mysql" | "mariadb") => Ok(Kind::Mysql),
        _ => Err(TestbedError::BadUrl {
            url: without_password(server_url),
            problem: "it is neither postgres: nor mysql:".to_owned(),
        }),
    }
}

/// On a connection and a thread of their own.
fn run(kind: Kind, server_url: &str, statements: &[&str]) -> Result<(), TestbedError> {
    let work = async {
        match kind {
            Kind::Postgres => run_on_postgres(server_url, statements).await,
            Kind::Mysql => run_on_mysql(server_url, statements).await,
        }
    };
    alone(work)
}

/// Does asynchronous work on a thread of its own, so that it does not matter where it is asked for.
pub(crate) fn alone<T: Send>(
    work: impl Future<Output = Result<T, TestbedError>> + Send,
) -> Result<T, TestbedError> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(TestbedError::io("start an async runtime"))?
                .block_on(work)
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl Drop for Database {
    fn drop(&mut self) {
        // A connection that the test forgot may hold locks for ever. It is no use to tell of a
        // failure: the test is over, and a private server is thrown away.
        let name = &self.name;
        let _ = match self.kind {
            Kind::Postgres => self.run(&[
                "SET client_min_messages = warning",
                "SET lock_timeout = '5s'",
                &format!("DROP SCHEMA IF EXISTS {name} CASCADE"),
            ]),
            Kind::Mysql => {
                self.run(&["SET lock_wait_timeout = 5", &format!("DROP DATABASE IF EXISTS {name}")])
            }
        };
    }
}

async fn connect_postgres(url: &str) -> Result<(Client, JoinHandle<()>), TestbedError> {
    let (client, connection) =
        tokio_postgres::connect(url, tokio_postgres::NoTls).await.map_err(|source| {
            let doing = format!("connect to the server of {}", without_password(url));
            TestbedError::Postgres { doing, source }
        })?;
    // What is wrong with its end is nobody's business.
    Ok((client, tokio::spawn(async { drop(connection.await) })))
}

async fn run_on_postgres(url: &str, statements: &[&str]) -> Result<(), TestbedError> {
    let (client, connection) = connect_postgres(url).await?;
    for statement in statements {
        let failed =
            |source| TestbedError::Postgres { doing: format!("run '{statement}'"), source };
        client.batch_execute(statement).await.map_err(failed)?;
    }
    drop(client);
    // Ends after the server has seen the farewell.
    let _ = connection.await;
    Ok(())
}

async fn ask_postgres(url: &str, question: &str) -> Result<Option<String>, TestbedError> {
    let (client, connection) = connect_postgres(url).await?;
    let failed = |source| TestbedError::Postgres { doing: format!("ask '{question}'"), source };
    let answers = client.simple_query(question).await.map_err(failed)?;
    drop(client);
    let _ = connection.await;
    Ok(answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}

async fn connect_mysql(url: &str) -> Result<Conn, TestbedError> {
    let opts = mysql_async::Opts::from_url(url).map_err(|error| TestbedError::BadUrl {
        url: without_password(url),
        problem: error.to_string(),
    })?;
    let opts = mysql_async::OptsBuilder::from_opts(opts).prefer_socket(false);
    let doing = || format!("connect to the server of {}", without_password(url));
    Conn::new(opts).await.map_err(|source| TestbedError::Mysql { doing: doing(), source })
}

async fn run_on_mysql(url: &str, statements: &[&str]) -> Result<(), TestbedError> {
    let mut connection = connect_mysql(url).await?;
    let failed = |doing: String| move |source| TestbedError::Mysql { doing, source };
    for statement in statements {
        connection.query_drop(*statement).await.map_err(failed(format!("run '{statement}'")))?;
    }
    connection.disconnect().await.map_err(failed("disconnect".to_owned()))
}

async fn ask_mysql(url: &str, question: &str) -> Result<Option<String>, TestbedError> {
    let mut connection = connect_mysql(url).await?;
    let failed = |source| TestbedError::Mysql { doing: format!("ask '{question}'"), source };
    let answer: Option<Option<String>> = connection.query_first(question).await.map_err(failed)?;
    connection.disconnect().await.map_err(failed)?;
    Ok(answer.flatten())
}

/// A server that was given may have a password that should not stand in a log.
pub(crate) fn without_password(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else {
        return "a malformed URL".to_owned();
    };
    // Refused only by URLs that cannot have one.
    let _ = url.set_password(None);
    url.into()
}

/// A name of small letters, digits and underscores, which both kinds take without quotes. It
/// begins as all names of tests do, to be recognised on a server that was given.
fn unique(label: &str) -> String {
    let mut name = String::from("durably_test_");
    let safe = label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    name.extend(safe.take(LABEL_BYTES_MAX).map(|c| c.to_ascii_lowercase()));
    let random: u64 = rand::rng().random();
    // Writing to a string does not fail.
    let _ = write!(name, "_{random:016x}");
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_short_and_never_twice_the_same() {
        let name = unique("Größe; DROP TABLE \"x\"; and a label that goes on for ever and ever");
        assert!(name.len() <= 63, "{name}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name}");
        assert_ne!(unique("same"), unique("same"));
    }
}
