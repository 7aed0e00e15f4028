//! A run, from outside.

use crate::changes::Changes;
use crate::client::Client;
use crate::codec;
use crate::error::{ClientError, RunError};
use crate::names::{Data, SignalRef};
use durably_kernel::{Payload, RunId, Seq, TaskTrail, TrailStep};
use durably_runtime::{Outcome, Started};
use durably_store::{HistoryPage, RunView, TaskRow, Watch};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// A run, with the type of its result.
pub struct Handle<O> {
    client: Client,
    run: RunId,
    existed: bool,
    watch: Option<Arc<Watch>>,
    output: PhantomData<fn() -> O>,
}

impl<O> Clone for Handle<O> {
    fn clone(&self) -> Self {
        let watch = self.watch.clone();
        Handle { watch, ..Handle::new(self.client.clone(), self.run, self.existed) }
    }
}

impl<O> std::fmt::Debug for Handle<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Handle({})", self.run)
    }
}

impl<O> Handle<O> {
    pub(crate) fn new(client: Client, run: RunId, existed: bool) -> Handle<O> {
        Handle { client, run, existed, watch: None, output: PhantomData }
    }

    pub(crate) fn of_start(client: Client, started: Started) -> Handle<O> {
        let Started { run, existed, watch } = started;
        Handle { watch, ..Handle::new(client, run, existed) }
    }

    /// The run's id.
    pub fn id(&self) -> RunId {
        self.run
    }

    /// Whether the start found a run of the same id or key.
    pub fn existed(&self) -> bool {
        self.existed
    }

    /// Sends a signal.
    pub async fn signal<T: Data>(&self, signal: SignalRef<T>, says: &T) -> Result<(), ClientError> {
        self.client.signal_by_name(self.run, signal.name(), says, None).await
    }

    /// Sends a signal with an id of your own: the same id is delivered once.
    pub async fn signal_once<T: Data>(
        &self,
        signal: SignalRef<T>,
        says: &T,
        id: &str,
    ) -> Result<(), ClientError> {
        self.client.signal_by_name(self.run, signal.name(), says, Some(id)).await
    }

    /// Asks the run to end; its code may compensate first.
    pub async fn cancel(&self, reason: &str) -> Result<(), ClientError> {
        Ok(self.client.caller().cancel(self.run, reason).await?)
    }

    /// Asks the run to end after its current activities.
    pub async fn shutdown(&self) -> Result<(), ClientError> {
        Ok(self.client.caller().shutdown(self.run).await?)
    }

    /// Ends the run at once; none of its code runs.
    pub async fn terminate(&self, reason: &str) -> Result<(), ClientError> {
        Ok(self.client.caller().terminate(self.run, reason).await?)
    }

    /// Where the run stands: status, retries so far, the last error, what it waits for.
    pub async fn status(&self) -> Result<RunView, ClientError> {
        let mut run = self.client.caller().run(self.run).await?;
        self.client.show_error(&mut run);
        Ok(run)
    }

    /// Events after a number, at most so many.
    pub async fn history(&self, after: Seq, most: usize) -> Result<HistoryPage, ClientError> {
        let page = self.client.caller().history(self.run, after, most).await?;
        codec::shown_page(self.client.coder(), self.run, page)
    }

    /// What happens to the run, from its beginning until it has ended.
    pub fn changes(&self) -> Changes {
        self.changes_after(Seq(0))
    }

    /// As [`Handle::changes`], from the event after this one on.
    pub fn changes_after(&self, seq: Seq) -> Changes {
        Changes::new(self.client.clone(), self.run, seq)
    }

    /// The life of every task, attempt by attempt.
    pub async fn trail(&self) -> Result<Vec<TaskTrail>, ClientError> {
        let mut trails = self.client.caller().trail(self.run).await?;
        for entry in trails.iter_mut().flat_map(|trail| &mut trail.entries) {
            if let TrailStep::Retrying { error, .. } | TrailStep::Failed { error, .. } =
                &mut entry.what
            {
                self.client.coder().show_failure(error);
            }
        }
        Ok(trails)
    }

    /// The live tasks of the run, with the progress that activities reported.
    pub async fn tasks(&self) -> Result<Vec<TaskRow>, ClientError> {
        let mut tasks = self.client.caller().tasks(self.run).await?;
        for task in &mut tasks {
            let Some(details) = &mut task.details else { continue };
            self.client.coder().show(details).map_err(|error| {
                codec::failed(format!("heartbeat details of {:?}", task.target), error)
            })?;
        }
        Ok(tasks)
    }
}

impl<O: Data> Handle<O> {
    /// Waits for the result.
    pub async fn result(&self) -> Result<O, RunError> {
        self.wait(None).await
    }

    /// Waits for the result, for so long at most; the run goes on in any case.
    pub async fn result_within(&self, most: Duration) -> Result<O, RunError> {
        self.wait(Some(most)).await
    }

    async fn wait(&self, most: Option<Duration>) -> Result<O, RunError> {
        let run = self.run;
        let outcome = self
            .client
            .caller()
            .outcome(run, most, self.watch.clone())
            .await
            .map_err(ClientError::from)?;
        match outcome {
            Outcome::Completed(output) => self.decoded(output),
            Outcome::Failed(mut failure) => {
                self.client.coder().show_failure(&mut failure);
                Err(RunError::Failed { run, failure: Box::new(failure) })
            }
            Outcome::Cancelled(reason) => Err(RunError::Cancelled { run, reason }),
            Outcome::Terminated(reason) => Err(RunError::Terminated { run, reason }),
            Outcome::Continued => {
                let reason = "it went on as a new run".to_owned();
                Err(RunError::Terminated { run, reason })
            }
        }
    }

    fn decoded(&self, output: Payload) -> Result<O, RunError> {
        let plain = self.client.coder().decode(output);
        let plain = plain
            .map_err(|error| codec::failed(format!("the result of run {}", self.run), error))?;
        Ok(plain.decode().map_err(ClientError::from)?)
    }
}
