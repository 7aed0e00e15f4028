//! From registered code to a running engine.

use crate::activity::{Activity, ClosureActivity, TypedActivity};
use crate::client::{Client, environment};
use crate::codec::{self, Codec};
use crate::error::{ClientError, Result};
use crate::function::{Ctx, FunctionHost};
use crate::machine::{MachineHost, Workflow};
use crate::names::{ActivityRef, Data, WorkflowRef};
use crate::open::open;
use durably_kernel::{Event, ReplayError, Run, RunIdentity, WorkflowType, check_name};
use durably_runtime::{
    ActivityContext, ActivityHost, Coder, Environment, Registry, RuntimeError, Settings,
    WorkflowHost,
};
use durably_store::Store;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// An engine in the making.
#[derive(Debug, Default)]
#[must_use = "an engine runs after .start(url)"]
pub struct EngineBuilder {
    registry: Registry,
    settings: Settings,
    problems: Vec<String>,
    queues: BTreeSet<String>,
    coder: Coder,
}

impl EngineBuilder {
    /// Hosts a state machine.
    pub fn workflow<W: Workflow>(self) -> Self {
        self.add_workflow(W::TYPE, W::VERSION, Arc::new(MachineHost::<W>::new()))
    }

    /// Hosts a durable function.
    pub fn function<I, O, F, Fut>(self, name: WorkflowRef<I, O>, function: F) -> Self
    where
        I: Data,
        O: Data,
        F: Fn(Ctx, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + Send + 'static,
    {
        let version = name.given_version().unwrap_or(1);
        self.add_workflow(name.name(), version, Arc::new(FunctionHost::new(function)))
    }

    /// Hosts an activity.
    pub fn activity<A: Activity>(self, activity: A) -> Self {
        self.add_activity(A::TYPE, Arc::new(TypedActivity(Arc::new(activity))))
    }

    /// Hosts an activity made from a closure, which is cloned for each attempt.
    pub fn activity_fn<I, O, F, Fut>(self, name: ActivityRef<I, O>, call: F) -> Self
    where
        I: Data,
        O: Data,
        F: FnOnce(ActivityContext, I) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + Send + 'static,
    {
        let host = ClosureActivity { call, types: PhantomData };
        self.add_activity(name.name(), Arc::new(host))
    }

    fn add_workflow(mut self, name: &str, version: u32, host: Arc<dyn WorkflowHost>) -> Self {
        if let Err(invalid) = check_name("workflow type", name) {
            self.problems.push(invalid.to_string());
        }
        if version == 0 {
            self.problems.push(format!("workflow {name:?} has version 0; versions count from 1"));
        }
        if !self.registry.add_workflow(name.into(), version, host) {
            self.problems
                .push(format!("workflow {name:?} is registered twice with version {version}"));
        }
        self
    }

    fn add_activity(mut self, name: &str, host: Arc<dyn ActivityHost>) -> Self {
        if let Err(invalid) = check_name("activity type", name) {
            self.problems.push(invalid.to_string());
        }
        if !self.registry.add_activity(name.into(), host) {
            self.problems.push(format!("activity {name:?} is registered twice"));
        }
        self
    }

    /// Codes all values on their way to the store and back; none by default.
    pub fn codec(mut self, codec: impl Codec) -> Self {
        if let Some(name) = self.coder.name() {
            self.problems.push(format!("there are two codecs; the first is {name:?}"));
        }
        match codec::coder(codec) {
            Ok(coder) => self.coder = coder,
            Err(problem) => self.problems.push(problem),
        }
        self
    }

    /// Activities at a time; 10 by default.
    pub fn slots(mut self, slots: usize) -> Self {
        self.settings.slots = slots;
        self
    }

    /// Serves a queue; only `default` where none is named.
    pub fn queue(mut self, queue: &str) -> Self {
        self.queues.insert(queue.to_owned());
        self
    }

    /// A name for processes of one kind.
    pub fn group(mut self, group: &str) -> Self {
        self.settings.group = group.to_owned();
        self
    }

    /// For work under way when the engine stops; 30 s by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// A process without a beat for so long is gone; 60 s by default, at least three beats.
    pub fn stale_after(mut self, stale_after: Duration) -> Self {
        self.settings.stale_after = stale_after;
        self
    }

    /// Between beats; 5 s by default.
    pub fn beat(mut self, beat: Duration) -> Self {
        self.settings.beat = beat;
        self
    }

    /// Changes settings that have no method of their own, for simulation.
    #[doc(hidden)]
    pub fn tune(mut self, tune: impl FnOnce(&mut Settings)) -> Self {
        tune(&mut self.settings);
        self
    }

    /// Starts the engine on the store that the URL names. All problems of all definitions are
    /// reported together.
    pub async fn start(self, url: &str) -> Result<Engine, ClientError> {
        let builder = self.checked()?;
        let store = open(url).await?;
        builder.start_on(store).await
    }

    /// Starts the engine on a store that is open already, for programs and tests that share one.
    #[doc(hidden)]
    pub async fn start_on(self, store: Arc<dyn Store>) -> Result<Engine, ClientError> {
        let environment = Arc::new(environment()?);
        self.start_in(environment, store).await
    }

    /// As [`EngineBuilder::start_on`], with time, randomness and tasks from an environment of
    /// choice, for simulation.
    #[doc(hidden)]
    pub async fn start_in(
        self,
        environment: Arc<dyn Environment>,
        store: Arc<dyn Store>,
    ) -> Result<Engine, ClientError> {
        let EngineBuilder { mut registry, settings, coder, .. } = self.checked()?;
        registry.set_coder(coder.clone());
        let engine = durably_runtime::Engine::start(environment, store, registry, settings).await?;
        let client = Client::new(engine.caller().clone(), coder);
        Ok(Engine { engine, client })
    }

    /// Lets the registered code hear a history; fails where the two part.
    #[doc(hidden)]
    pub fn replay(
        &self,
        identity: RunIdentity,
        workflow_type: &WorkflowType,
        version: Option<u32>,
        events: &[Event],
    ) -> Result<Run, ReplayError> {
        self.registry.replay(identity, workflow_type, version, events)
    }

    fn checked(mut self) -> Result<EngineBuilder, ClientError> {
        if !self.problems.is_empty() {
            return Err(RuntimeError::Definitions { problems: self.problems }.into());
        }
        if !self.queues.is_empty() {
            self.settings.queues = self.queues.iter().map(|queue| queue.as_str().into()).collect();
        }
        self.settings.check()?;
        Ok(self)
    }
}

/// A running engine: it executes what was registered, and is a [`Client`] too. Dropping it ends it
/// at once, as a crash would; [`Engine::stop`] ends it gracefully.
#[derive(Debug)]
pub struct Engine {
    engine: durably_runtime::Engine,
    client: Client,
}

impl Engine {
    /// An engine that hosts nothing yet.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Stops gracefully: claims no more, lets work end within the grace, hands back the rest.
    pub async fn stop(&self) -> Result<(), ClientError> {
        Ok(self.engine.stop(None).await?)
    }

    /// As [`Engine::stop`], with another grace.
    pub async fn stop_within(&self, grace: Duration) -> Result<(), ClientError> {
        Ok(self.engine.stop(Some(grace)).await?)
    }

    /// A client of its own, which may outlive the engine.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// This process incarnation, `host-pid-random`.
    pub fn worker_id(&self) -> String {
        self.engine.worker_id()
    }
}

impl Deref for Engine {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
