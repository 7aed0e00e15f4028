//! Calls to runs from outside: start, signal, cancel, terminate, wait, read.

use crate::changes::Changes;
use crate::desk::Desk;
use crate::environment::Environment;
use crate::error::RuntimeError;
use crate::persist::{A_WHILE, persist};
use crate::shared::{Shared, fresh_run_id};
use durably_kernel::{
    CommitId, Event, Fact, Failure, LiveTask, Moment, Payload, Queue, Run, RunId, RunStatus, Seq,
    Signal, TaskKind, TaskTrail, Tenant, Timestamp, Waits, WorkflowType, check_name, check_payload,
    terminate, trail,
};
use durably_store::{
    Base, Class, CommitAnswer, DeadLetterRow, Delivered, Delivery, HistoryPage, LoadCall,
    RunCommit, RunQuery, RunView, Store, StoreError, TaskRow, Watch, WorkerRow,
};
use std::sync::Arc;
use std::time::Duration;

/// A run to be started.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// The caller's own id for it.
    pub id: Option<RunId>,
    /// Its workflow.
    pub workflow_type: WorkflowType,
    /// The version of its code; none takes the newest of whoever runs its first turn.
    pub version: Option<u32>,
    /// Its input.
    pub input: Payload,
    /// Hash of the canonical input.
    pub input_hash: String,
    /// Whom it is for.
    pub tenant: Tenant,
    /// Where its tasks wait.
    pub queue: Queue,
    /// Higher first.
    pub priority: i32,
    /// The same key gives the same run.
    pub key: Option<String>,
    /// Not before this long from now.
    pub delay: Option<Duration>,
    /// Longest run.
    pub timeout: Option<Duration>,
    /// Attributes to search by, a JSON object.
    pub attributes: Option<Payload>,
    /// W3C trace context.
    pub trace: Option<String>,
    /// A signal that goes with the start: name, payload, id.
    pub signal: Option<(String, Payload, Option<String>)>,
}

/// A run that was started, now or before.
#[derive(Clone, Debug)]
pub struct Started {
    /// The run.
    pub run: RunId,
    /// It existed already.
    pub existed: bool,
    /// Sees what becomes of it, from before it was there.
    pub watch: Option<Arc<Watch>>,
}

/// How a run ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// With a result.
    Completed(Payload),
    /// With an error.
    Failed(Failure),
    /// As asked.
    Cancelled(String),
    /// By an operator.
    Terminated(String),
    /// As a new run.
    Continued,
}

/// Calls to runs.
#[derive(Clone)]
pub struct Caller {
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) store: Arc<dyn Store>,
    /// The engine of this process, if there is one: its starts decide their first turn at once.
    pub(crate) engine: Option<Arc<Shared>>,
    /// Where starts go without an engine.
    pub(crate) desk: Arc<Desk>,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").field("store", &self.store.kind()).finish_non_exhaustive()
    }
}

impl Caller {
    /// Calls through a store.
    pub fn new(environment: Arc<dyn Environment>, store: Arc<dyn Store>) -> Caller {
        let desk = Arc::new(Desk::new(environment.clone(), store.clone()));
        Caller { environment, store, engine: None, desk }
    }

    pub(crate) fn of_engine(shared: &Arc<Shared>) -> Caller {
        let engine = Some(shared.clone());
        Caller { engine, ..Caller::new(shared.environment.clone(), shared.store.clone()) }
    }

    /// The store behind it.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// A read or a command that may be repeated, while somebody waits for it.
    pub(crate) async fn ask<T, F>(&self, call: impl FnMut() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        persist(self.environment.as_ref(), A_WHILE, call).await
    }

    /// As [`Caller::ask`], for reads, and for commands that are repeated under the same id, when
    /// their answer is lost.
    pub(crate) async fn insist<T, F>(&self, mut call: impl FnMut() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut lost = 0;
        loop {
            match self.ask(&mut call).await {
                Err(error) if error.class() == Class::Ambiguous && lost < 5 => {
                    lost += 1;
                    self.environment.sleep(Duration::from_millis(100)).await;
                }
                Err(error) if lost > 0 => return Err(still_lost("repeating a call", &error)),
                answer => return answer,
            }
        }
    }

    pub(crate) fn signal_delivery(
        &self,
        run: RunId,
        name: &str,
        payload: Payload,
        id: Option<String>,
    ) -> Delivery {
        let id = id.unwrap_or_else(|| fresh_run_id(self.environment.as_ref(), 0).to_string());
        // `cancel` and `shutdown` have their meaning also when they are sent as signals.
        let fact = match name {
            "cancel" => Fact::CancelRequested {
                reason: payload.decode().unwrap_or_else(|_| "cancel signal".to_owned()),
            },
            "shutdown" => Fact::ShutdownRequested {},
            name => Fact::Signal(Signal {
                id: id.clone(),
                signal_type: name.to_owned(),
                payload,
                sent_at: Timestamp::default(),
            }),
        };
        Delivery { run, id: format!("signal:{id}"), fact, claim: None }
    }

