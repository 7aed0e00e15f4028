//! A store on a database server.

use crate::claim::Claims;
use crate::command::{Command, Question};
use crate::commit::{Commit, Locked, LookUp, stored_events};
use crate::deliver::Deliver;
use crate::eager::Registered;
use crate::error::{Context, Phase, Trouble};
use crate::find::{
    Examine, FindHistory, FindInbox, FindLetters, FindRun, FindRuns, FindTasks, FindWorkers,
};
use crate::floors::Floors;
use crate::kept::Keeper;
use crate::lead::{FindLeader, Lead};
use crate::life::{Ask, Beats, Drain, HandBacks, Leave, Register};
use crate::load::Load;
use crate::postgres::home::Home;
use crate::session::Session;
use crate::sweep::Sweep;
use crate::text::Sql;
use crate::work::Work;
use durably_kernel::{CommitId, RunId, Seq, Timestamp, WorkerId};
use durably_store::{
    Answer, AskAnswer, Beat, BeatAnswer, ClaimCall, Claimed, CommitAnswer, DeadLetterRow,
    Delivered, Delivery, Examined, Gathered, HandBack, Hints, HistoryPage, InboxEntry, LeadCall,
    LeaderRow, Led, LoadCall, Loaded, Registration, RunCommit, RunQuery, RunView, Store,
    StoreError, SweepCall, Swept, TaskRow, WorkerRow,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What a session is taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// The engine's commands.
    Work,
    /// Reads for people.
    People,
}

/// Where sessions come from, and where other processes hear of what was committed.
pub(crate) trait Server: Send + Sync + 'static {
    type Session: Session;

    /// What kind of store it is, for people.
    fn kind(&self) -> &'static str;

    /// Which store, without secrets.
    fn name(&self) -> &str;

    /// A transaction in which a task becomes ready takes no longer than this, mostly.
    fn claim_margin(&self) -> Duration;

    /// Where its connections live.
    fn home(&self) -> &Home;

    /// A connection for one command; waits until there is one.
    fn session(
        &self,
        purpose: Purpose,
    ) -> impl Future<Output = Result<Self::Session, Trouble>> + Send;

    /// Other processes may want to know. Never waits.
    fn tell(&self, hints: &Gathered);
}

/// A store on a database server.
pub(crate) struct SqlStore<V: Server>(Arc<Inner<V>>);

struct Inner<V: Server> {
    server: V,
    hints: Hints,
    /// What the processes that registered here can execute.
    registered: Mutex<BTreeMap<WorkerId, Arc<Registered>>>,
    sweeps: AtomicU32,
    /// What is known of the runs that processes of this store hold.
    keeper: Keeper,
    floors: Floors,
}

/// What a transaction came to, and what to hint at.
type Done<T> = (T, Gathered);

impl<V: Server> SqlStore<V> {
    pub(crate) fn new(server: V, hints: Hints) -> SqlStore<V> {
        let registered = Mutex::new(BTreeMap::new());
        let (sweeps, keeper, floors) = (AtomicU32::new(0), Keeper::default(), Floors::default());
        SqlStore(Arc::new(Inner { server, hints, registered, sweeps, keeper, floors }))
    }

    /// A command in a task of its own: whoever asked may go away, the transaction does not stop in
    /// the middle. It is where the connections are, so that an answer is at once where it is waited
    /// for, and code of the user's that blocks does not hold it up.
    fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        act: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Answer<'_, T> {
        Box::pin(async move {
            match self.0.server.home().spawn(act).await {
                Ok(answer) => answer,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => {
                    let problem = "the runtime shut down".to_owned();
                    Err(StoreError::Ambiguous { operation, problem })
                }
            }
        })
    }

    fn command<C: Command>(&self, command: C) -> Answer<'_, C::Answer> {
        let inner = self.0.clone();
        self.run(C::NAME, async move { inner.execute(&command).await })
    }

    fn question<Q: Question>(&self, purpose: Purpose, question: Q) -> Answer<'_, Q::Answer> {
        let inner = self.0.clone();
        self.run(Q::NAME, async move { inner.ask(purpose, &question).await })
    }
}

impl<V: Server> Inner<V> {
    /// So often a transaction that met another one is repeated.
    const REPEATS_MAX: u32 = 50;

    async fn execute<C: Command>(&self, command: &C) -> Result<C::Answer, StoreError> {
        let (answer, hints) = self.repeat(command).await?;
        self.give(&hints);
        Ok(answer)
    }

