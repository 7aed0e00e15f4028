//! Which command comes next: mostly one that fits what the stores said before, now and then one
//! that is stale, wrong or repeated.

use super::command::{Command, Reply};
use super::decide::{Facts, outcome, park};
use super::dice::Dice;
use super::flow::{FLOW, KINDS};
use super::raw::{self, RAW};
use crate::sample::{json, secs};
use crate::world::{activities, turns};
use durably_kernel::{
    Claim, ClaimNumber, CommitId, Decision, Fact, Moment, Run, RunId, RunIdentity, Seq, Signal,
    Start, Timestamp, WorkerId, terminate,
};
use durably_store::{
    Base, BeatAnswer, CallId, ClaimCall, Claimed, ClaimedActivity, ClaimedTask, ClaimedWork,
    CommitAnswer, Delivery, Held, KeyCheck, LoadCall, Loaded, ManualClock, NewRun, RunCommit,
    RunQuery, RunView, Store, TurnAfter, WorkerStatus,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// A claim that a worker was given, be it still its own or not.
#[derive(Clone, Debug)]
pub(super) struct Hand {
    pub(super) who: WorkerId,
    pub(super) claim: Claim,
    pub(super) work: Work,
}

/// What a claim is about.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// A turn row; whether holders before were lost.
    Turn { lost: bool },
    /// An activity.
    Activity(Box<ClaimedActivity>),
}

/// Kinds of commands, each with a weight that the seed decides.
const KINDS_OF_COMMANDS: [(&str, usize); 21] = [
    ("start", 8),
    ("turn", 20),
    ("result", 14),
    ("aside", 6),
    ("operator", 2),
    ("again", 3),
    ("deliver", 10),
    ("outcome", 6),
    ("claim", 24),
    ("claim again", 3),
    ("hand back", 4),
    ("beat", 8),
    ("ask", 2),
    ("sweep", 12),
    ("pass", 14),
    ("register", 4),
    ("drain", 1),
    ("leave", 1),
    ("look up", 2),
    ("load", 2),
    ("read", 2),
];

/// So many claims, calls, commits and deliveries are remembered.
const KEPT: usize = 60;
/// So many runs are open at a time.
const OPEN_MAX: usize = 8;
/// So many processes live at a time.
const LIVING_MAX: usize = 4;

pub(super) struct Generator {
    pub(super) dice: Dice,
    pub(super) memory: Arc<dyn Store>,
    pub(super) clock: ManualClock,
    weights: BTreeMap<&'static str, usize>,
    drawn: u64,
    pub(super) workers: Vec<(WorkerId, u32)>,
    pub(super) hands: Vec<Hand>,
    pub(super) calls: Vec<ClaimCall>,
    commits: Vec<(Option<WorkerId>, RunCommit)>,
    deliveries: Vec<Delivery>,
}

impl Generator {
    pub(super) fn new(seed: u64, memory: Arc<dyn Store>, clock: ManualClock) -> Generator {
        let mut dice = Dice::new(seed);
        // Some features are left out and others are frequent: a seed of all things alike hardly
        // ever gets deep into one of them.
        let mut weigh = |weight: usize| weight * [0, 1, 1, 2, 4][dice.below(5)];
        let mut weights: BTreeMap<_, _> =
            KINDS_OF_COMMANDS.into_iter().map(|(kind, weight)| (kind, weigh(weight))).collect();
        for needed in ["start", "turn", "claim", "pass", "register"] {
            let weight = weights.get_mut(needed).expect("one of the kinds");
            *weight = (*weight).max(4);
        }
        Generator {
            dice,
            memory,
            clock,
            weights,
            drawn: 0,
            workers: Vec::new(),
            hands: Vec::new(),
            calls: Vec::new(),
            commits: Vec::new(),
            deliveries: Vec::new(),
        }
    }

    /// The next command.
    pub(super) async fn next(&mut self) -> Command {
        loop {
            let total: usize = self.weights.values().sum();
            let mut at = self.dice.below(total);
            let kind = *self
                .weights
                .iter()
                .find(|(_, weight)| {
                    let here = at < **weight;
                    at = at.saturating_sub(**weight);
                    here
                })
                .expect("less than the total")
                .0;
            if let Some(command) = self.make(kind).await {
                return command;
            }
        }
    }

