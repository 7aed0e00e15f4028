//! Users' code as the runtime sees it.

use crate::coded::CodedHost;
use crate::coder::Coder;
use crate::hands::Pulse;
use crate::token::CancelToken;
use durably_kernel::{
    ActivityId, ActivityType, Attempt, Broken, Event, Failure, FailureKind, Fault, Payload,
    Program, ReplayError, Run, RunId, RunIdentity, Seq, Tenant, WorkflowType, replay,
};
use durably_store::Claimable;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What an attempt of an activity knows of itself.
#[derive(Clone, Debug)]
pub struct ActivityContext {
    pub(crate) run: RunId,
    pub(crate) tenant: Tenant,
    pub(crate) id: ActivityId,
    pub(crate) activity_type: ActivityType,
    pub(crate) attempt: Attempt,
    pub(crate) attempts_max: u32,
    pub(crate) details: Option<Payload>,
    pub(crate) token: CancelToken,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) coder: Coder,
}

impl ActivityContext {
    /// The run that asked for it.
    pub fn run_id(&self) -> RunId {
        self.run
    }

    /// The run's tenant.
    pub fn tenant(&self) -> &str {
        self.tenant.as_str()
    }

    /// Its id within the run.
    pub fn activity_id(&self) -> &str {
        self.id.as_str()
    }

    /// The name of its code.
    pub fn activity_type(&self) -> &str {
        self.activity_type.as_str()
    }

    /// This attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt.number
    }

    /// The most attempts that its policy allows.
    pub fn attempts_max(&self) -> u32 {
        self.attempts_max
    }

    /// Unique to this attempt.
    pub fn attempt_id(&self) -> String {
        format!("{}/{}/{}", self.run, self.id, self.attempt.number)
    }

    /// The same for all attempts: the one to give to other systems.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}", self.run, self.id)
    }

    /// What an earlier attempt said in its last heartbeat.
    pub fn heartbeat_details<T: DeserializeOwned>(&self) -> Option<T> {
        self.details.as_ref().and_then(|details| details.decode().ok())
    }

    /// Says that it is alive, and how far it is. Costs nothing: heartbeats are batched. An error
    /// means that the details cannot be written as JSON, or that the codec failed.
    pub fn heartbeat<T: Serialize + ?Sized>(&self, details: &T) -> Result<(), Failure> {
        let details = Payload::of(details).map_err(|error| {
            Failure::new(FailureKind::Permanent, format!("heartbeat details: {error}"))
                .code(error.code().as_str())
        })?;
        let coded = self.coder.encode(details);
        self.pulse.beat(coded.map_err(|error| error.failure("heartbeat details"))?);
        Ok(())
    }

    /// Tells when it is no longer wanted, and why.
    pub fn cancellation(&self) -> &CancelToken {
        &self.token
    }

    /// Whether it is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }
}

/// An activity's code.
pub trait ActivityHost: Send + Sync + 'static {
    /// Executes one attempt.
    fn execute(
        &self,
        context: ActivityContext,
        input: Payload,
    ) -> BoxFuture<'static, Result<Payload, Failure>>;
}

/// An attempt of an inline step that may begin.
#[derive(Clone, Debug)]
pub struct InlineStep {
    /// Its id.
    pub id: ActivityId,
    /// The event that began it.
    pub seq: Seq,
}

/// How an attempt of an inline step ended.
#[derive(Clone, Debug)]
pub struct StepOutcome {
    /// Its id.
    pub id: ActivityId,
    /// The event that began it.
    pub seq: Seq,
    /// What it gave.
    pub result: Result<Payload, Failure>,
}

/// A program, and for durable functions the steps that run inside of it.
pub trait HostedProgram: Program + Send {
    /// Lets an attempt of an inline step begin: the commit that asked for it is acknowledged.
    fn begin(&mut self, step: InlineStep) {
        unreachable!("step {} begun in a program without inline steps", step.id);
    }

