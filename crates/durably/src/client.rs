//! Calls to runs: typed, and by name.

use crate::canonical;
use crate::codec::{self, Codec};
use crate::error::{ClientError, RunError};
use crate::handle::Handle;
use crate::names::{Data, SignalRef, WorkflowRef};
use crate::open::open;
use durably_kernel::{Payload, RunId};
use durably_runtime::{
    Caller, Coder, Environment, RealEnvironment, RuntimeError, StartRequest, Started, is_request,
};
use durably_store::{DeadLetterRow, RunQuery, RunView, Store, WorkerRow};
use serde::Serialize;
use serde_json::Value;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// Starts, signals and watches runs. Cheap to clone. An engine is one too.
#[derive(Clone, Debug)]
pub struct Client {
    caller: Caller,
    coder: Coder,
}

impl Client {
    pub(crate) fn new(caller: Caller, coder: Coder) -> Client {
        Client { caller, coder }
    }

    /// A client in an environment of choice, for simulation.
    #[doc(hidden)]
    pub fn connect_in(environment: Arc<dyn Environment>, store: Arc<dyn Store>) -> Client {
        Client::new(Caller::new(environment, store), Coder::default())
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(crate) fn coder(&self) -> &Coder {
        &self.coder
    }

    /// Connects to a store without executing anything.
    pub async fn connect(url: &str) -> Result<Client, ClientError> {
        let environment: Arc<dyn Environment> = Arc::new(environment()?);
        Ok(Client::new(Caller::new(environment, open(url).await?), Coder::default()))
    }

    /// The same with the codec of the engines. Without one, histories and dead letters show coded
    /// values as they are stored.
    pub fn with_codec(self, codec: impl Codec) -> Result<Client, ClientError> {
        let coder = codec::coder(codec);
        let coder = coder.map_err(|problem| RuntimeError::Settings { problem })?;
        Ok(Client { coder, ..self })
    }

    /// What a signal says, as it is stored.
    fn said<T: Serialize>(&self, signal: &str, says: &T) -> Result<Payload, ClientError> {
        let plain = Payload::of(says)?;
        match is_request(signal) {
            // It is for the engine to read.
            true => Ok(plain),
            false => codec::encoded(&self.coder, &format!("signal {signal:?}"), plain),
        }
    }

    /// The store behind it, for programs that measure or watch it.
    #[doc(hidden)]
    pub fn store(&self) -> Arc<dyn durably_store::Store> {
        self.caller.store().clone()
    }

    /// Starts a run; options chain on it, and awaiting it gives a handle at once.
    pub fn start<I: Data, O: Data>(&self, workflow: WorkflowRef<I, O>, input: &I) -> Start<O> {
        Start::new(self.clone(), workflow.name(), workflow.given_version(), input)
    }

    /// Starts a run and waits for its result; options chain on it.
    pub fn run<I: Data, O: Data>(&self, workflow: WorkflowRef<I, O>, input: &I) -> RunCall<O> {
        RunCall { start: self.start(workflow, input) }
    }

    /// Starts many runs in one transaction, at most 10,000: if the store fails, none is started.
    /// One answer for each, in order; a start whose id or key is taken by something else does not
    /// keep the others from starting.
    ///
    /// Each start may have its own options; they may be of different workflows, as long as their
    /// outputs are of one type.
    pub async fn start_many<O>(
        &self,
        starts: impl IntoIterator<Item = Start<O>>,
    ) -> Result<Vec<Result<Handle<O>, ClientError>>, ClientError> {
        let requests = starts.into_iter().enumerate().map(|(index, start)| {
            start.request.map_err(|source| ClientError::in_bulk(index, source))
        });
        let requests = requests.collect::<Result<Vec<StartRequest>, ClientError>>()?;
        let started = self.caller.start_many(requests).await?;
        let handle = |one: Started| Handle::of_start(self.clone(), one);
        Ok(started.into_iter().map(|one| one.map(handle).map_err(ClientError::from)).collect())
    }

    /// Starts a run of a workflow that is known by its name only.
    pub fn start_by_name(&self, workflow: &str, input: Value) -> Start<Value> {
        Start::new(self.clone(), workflow, None, &input)
    }

    /// A run that is known by its id.
    pub fn handle<I, O>(&self, _workflow: WorkflowRef<I, O>, run: RunId) -> Handle<O> {
        Handle::new(self.clone(), run, true)
    }

    /// A run that is known by its id only.
    pub fn handle_by_id(&self, run: RunId) -> Handle<Value> {
        Handle::new(self.clone(), run, true)
    }

    /// Sends a signal that is known by its name only.
    pub async fn signal_by_name<T: Serialize>(
        &self,
        run: RunId,
        signal: &str,
        says: &T,
        id: Option<&str>,
    ) -> Result<(), ClientError> {
        let payload = self.said(signal, says)?;
        Ok(self.caller.signal(run, signal, payload, id.map(str::to_owned)).await?)
    }

    /// Runs, newest first.
    pub async fn runs(&self, query: RunQuery) -> Result<Vec<RunView>, ClientError> {
        let mut runs = self.caller.runs(query).await?;
        runs.iter_mut().for_each(|run| self.show_error(run));
        Ok(runs)
    }

    /// Where a run stands, for people.
    pub(crate) fn show_error(&self, run: &mut RunView) {
        if let Some(last) = &mut run.last_error {
            self.coder.show_failure(&mut last.error);
        }
    }

    /// Work that was given up, newest first; of one run or of all.
    pub async fn dead_letters(
        &self,
        run: Option<RunId>,
        most: usize,
    ) -> Result<Vec<DeadLetterRow>, ClientError> {
        codec::shown_letters(&self.coder, self.caller.dead_letters(run, most).await?)
    }

    /// The processes that work on the store, or did, newest first.
    pub async fn workers(&self) -> Result<Vec<WorkerRow>, ClientError> {
        Ok(self.caller.workers().await?)
    }
}

/// The real environment, for engines and clients.
pub(crate) fn environment() -> Result<RealEnvironment, RuntimeError> {
    RealEnvironment::current().ok_or_else(|| RuntimeError::Settings {
        problem: "there is no tokio runtime here; call this from async code that tokio runs".into(),
    })
}

/// A start under way: options, then `.await`.
#[must_use = "a run is started when this is awaited"]
#[derive(Debug)]
pub struct Start<O> {
    client: Client,
    request: Result<StartRequest, ClientError>,
    output: PhantomData<fn() -> O>,
}

impl<O> Start<O> {
    fn new<I: Serialize>(
        client: Client,
        workflow: &str,
        version: Option<u32>,
        input: &I,
    ) -> Start<O> {
        let coded = |plain: Payload| {
            // Starts of one key are compared by what they say, not by how it is coded.
            let hash = canonical::hash(&plain);
            Ok((hash, codec::encoded(&client.coder, "the input", plain)?))
        };
        let input = Payload::of(input).map_err(ClientError::from).and_then(coded);
        let request = input.map(|(input_hash, input)| StartRequest {
            id: None,
            workflow_type: workflow.into(),
            version,
            input_hash,
            input,
            tenant: Default::default(),
            queue: Default::default(),
            priority: 0,
            key: None,
            delay: None,
            timeout: None,
            attributes: None,
            trace: None,
            signal: None,
        });
        Start { client, request, output: PhantomData }
    }