    async fn make(&mut self, kind: &str) -> Option<Command> {
        match kind {
            "start" => self.start().await,
            "turn" => self.turn().await,
            "result" => self.result().await,
            "aside" => self.aside().await,
            "operator" => self.operator().await,
            "again" => self.again(),
            "deliver" => self.deliver().await,
            "outcome" => self.outcome().await,
            "register" => self.register().await,
            "look up" => self.look_up().await,
            "load" => self.load_some().await,
            "read" => self.read().await,
            "pass" => Some(Command::Pass(self.time())),
            _ => self.of_life(kind).await,
        }
    }

    fn time(&mut self) -> Duration {
        let short = [1, 500, 1000, 1000, 2000, 2000, 3000, 5000, 5000, 10_000];
        let long = [20_000, 30_000, 61_000, 61_000, 660_000];
        let times = if self.dice.chance(85) { &short[..] } else { &long[..] };
        Duration::from_millis(self.dice.one(times))
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }

    pub(super) fn call_id(&mut self) -> CallId {
        CallId(Uuid::from_u64_pair(2, self.draw()))
    }

    fn commit_on(&mut self, run: RunId, base: Base) -> RunCommit {
        let mut commit = RunCommit::empty(CommitId(Uuid::from_u64_pair(1, self.draw())), run, base);
        commit.turn_deadline = self.dice.one(&[secs(20), secs(70)]);
        commit
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// What is known.
impl Generator {
    /// Takes an answer in.
    pub(super) fn learn(&mut self, command: &Command, reply: &Reply) {
        match (command, reply) {
            (Command::Claim(call), Reply::Claimed(Claimed::Tasks { tasks, .. })) => {
                tasks.iter().for_each(|task| self.take(&call.who, task));
            }
            (Command::Beat(beat), Reply::Beaten(BeatAnswer::Alive { unnamed, .. })) => {
                unnamed.iter().for_each(|task| self.take(&beat.who, task));
            }
            (Command::Commit(who, batch), Reply::Committed(answers)) => {
                for (commit, answer) in batch.iter().zip(answers) {
                    self.commits.push((who.clone(), commit.clone()));
                    if let (Some(who), CommitAnswer::Committed(committed)) = (who, answer) {
                        let work = Work::Turn { lost: false };
                        let hand = |claim| Hand { who: who.clone(), claim, work: work.clone() };
                        let known = |claim: &Claim| self.hands.iter().any(|h| h.claim == *claim);
                        self.hands.extend(committed.turn.filter(|c| !known(c)).map(hand));
                    }
                }
            }
            _ => {}
        }
        for excess in [self.hands.len().saturating_sub(KEPT)] {
            self.hands.drain(..excess);
        }
        for excess in [self.commits.len().saturating_sub(KEPT)] {
            self.commits.drain(..excess);
        }
    }

    fn take(&mut self, who: &WorkerId, task: &ClaimedTask) {
        let work = match &task.work {
            ClaimedWork::Turn { losses, .. } => Work::Turn { lost: !losses.is_empty() },
            ClaimedWork::Activity(work) => Work::Activity(work.clone()),
        };
        self.hands.retain(|hand| hand.claim != task.claim);
        self.hands.push(Hand { who: who.clone(), claim: task.claim, work });
    }

    pub(super) async fn standing(&self, who: &WorkerId) -> Vec<Claim> {
        self.memory.ask(who.clone()).await.expect("ask").standing
    }

    /// Claims in somebody's hands that stand, or now and then ones that do not.
    async fn pick_hand(&mut self, fits: impl Fn(&Hand) -> bool) -> Option<Hand> {
        let stale = self.dice.chance(8);
        let mut found = Vec::new();
        for hand in self.hands.iter().filter(|hand| fits(hand)) {
            if self.standing(&hand.who).await.contains(&hand.claim) != stale {
                found.push(hand.clone());
            }
        }
        self.dice.pick(&found).cloned()
    }

    async fn views(&self, open: bool) -> Vec<RunView> {
        let query = RunQuery { most: 1000, ..RunQuery::default() };
        let views = self.memory.runs(query).await.expect("runs");
        views.into_iter().filter(|view| !open || !view.status.has_ended()).collect()
    }

    async fn any_run(&mut self) -> Option<RunId> {
        if self.dice.chance(3) {
            return Some(self.run_id());
        }
        let open = self.dice.chance(90);
        let views = self.views(open).await;
        self.dice.pick(&views).map(|view| view.identity.id)
    }

    async fn load(&self, run: RunId) -> Option<Loaded> {
        let call = LoadCall { run, after: Seq(0), claims: vec![], who: None, events_max: 100_000 };
        self.memory.load(call).await.expect("load")
    }

    pub(super) async fn living(&self) -> Vec<WorkerId> {
        let workers = self.memory.workers().await.expect("workers");
        let living = workers.into_iter().filter(|row| row.status == WorkerStatus::Active);
        living.map(|row| row.who).collect()
    }

    /// A process: mostly one that lives.
    pub(super) async fn anybody(&mut self) -> Option<WorkerId> {
        if self.dice.chance(4) {
            return Some("nobody".into());
        }
        let living = self.living().await;
        let all: Vec<WorkerId> = self.workers.iter().map(|(who, _)| who.clone()).collect();
        let from = if self.dice.chance(92) { living } else { all };
        self.dice.pick(&from).cloned()
    }

    pub(super) fn version_of(&self, who: &WorkerId) -> u32 {
        self.workers.iter().find(|(known, _)| known == who).map_or(1, |(_, version)| *version)
    }

    /// A claim that is not the one it looks like.
    pub(super) async fn tampered(&mut self, who: &WorkerId, claim: Claim) -> Claim {
        let number =
            ClaimNumber((claim.number.0 + 1).saturating_sub(2 * self.dice.below(2) as u64));
        let other = self.any_run().await.unwrap_or(claim.run);
        let standing = self.standing(who).await;
        let wrong = [
            Claim { number, ..claim },
            Claim { seq: claim.seq.next(), ..claim },
            Claim { place: claim.place.next(), ..claim },
            Claim { run: other, ..claim },
        ];
        let wrong = self.dice.one(&wrong);
        match standing.contains(&wrong) {
            true => Claim { number: ClaimNumber(999), ..claim },
            false => wrong,
        }
    }
}

/// Commits.
impl Generator {
    fn run_id(&mut self) -> RunId {
        // Not in the order of birth: the order of ids and that of time are two things.
        let (high, low) = (self.dice.below(4) as u64, self.draw());
        let mut random = [0; 10];
        random[1] = high as u8;
        random[2..].copy_from_slice(&low.to_be_bytes());
        RunId::from_parts(1_700_000_000_000, random)
    }

    async fn start(&mut self) -> Option<Command> {
        if self.views(true).await.len() >= OPEN_MAX && !self.dice.chance(10) {
            return None;
        }
        let who = self.anybody().await;
        let mut batch = Vec::new();
        for _ in 0..self.dice.upto(2) {
            let commit = self.start_one(who.as_ref());
            batch.push(commit);
        }
        Some(Command::Commit(who, batch))
    }

    fn new_run(&mut self) -> NewRun {
        let id = self.run_id();
        let key = self.dice.chance(25).then(|| self.dice.one(&["k", "K", "k "]).to_owned());
        NewRun {
            identity: RunIdentity {
                id,
                tenant: self.dice.one(&["a", "b", "B", "c"]).into(),
                queue: self.dice.one(&["default", "default", "default", "second"]).into(),
                priority: self.dice.below(3) as i32 - 1,
            },
            workflow_type: self.dice.one(&[FLOW, FLOW, RAW]).into(),
            version: self.dice.chance(15).then(|| self.dice.upto(2) as u32),
            check: KeyCheck { key, input_hash: self.dice.one(&["h1", "h1", "h2"]).to_owned() },
            attributes: self.dice.chance(20).then(|| json(r#"{"a":1,"a" :2.0}"#)),
        }
    }

    fn start_one(&mut self, who: Option<&WorkerId>) -> RunCommit {
        let new = self.new_run();
        let (run, flow) = (new.identity.id, new.workflow_type.as_str() == FLOW);
        let start = Start {
            workflow_type: new.workflow_type.clone(),
            input: json("[1.0]"),
            seed: self.dice.draw(),
            at: self.now(),
            timeout: self.dice.chance(15).then(|| secs(self.dice.upto(90) as u64)),
        };
        let (identity, asked) = (new.identity.clone(), new.version);
        let mut commit = self.commit_on(run, Base::New(Box::new(new)));
        let decision = Decision::start(start);
        let late = self.dice.chance(15).then(|| secs(self.dice.upto(30) as u64));
        commit.turn = TurnAfter::Want { delay: late };
        commit = commit.with(decision);
        match who {
            Some(who) if flow && self.dice.chance(30) => {
                let mut begun = Run::fold(identity, &commit.events).expect("a start folds");
                let facts = self.facts(who, None, Vec::new());
                let taken = { facts }.take_run(&mut begun, &[], asked);
                let (events, tasks) = (commit.events.clone(), commit.tasks.clone());
                commit = taken.into_commit(commit);
                commit.events.splice(0..0, events);
                for (place, change) in tasks {
                    commit.tasks.entry(place).or_insert(change);
                }
            }
            _ if !flow => commit.tasks.extend(raw::changes(&mut self.dice, Some(Seq(1)))),
            _ => {}
        }
        // A run that its first turn ends would drop it.
        if commit.summary.is_none() && self.dice.chance(10) {
            commit.deliveries.push(self.signal_to(run));
        }
        commit
    }

    fn facts<'a>(
        &'a mut self,
        who: &'a WorkerId,
        holder: Option<&'a Hand>,
        results: Vec<Hand>,
    ) -> Facts<'a> {
        let (now, version) = (self.now(), self.version_of(who));
        Facts { dice: &mut self.dice, now, who, version, holder, results }
    }

    /// A commit by whoever holds the run.
    async fn turn(&mut self) -> Option<Command> {
        let hand = self.pick_hand(|hand| matches!(hand.work, Work::Turn { .. })).await?;
        let results = self.results_of(&hand.who, hand.claim.run).await;
        let commit =
            self.commit_of(&hand.who.clone(), hand.claim.run, Some(&hand), results).await?;
        self.batch(hand.who, commit).await
    }

    /// A commit of outcomes by one who does not hold the run.
    async fn result(&mut self) -> Option<Command> {
        let hand = self.pick_hand(|hand| matches!(hand.work, Work::Activity(_))).await?;
        let mut results = self.results_of(&hand.who, hand.claim.run).await;
        if results.is_empty() {
            results.push(hand.clone());
        }
        let commit = self.commit_of(&hand.who.clone(), hand.claim.run, None, results).await?;
        self.batch(hand.who, commit).await
    }

    /// Some of the activities of a run that a worker has.
    async fn results_of(&mut self, who: &WorkerId, run: RunId) -> Vec<Hand> {
        let standing = self.standing(who).await;
        let fits = |hand: &&Hand| {
            let activity = matches!(hand.work, Work::Activity(_));
            activity && hand.who == *who && hand.claim.run == run && standing.contains(&hand.claim)
        };
        let hands: Vec<Hand> = self.hands.iter().filter(fits).cloned().collect();
        self.dice.some(&hands, 60)
    }

    async fn commit_of(
        &mut self,
        who: &WorkerId,
        run: RunId,
        holder: Option<&Hand>,
        results: Vec<Hand>,
    ) -> Option<RunCommit> {
        let loaded = self.load(run).await?;
        let claims: Vec<Claim> = results.iter().map(|hand| hand.claim).collect();
        let mut commit = self.commit_on(run, Base::Head(loaded.view.head));
        let claimed = holder.map(|hand| hand.claim);
        if loaded.view.workflow_type.as_str() == RAW {
            let filled = raw::fill(&mut self.dice, &loaded.view, claimed, claims, commit);
            return Some(self.with_deliveries(filled).await);
        }
        commit.holder = claimed;
        commit.claims = claims;
        commit.end_anyway = self.dice.chance(15);
        if loaded.view.status.has_ended() {
            return Some(commit);
        }
        if holder.is_some() && self.dice.chance(6) {
            let turn = park(&mut self.dice);
            return Some(RunCommit { claims: Vec::new(), turn, ..commit });
        }
        let taken = self.facts(who, holder, results).take(&loaded);
        Some(self.spoiled(who, taken.into_commit(commit)).await)
    }

    async fn with_deliveries(&mut self, mut commit: RunCommit) -> RunCommit {
        if self.dice.chance(10) {
            let run = self.any_run().await.unwrap_or(commit.run);
            commit.deliveries.push(self.signal_to(run));
        }
        commit
    }

    /// The same, now and then with something wrong about its claims or its head.
    async fn spoiled(&mut self, who: &WorkerId, mut commit: RunCommit) -> RunCommit {
        if !self.dice.chance(12) {
            return commit;
        }
        let head = match commit.base {
            Base::Head(head) => head,
            Base::New(_) => return commit,
        };
        match self.dice.below(6) {
            0 => commit.base = Base::Head(head.next()),
            1 => commit.base = Base::Head(Seq(head.0.saturating_sub(1))),
            2 => commit.operator = true,
            3 => commit.holder = None,
            _ => {
                let claims = commit.claims.iter().chain(&commit.holder).copied();
                let claims: Vec<Claim> = claims.collect();
                if let Some(claim) = self.dice.pick(&claims).copied() {
                    let wrong = self.tampered(who, claim).await;
                    commit.claims.push(wrong);
                }
            }
        }
        commit
    }

    /// A commit in company of others of other runs, now and then under a wrong name.
    async fn batch(&mut self, who: WorkerId, commit: RunCommit) -> Option<Command> {
        let mut batch = vec![commit];
        if self.dice.chance(20) {
            batch.push(self.start_one(Some(&who)));
        }
        if self.dice.chance(15) {
            batch.extend(self.aside_of().await);
        }
        let mut seen = std::collections::BTreeSet::new();
        batch.retain(|commit| seen.insert(commit.run));
        for commit in &mut batch {
            let own = commit.run;
            commit.deliveries.retain(|to| to.run == own || !seen.contains(&to.run));
        }
        if self.dice.chance(50) {
            batch.reverse();
        }
        let who = match self.dice.below(100) {
            0 => None,
            1 | 2 => self.anybody().await,
            _ => Some(who),
        };
        Some(Command::Commit(who, batch))
    }

    async fn aside(&mut self) -> Option<Command> {
        let who = self.anybody().await?;
        let commit = self.aside_of().await?;
        self.batch(who, commit).await
    }

    /// A commit without any claim.
    async fn aside_of(&mut self) -> Option<RunCommit> {
        let views = self.views(false).await;
        let raw = views.iter().filter(|view| view.workflow_type.as_str() == RAW).cloned();
        let view = self.dice.pick(&raw.collect::<Vec<_>>())?.clone();
        let head = match self.dice.chance(8) {
            true => Seq(view.head.0 + 1),
            false => view.head,
        };
        let run = match self.dice.chance(4) {
            true => self.run_id(),
            false => view.identity.id,
        };
        let commit = self.commit_on(run, Base::Head(head));
        let filled = raw::fill(&mut self.dice, &view, None, Vec::new(), commit);
        Some(self.with_deliveries(filled).await)
    }

    /// An operator ends a run.
    async fn operator(&mut self) -> Option<Command> {
        let views = self.views(true).await;
        let flows = views.iter().filter(|view| view.workflow_type.as_str() == FLOW).cloned();
        let view = self.dice.pick(&flows.collect::<Vec<_>>())?.clone();
        let run = view.identity.id;
        let loaded = self.load(run).await?;
        let mut folded = Run::fold(view.identity, &loaded.events).expect("a history folds");
        let moment = Moment { now: self.now(), random: self.dice.draw() };
        let decision = terminate(&mut folded, "by hand", moment).expect("an open run");
        let commit = self.commit_on(run, Base::Head(view.head)).with(decision);
        let commit = RunCommit {
            operator: true,
            end_anyway: self.dice.chance(60),
            summary: Some(folded.summary(view.waits)),
            ..commit
        };
        Some(Command::Commit(None, vec![commit]))
    }

    /// A commit or a delivery once more, just as it was.
    fn again(&mut self) -> Option<Command> {
        if self.dice.chance(40) {
            let delivery = self.dice.pick(&self.deliveries)?.clone();
            return Some(Command::Deliver(vec![delivery]));
        }
        let (who, commit) = self.dice.pick(&self.commits)?.clone();
        Some(Command::Commit(who, vec![commit]))
    }
}

/// Deliveries, and reads.
impl Generator {
    fn signal_to(&mut self, run: RunId) -> Delivery {
        let id = format!("s{}", self.draw());
        let fact = Fact::Signal(Signal {
            id: id.clone(),
            signal_type: "go".to_owned(),
            payload: json(r#"{"x" : 1}"#),
            sent_at: Timestamp(0),
        });
        Delivery { run, id, fact, claim: None }
    }

    async fn deliver(&mut self) -> Option<Command> {
        let mut batch = Vec::new();
        for _ in 0..self.dice.upto(3) {
            let run = self.any_run().await?;
            let mut delivery = self.signal_to(run);
            match self.dice.below(100) {
                0..5 => delivery.fact = Fact::CancelRequested { reason: "enough".to_owned() },
                5..8 => delivery.fact = Fact::ShutdownRequested {},
                8..16 => delivery = self.dice.pick(&self.deliveries).cloned().unwrap_or(delivery),
                _ => {}
            }
            self.remember(&delivery);
            batch.push(delivery);
        }
        Some(Command::Deliver(batch))
    }

    fn remember(&mut self, delivery: &Delivery) {
        self.deliveries.push(delivery.clone());
        let excess = self.deliveries.len().saturating_sub(KEPT);
        self.deliveries.drain(..excess);
    }

    async fn outcome(&mut self) -> Option<Command> {
        let hand = self.pick_hand(|hand| matches!(hand.work, Work::Activity(_))).await?;
        let Work::Activity(work) = &hand.work else { return None };
        let fact = outcome(&mut self.dice, work, hand.claim);
        let Claim { place, seq, number, .. } = hand.claim;
        let mut held = Held { who: hand.who.clone(), claim: hand.claim };
        match self.dice.below(100) {
            0..4 => held.who = self.anybody().await?,
            4..10 => held.claim = self.tampered(&hand.who, hand.claim).await,
            _ => {}
        }
        let id = format!("outcome:{place}:{seq}:{number}");
        let delivery = Delivery { run: hand.claim.run, id, fact, claim: Some(held) };
        self.remember(&delivery);
        Some(Command::Deliver(vec![delivery]))
    }

    async fn look_up(&mut self) -> Option<Command> {
        let (_, commit) = self.dice.pick(&self.commits)?.clone();
        let run = match self.dice.chance(20) {
            true => self.any_run().await?,
            false => commit.run,
        };
        Some(Command::LookUp(run, commit.id))
    }

    async fn load_some(&mut self) -> Option<Command> {
        let run = self.any_run().await?;
        let claims: Vec<Claim> = self.hands.iter().map(|hand| hand.claim).collect();
        let claims: Vec<Claim> = self.dice.some(&claims, 40);
        Some(Command::Load(LoadCall {
            run,
            after: Seq(self.dice.below(6) as u64),
            claims,
            who: self.anybody().await,
            events_max: self.dice.upto(20),
        }))
    }

    async fn read(&mut self) -> Option<Command> {
        let run = self.any_run().await?;
        let most = self.dice.upto(10);
        Some(match self.dice.below(3) {
            0 => Command::History(run, Seq(self.dice.below(5) as u64), most),
            1 => Command::DeadLetters(self.dice.chance(50).then_some(run), most),
            _ => Command::Runs(RunQuery {
                tenant: self.dice.chance(40).then(|| self.dice.one(&["a", "b"]).into()),
                workflow_type: self.dice.chance(30).then(|| FLOW.into()),
                statuses: match self.dice.chance(40) {
                    true => self.dice.some(&durably_kernel::RunStatus::ALL, 40),
                    false => Vec::new(),
                },
                idempotency_key: self.dice.chance(20).then(|| "k".to_owned()),
                before: self.dice.chance(30).then_some(run),
                most,
            }),
        })
    }

    async fn register(&mut self) -> Option<Command> {
        let living = self.living().await.len();
        if living >= LIVING_MAX || (living > 1 && self.dice.chance(60)) {
            return None;
        }
        let (version, number) = (self.dice.upto(2) as u32, self.draw());
        let who = WorkerId::from(format!("w{number}"));
        self.workers.push((who.clone(), version));
        let mut can = vec![turns(FLOW, version), turns(RAW, 1)];
        can.extend(self.dice.some(&KINDS, 80).into_iter().map(activities));
        Some(Command::Register(durably_store::Registration {
            who,
            group: "g".to_owned(),
            queues: vec!["default".into(), "second".into()],
            can,
            capacity: self.dice.upto(10) as u32,
            host: "host".to_owned(),
            version: "1".to_owned(),
        }))
    }
}