    /// Gives an attempt of an inline step up: it took too long or is no longer wanted.
    fn give_up(&mut self, _id: &ActivityId) {}

    /// Drives the inline steps; ready with the next outcome.
    fn poll_steps(&mut self, _cx: &mut Context<'_>) -> Poll<Result<StepOutcome, Fault>> {
        Poll::Pending
    }

    /// Roughly how much memory it takes.
    fn size(&self) -> usize {
        1024
    }
}

/// A workflow's code.
pub trait WorkflowHost: Send + Sync + 'static {
    /// A program that has heard nothing yet. Must not run users' code.
    fn create(&self, run: RunId, input: &Payload, seed: u64) -> Box<dyn HostedProgram>;
}

/// All code that a process hosts.
#[derive(Clone, Default)]
pub struct Registry {
    workflows: BTreeMap<WorkflowType, BTreeMap<u32, Arc<dyn WorkflowHost>>>,
    activities: BTreeMap<ActivityType, Arc<dyn ActivityHost>>,
    coder: Coder,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.can()).finish()
    }
}

impl Registry {
    /// Adds a workflow; false if there is one of that name and version.
    pub fn add_workflow(
        &mut self,
        workflow_type: WorkflowType,
        version: u32,
        host: Arc<dyn WorkflowHost>,
    ) -> bool {
        self.workflows.entry(workflow_type).or_default().insert(version, host).is_none()
    }

    /// Adds an activity; false if there is one of that name.
    pub fn add_activity(&mut self, name: ActivityType, host: Arc<dyn ActivityHost>) -> bool {
        self.activities.insert(name, host).is_none()
    }

    /// Sets what stands between its code and the store.
    pub fn set_coder(&mut self, coder: Coder) {
        self.coder = coder;
    }

    pub(crate) fn coder(&self) -> &Coder {
        &self.coder
    }

    /// The code of a workflow: of the version, or the newest where none is pinned.
    pub(crate) fn workflow(
        &self,
        workflow_type: &WorkflowType,
        version: Option<u32>,
    ) -> Option<(u32, CodedHost)> {
        let versions = self.workflows.get(workflow_type)?;
        let (version, host) = match version {
            Some(version) => versions.get_key_value(&version)?,
            None => versions.last_key_value()?,
        };
        Some((*version, CodedHost::new(host.clone(), self.coder.clone())))
    }

    /// Lets the code of a workflow hear a history; fails where the two part.
    #[doc(hidden)]
    pub fn replay(
        &self,
        identity: RunIdentity,
        workflow_type: &WorkflowType,
        version: Option<u32>,
        events: &[Event],
    ) -> Result<Run, ReplayError> {
        let Some((_, host)) = self.workflow(workflow_type, version) else {
            return Err(Broken::new(format!("{workflow_type} is not hosted here")).into());
        };
        let Some(Event::WorkflowStarted { input, seed, .. }) = events.first() else {
            return Err(Broken::new("the history does not begin with a start").into());
        };
        let mut program = host.create(identity.id, input, *seed);
        replay(identity, program.as_mut(), events)
    }

    pub(crate) fn activity(&self, name: &ActivityType) -> Option<Arc<dyn ActivityHost>> {
        self.activities.get(name).cloned()
    }

    pub(crate) fn turns(&self) -> Vec<Claimable> {
        let each = self.workflows.iter();
        each.flat_map(|(workflow_type, versions)| {
            versions.keys().map(|version| Claimable::Turn {
                workflow_type: workflow_type.clone(),
                version: *version,
            })
        })
        .collect()
    }

    pub(crate) fn activities(&self) -> Vec<Claimable> {
        let each = self.activities.keys();
        each.map(|name| Claimable::Activity { activity_type: name.clone() }).collect()
    }

    pub(crate) fn can(&self) -> Vec<Claimable> {
        self.turns().into_iter().chain(self.activities()).collect()
    }
}

/// What a panic said.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
