//! Connections, kept for the next command. Where the server accepts no further one, one waits for
//! those that there are.

use crate::error::{Kind, Trouble};
use crate::postgres::connect::{Connector, Made};
use crate::postgres::error::trouble_of_connect;
use crate::postgres::session::{Manner, PgSession, Statements};
use crate::postgres::sql;
use deadpool::managed::{self, Metrics, PoolError, QueueMode, RecycleError, RecycleResult};
use deadpool::managed::{TimeoutType, Timeouts};
use deadpool_postgres::ClientWrapper;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A connection that nobody used for this long is closed.
const IDLE_MAX: Duration = Duration::from_secs(300);

/// A server that accepted no further connection is asked again after this long.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// Meanwhile it is looked so often whether one of ours is free.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Makes connections for a pool of ours.
pub(crate) struct Maker {
    connector: Connector,
    statements: Statements,
    /// Counts the connections that are being made.
    making: Arc<()>,
    /// When the server said that there are too many, and how.
    crowded: Mutex<Option<(Instant, String)>>,
}

impl Maker {
    /// What the server said not long ago, if it was that there are too many.
    fn still_crowded(&self) -> Option<Trouble> {
        let crowded = self.crowded.lock();
        let (since, problem) = crowded.as_ref()?;
        let still = since.elapsed() < ASK_AGAIN;
        still.then(|| Trouble::server(Kind::Crowded, problem.clone()))
    }
}

impl managed::Manager for Maker {
    type Type = ClientWrapper;
    type Error = Trouble;

    async fn create(&self) -> Result<ClientWrapper, Trouble> {
        if let Some(trouble) = self.still_crowded() {
            return Err(trouble);
        }
        let _making = self.making.clone();
        match self.connector.connect(self.statements, None).await {
            Ok(Made { client, task }) => {
                if self.statements == Statements::Prepared {
                    let planned = client.batch_execute(sql::PLANS).await;
                    planned.map_err(|error| trouble_of_connect(&error))?;
                }
                Ok(ClientWrapper::new(client, task))
            }
            Err(Trouble::Server { kind: Kind::Crowded, problem }) => {
                *self.crowded.lock() = Some((now(), problem.clone()));
                Err(Trouble::server(Kind::Crowded, problem))
            }
            Err(trouble) => Err(trouble),
        }
    }

    async fn recycle(&self, client: &mut ClientWrapper, _: &Metrics) -> RecycleResult<Trouble> {
        match client.is_closed() {
            false => Ok(()),
            true => Err(RecycleError::message("closed")),
        }
    }
}

/// A connection out of a pool.
pub(crate) enum Lease {
    Ours(managed::Object<Maker>),
    Given(deadpool_postgres::Object),
}

impl Lease {
    /// The connection without its pool, to which it does not go back. It is closed when this is
    /// dropped.
    pub(crate) fn alone(self) -> ClientWrapper {
        match self {
            Lease::Ours(client) => managed::Object::take(client),
            Lease::Given(client) => deadpool_postgres::Object::take(client),
        }
    }
}

impl Deref for Lease {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        match self {
            Lease::Ours(client) => client,
            Lease::Given(client) => client,
        }
    }
}

#[derive(Clone)]
enum Pool {
    Ours(managed::Pool<Maker>),
    Given(deadpool_postgres::Pool),
}

/// The connections of a store.
#[derive(Clone)]
pub(crate) struct Connections {
    pool: Pool,
    manner: Arc<Manner>,
}

impl Connections {
    /// Connections that are made when they are needed.
    pub(crate) fn new(connector: Connector, size: usize, manner: Arc<Manner>) -> Connections {
        let home = connector.home().clone();
        let (making, crowded) = (Arc::new(()), Mutex::new(None));
        let maker = Maker { connector, statements: manner.statements, making, crowded };
        let pool = managed::Pool::builder(maker)
            .max_size(size)
            // Those that are not needed stay at the bottom, until they are closed.
            .queue_mode(QueueMode::Lifo)
            .timeouts(Timeouts { wait: Some(manner.trip_max), create: None, recycle: None })
            .runtime(deadpool::Runtime::Tokio1);
        let pool = match pool.build() {
            Ok(pool) => pool,
            // It would have to lack the runtime that was named just above.
            Err(error) => unreachable!("{error}"),
        };
        let kept = pool.weak();
        home.spawn(async move {
            let mut minutes = tokio::time::interval(IDLE_MAX / 5);
            loop {
                minutes.tick().await;
                let Some(pool) = kept.upgrade() else { return };
                drop(pool.retain(|client, metrics| {
                    !client.is_closed() && metrics.last_used() < IDLE_MAX
                }));
            }
        });
        Connections { pool: Pool::Ours(pool), manner }
    }

