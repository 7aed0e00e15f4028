//! Which command comes next: mostly one that fits what the stores said before, now and then one
//! that is stale, wrong or repeated.

use super::command::{Command, Reply};
use super::dice::Dice;
use crate::sample::secs;
use durably_kernel::{
    Attempt, Claim, ClaimNumber, Payload, RunId, Seq, TaskChange, Timestamp, WorkerId,
};
use durably_store::{
    BeatAnswer, CallId, ClaimCall, Claimed, ClaimedActivity, ClaimedTask, ClaimedWork,
    CommitAnswer, Committed, Delivery, LoadCall, Loaded, ManualClock, RunCommit, RunQuery, RunView,
    Store, WorkerStatus,
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
const KINDS_OF_COMMANDS: [(&str, usize); 22] = [
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
    ("lead", 6),
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

pub(super) struct Generator {
    pub(super) dice: Dice,
    pub(super) memory: Arc<dyn Store>,
    pub(super) clock: ManualClock,
    weights: BTreeMap<&'static str, usize>,
    drawn: u64,
    pub(super) workers: Vec<(WorkerId, u32)>,
    pub(super) hands: Vec<Hand>,
    pub(super) calls: Vec<ClaimCall>,
    pub(super) commits: Vec<(Option<WorkerId>, RunCommit)>,
    pub(super) deliveries: Vec<Delivery>,
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
            "pass" => Some(Command::Pass(self.time().await)),
            _ => self.of_life(kind).await,
        }
    }

    /// Some time, or just as long as it takes until something may be due, and hardly more or less.
    async fn time(&mut self) -> Duration {
        let short = [1, 500, 1000, 1000, 2000, 2000, 3000, 5000, 5000, 10_000];
        let long = [20_000, 30_000, 61_000, 61_000, 660_000];
        let times = if self.dice.chance(85) { &short[..] } else { &long[..] };
        let some = Duration::from_millis(self.dice.one(times));
        if self.dice.chance(65) {
            return some;
        }
        let moments: Vec<Timestamp> =
            self.moments().await.into_iter().filter(|at| *at > self.now()).collect();
        let Some(at) = self.dice.pick(&moments).copied() else { return some };
        let off = self.dice.below(3) as i64 - 1;
        Timestamp(at.0 + off).since(self.now())
    }

    /// When something may be due, as far as the reads tell.
    async fn moments(&mut self) -> Vec<Timestamp> {
        let mut moments = Vec::new();
        for view in self.views(true).await {
            for row in self.memory.tasks(view.identity.id).await.expect("tasks") {
                moments.extend(row.due_at);
                let within = secs(self.dice.one(&[20, 70, 5, 10, 600]));
                moments.extend(row.attempt.map(|attempt| attempt.started_at.after(within)));
            }
        }
        for worker in self.memory.workers().await.expect("workers") {
            if worker.status.holds_claims() {
                let silent = [60, 60, 30, 30, self.dice.upto(20) as u64];
                moments.push(worker.beat_at.after(secs(self.dice.one(&silent))));
            }
        }
        moments
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }

    pub(super) fn call_id(&mut self) -> CallId {
        CallId(Uuid::from_u64_pair(2, self.draw()))
    }

    pub(super) fn now(&self) -> Timestamp {
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
                        self.take_eager(who, commit, committed);
                    }
                }
            }
            _ => {}
        }
        keep(&mut self.hands);
        keep(&mut self.commits);
    }

    fn take_eager(&mut self, who: &WorkerId, commit: &RunCommit, committed: &Committed) {
        for claim in &committed.eager {
            let Some(TaskChange::Put(put)) = commit.tasks.get(&claim.place) else {
                panic!("{claim:?} was not put");
            };
            let work = ClaimedActivity {
                id: put.target.clone().into(),
                activity_type: put.name.clone().into(),
                input: put.input.clone().unwrap_or_else(Payload::null),
                options: put.options.clone().unwrap_or_default(),
                attempt: Attempt {
                    number: put.attempt + 1,
                    worker: who.clone(),
                    started_at: committed.now,
                },
                losses: Vec::new(),
                details: None,
            };
            let (who, work) = (who.clone(), Work::Activity(Box::new(work)));
            self.hands.push(Hand { who, claim: *claim, work });
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
    pub(super) async fn pick_hand(&mut self, fits: impl Fn(&Hand) -> bool) -> Option<Hand> {
        let stale = self.dice.chance(8);
        let mut found = Vec::new();
        for hand in self.hands.iter().filter(|hand| fits(hand)) {
            if self.standing(&hand.who).await.contains(&hand.claim) != stale {
                found.push(hand.clone());
            }
        }
        self.dice.pick(&found).cloned()
    }

    pub(super) async fn views(&self, open: bool) -> Vec<RunView> {
        let query = RunQuery { most: 1000, ..RunQuery::default() };
        let views = self.memory.runs(query).await.expect("runs");
        views.into_iter().filter(|view| !open || !view.status.has_ended()).collect()
    }

    pub(super) async fn any_run(&mut self) -> Option<RunId> {
        if self.dice.chance(3) {
            return Some(self.run_id());
        }
        let open = self.dice.chance(90);
        let views = self.views(open).await;
        self.dice.pick(&views).map(|view| view.identity.id)
    }

    pub(super) async fn load(&self, run: RunId) -> Option<Loaded> {
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

/// The newest of them.
pub(super) fn keep<T>(remembered: &mut Vec<T>) {
    let excess = remembered.len().saturating_sub(KEPT);
    remembered.drain(..excess);
}
