//! Hints from process to process. They go out after a commit and never in it, many in one, and
//! may be lost: who misses one finds out by polling.

use crate::error::Kind;
use crate::postgres::connect::{Connector, Made};
use crate::postgres::error::kind_of;
use crate::postgres::migrate::ask;
use crate::postgres::outbox::{Outbox, Word, read};
use crate::postgres::session::Statements;
use crate::postgres::sql;
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

/// Hints are gathered for this long before the next go out; the first go at once.
const GATHER: Duration = Duration::from_millis(4);
/// So often each says that it is there, if it has nothing else to say: others know whether they
/// are alone, and the connection is tried.
const BREATH: Duration = Duration::from_secs(20);
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

/// How it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The connection is lost; whether it ever worked.
    Lost { worked: bool },
    /// The server cannot do this.
    Unable,
}

impl Voice {
    /// Connects again whenever the connection is lost.
    async fn keep_up(&self, connector: &Connector) {
        let mut wait = AGAIN_MIN;
        loop {
            let (to, heard) = mpsc::unbounded_channel();
            let end = match connector.connect(self.statements, Some(to)).await {
                Ok(Made { client, task }) => {
                    let end = self.serve(&client, heard).await;
                    task.abort();
                    end
                }
                Err(trouble) => {
                    tracing::debug!(?trouble, "no connection to listen on");
                    End::Lost { worked: false }
                }
            };
            match end {
                End::Unable => return,
                End::Lost { worked: true } => wait = AGAIN_MIN,
                End::Lost { worked: false } => {}
            }
            let pause = wait.mul_f64(rand::rng().random_range(0.5..1.5));
            // Nothing but time ends this.
            let _ = timeout(pause, std::future::pending::<()>()).await;
            wait = (wait * 2).min(AGAIN_MAX);
        }
    }

    /// Listens and tells until the connection breaks.
    async fn serve(&self, client: &Client, heard: mpsc::UnboundedReceiver<Notification>) -> End {
        if let Err(error) = self.listen(client).await {
            return match error.code().map(|code| kind_of(code.code())) {
                Some(Kind::Refused | Kind::Unfit) => {
                    tracing::info!(%error, "the server does not notify: processes poll");
                    End::Unable
                }
                // It went away meanwhile.
                Some(_) | None => End::Lost { worked: false },
            };
        }
        // Whatever was said while nobody listened was missed, here and there.
        self.hints.give_everything();
        self.outbox.put_everything();
        tokio::select! {
            biased;
            () = self.hear(heard) => End::Lost { worked: true },
            end = self.tell(client) => end,
        }
    }

    async fn listen(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        match self.statements {
            // A name cannot be bound; this one is made of plain ones.
            Statements::Prepared => {
                client.batch_execute(&["listen \"", &self.channel, "\""].concat()).await
            }
            // Behind a pooler nobody hears anything, but what is told reaches those who do.
            Statements::Sent => Ok(()),
        }
    }

    async fn hear(&self, mut heard: mpsc::UnboundedReceiver<Notification>) {
        while let Some(notification) = heard.recv().await {
            match read(notification.payload(), self.outbox.token()) {
                Word::Own => continue,
                Word::Hints(gathered) => self.hints.give_all(&gathered),
                Word::Everything => self.hints.give_everything(),
            }
            self.outbox.meet();
        }
    }

    /// Tells what has gathered, until the connection does not answer. Telling waits for no disk:
    /// hints need not survive the server.
    async fn tell(&self, client: &Client) -> End {
        let mut pace = interval(GATHER);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut breath = interval(BREATH);
        breath.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut worked = false;
        loop {
            tokio::select! {
                biased;
                () = self.outbox.filled() => {}
                // Who cannot hear does not know whether it is alone.
                _ = breath.tick(), if self.statements == Statements::Prepared => {
                    self.outbox.breathe();
                }
            }
            pace.tick().await;
            let params = [self.channel.clone(), self.outbox.take()];
            let params = params.map(|text| Param::Text(Some(text)));
            match timeout(self.answer_max, ask(client, sql::NOTIFY, &params)).await {
                Ok(Ok(_)) => worked = true,
                Ok(Err(_)) | Err(_) => return End::Lost { worked },
            }
        }
    }
}
