//! Hints from process to process. They go out after a commit and never in it, many in one, and
//! may be lost: who misses one finds out by polling.

use crate::postgres::connect::{Connector, Made};
use crate::postgres::migrate::ask;
use crate::postgres::outbox::{Outbox, Word, read};
use crate::postgres::session::Statements;
use crate::session::Param;
use crate::text::Naming;
use durably_store::{Gathered, Hints};
use rand::Rng;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_postgres::{Client, Notification};

const NOTIFY: &str = include_str!("../../sql/postgres/notify.sql");

/// Hints are gathered for this long before the next go out; the first go at once.
const GATHER: Duration = Duration::from_millis(4);
/// A connection that has had nothing to say for this long is tried.
const QUIET_MAX: Duration = Duration::from_secs(20);
/// How long to wait before connecting again, at first and at most.
const AGAIN_MIN: Duration = Duration::from_millis(100);
const AGAIN_MAX: Duration = Duration::from_secs(10);

/// Tells other processes what has changed, and hears it from them, on a connection of its own. It
/// falls silent when this is dropped.
pub(crate) struct Herald {
    outbox: Arc<Outbox>,
    task: JoinHandle<()>,
}

impl Drop for Herald {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Herald {
    pub(crate) fn start(connector: Connector, statements: Statements, hints: &Hints) -> Herald {
        let outbox = Arc::new(Outbox::default());
        let voice = Voice {
            channel: channel(&connector.settings().naming),
            outbox: outbox.clone(),
            hints: hints.clone(),
            answer_max: connector.settings().answer_max,
            statements,
        };
        let home = connector.home().clone();
        let task = home.spawn(async move { voice.keep_up(&connector).await });
        Herald { outbox, task }
    }

    /// Passes on what a commit has changed. Does not wait.
    pub(crate) fn pass_on(&self, gathered: &Gathered) {
        self.outbox.put(gathered);
    }
}

/// The channel of all processes on the same tables.
fn channel(naming: &Naming) -> String {
    let schema = naming.schema.as_deref().unwrap_or_default();
    ["durably:", schema, ":", &naming.prefix].concat()
}

struct Voice {
    channel: String,
    outbox: Arc<Outbox>,
    hints: Hints,
    answer_max: Duration,
    statements: Statements,
}

impl Voice {
    /// Connects again whenever the connection is lost.
    async fn keep_up(&self, connector: &Connector) {
        let mut wait = AGAIN_MIN;
        loop {
            let (to, heard) = mpsc::unbounded_channel();
            match connector.connect(self.statements, Some(to)).await {
                Ok(Made { client, task }) => {
                    if self.serve(&client, heard).await {
                        wait = AGAIN_MIN;
                    }
                    task.abort();
                }
                Err(trouble) => tracing::debug!(?trouble, "no connection to listen on"),
            }
            let jitter = rand::rng().random_range(0.5..1.5);
            self.pause(wait.mul_f64(jitter)).await;
            wait = (wait * 2).min(AGAIN_MAX);
        }
    }

    async fn pause(&self, pause: Duration) {
        // Nothing but time ends this.
        let _ = timeout(pause, std::future::pending::<()>()).await;
    }

    /// Listens and tells until the connection breaks; whether it ever worked.
    async fn serve(&self, client: &Client, heard: mpsc::UnboundedReceiver<Notification>) -> bool {
        // Behind a pooler nobody hears anything, but what is told reaches those who do.
        let listens = self.statements == Statements::Prepared;
        if listens && let Err(error) = self.listen(client).await {
            tracing::info!(%error, "the server does not listen: other processes are heard by polling");
        }
        // Whatever was said while nobody listened was missed, here and there.
        self.hints.give_everything();
        self.outbox.put_everything();
        tokio::select! {
            biased;
            () = self.hear(heard) => {}
            () = self.tell(client) => {}
        }
        true
    }

    async fn listen(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        // Hints need not survive the server: telling must not wait for its disk. A name cannot be
        // bound; this one is made of plain ones.
        let listen = ["set synchronous_commit = off; listen \"", &self.channel, "\""].concat();
        client.batch_execute(&listen).await
    }

    async fn hear(&self, mut heard: mpsc::UnboundedReceiver<Notification>) {
        while let Some(notification) = heard.recv().await {
            match read(notification.payload(), self.outbox.token()) {
                Word::Own => {}
                Word::Hints(gathered) => self.hints.give_all(&gathered),
                Word::Everything => self.hints.give_everything(),
            }
        }
    }

    /// Ends when the connection does not answer.
    async fn tell(&self, client: &Client) {
        let mut pace = interval(GATHER);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let said = match timeout(QUIET_MAX, self.outbox.filled()).await {
                Ok(()) => {
                    pace.tick().await;
                    let params = [&self.channel, &self.outbox.take()];
                    let params = params.map(|text| Param::Text(Some(text.clone())));
                    timeout(self.answer_max, async { ask(client, NOTIFY, &params).await.map(drop) })
                        .await
                }
                Err(_) => timeout(self.answer_max, client.batch_execute("")).await,
            };
            if !matches!(said, Ok(Ok(()))) {
                return;
            }
        }
    }
}