    /// Connections of the user's.
    pub(crate) fn given(pool: deadpool_postgres::Pool, manner: Arc<Manner>) -> Connections {
        Connections { pool: Pool::Given(pool), manner }
    }

    /// A connection for one command; waits until there is one.
    pub(crate) async fn session(&self) -> Result<PgSession, Trouble> {
        Ok(PgSession::new(self.lease().await?, self.manner.clone()))
    }

    /// A connection as it is; waits until there is one.
    pub(crate) async fn lease(&self) -> Result<Lease, Trouble> {
        let began = now();
        // One that was made a moment ago may not be counted yet.
        let mut looks = 2;
        loop {
            match self.try_lease().await {
                // The pool may not grow now: one of ours will do, if there is any.
                Err(Trouble::Server { kind: Kind::Crowded, .. })
                    if looks > 0 && began.elapsed() < self.manner.trip_max =>
                {
                    looks = if self.is_there_any() { 2 } else { looks - 1 };
                    #[allow(clippy::disallowed_methods, reason = "no simulation has a server")]
                    tokio::time::sleep(self.look_again()).await;
                }
                answer => return answer,
            }
        }
    }

    /// Whether there is a connection, or may be one soon.
    fn is_there_any(&self) -> bool {
        let made = match &self.pool {
            Pool::Ours(pool) => Arc::strong_count(&pool.manager().making) > 1,
            Pool::Given(_) => false,
        };
        made || self.size().0 > 0
    }

    /// A pool of the user's asks the server each time that it has none.
    fn look_again(&self) -> Duration {
        match &self.pool {
            Pool::Ours(_) => LOOK_AGAIN,
            Pool::Given(_) => ASK_AGAIN / 5,
        }
    }

    async fn try_lease(&self) -> Result<Lease, Trouble> {
        Ok(match &self.pool {
            Pool::Ours(pool) => {
                let client = pool.get().await;
                Lease::Ours(client.map_err(|error| self.trouble(error, |trouble| trouble))?)
            }
            Pool::Given(pool) => {
                let client = pool.get().await;
                let driver = |error| trouble_of_connect(&error);
                Lease::Given(client.map_err(|error| self.trouble(error, driver))?)
            }
        })
    }

    /// How statements reach the server.
    #[cfg(test)]
    pub(crate) fn statements(&self) -> Statements {
        self.manner.statements
    }

    /// How many connections there are, and how many there may be.
    pub(crate) fn size(&self) -> (usize, usize) {
        let status = match &self.pool {
            Pool::Ours(pool) => pool.status(),
            Pool::Given(pool) => pool.status(),
        };
        (status.size, status.max_size)
    }

    fn trouble<E>(&self, error: PoolError<E>, driver: impl FnOnce(E) -> Trouble) -> Trouble {
        match error {
            PoolError::Backend(error) => driver(error),
            PoolError::Timeout(TimeoutType::Wait) => {
                let most = self.size().1;
                let problem = format!("all {most} connections are in use (pool= in the URL)");
                Trouble::server(Kind::Busy, problem)
            }
            PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
                Trouble::server(Kind::Away, "the server did not accept a connection in time")
            }
            PoolError::Closed => Trouble::server(Kind::Away, "the pool of connections is closed"),
            PoolError::NoRuntimeSpecified => {
                Trouble::server(Kind::Refused, "the pool of connections has no runtime")
            }
            PoolError::PostCreateHook(_) => {
                Trouble::server(Kind::Away, "a hook of the pool of connections failed")
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "how long one waits for a connection is real time")]
fn now() -> Instant {
    Instant::now()
}
