//! What is asserted about a server before anything is promised, and what a store on it stands on.

use crate::error::{Context, Phase, Trouble};
use crate::migrate::Access;
use crate::mysql::connect::{Connector, Made};
use crate::mysql::migrate::{MIGRATE_MAX, Schema};
use crate::mysql::pool::Connections;
use crate::mysql::session::Manner;
use crate::mysql::settings::Settings;
use crate::postgres::home::Home;
use durably_store::{Clock, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// Connections for people's questions; they do not take those of the work.
const READERS: usize = 2;

/// What a store stands on.
pub(crate) struct Ground {
    pub(crate) work: Connections,
    pub(crate) read: Connections,
    pub(crate) home: Arc<Home>,
    pub(crate) claim_margin: Duration,
    /// The store, without secrets.
    pub(crate) store: String,
}

/// Looks at the server, brings the schema up to date.
pub(crate) async fn open(url: &str, clock: Clock) -> Result<Ground, StoreError> {
    open_for(Access::Work, url, clock).await.map(|(ground, _)| ground)
}

/// Opens a store that is there, to look at it; says what is wrong with its settings.
pub(crate) async fn open_to_look(
    url: &str,
    clock: Clock,
) -> Result<(Ground, Vec<StoreError>), StoreError> {
    open_for(Access::Look, url, clock).await
}

async fn open_for(
    access: Access,
    url: &str,
    clock: Clock,
) -> Result<(Ground, Vec<StoreError>), StoreError> {
    let settings = Settings::of(url)?;
    let store = settings.shown();
    let context = Context { store: &store, operation: "open", phase: Phase::Open };
    let home = Home::start("durably-mysql").map_err(|error| StoreError::Open {
        store: store.clone(),
        problem: format!("no thread can be started: {error}"),
    })?;
    let home = Arc::new(home);
    let prepared = prepare(access, &settings, &home, &clock).await;
    let wrong = prepared.map_err(|trouble| trouble.into_error(context))?;
    let claim_margin = settings.claim_margin;
    let ground = build(access, settings, home.clone(), clock);
    let (work, read) = ground.map_err(|trouble| trouble.into_error(context))?;
    Ok((Ground { work, read, home, claim_margin, store }, wrong))
}

fn build(
    access: Access,
    settings: Settings,
    home: Arc<Home>,
    clock: Clock,
) -> Result<(Connections, Connections), Trouble> {
    let manner = Arc::new(Manner::new(&settings, clock)?);
    let size = settings.pool;
    let connector = Connector::new(access, settings, home);
    let work = Connections::new(connector.clone(), size, manner.clone());
    Ok((work, Connections::new(connector, READERS, manner)))
}

async fn prepare(
    access: Access,
    settings: &Settings,
    home: &Arc<Home>,
    clock: &Clock,
) -> Result<Vec<StoreError>, Trouble> {
    // A migration takes longer than other statements may.
    let patient = Settings { answer_max: MIGRATE_MAX * 2, ..settings.clone() };
    let Made { mut line, facts, .. } =
        Connector::new(access, patient, home.clone()).connect().await?;
    let wrong = match facts.check(settings) {
        Err(Trouble::Store(wrong)) if access == Access::Look => vec![wrong],
        checked => checked.map(|()| Vec::new())?,
    };
    if facts.is_galera() {
        tracing::warn!(
            store = settings.shown(),
            "the server is a node of a Galera cluster: let every process name all nodes, since \
             all of them write to one"
        );
    }
    let mut schema = Schema { line: &mut line, naming: &settings.naming, clock };
    match access {
        Access::Work => schema.migrate().await?,
        Access::Look => schema.check(&settings.shown()).await?,
    }
    Ok(wrong)
}
