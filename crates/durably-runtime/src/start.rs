//! Starts of runs: one by one through the committer, many in one transaction. A process that hosts
//! the workflow decides the first turn in the start's own commit.

use crate::cache::View;
use crate::client::{Caller, StartRequest, Started, still_lost};
use crate::committer::{Commit, Verdict, commit_apart};
use crate::eager::Eager;
use crate::error::RuntimeError;
use crate::execute::OfRun;
use crate::hands::InHand;
use crate::mailbox::{Began, Message};
use crate::persist::A_WHILE;
use crate::shared::{Shared, fresh_run_id};
use durably_kernel::{
    CommitId, Decision, Fact, Invalid, Run, RunId, RunIdentity, Start, Timestamp, Turn, TurnError,
    check_delay, check_name, check_payload, limit,
};
use durably_store::{
    Base, CommitAnswer, Committed, KeyCheck, NewRun, RunCommit, StoreError, TurnAfter,
};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// So often is a commit repeated whose answer was lost.
const LOST_MAX: usize = 5;

/// A start on its way to the store.
struct Starting {
    commit: RunCommit,
    first: Option<FirstTurn>,
}

/// The first turn of a run, decided before the run is there.
struct FirstTurn {
    shared: Arc<Shared>,
    view: View,
    eager: Eager,
}

impl Caller {
    /// Starts a run, or finds the one of the same id or key.
    pub async fn start(&self, mut request: StartRequest) -> Result<Started, RuntimeError> {
        check_start(&request)?;
        self.name_signal(&mut request);
        let now = self.now().await?;
        let starting = self.starting(&request, now);
        let sent = self.environment.monotonic();
        let _naming = self.shared().map(|shared| shared.hands.naming());
        let watch = self.shared().map(|shared| shared.store.hints().watch(starting.commit.run));
        let answer = self.commit_start(&starting.commit).await?;
        let mut started = self.started(request, starting, answer, self.since(sent)).await?;
        started.watch = watch.filter(|_| !started.existed).map(Arc::new);
        Ok(started)
    }

    /// Starts many runs in one transaction: if the store fails, none is started. A start whose id
    /// or key is taken does not keep the others from starting.
    pub async fn start_many(
        &self,
        mut requests: Vec<StartRequest>,
    ) -> Result<Vec<Result<Started, RuntimeError>>, RuntimeError> {
        let count = requests.len();
        if count > limit::STARTS_MAX {
            return Err(Invalid::ManyStarts { count }.into());
        }
        for (index, request) in requests.iter_mut().enumerate() {
            let in_bulk = |source| RuntimeError::InBulk { index, source: Box::new(source) };
            check_start(request).map_err(in_bulk)?;
            self.name_signal(request);
        }
        if requests.is_empty() {
            return Ok(vec![]);
        }
        let now = self.now().await?;
        let starting: Vec<Starting> = requests.iter().map(|one| self.starting(one, now)).collect();
        let commits: Vec<RunCommit> = starting.iter().map(|one| one.commit.clone()).collect();
        let commits = Arc::new(commits);
        let who = self.shared().map(|shared| shared.who());
        let sent = self.environment.monotonic();
        let _naming = self.shared().map(|shared| shared.hands.naming());
        let answers = self.insist(|| self.store.commit(who.clone(), commits.clone())).await?;
        let took = self.since(sent);
        let mut started = Vec::with_capacity(requests.len());
        for ((request, starting), answer) in requests.into_iter().zip(starting).zip(answers) {
            started.push(self.started(request, starting, answer, took).await);
        }
        Ok(started)
    }

    /// One id for all repeats: the signal is delivered once.
    fn name_signal(&self, request: &mut StartRequest) {
        if let Some((_, _, id)) = &mut request.signal {
            id.get_or_insert_with(|| fresh_run_id(self.environment.as_ref(), 0).to_string());
        }
    }

    /// The engine behind this caller, if there is one that works.
    fn shared(&self) -> Option<&Arc<Shared>> {
        self.engine.as_ref().filter(|shared| !shared.is_draining() && !shared.ended.is_cancelled())
    }

    /// The store's time; an engine has heard it.
    async fn now(&self) -> Result<Timestamp, RuntimeError> {
        match self.shared() {
            Some(shared) => Ok(shared.moment().now),
            None => match self.desk.now() {
                Some(now) => Ok(now),
                None => {
                    let now = self.ask(|| self.store.now()).await?;
                    self.desk.hear(now);
                    Ok(now)
                }
            },
        }
    }

