//! A case's world: an empty store, its clock, and short words for what cases do all the time.

use crate::fixture::{Fixture, Fresh};
use crate::sample::{CHARGE, ORDER, activity, done, pinned, puts, running, secs, signal, started};
use crate::snapshot::Snapshot;
use durably_kernel::{
    Claim, CommitId, Event, Fact, Place, Queue, RunId, RunIdentity, Seq, TaskPut, Tenant,
    Timestamp, WorkerId,
};
use durably_store::{
    Base, Beat, BeatAnswer, CallId, ClaimCall, Claimable, Claimed, ClaimedTask, Clock,
    CommitAnswer, Delivered, Delivery, Held, InboxEntry, KeyCheck, LoadCall, Loaded, ManualClock,
    NewRun, Registration, RunCommit, RunView, Store, SweepCall, Swept, TaskRow, TurnAfter, Want,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use uuid::Uuid;

/// An empty store and its clock.
pub(crate) struct World {
    /// The store under test.
    pub(crate) store: Arc<dyn Store>,
    /// Stands still until the case moves it.
    pub(crate) clock: ManualClock,
    fixture: Box<dyn Fixture>,
    fresh: Fresh,
    drawn: AtomicU64,
}

/// The turn row of a run in a worker's hands.
pub(crate) struct Turn {
    pub(crate) run: RunId,
    pub(crate) head: Seq,
    pub(crate) claim: Claim,
}

/// An activity in a worker's hands.
pub(crate) struct Working {
    pub(crate) run: RunId,
    pub(crate) head: Seq,
    pub(crate) task: ClaimedTask,
}

impl World {
    /// What the clock shows at first.
    pub(crate) const START: Timestamp = Timestamp(1_700_000_000_000);

    pub(crate) async fn new(fixture: Box<dyn Fixture>, fresh: Fresh, clock: ManualClock) -> World {
        World { store: fixture.open().await, clock, fixture, fresh, drawn: AtomicU64::new(0) }
    }

    /// So many seeds of random commands are always tried.
    pub(crate) fn seeds(&self) -> u64 {
        self.fixture.seeds()
    }

    /// Another store of the same kind, fresh and empty.
    pub(crate) async fn fresh(&self, clock: Clock) -> Box<dyn Fixture> {
        (self.fresh)(clock).await
    }

    /// Another handle on the same data, as another process would have it.
    pub(crate) async fn other_handle(&self) -> Arc<dyn Store> {
        self.fixture.open().await
    }

    /// A number of which each is higher than the one before.
    pub(crate) fn draw(&self) -> u64 {
        self.drawn.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// A run id of which each is newer than the one before.
    pub(crate) fn run_id(&self) -> RunId {
        let mut random = [0; 10];
        random[..8].copy_from_slice(&self.draw().to_be_bytes());
        RunId::from_parts(World::START.0 as u64, random)
    }

    pub(crate) fn commit_id(&self) -> CommitId {
        CommitId(Uuid::from_u64_pair(1, self.draw()))
    }

    pub(crate) fn call_id(&self) -> CallId {
        CallId(Uuid::from_u64_pair(2, self.draw()))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }
}

/// Starts.
impl World {
    pub(crate) fn new_run(&self) -> NewRun {
        NewRun {
            identity: RunIdentity {
                id: self.run_id(),
                tenant: Tenant::default(),
                queue: Queue::default(),
                priority: 0,
            },
            workflow_type: ORDER.into(),
            version: None,
            check: KeyCheck { key: None, input_hash: "hash".to_owned() },
            attributes: None,
        }
    }

    /// The commit that starts a run whose first turn is ready.
    pub(crate) fn start_of(&self, new: NewRun) -> RunCommit {
        let run = new.identity.id;
        RunCommit {
            events: vec![started()],
            turn: TurnAfter::Want { delay: None },
            ..RunCommit::empty(self.commit_id(), run, Base::New(Box::new(new)))
        }
    }

    pub(crate) async fn start(&self, new: NewRun) -> RunId {
        let run = new.identity.id;
        done(self.commit(None, self.start_of(new)).await);
        run
    }

    pub(crate) fn new_for(&self, tenant: &str) -> NewRun {
        let mut new = self.new_run();
        new.identity.tenant = tenant.into();
        new
    }

    /// A run that is under way, with one fitting event after event 1 and these rows; nobody holds
    /// it and nothing is unread. Its head is 2.
    pub(crate) async fn begun_as(
        &self,
        new: NewRun,
        rows: impl IntoIterator<Item = TaskPut>,
    ) -> RunId {
        let commit = RunCommit {
            events: vec![started(), pinned()],
            summary: Some(running()),
            tasks: puts(rows),
            turn: TurnAfter::Release,
            ..self.start_of(new)
        };
        let run = commit.run;
        done(self.commit(None, commit).await);
        run
    }

    pub(crate) async fn begun(&self, rows: impl IntoIterator<Item = TaskPut>) -> RunId {
        self.begun_as(self.new_run(), rows).await
    }

    /// A run under way whose turn row the worker has; its head is 2.
    pub(crate) async fn held(&self, who: &WorkerId) -> Turn {
        self.held_with(who, []).await
    }

    pub(crate) async fn held_with(
        &self,
        who: &WorkerId,
        rows: impl IntoIterator<Item = TaskPut>,
    ) -> Turn {
        let commit = RunCommit {
            events: vec![started(), pinned()],
            summary: Some(running()),
            tasks: puts(rows),
            turn: TurnAfter::Keep,
            ..self.start_of(self.new_run())
        };
        let run = commit.run;
        let committed = done(self.commit(Some(who), commit).await);
        let claim = committed.turn.expect("the starter keeps the turn row");
        Turn { run, head: Seq(2), claim }
    }

    /// A run under way with one activity, at place 1, which the worker has; its head is 2.
    pub(crate) async fn working(&self, who: &WorkerId) -> Working {
        self.working_on(who, activity(Place(1), "a", Seq(2))).await
    }

    pub(crate) async fn working_on(&self, who: &WorkerId, put: TaskPut) -> Working {
        let run = self.begun([put]).await;
        let task = self.claim_one(who).await;
        assert_eq!(task.claim.run, run, "the only ready task");
        Working { run, head: Seq(2), task }
    }
}

/// Commands, with what cases seldom vary filled in.
impl World {
    pub(crate) fn registration(&self, who: &str) -> Registration {
        Registration {
            who: who.into(),
            group: "default".to_owned(),
            queues: vec![Queue::default()],
            can: vec![turns(ORDER, 1), activities(CHARGE)],
            capacity: 10,
            host: "host".to_owned(),
            version: "1.0.0".to_owned(),
        }
    }

    /// A process that hosts the workflow and the activity of all cases.
    pub(crate) async fn worker(&self, who: &str) -> WorkerId {
        self.store.register(self.registration(who)).await.expect("register");
        who.into()
    }

    /// A commit on a head, to be filled in.
    pub(crate) fn on(&self, run: RunId, head: Seq) -> RunCommit {
        RunCommit::empty(self.commit_id(), run, Base::Head(head))
    }

    /// A commit of one event by the holder, who lets go.
    pub(crate) fn turn_of(&self, turn: &Turn) -> RunCommit {
        RunCommit {
            holder: Some(turn.claim),
            events: vec![event("turn")],
            summary: Some(running()),
            ..self.on(turn.run, turn.head)
        }
    }

    /// A commit of one event that uses up the claim of the activity.
    pub(crate) fn result_of(&self, working: &Working) -> RunCommit {
        RunCommit {
            claims: vec![working.task.claim],
            events: vec![event("result")],
            summary: Some(running()),
            ..self.on(working.run, working.head)
        }
    }

    pub(crate) async fn commit(
        &self,
        who: impl Into<Option<&WorkerId>>,
        commit: RunCommit,
    ) -> CommitAnswer {
        let mut answers = self.commit_all(who, vec![commit]).await;
        assert_eq!(answers.len(), 1, "one answer for each");
        answers.remove(0)
    }

    pub(crate) async fn commit_all(
        &self,
        who: impl Into<Option<&WorkerId>>,
        batch: Vec<RunCommit>,
    ) -> Vec<CommitAnswer> {
        self.store.commit(who.into().cloned(), batch.into()).await.expect("commit")
    }

    pub(crate) fn claim_call(&self, who: &WorkerId, most: usize) -> ClaimCall {
        ClaimCall {
            id: self.call_id(),
            who: who.clone(),
            queues: vec![Queue::default()],
            wants: vec![Want { any: vec![turns(ORDER, 1), activities(CHARGE)], most }],
            cursor: None,
            turn_deadline: secs(70),
        }
    }

    pub(crate) async fn claimed(&self, call: ClaimCall) -> Vec<ClaimedTask> {
        match self.store.claim(call).await.expect("claim") {
            Claimed::Tasks { tasks, .. } => tasks,
            Claimed::Refused => panic!("the process is active"),
        }
    }

    pub(crate) async fn claim(&self, who: &WorkerId, most: usize) -> Vec<ClaimedTask> {
        self.claimed(self.claim_call(who, most)).await
    }

    pub(crate) async fn claim_one(&self, who: &WorkerId) -> ClaimedTask {
        let mut tasks = self.claim(who, 1).await;
        assert_eq!(tasks.len(), 1, "one task is ready");
        tasks.remove(0)
    }

    pub(crate) async fn deliver(&self, run: RunId, id: &str, fact: Fact) -> Delivered {
        self.deliver_one(Delivery { run, id: id.to_owned(), fact, claim: None }).await
    }

    pub(crate) async fn deliver_one(&self, delivery: Delivery) -> Delivered {
        let mut answers = self.store.deliver(vec![delivery]).await.expect("deliver");
        assert_eq!(answers.len(), 1, "one answer for each");
        answers.remove(0)
    }

    pub(crate) async fn signal(&self, run: RunId, id: &str) -> Delivered {
        self.deliver(run, id, signal(id)).await
    }

    /// The outcome of an activity, as one delivers it who may not decide.
    pub(crate) fn outcome_of(&self, who: &WorkerId, working: &Working) -> Delivery {
        let claim = working.task.claim;
        Delivery {
            run: working.run,
            id: "outcome".to_owned(),
            fact: signal("outcome"),
            claim: Some(Held { who: who.clone(), claim }),
        }
    }

    pub(crate) fn sweep_call(&self) -> SweepCall {
        SweepCall { who: None, most: 1000, stale_after: secs(60), may_declare: true }
    }

    pub(crate) async fn sweep(&self) -> Swept {
        self.store.sweep(self.sweep_call()).await.expect("sweep")
    }

    pub(crate) async fn beat(&self, who: &WorkerId, claims: &[Claim]) -> BeatAnswer {
        let claims = claims.to_vec();
        let beat =
            Beat { who: who.clone(), number: self.draw(), load: 1, claims, heartbeats: Vec::new() };
        self.store.beat(beat).await.expect("beat")
    }
}

/// Reads.
impl World {
    pub(crate) async fn view(&self, run: RunId) -> RunView {
        self.store.run(run).await.expect("run").expect("there is such a run")
    }

    pub(crate) async fn events(&self, run: RunId) -> Vec<Event> {
        let page = self.store.history(run, Seq(0), 10_000).await.expect("history");
        assert!(!page.more);
        page.events.into_iter().map(|row| row.event).collect()
    }

    pub(crate) async fn tasks(&self, run: RunId) -> Vec<TaskRow> {
        self.store.tasks(run).await.expect("tasks")
    }

    pub(crate) async fn task(&self, run: RunId, place: Place) -> Option<TaskRow> {
        self.tasks(run).await.into_iter().find(|row| row.place == place)
    }

    /// A row that must be there.
    pub(crate) async fn row(&self, run: RunId, place: Place) -> TaskRow {
        self.task(run, place).await.expect("the row is there")
    }

    pub(crate) fn load_call(&self, run: RunId) -> LoadCall {
        LoadCall { run, after: Seq(0), claims: Vec::new(), who: None, events_max: 1000 }
    }

    pub(crate) async fn load(&self, call: LoadCall) -> Loaded {
        self.store.load(call).await.expect("load").expect("there is such a run")
    }

    pub(crate) async fn unread(&self, run: RunId) -> Vec<InboxEntry> {
        self.load(self.load_call(run)).await.unread
    }

    pub(crate) async fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.store.as_ref()).await
    }
}

fn event(text: &str) -> Event {
    crate::sample::noted(text)
}

/// Turns of a workflow.
pub(crate) fn turns(workflow_type: &str, version: u32) -> Claimable {
    Claimable::Turn { workflow_type: workflow_type.into(), version }
}

/// Activities of a type.
pub(crate) fn activities(activity_type: &str) -> Claimable {
    Claimable::Activity { activity_type: activity_type.into() }
}