    /// Here at once; elsewhere as soon as the server passes it on.
    fn give(&self, hints: &Gathered) {
        self.hints.give_all(hints);
        self.server.tell(hints);
    }

    async fn repeat<C: Command>(&self, command: &C) -> Result<Done<C::Answer>, StoreError> {
        let mut tries = 0;
        loop {
            let mut phase = Phase::Statement;
            match self.transact(command, &mut phase).await {
                Ok(done) => return Ok(done),
                Err(trouble) if trouble.repeats() && tries < Self::REPEATS_MAX => {
                    tries += 1;
                    #[allow(clippy::disallowed_methods, reason = "no simulation has a server")]
                    tokio::time::sleep(pause(tries)).await;
                }
                Err(trouble) => return Err(self.error(trouble, C::NAME, phase)),
            }
        }
    }

    async fn transact<C: Command>(
        &self,
        command: &C,
        phase: &mut Phase,
    ) -> Result<Done<C::Answer>, Trouble> {
        let mut session = self.server.session(Purpose::Work).await?;
        let opening = command.opening();
        let asked: Vec<Sql> = opening.iter().map(|call| call.sql).collect();
        let (began, answers) = match session.begin(opening).await {
            Ok(begun) => begun,
            Err(trouble) => {
                session.roll_back().await;
                return Err(trouble);
            }
        };
        let opened = asked.into_iter().zip(answers).collect();
        let mut work = Work::new(&mut session, began, opened);
        match command.act(&mut work).await {
            Ok(answer) => {
                *phase = Phase::Commit;
                work.finish().await?;
                if let Some(who) = command.holder() {
                    self.keeper.put(work.kept(who));
                }
                Ok((answer, std::mem::take(&mut work.state.hints)))
            }
            Err(trouble) => {
                drop(work);
                session.roll_back().await;
                Err(trouble)
            }
        }
    }

    async fn ask<Q: Question>(
        &self,
        purpose: Purpose,
        question: &Q,
    ) -> Result<Q::Answer, StoreError> {
        let answer = async {
            let mut session = self.server.session(purpose).await?;
            question.ask(&mut session).await
        };
        answer.await.map_err(|trouble| self.error(trouble, Q::NAME, Phase::Statement))
    }

    fn error(&self, trouble: Trouble, operation: &'static str, phase: Phase) -> StoreError {
        trouble.into_error(Context { store: self.server.name(), operation, phase })
    }

    async fn claim(&self, call: ClaimCall) -> Result<Claimed, StoreError> {
        let knowing = self.floors.begin();
        let (lanes, margin) = (Mutex::new(knowing.lanes.clone()), self.server.claim_margin());
        let claims = Claims { call, lanes, margin };
        let answer = self.execute(&claims).await;
        match &answer {
            Ok(_) => self.floors.end(&knowing, claims.lanes.into_inner()),
            Err(_) => self.floors.forget(),
        }
        answer
    }

    /// Members whose run is locked by somebody else follow in a transaction that waits.
    async fn commit(
        &self,
        who: Option<WorkerId>,
        batch: Arc<Vec<RunCommit>>,
    ) -> Result<Vec<CommitAnswer>, StoreError> {
        let registered = who.as_ref().and_then(|who| self.registered.lock().get(who).cloned());
        let events = Arc::new(stored_events(&batch));
        let members: Vec<usize> = (0..batch.len()).collect();
        let kept = Mutex::new(self.keeper.take(batch.iter().map(|commit| commit.run)));
        let mut commit =
            Commit { who, registered, batch, events, members, locked: Locked::LeftOut, kept };
        let mut answers: BTreeMap<usize, CommitAnswer> = BTreeMap::new();
        while !commit.members.is_empty() {
            let some = self.execute(&commit).await?;
            let mut left = Vec::new();
            for (member, answer) in commit.members.iter().zip(some) {
                match answer {
                    Some(answer) => drop(answers.insert(*member, answer)),
                    None => left.push(*member),
                }
            }
            commit.members = left;
            commit.locked = Locked::Awaited;
        }
        Ok(answers.into_values().collect())
    }
}

/// Long enough for the other one to have gone on; different for each of several that meet.
fn pause(tries: u32) -> Duration {
    let most = 1_u64 << tries.min(8);
    Duration::from_micros(rand::random_range(500..1_000 * most))
}