    fn since(&self, sent: Duration) -> Duration {
        self.environment.monotonic().saturating_sub(sent)
    }

    fn starting(&self, request: &StartRequest, now: Timestamp) -> Starting {
        let fresh = || fresh_run_id(self.environment.as_ref(), now.0);
        let run = request.id.unwrap_or_else(fresh);
        let mut commit = self.start_commit(request, run, now);
        let decides = request.delay.is_none() && request.signal.is_none();
        let serves = |shared: &&Arc<Shared>| shared.settings.queues.contains(&request.queue);
        let shared = self.shared().filter(|_| decides).filter(serves);
        let first = shared.and_then(|shared| FirstTurn::decide(shared, &mut commit));
        Starting { commit, first }
    }

    fn start_commit(&self, request: &StartRequest, run: RunId, now: Timestamp) -> RunCommit {
        let identity = RunIdentity {
            id: run,
            tenant: request.tenant.clone(),
            queue: request.queue.clone(),
            priority: request.priority,
        };
        let new = NewRun {
            identity,
            workflow_type: request.workflow_type.clone(),
            version: request.version,
            check: KeyCheck { key: request.key.clone(), input_hash: request.input_hash.clone() },
            attributes: request.attributes.clone(),
        };
        let decision = Decision::start(Start {
            workflow_type: request.workflow_type.clone(),
            input: request.input.clone(),
            seed: self.environment.random(),
            at: now,
            timeout: request.timeout,
        });
        let id = CommitId(fresh_run_id(self.environment.as_ref(), now.0).0);
        let mut commit = RunCommit::empty(id, run, Base::New(Box::new(new))).with(decision);
        commit.turn = TurnAfter::Want { delay: request.delay };
        commit.trace = request.trace.clone();
        if let Some((name, payload, id)) = &request.signal {
            commit.deliveries.push(self.signal_delivery(run, name, payload.clone(), id.clone()));
        }
        commit
    }

    /// Starts share transactions: those of an engine with its other commits.
    async fn commit_start(&self, commit: &RunCommit) -> Result<CommitAnswer, StoreError> {
        match self.shared() {
            Some(shared) => self.commit_start_by(shared, commit).await,
            None => {
                let answer = self.commit_start_by(&self.desk, commit).await?;
                if let CommitAnswer::Committed(committed) = &answer {
                    self.desk.hear(committed.now);
                }
                Ok(answer)
            }
        }
    }

    async fn commit_start_by(
        &self,
        by: &Arc<impl Commit>,
        commit: &RunCommit,
    ) -> Result<CommitAnswer, StoreError> {
        // Whoever loses patience with the store before that says more about why.
        let longest = if by.patience() < A_WHILE * 2 { A_WHILE * 2 } else { A_WHILE };
        for lost_before in 0..LOST_MAX {
            let verdict = tokio::select! {
                biased;
                verdict = commit_apart(by, commit.clone()) => verdict,
                () = self.environment.sleep(longest) => {
                    return Err(lost("the store did not answer in time; whether the run is started is not known"));
                }
            };
            match verdict {
                Verdict::Answer(answer) => return Ok(answer),
                Verdict::Failed(error) if lost_before > 0 => {
                    return Err(still_lost("start", &error));
                }
                Verdict::Failed(error) => return Err(error),
                // Starts are not looked up but repeated under the same id.
                Verdict::Ambiguous => self.environment.sleep(Duration::from_millis(100)).await,
            }
        }
        Err(lost("its answers are lost again and again; whether the run is started is not known"))
    }

    /// What the store answered to a start.
    async fn started(
        &self,
        request: StartRequest,
        starting: Starting,
        answer: CommitAnswer,
        took: Duration,
    ) -> Result<Started, RuntimeError> {
        let run = starting.commit.run;
        let started = match answer {
            CommitAnswer::Committed(committed) => {
                if let Some(first) = starting.first {
                    first.committed(*committed, took);
                }
                return Ok(Started { run, existed: false, watch: None });
            }
            CommitAnswer::Exists { run: found, same: true } => {
                // The commit may have been ours, its answer lost.
                let existed = found != run || request.id.is_some();
                Started { run: found, existed, watch: None }
            }
            CommitAnswer::Exists { run, same: false } => {
                let what = match &request.key {
                    Some(key) => format!("the idempotency key {key:?}"),
                    None => format!("the id {run}"),
                };
                return Err(RuntimeError::KeyTaken { what, run });
            }
            _ => return Err(RuntimeError::RunUnknown { run }),
        };
        if let Some((name, payload, id)) = request.signal {
            self.signal(started.run, &name, payload, id).await?;
        }
        Ok(started)
    }
}

