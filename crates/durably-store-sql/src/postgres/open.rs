//! What is asserted about a server before anything is promised, and what a store on it stands on.

use crate::error::{Context, Kind, Phase, Trouble};
use crate::migrate::Access;
use crate::postgres::connect::{Connector, Made};
use crate::postgres::error::trouble;
use crate::postgres::home::Home;
use crate::postgres::migrate::{Schema, ask};
use crate::postgres::notify::Herald;
use crate::postgres::pool::Connections;
use crate::postgres::session::{Manner, Statements};
use crate::postgres::settings::Settings;
use crate::postgres::sql;
use crate::session::Fields;
use crate::text::{Dialect, Texts};
use durably_store::{Clock, Hints, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Client;

/// The oldest server that is tried.
const VERSION_MIN: i64 = 130_000;
/// Connections for people's questions.
const READERS: usize = 2;

/// What a store stands on.
pub(crate) struct Ground {
    /// Connections for commands.
    pub(crate) work: Connections,
    /// Connections for people's questions: those may be many and slow.
    pub(crate) read: Connections,
    /// Tells other processes, and hears from them; none if the store only polls.
    pub(crate) herald: Option<Herald>,
    pub(crate) home: Arc<Home>,
    pub(crate) claim_margin: Duration,
    /// The store, as errors name it.
    pub(crate) store: String,
}

/// Opens what a URL names and brings its schema up to date.
pub(crate) async fn open(url: &str, clock: Clock, hints: &Hints) -> Result<Ground, StoreError> {
    open_for(Access::Work, Settings::of(url)?, clock, hints).await.map(|(ground, _)| ground)
}

/// Opens what a URL names to look at it; says what is wrong with its settings.
pub(crate) async fn open_to_look(
    url: &str,
    clock: Clock,
) -> Result<(Ground, Vec<StoreError>), StoreError> {
    let settings = Settings { listen: false, ..Settings::of(url)? };
    open_for(Access::Look, settings, clock, &Hints::default()).await
}

async fn open_for(
    access: Access,
    settings: Settings,
    clock: Clock,
    hints: &Hints,
) -> Result<(Ground, Vec<StoreError>), StoreError> {
    let store = settings.shown();
    let context = Context { store: &store, operation: "open", phase: Phase::Open };
    let home = home(&store)?;
    let direct = settings.direct.clone();
    let connector = Connector::new(settings, home.clone())?.with_access(access);
    let prepared = prepare(access, &connector, &clock).await;
    let (statements, wrong) = prepared.map_err(|trouble| trouble.into_error(context))?;
    let settings = connector.settings();
    let manner = Arc::new(Manner {
        texts: Texts::new(Dialect::Postgres, &settings.naming),
        clock,
        isolation: settings.isolation,
        statements,
        limits: (statements == Statements::Sent).then(|| settings.limits()),
        trip_max: settings.answer_max,
    });
    let herald = match (settings.listen, direct) {
        (false, _) => None,
        (true, None) => Some(Herald::start(connector.clone(), statements, hints)),
        (true, Some(direct)) => {
            let naming = settings.naming.clone();
            let direct = Connector::new(Settings { naming, ..*direct }, home.clone())?;
            Some(Herald::start(direct, Statements::Prepared, hints))
        }
    };
    let work = Connections::new(connector.clone(), settings.pool, manner.clone());
    let read = Connections::new(connector.clone(), READERS, manner);
    let claim_margin = settings.claim_margin;
    Ok((Ground { work, read, herald, home, claim_margin, store }, wrong))
}

/// A pool of the user's, and what its connections cannot tell.
pub(crate) struct Given<'a> {
    pub(crate) pool: deadpool_postgres::Pool,
    /// A URL of the same database: where the tables are, what limits hold, and where to listen.
    pub(crate) url: &'a str,
    pub(crate) clock: Clock,
}

/// Opens a store on connections of the user's, which may be set up in any way: limits are set in
/// each transaction. People's questions share them.
pub(crate) async fn open_given(given: Given<'_>, hints: &Hints) -> Result<Ground, StoreError> {
    let Given { pool, url, clock } = given;
    let settings = Settings::of(url)?;
    let store = settings.shown();
    let context = Context { store: &store, operation: "open", phase: Phase::Open };
    let manner = Arc::new(Manner {
        texts: Texts::new(Dialect::Postgres, &settings.naming),
        clock: clock.clone(),
        isolation: settings.isolation,
        statements: settings.statements.unwrap_or(Statements::Prepared),
        limits: Some(settings.limits()),
        trip_max: settings.answer_max,
    });
    let work = Connections::given(pool, manner);
    let prepared = async {
        // Not to be given back in the middle of a migration.
        let client = work.lease().await?.alone();
        probe(&client, &settings).await?.check()?;
        Schema { client: &client, naming: &settings.naming, clock: &clock }.migrate().await
    };
    prepared.await.map_err(|trouble| trouble.into_error(context))?;
    let (home, claim_margin) = (home(&store)?, settings.claim_margin);
    let herald = match settings.listen {
        false => None,
        true => {
            let connector = Connector::new(settings, home.clone())?;
            Some(Herald::start(connector, Statements::Prepared, hints))
        }
    };
    Ok(Ground { read: work.clone(), work, herald, home, claim_margin, store })
}

fn home(store: &str) -> Result<Arc<Home>, StoreError> {
    let started = Home::start("durably-postgres").map(Arc::new);
    started.map_err(|error| StoreError::Open {
        store: store.to_owned(),
        problem: format!("no thread can be started: {error}"),
    })
}

