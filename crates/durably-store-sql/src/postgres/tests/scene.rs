//! A database for one test, and what tests ask of it beside the store.

use crate::postgres::open::{Ground, open};
use crate::postgres::session::PgSession;
use crate::session::{Call, Param};
use crate::text::Sql;
use durably_kernel::Timestamp;
use durably_store::{Clock, Hints, ManualClock, StoreError};
use durably_testbed::Proxy;

/// A schema that one test has for itself.
pub(super) struct Database(durably_testbed::Database);

impl Database {
    pub(super) fn new(label: &str) -> Database {
        Database(durably_testbed::Database::postgres(label).expect("a server"))
    }

    pub(super) fn on(server: &durably_testbed::Server) -> Database {
        Database(durably_testbed::Database::on(&server.url(), "own").expect("a schema"))
    }

    pub(super) fn name(&self) -> &str {
        self.0.name()
    }

    /// What a store takes.
    pub(super) fn url(&self) -> String {
        self.0.url().to_owned()
    }

    /// The URL with more parameters.
    pub(super) fn url_with(&self, params: &str) -> String {
        [self.0.url(), "&", params].concat()
    }

    /// What a driver takes.
    pub(super) fn server_url(&self) -> &str {
        self.0.server_url()
    }

    /// A connection of the test's own.
    pub(super) async fn client(&self) -> tokio_postgres::Client {
        client(self.server_url()).await
    }

    /// Something that stands between a store and the server.
    pub(super) async fn proxy(&self) -> Proxy {
        Proxy::to_server_of(self.server_url()).await.expect("a proxy")
    }
}

/// A store's URL through a proxy.
pub(super) fn through(proxy: &Proxy, url: &str) -> String {
    proxy.instead_of(url).expect("a URL")
}

/// A connection of the test's own.
pub(super) async fn client(url: &str) -> tokio_postgres::Client {
    let connecting = tokio_postgres::connect(url, tokio_postgres::NoTls);
    let (client, connection) = connecting.await.expect("connects");
    #[allow(clippy::disallowed_methods, reason = "nothing here is simulated")]
    tokio::spawn(connection);
    client
}

/// Runs statements in which ROLE and SCHEMA stand for names.
pub(super) async fn run(client: &tokio_postgres::Client, text: &str, role: &str, schema: &str) {
    let text = text.replace("ROLE", role).replace("SCHEMA", schema);
    client.batch_execute(&text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
}

/// A store's URL for another user.
pub(super) fn url_of(url: &str, role: &str, password: &str) -> String {
    let at = url.find('@').expect("a user");
    format!("postgres://{role}:{password}{}", &url[at..])
}

/// The port in a driver's URL.
pub(super) fn port_of(url: &str) -> u16 {
    let config: tokio_postgres::Config = url.parse().expect("a URL");
    config.get_ports()[0]
}

/// A clock that nobody moves.
pub(super) fn clock() -> Clock {
    Clock::Manual(ManualClock::at(Timestamp(7)))
}

pub(super) async fn ground(url: &str) -> Ground {
    open(url, Clock::Database, &Hints::default()).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Why a store does not open.
pub(super) async fn refusal(url: &str) -> StoreError {
    match open(url, Clock::Database, &Hints::default()).await {
        Err(error) => error,
        Ok(_) => panic!("{url} was opened"),
    }
}

pub(super) async fn session(ground: &Ground) -> PgSession {
    ground.work.session().await.unwrap_or_else(|trouble| panic!("{trouble:?}"))
}

/// Reads all rows of `durable_schema`.
pub(super) fn load() -> Call {
    Call { sql: Sql::SchemaLoad, params: vec![] }
}

/// Writes a row of `durable_schema`.
pub(super) fn insert(version: i64) -> Call {
    let text = || Param::Text(Some("x".to_owned()));
    let params = vec![Param::Int(Some(version)), text(), text(), Param::Int(Some(0))];
    Call { sql: Sql::SchemaInsert, params }
}