impl FirstTurn {
    /// Decides the first turn into the start's commit; none where this process does not host the
    /// workflow, or where its code cannot take the start: whoever claims the turn then says why.
    fn decide(shared: &Arc<Shared>, commit: &mut RunCommit) -> Option<FirstTurn> {
        let Base::New(new) = &commit.base else { return None };
        let (version, host) = shared.registry.workflow(&new.workflow_type, new.version)?;
        let durably_kernel::Event::WorkflowStarted { input, seed, .. } = &commit.events[0] else {
            return None;
        };
        let mut run = Run::begin(new.identity.clone(), &commit.events[0]).ok()?;
        let moment = shared.moment();
        let decided = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let mut program = host.create(commit.run, input, *seed);
            let mut turn = Turn::new(&mut run, moment);
            turn.offer(program.as_mut(), &Fact::Begin { version })?;
            let decision = turn.finish();
            Ok::<_, TurnError>((program, decision))
        }));
        let Ok(Ok((program, decision))) = decided else { return None };
        let view = View { run, program };
        commit.events.extend(decision.events);
        commit.tasks.extend(decision.tasks);
        commit.dead_letters.extend(decision.dead_letters);
        commit.summary = Some(view.run.summary(view.program.waits()));
        commit.turn_deadline = shared.settings.hold_deadline(&view.run);
        let steps = view.run.under_way().next().is_some();
        commit.turn = match steps {
            false => TurnAfter::Release,
            true if shared.hands.turns() < shared.settings.inline_max => TurnAfter::Keep,
            true => TurnAfter::Return,
        };
        let eager = Eager::choose(shared, commit);
        Some(FirstTurn { shared: shared.clone(), view, eager })
    }

    /// The run is there: what its first turn asked for begins.
    fn committed(self, committed: Committed, took: Duration) {
        let FirstTurn { shared, view, eager } = self;
        shared.hear(committed.now);
        if view.run.status.has_ended() {
            return;
        }
        let run = view.run.id();
        let mut granted = eager.granted(&OfRun::of(&view.run), &committed, took);
        shared.hands.exchange(&[], &[], &mut granted);
        // The row may have been taken back meanwhile: a beat reports it, if it is ours.
        let turn = committed.turn.filter(|_| !shared.settings.is_late(took, None));
        // Taken up while the call still counts as under way: afterwards nobody remembers whether a
        // beat was faster. If one was, the history tells the rest.
        let hold = turn.filter(|claim| shared.hands.take_up(*claim, InHand::default()));
        let view = Some(view).filter(|_| hold.is_some() || turn.is_none());
        if hold.is_none() && granted.is_empty() {
            view.into_iter().for_each(|view| shared.cache.lock().put(view));
            return;
        }
        let began = Began { hold, view, unread: committed.unread, granted };
        shared.mailboxes.post(&shared, run, Message::Began(Box::new(began)));
    }
}

fn lost(problem: &str) -> StoreError {
    StoreError::Ambiguous { operation: "start", problem: problem.to_owned() }
}

fn check_start(request: &StartRequest) -> Result<(), RuntimeError> {
    check_name("workflow type", request.workflow_type.as_str())?;
    check_name("tenant", request.tenant.as_str())?;
    check_name("queue", request.queue.as_str())?;
    check_payload("input", &request.input)?;
    if let Some(key) = &request.key {
        check_name("idempotency key", key)?;
    }
    if let Some(attributes) = &request.attributes {
        check_payload("attributes", attributes)?;
    }
    if let Some(delay) = request.delay {
        check_delay("delay", delay)?;
    }
    match request.timeout {
        Some(Duration::ZERO) => {
            return Err(durably_kernel::Invalid::ZeroTimeout { what: "run" }.into());
        }
        Some(timeout) => check_delay("run time-out", timeout)?,
        None => {}
    }
    if let Some((name, payload, id)) = &request.signal {
        check_name("signal", name)?;
        check_payload("signal payload", payload)?;
        if let Some(id) = id {
            check_name("signal id", id)?;
        }
    }
    Ok(())
}