impl<V: Server> Store for SqlStore<V> {
    fn kind(&self) -> &'static str {
        self.0.server.kind()
    }

    fn hints(&self) -> &Hints {
        &self.0.hints
    }

    fn now(&self) -> Answer<'_, Timestamp> {
        self.command(Now)
    }

    fn register(&self, registration: Registration) -> Answer<'_, Timestamp> {
        let (queues, can) = (registration.queues.clone(), registration.can.clone());
        let registered = Arc::new(Registered { queues, can });
        self.0.registered.lock().insert(registration.who.clone(), registered);
        self.command(Register { new: registration })
    }

    fn drain(&self, who: WorkerId) -> Answer<'_, ()> {
        self.command(Drain { who })
    }

    fn leave(&self, who: WorkerId) -> Answer<'_, ()> {
        self.0.registered.lock().remove(&who);
        self.command(Leave { who })
    }

    fn commit(
        &self,
        who: Option<WorkerId>,
        batch: Arc<Vec<RunCommit>>,
    ) -> Answer<'_, Vec<CommitAnswer>> {
        let inner = self.0.clone();
        self.run("commit", async move { inner.commit(who, batch).await })
    }

    /// While the server writes one, the next one comes in.
    fn batches(&self) -> usize {
        2
    }

    fn look_up(&self, run: RunId, commit: CommitId) -> Answer<'_, bool> {
        self.command(LookUp { run, commit })
    }

    fn claim(&self, call: ClaimCall) -> Answer<'_, Claimed> {
        let inner = self.0.clone();
        self.run(Claims::NAME, async move { inner.claim(call).await })
    }

    fn load(&self, call: LoadCall) -> Answer<'_, Option<Loaded>> {
        self.command(Load { call })
    }

    fn deliver(&self, batch: Vec<Delivery>) -> Answer<'_, Vec<Delivered>> {
        self.command(Deliver { batch })
    }

    fn hand_back(&self, who: WorkerId, batch: Vec<HandBack>) -> Answer<'_, ()> {
        self.command(HandBacks { who, batch })
    }

    fn beat(&self, beat: Beat) -> Answer<'_, BeatAnswer> {
        self.command(Beats { beat })
    }

    fn ask(&self, who: WorkerId) -> Answer<'_, AskAnswer> {
        self.question(Purpose::Work, Ask { who })
    }

    fn sweep(&self, call: SweepCall) -> Answer<'_, Swept> {
        // Locked runs are left for later, but not for ever.
        const WAITS_EVERY: u32 = 6;
        let sweeps = self.0.sweeps.fetch_add(1, Ordering::Relaxed);
        let waits = sweeps % WAITS_EVERY == WAITS_EVERY - 1;
        self.command(Sweep { call, waits })
    }

    fn lead(&self, call: LeadCall) -> Answer<'_, Led> {
        self.command(Lead { call })
    }

    fn run(&self, run: RunId) -> Answer<'_, Option<RunView>> {
        self.question(Purpose::People, FindRun { run })
    }

    fn runs(&self, query: RunQuery) -> Answer<'_, Vec<RunView>> {
        self.question(Purpose::People, FindRuns { query })
    }

    fn history(&self, run: RunId, after: Seq, most: usize) -> Answer<'_, HistoryPage> {
        self.question(Purpose::People, FindHistory { run, after, most })
    }

    fn tasks(&self, run: RunId) -> Answer<'_, Vec<TaskRow>> {
        self.question(Purpose::People, FindTasks { run })
    }

    fn inbox(&self, run: RunId, after: u64, most: usize) -> Answer<'_, Vec<InboxEntry>> {
        self.question(Purpose::People, FindInbox { run, after, most })
    }

    fn dead_letters(&self, run: Option<RunId>, most: usize) -> Answer<'_, Vec<DeadLetterRow>> {
        self.question(Purpose::People, FindLetters { run, most })
    }

    fn workers(&self) -> Answer<'_, Vec<WorkerRow>> {
        self.question(Purpose::People, FindWorkers)
    }

    fn leader(&self) -> Answer<'_, LeaderRow> {
        self.question(Purpose::People, FindLeader)
    }

    fn examine(&self, from: RunId, most: usize) -> Answer<'_, Vec<Examined>> {
        self.question(Purpose::People, Examine { from, most })
    }
}

/// The database's time.
struct Now;

impl Command for Now {
    const NAME: &'static str = "now";

    type Answer = Timestamp;

    async fn act<S: Session>(&self, work: &mut Work<'_, S>) -> Result<Timestamp, Trouble> {
        Ok(work.now)
    }
}
