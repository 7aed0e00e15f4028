//! A run, from outside.

use crate::client::Client;
use crate::error::{ClientError, RunError};
use crate::names::{Data, SignalRef};
use durably_kernel::{Payload, RunId, Seq, TaskTrail};
use durably_runtime::Outcome;
use durably_store::{HistoryPage, RunView, TaskRow};
use std::marker::PhantomData;
use std::time::Duration;

/// A run, with the type of its result.
pub struct Handle<O> {
    client: Client,
    run: RunId,
    existed: bool,
    output: PhantomData<fn() -> O>,
}

impl<O> Clone for Handle<O> {
    fn clone(&self) -> Self {
        Handle::new(self.client.clone(), self.run, self.existed)
    }
}

impl<O> std::fmt::Debug for Handle<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Handle({})", self.run)
    }
}

impl<O> Handle<O> {
    pub(crate) fn new(client: Client, run: RunId, existed: bool) -> Handle<O> {
        Handle { client, run, existed, output: PhantomData }
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
        Ok(self.client.caller().run(self.run).await?)
    }

    /// Events after a number, at most so many.
    pub async fn history(&self, after: Seq, most: usize) -> Result<HistoryPage, ClientError> {
        Ok(self.client.caller().history(self.run, after, most).await?)
    }

    /// The life of every task, attempt by attempt.
    pub async fn trail(&self) -> Result<Vec<TaskTrail>, ClientError> {
        Ok(self.client.caller().trail(self.run).await?)
    }

    /// The live tasks of the run, with the progress that activities reported.
    pub async fn tasks(&self) -> Result<Vec<TaskRow>, ClientError> {
        Ok(self.client.caller().tasks(self.run).await?)
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
        let outcome = self.client.caller().outcome(run, most).await.map_err(ClientError::from)?;
        match outcome {
            Outcome::Completed(output) => decoded(&output),
            Outcome::Failed(failure) => Err(RunError::Failed { run, failure: Box::new(failure) }),
            Outcome::Cancelled(reason) => Err(RunError::Cancelled { run, reason }),
            Outcome::Terminated(reason) => Err(RunError::Terminated { run, reason }),
            Outcome::Continued => {
                let reason = "it went on as a new run".to_owned();
                Err(RunError::Terminated { run, reason })
            }
        }
    }
}

fn decoded<O: Data>(output: &Payload) -> Result<O, RunError> {
    Ok(output.decode().map_err(ClientError::from)?)
}