    fn set(mut self, set: impl FnOnce(&mut StartRequest)) -> Self {
        if let Ok(request) = &mut self.request {
            set(request);
        }
        self
    }

    fn try_set(mut self, set: impl FnOnce(&mut StartRequest) -> Result<(), ClientError>) -> Self {
        self.request = self.request.and_then(|mut request| set(&mut request).map(|()| request));
        self
    }

    /// Whom it is for; the claim is fair between tenants.
    pub fn tenant(self, tenant: &str) -> Self {
        self.set(|request| request.tenant = tenant.into())
    }

    /// Where its tasks wait.
    pub fn queue(self, queue: &str) -> Self {
        self.set(|request| request.queue = queue.into())
    }

    /// Higher first; 0 by default.
    pub fn priority(self, priority: i32) -> Self {
        self.set(|request| request.priority = priority)
    }

    /// The run's id, chosen by you: the same id gives the same run.
    pub fn id(self, id: RunId) -> Self {
        self.set(|request| request.id = Some(id))
    }

    /// The same key of a tenant gives the same run; with another input it is an error.
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        self.set(|request| request.key = Some(key.into()))
    }

    /// Not before this long from now.
    pub fn delay(self, delay: Duration) -> Self {
        self.set(|request| request.delay = Some(delay))
    }

    /// Fails the run if it has not ended after this long.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set(|request| request.timeout = Some(timeout))
    }

    /// Attributes to search by, as a JSON object. No codec touches them.
    pub fn attributes<T: Serialize>(self, attributes: &T) -> Self {
        self.try_set(|request| {
            request.attributes = Some(Payload::of(attributes)?);
            Ok(())
        })
    }

    /// W3C trace context (`traceparent`), stored with the run.
    pub fn trace_context(self, traceparent: impl Into<String>) -> Self {
        self.set(|request| request.trace = Some(traceparent.into()))
    }

    /// A signal that goes with the start; a run that exists gets it as well.
    pub fn signal<T: Data>(self, signal: SignalRef<T>, says: &T) -> Self {
        let said = self.client.said(signal.name(), says);
        self.try_set(|request| {
            request.signal = Some((signal.name().to_owned(), said?, None));
            Ok(())
        })
    }

    async fn go(self) -> Result<Handle<O>, ClientError> {
        let started = self.client.caller.start(self.request?).await?;
        Ok(Handle::of_start(self.client, started))
    }
}

impl<O: 'static> IntoFuture for Start<O> {
    type Output = Result<Handle<O>, ClientError>;
    type IntoFuture = futures_util::future::BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.go())
    }
}

/// A start whose result is waited for: options, then `.await`.
#[must_use = "a run is started when this is awaited"]
#[derive(Debug)]
pub struct RunCall<O> {
    start: Start<O>,
}

impl<O> RunCall<O> {
    /// Sets options as on [`Start`].
    pub fn with(self, options: impl FnOnce(Start<O>) -> Start<O>) -> Self {
        RunCall { start: options(self.start) }
    }

    /// Whom it is for.
    pub fn tenant(self, tenant: &str) -> Self {
        self.with(|start| start.tenant(tenant))
    }

    /// Where its tasks wait.
    pub fn queue(self, queue: &str) -> Self {
        self.with(|start| start.queue(queue))
    }

    /// Higher first.
    pub fn priority(self, priority: i32) -> Self {
        self.with(|start| start.priority(priority))
    }

    /// The run's id, chosen by you.
    pub fn id(self, id: RunId) -> Self {
        self.with(|start| start.id(id))
    }

    /// Not before this long from now.
    pub fn delay(self, delay: Duration) -> Self {
        self.with(|start| start.delay(delay))
    }

    /// Fails the run if it has not ended after this long.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|start| start.timeout(timeout))
    }

    /// The same key of a tenant gives the same run.
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        self.with(|start| start.idempotency_key(key))
    }
}

impl<O: Data> IntoFuture for RunCall<O> {
    type Output = Result<O, RunError>;
    type IntoFuture = futures_util::future::BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.start.go().await?.result().await })
    }
}
