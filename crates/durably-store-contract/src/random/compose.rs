//! Random commits: starts, turns, results, operators, and repeats of all of them.

use super::command::Command;
use super::decide::{Facts, park};
use super::flow::FLOW;
use super::generate::{Generator, Hand, Work};
use super::raw::{self, RAW};
use crate::sample::{json, secs};
use durably_kernel::{
    Claim, CommitId, Decision, Moment, Place, Run, RunId, RunIdentity, Seq, Start, WorkerId,
    terminate,
};
use durably_store::{Base, KeyCheck, NewRun, RunCommit, TurnAfter};
use std::collections::BTreeSet;
use uuid::Uuid;

/// So many runs are open at a time.
const OPEN_MAX: usize = 8;

impl Generator {
    fn commit_on(&mut self, run: RunId, base: Base) -> RunCommit {
        let mut commit = RunCommit::empty(CommitId(Uuid::from_u64_pair(1, self.draw())), run, base);
        commit.turn_deadline = self.dice.one(&[secs(20), secs(70)]);
        commit
    }

    pub(super) fn run_id(&mut self) -> RunId {
        // Not in the order of birth: the order of ids and that of time are two things.
        let (high, low) = (self.dice.below(4) as u64, self.draw());
        let mut random = [0; 10];
        random[1] = high as u8;
        random[2..].copy_from_slice(&low.to_be_bytes());
        RunId::from_parts(1_700_000_000_000, random)
    }

    pub(super) async fn start(&mut self) -> Option<Command> {
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
            _ if !flow => {
                commit.tasks.extend(raw::changes(&mut self.dice, Some(Seq(1))));
                if self.dice.chance(40) {
                    raw::decide_start(&mut self.dice, &mut commit);
                }
            }
            _ => {}
        }
        // A run that its first turn ends would drop it.
        let ended = commit.summary.as_ref().is_some_and(|summary| summary.status.has_ended());
        if !ended && self.dice.chance(10) {
            commit.deliveries.push(self.signal_to(run));
        }
        self.with_eager(commit)
    }

    /// The same, with a wish to begin some of what it puts.
    fn with_eager(&mut self, mut commit: RunCommit) -> RunCommit {
        if self.dice.chance(60) {
            let places: Vec<Place> = commit.tasks.keys().copied().collect();
            commit.eager = self.dice.some(&places, 80).into_iter().collect();
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
    pub(super) async fn turn(&mut self) -> Option<Command> {
        let hand = self.pick_hand(|hand| matches!(hand.work, Work::Turn { .. })).await?;
        let results = self.results_of(&hand.who, hand.claim.run).await;
        let commit =
            self.commit_of(&hand.who.clone(), hand.claim.run, Some(&hand), results).await?;
        self.batch(hand.who, commit).await
    }

    /// A commit of outcomes by one who does not hold the run.
    pub(super) async fn result(&mut self) -> Option<Command> {
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
            let filled = self.with_eager(filled);
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
        let commit = self.with_eager(taken.into_commit(commit));
        Some(self.spoiled(who, commit).await)
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
        let mut seen = BTreeSet::new();
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

    pub(super) async fn aside(&mut self) -> Option<Command> {
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
        let filled = self.with_eager(filled);
        Some(self.with_deliveries(filled).await)
    }

    /// An operator ends a run.
    pub(super) async fn operator(&mut self) -> Option<Command> {
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
    pub(super) fn again(&mut self) -> Option<Command> {
        if self.dice.chance(40) {
            let delivery = self.dice.pick(&self.deliveries)?.clone();
            return Some(Command::Deliver(vec![delivery]));
        }
        let (who, commit) = self.dice.pick(&self.commits)?.clone();
        Some(Command::Commit(who, vec![commit]))
    }
}