    /// Sends a signal; the same id is delivered once.
    pub async fn signal(
        &self,
        run: RunId,
        name: &str,
        payload: Payload,
        id: Option<String>,
    ) -> Result<(), RuntimeError> {
        check_name("signal", name)?;
        check_payload("signal payload", &payload)?;
        if let Some(id) = &id {
            check_name("signal id", id)?;
        }
        self.deliver(self.signal_delivery(run, name, payload, id)).await
    }

    /// Asks a run to end; its code may compensate first.
    pub async fn cancel(&self, run: RunId, reason: &str) -> Result<(), RuntimeError> {
        let reason = Failure::new(durably_kernel::FailureKind::Cancelled, reason).message;
        let id = fresh_run_id(self.environment.as_ref(), 0);
        let fact = Fact::CancelRequested { reason };
        self.deliver(Delivery { run, id: format!("cancel:{id}"), fact, claim: None }).await
    }

    /// Asks a run to end after what is under way.
    pub async fn shutdown(&self, run: RunId) -> Result<(), RuntimeError> {
        let id = fresh_run_id(self.environment.as_ref(), 0);
        let fact = Fact::ShutdownRequested {};
        self.deliver(Delivery { run, id: format!("shutdown:{id}"), fact, claim: None }).await
    }

    async fn deliver(&self, delivery: Delivery) -> Result<(), RuntimeError> {
        let run = delivery.run;
        let answers = self.insist(|| self.store.deliver(vec![delivery.clone()])).await?;
        match answers.first() {
            Some(Delivered::Entry(_)) => Ok(()),
            Some(Delivered::Ended(status)) => Err(RuntimeError::RunEnded { run, status: *status }),
            _ => Err(RuntimeError::RunUnknown { run }),
        }
    }