/// Looks at the server and migrates; tells how statements reach it, and what is wrong with it if it
/// is only looked at.
async fn prepare(
    access: Access,
    connector: &Connector,
    clock: &Clock,
) -> Result<(Statements, Vec<StoreError>), Trouble> {
    let settings = connector.settings();
    let wanted = settings.statements;
    let first = connector.connect(wanted.unwrap_or(Statements::Prepared), None).await;
    let (Made { client, task }, mut statements) = match (first, wanted) {
        (Ok(made), _) => (made, wanted.unwrap_or(Statements::Prepared)),
        // A pooler that takes no such startup parameters.
        (Err(Trouble::Server { kind: Kind::Refused, .. }), None) => {
            (connector.connect(Statements::Sent, None).await?, Statements::Sent)
        }
        (Err(trouble), _) => return Err(trouble),
    };
    let probed = probe(&client, settings).await?;
    if wanted.is_none() && !probed.limits_hold {
        // A pooler that takes them and forgets them.
        statements = Statements::Sent;
    }
    let schema = Schema { client: &client, naming: &settings.naming, clock };
    let wrong = match access {
        Access::Work => {
            probed.check()?;
            schema.migrate().await?;
            Vec::new()
        }
        Access::Look => {
            schema.check(&settings.shown()).await?;
            probed.wrong
        }
    };
    task.abort();
    Ok((statements, wrong))
}

/// What a server that can be used says of itself.
struct Probed {
    /// Settings with which it may lose what it acknowledged.
    wrong: Vec<StoreError>,
    /// Whether the connection has the limits that it was opened with.
    limits_hold: bool,
}

impl Probed {
    fn check(&self) -> Result<(), Trouble> {
        self.wrong.first().map_or(Ok(()), |error| Err(Trouble::Store(error.clone())))
    }
}

/// Whether the server can be used.
async fn probe(client: &Client, settings: &Settings) -> Result<Probed, Trouble> {
    let asking = ask(client, sql::PROBE, &[]);
    let answer = tokio::time::timeout(settings.answer_max, asking).await.map_err(|_| {
        let problem = format!("the server did not answer within {:?}", settings.answer_max);
        Trouble::server(Kind::Cut, problem)
    })?;
    let mut rows = answer.map_err(|error| trouble(&error))?;
    let Some(row) = rows.first_mut() else {
        return Err(Trouble::server(Kind::Unfit, "the server told nothing of its settings"));
    };
    let found = Found {
        number: row.int()?.unwrap_or(0),
        version: row.text()?.unwrap_or_default(),
        encoding: row.text()?.unwrap_or_default(),
        promises: [row.text()?, row.text()?, row.text()?].map(Option::unwrap_or_default),
    };
    let wrong = judge(found, settings)?;
    let lock = row.int()?.unwrap_or(0);
    Ok(Probed { wrong, limits_hold: settings.limits().lock == lock.to_string() })
}

/// What a server says about itself.
struct Found {
    number: i64,
    version: String,
    encoding: String,
    /// What [`PROMISES`] are set to.
    promises: [String; 3],
}

/// With any of these off a server may lose what it acknowledged.
const PROMISES: [&str; 3] = ["fsync", "full_page_writes", "synchronous_commit"];

/// Whether a store can be on such a server at all, and which promises it does not keep.
fn judge(found: Found, settings: &Settings) -> Result<Vec<StoreError>, Trouble> {
    if found.number < VERSION_MIN {
        let version = found.version;
        let problem = format!("PostgreSQL {version} is too old; 13 or newer is needed");
        return Err(Trouble::server(Kind::Unfit, problem));
    }
    if found.encoding != "UTF8" {
        let encoding = found.encoding;
        let problem = format!(
            "the database's encoding is {encoding}; create one with encoding 'UTF8' \
             (template template0)"
        );
        return Err(Trouble::server(Kind::Unfit, problem));
    }
    let mut wrong = Vec::new();
    for (setting, found) in PROMISES.into_iter().zip(found.promises) {
        if found == "off" && !settings.lax {
            let store = settings.shown();
            wrong.push(StoreError::Unsafe { store, setting, wanted: "on", found });
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Found {
        Found {
            number: 130_000,
            version: "13.0".to_owned(),
            encoding: "UTF8".to_owned(),
            promises: ["on", "on", "remote_apply"].map(str::to_owned),
        }
    }

    fn verdict(found: Found, params: &str) -> Option<String> {
        let settings = Settings::of(&["postgres://me@h/d", params].concat()).expect("a URL");
        let context = Context { store: "x", operation: "open", phase: Phase::Open };
        let probed = judge(found, &settings).map(|wrong| Probed { wrong, limits_hold: true });
        let verdict = probed.and_then(|probed| probed.check());
        verdict.err().map(|trouble| trouble.into_error(context).to_string())
    }

    #[test]
    fn a_server_that_cannot_be_used_says_why() {
        assert_eq!(verdict(found(), ""), None);
        let old = Found { number: 120_022, version: "12.22".to_owned(), ..found() };
        let text = verdict(old, "").expect("too old");
        assert!(text.contains("PostgreSQL 12.22 is too old; 13 or newer"), "{text}");
        let latin = Found { encoding: "LATIN1".to_owned(), ..found() };
        let text = verdict(latin, "").expect("the wrong encoding");
        assert!(text.contains("LATIN1") && text.contains("UTF8"), "{text}");
        for (at, setting) in PROMISES.into_iter().enumerate() {
            let lax = || {
                let mut found = found();
                found.promises[at] = "off".to_owned();
                found
            };
            let text = verdict(lax(), "").expect("unsafe");
            assert!(text.contains(&format!("{setting} is off, it must be on")), "{text}");
            assert_eq!(verdict(lax(), "?unsafe=allowed"), None);
        }
    }
}