    /// Ends a run at once; none of its code runs.
    pub async fn terminate(&self, run: RunId, reason: &str) -> Result<(), RuntimeError> {
        loop {
            let mut folded = self.fold(run).await?;
            if folded.status.has_ended() {
                return Err(RuntimeError::RunEnded { run, status: folded.status });
            }
            let base = Base::Head(folded.head);
            let now = self.ask(|| self.store.now()).await?;
            let moment = Moment { now, random: self.environment.random() };
            let decision = terminate(&mut folded, reason, moment)
                .map_err(|source| RuntimeError::Damaged { run, source })?;
            let id = CommitId(fresh_run_id(self.environment.as_ref(), now.0).0);
            let mut commit = RunCommit::empty(id, run, base).with(decision);
            commit.operator = true;
            commit.end_anyway = true;
            commit.summary = Some(folded.summary(Waits::Signals(vec![])));
            match self.ask(|| self.store.commit(None, vec![commit.clone()].into())).await {
                Ok(answers) => match answers.into_iter().next() {
                    Some(CommitAnswer::Committed(_)) => return Ok(()),
                    Some(CommitAnswer::Unknown) | None => {
                        return Err(RuntimeError::RunUnknown { run });
                    }
                    // Somebody was faster: look again.
                    Some(_) => {}
                },
                Err(error) if error.class() == Class::Ambiguous => {
                    if self.ask(|| self.store.look_up(run, id)).await? {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The run as its history tells it.
    async fn fold(&self, run: RunId) -> Result<Run, RuntimeError> {
        let events = self.all_events(run).await?;
        let view = self.run(run).await?;
        Run::fold(view.identity, &events).map_err(|source| RuntimeError::Damaged { run, source })
    }

    async fn all_events(&self, run: RunId) -> Result<Vec<Event>, RuntimeError> {
        let mut events = Vec::new();
        loop {
            let call = LoadCall {
                run,
                after: Seq(events.len() as u64),
                claims: vec![],
                who: None,
                events_max: 10_000,
            };
            let page = self.ask(|| self.store.load(call.clone())).await?;
            let page = page.ok_or(RuntimeError::RunUnknown { run })?;
            events.extend(page.events);
            if !page.more {
                return Ok(events);
            }
        }
    }

    /// A run's row.
    pub async fn run(&self, run: RunId) -> Result<RunView, RuntimeError> {
        self.insist(|| self.store.run(run)).await?.ok_or(RuntimeError::RunUnknown { run })
    }

    /// Runs, newest first.
    pub async fn runs(&self, query: RunQuery) -> Result<Vec<RunView>, RuntimeError> {
        Ok(self.ask(|| self.store.runs(query.clone())).await?)
    }

    /// A page of a run's history.
    pub async fn history(
        &self,
        run: RunId,
        after: Seq,
        most: usize,
    ) -> Result<HistoryPage, RuntimeError> {
        self.run(run).await?;
        self.events(run, after, most).await
    }

    /// A page of the history of a run that is known to exist.
    pub(crate) async fn events(
        &self,
        run: RunId,
        after: Seq,
        most: usize,
    ) -> Result<HistoryPage, RuntimeError> {
        Ok(self.insist(|| self.store.history(run, after, most)).await?)
    }

    /// Follows a run from the event after this one on.
    pub fn changes(&self, run: RunId, after: Seq) -> Changes {
        Changes::new(self.clone(), run, after)
    }

    /// The live tasks of a run.
    pub async fn tasks(&self, run: RunId) -> Result<Vec<TaskRow>, RuntimeError> {
        self.run(run).await?;
        Ok(self.ask(|| self.store.tasks(run)).await?)
    }

    /// The life of every task of a run, attempt by attempt.
    pub async fn trail(&self, run: RunId) -> Result<Vec<TaskTrail>, RuntimeError> {
        // Rows first: what ends in between is then seen by the history.
        let rows = self.tasks(run).await?;
        let events = self.all_events(run).await?;
        let recorded = trail(&events, &[]);
        let live: Vec<LiveTask> = rows
            .into_iter()
            .filter(|row| row.kind == TaskKind::Activity)
            .filter(|row| !has_attempt(&recorded, row))
            .map(|row| LiveTask {
                id: row.target,
                state: row.state,
                attempt: row.attempt,
                losses: row.losses,
            })
            .collect();
        Ok(trail(&events, &live))
    }

    /// Dead letters, of one run or of all.
    pub async fn dead_letters(
        &self,
        run: Option<RunId>,
        most: usize,
    ) -> Result<Vec<DeadLetterRow>, RuntimeError> {
        Ok(self.ask(|| self.store.dead_letters(run, most)).await?)
    }

    /// All processes that ever worked on the store, newest first.
    pub async fn workers(&self) -> Result<Vec<WorkerRow>, RuntimeError> {
        Ok(self.ask(|| self.store.workers()).await?)
    }

    /// Waits until a run has ended. A watch that was there before the run needs no first look.
    pub async fn outcome(
        &self,
        run: RunId,
        within: Option<Duration>,
        watch: Option<Arc<Watch>>,
    ) -> Result<Outcome, RuntimeError> {
        let mut seen = watch.is_some();
        let watch = watch.unwrap_or_else(|| Arc::new(self.store.hints().watch(run)));
        let began = self.environment.monotonic();
        let mut pause = Duration::from_millis(50);
        loop {
            if !std::mem::take(&mut seen) {
                let view = self.run(run).await?;
                if view.status.has_ended() {
                    return self.ended(&view).await;
                }
            }
            let waited = self.environment.monotonic().saturating_sub(began);
            let left = within.unwrap_or(Duration::MAX).saturating_sub(waited);
            if left.is_zero() {
                return Err(RuntimeError::WaitTimedOut { run, waited });
            }
            tokio::select! {
                biased;
                last = watch.ended() => return outcome_of(run, Some(&last)),
                () = self.environment.sleep(pause.min(left)) => {
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
            }
        }
    }

    async fn ended(&self, view: &RunView) -> Result<Outcome, RuntimeError> {
        let run = view.identity.id;
        let before = Seq(view.head.0.saturating_sub(1));
        let page = self.ask(|| self.store.history(run, before, 1)).await?;
        let last = page.events.into_iter().next().map(|row| row.event);
        match view.status {
            RunStatus::Continued => Ok(Outcome::Continued),
            _ => outcome_of(run, last.as_ref()),
        }
    }
}

/// How the run ended, by the last event of its history.
fn outcome_of(run: RunId, last: Option<&Event>) -> Result<Outcome, RuntimeError> {
    Ok(match last {
        Some(Event::WorkflowCompleted { result }) => Outcome::Completed(result.clone()),
        Some(Event::WorkflowFailed { error }) => Outcome::Failed(Failure::clone(error)),
        Some(Event::WorkflowCancelled { reason }) => Outcome::Cancelled(reason.clone()),
        Some(Event::WorkflowTerminated { reason, .. }) => Outcome::Terminated(reason.clone()),
        last => {
            let last = last.map_or("nothing", |event| event.name());
            let message = format!("the run has ended, but its history ends with {last}");
            return Err(RuntimeError::Damaged { run, source: durably_kernel::Broken { message } });
        }
    })
}

/// Whether a signal of this name is a request to the run itself: `cancel` and `shutdown` have
/// their meaning also when they are sent as signals.
pub fn is_request(signal: &str) -> bool {
    matches!(signal, "cancel" | "shutdown")
}

/// Whether the history knows the outcome of the attempt that the row shows as under way.
fn has_attempt(recorded: &[TaskTrail], row: &TaskRow) -> bool {
    use durably_kernel::TrailStep;
    let number = row.attempt.as_ref().map(|attempt| attempt.number);
    let trails = recorded.iter().filter(|t| t.kind == TaskKind::Activity && t.id == row.target);
    trails.flat_map(|t| &t.entries).any(|entry| match &entry.what {
        TrailStep::Started { attempt, .. } => Some(*attempt) == number,
        _ => false,
    })
}

/// An error that came after an answer was lost: what it says of the repeat does not hold for the
/// call before it, which may have been done.
pub(crate) fn still_lost(operation: &'static str, error: &StoreError) -> StoreError {
    StoreError::Ambiguous { operation, problem: format!("its repeat failed: {error}") }
}
