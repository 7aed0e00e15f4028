//! Changes of runs. A batch is one transaction. Its first trip locks the runs, the last one writes.
//! Runs that the committer holds are known (`kept`); for others a trip in between reads their tasks.

use crate::command::Command;
use crate::eager::{Registered, begins, foremost_call, read_foremost};
use crate::error::Trouble;
use crate::field::Columns;
use crate::kept::Kept;
use crate::session::{Call, Param, Session};
use crate::text::Sql;
use crate::work::{Known, Work, at, ids, unread, worker};
use crate::write::Table;
use durably_kernel::{CommitId, Event, Place, RunId, WorkerId};
use durably_store::rows::{At, UNREAD_MAX};
use durably_store::{Base, CommitAnswer, Committer, Delivery, RunCommit, WorkerStatus};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What becomes of members whose run somebody else has locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Locked {
    /// They are left out: no answer.
    LeftOut,
    /// They are waited for.
    Awaited,
}

/// A batch of commits.
pub(crate) struct Commit {
    pub(crate) who: Option<WorkerId>,
    pub(crate) registered: Option<Arc<Registered>>,
    pub(crate) batch: Arc<Vec<RunCommit>>,
    /// The events of each as they are stored.
    pub(crate) events: Arc<Vec<String>>,
    /// Which of them are to be done.
    pub(crate) members: Vec<usize>,
    pub(crate) locked: Locked,
    /// What is known of their runs; a second attempt knows nothing.
    pub(crate) kept: Mutex<BTreeMap<RunId, Kept>>,
}

impl Command for Commit {
    const NAME: &'static str = "commit";

    /// An answer for each member; none for one that was left out.
    type Answer = Vec<Option<CommitAnswer>>;

    /// Locks the runs; finds those with the keys of starts; looks at what waits for the committer.
    fn opening(&self) -> Vec<Call> {
        let kept = self.kept.lock();
        let (known, other): (Vec<RunId>, Vec<RunId>) =
            self.runs().into_iter().partition(|run| kept.contains_key(run));
        let lock = match self.locked {
            Locked::LeftOut => Sql::RunsLockFree,
            Locked::Awaited => Sql::RunsLock,
        };
        let mut calls = Vec::new();
        for (sql, runs) in [(Sql::RunsLockStamps, known), (lock, other)] {
            calls.extend((!runs.is_empty()).then(|| Call { sql, params: vec![ids(runs)] }));
        }
        calls.extend(self.keys());
        let begins = begins(self.commits());
        if let (Some(who), Some(registered), true) = (&self.who, &self.registered, begins.any()) {
            calls.push(Call { sql: Sql::WorkerById, params: vec![worker(who)] });
            calls.push(foremost_call(registered, begins));
        }
        calls
    }

    fn holder(&self) -> Option<&WorkerId> {
        self.who.as_ref()
    }

    async fn act<S: Session>(&self, work: &mut Work<'_, S>) -> Result<Self::Answer, Trouble> {
        self.take_up_runs(work).await?;
        let left_out = self.left_out(work).await?;
        // Not before: they are not locked, and must not pass for runs that are.
        let namesakes = work.opened(Sql::RunsByKeys);
        work.add_runs(namesakes)?;
        let who = self.committer(work)?;
        self.take_up_tasks(work, &left_out).await?;
        let mut history = Table::default();
        let mut answers = Vec::with_capacity(self.members.len());
        for &member in &self.members {
            let commit = &self.batch[member];
            if targets(commit).any(|run| left_out.contains(&run)) {
                answers.push(None);
                continue;
            }
            if let Some(trace) = &commit.trace {
                work.traces.insert(commit.run, trace.clone());
            }
            let answer = work.state.commit(who.as_ref(), commit, work.now);
            if matches!(answer, CommitAnswer::Committed(_)) && !commit.events.is_empty() {
                let first = match &commit.base {
                    Base::New(_) => 1,
                    Base::Head(head) => head.0 + 1,
                };
                history.history(commit, first, work.now, self.events[member].clone())?;
            }
            answers.push(Some(answer));
        }
        work.also.extend(history.call(Sql::HistoryInsert));
        Ok(answers)
    }
}

impl Commit {
    fn commits(&self) -> impl Iterator<Item = &RunCommit> {
        self.members.iter().map(|member| &self.batch[*member])
    }

    /// Takes up the runs that are locked.
    async fn take_up_runs<S: Session>(&self, work: &mut Work<'_, S>) -> Result<(), Trouble> {
        let mut kept = std::mem::take(&mut *self.kept.lock());
        let mut changed = Vec::new();
        for mut row in work.opened(Sql::RunsLockStamps) {
            let run = RunId(row.uuid("id")?);
            let stamp: i64 = row.number("stamp")?;
            match kept.remove(&run) {
                Some(kept) if kept.stamp == stamp => work.add_kept(kept),
                _ => changed.push(run),
            }
        }
        for sql in [Sql::RunsLockFree, Sql::RunsLock] {
            let rows = work.opened(sql);
            work.add_runs(rows)?;
        }
        work.read_runs(changed).await
    }

    /// Who commits, and what waits for them.
    fn committer<S: Session>(&self, work: &mut Work<'_, S>) -> Result<Option<Committer>, Trouble> {
        let Some(id) = self.who.clone() else { return Ok(None) };
        let workers = work.opened(Sql::WorkerById);
        work.add_workers(workers)?;
        let worker = work.state.workers.get(&id);
        let active = worker.is_some_and(|worker| worker.row.status == WorkerStatus::Active);
        let (turns, activities) = read_foremost(work.opened(Sql::Foremost))?;
        Ok(Some(Committer { id, active, turns, activities }))
    }

    /// Every run that a member touches, starts included: a repeated one meets its run.
    fn runs(&self) -> BTreeSet<RunId> {
        self.commits().flat_map(targets).collect()
    }

    /// The question for runs with the keys of starts.
    fn keys(&self) -> Option<Call> {
        let (mut tenants, mut keys) = (Vec::new(), Vec::new());
        for commit in self.commits() {
            let Base::New(new) = &commit.base else { continue };
            let Some(key) = &new.check.key else { continue };
            tenants.push(Some(new.identity.tenant.to_string()));
            keys.push(Some(key.clone()));
        }
        let params = vec![Param::Texts(tenants), Param::Texts(keys.clone())];
        (!keys.is_empty()).then_some(Call { sql: Sql::RunsByKeys, params })
    }

    /// Runs that are there and were not to be had.
    async fn left_out<S: Session>(
        &self,
        work: &mut Work<'_, S>,
    ) -> Result<BTreeSet<RunId>, Trouble> {
        let starts: BTreeSet<RunId> = self.commits().filter(|c| starts(c)).map(|c| c.run).collect();
        let missing = |run: &RunId| !work.state.runs.contains(run);
        let missing: Vec<RunId> = self.runs().into_iter().filter(missing).collect();
        // A start's run is not there, mostly; one that is there and locked is met by its insertion.
        let expected = missing.iter().all(|run| starts.contains(run));
        if missing.is_empty() || expected || self.locked == Locked::Awaited {
            return Ok(BTreeSet::new());
        }
        let rows = work.ask(Sql::RunsThere, vec![ids(missing)]).await?;
        rows.into_iter().map(|mut row| Ok(RunId(row.uuid("id")?))).collect()
    }

    /// Takes up the tasks that members may touch, and what inboxes have for them.
    async fn take_up_tasks<S: Session>(
        &self,
        work: &mut Work<'_, S>,
        left_out: &BTreeSet<RunId>,
    ) -> Result<(), Trouble> {
        let Wanted { places, whole, unread, found } = self.wanted(work, left_out);
        let all = Call { sql: Sql::TasksLockAll, params: vec![ids(whole.iter().copied())] };
        let locks =
            [at(Sql::TasksLock, places.iter().copied()), (!whole.is_empty()).then_some(all)];
        load(work, locks, [unread, found]).await?;
        work.looked_at(places);
        work.looked_at_all(whole);
        Ok(())
    }

    fn wanted<S: Session>(&self, work: &Work<'_, S>, left_out: &BTreeSet<RunId>) -> Wanted {
        let state = &work.state;
        let here = |run: &RunId| state.runs.contains(run) && !left_out.contains(run);
        let mut places: BTreeSet<At> = BTreeSet::new();
        let mut whole: BTreeSet<RunId> = BTreeSet::new();
        let mut reads: BTreeMap<RunId, (u64, usize)> = BTreeMap::new();
        let mut found = Found::default();
        for commit in self.commits().filter(|commit| here(&commit.run)) {
            match ends(commit) {
                true => drop(whole.insert(commit.run)),
                false => places.extend(places_of(commit)),
            }
            reads.insert(commit.run, unread_of(commit));
            for delivery in commit.deliveries.iter().filter(|delivery| here(&delivery.run)) {
                found.add(delivery, &mut places);
            }
        }
        whole.retain(|run| !matches!(work.known(*run), Some(Known::All)));
        let knows = |(run, place): &At| work.known(*run).is_some_and(|known| known.knows(*place));
        places.retain(|at| !whole.contains(&at.0) && !knows(at));
        let runs = reads.iter().filter_map(|(run, (after, most))| {
            let record = state.runs.get(run)?;
            Some((record, ((*after).max(record.inbox_used), *most)))
        });
        let unread = unread(runs);
        Wanted { places, whole, unread, found: found.call() }
    }
}

/// What members may touch that is not known.
struct Wanted {
    /// The places of tasks.
    places: BTreeSet<At>,
    /// Runs all of whose tasks are wanted.
    whole: BTreeSet<RunId>,
    unread: Option<Call>,
    found: Option<Call>,
}

/// Two questions, if there is something to ask.
pub(crate) type Questions = [Option<Call>; 2];

/// Asks for tasks, then for inbox entries (unread ones, then found ones), and takes them up.
pub(crate) async fn load<S: Session>(
    work: &mut Work<'_, S>,
    locks: Questions,
    questions: Questions,
) -> Result<(), Trouble> {
    let [first, second] = &locks;
    let tasks = first.iter().chain(second).count();
    let [unread, found] = &questions;
    let (unread, found) = (unread.is_some(), found.is_some());
    let calls: Vec<Call> = locks.into_iter().chain(questions).flatten().collect();
    if calls.is_empty() {
        return Ok(());
    }
    let mut answers = work.session.ask(calls).await?.into_iter();
    for rows in answers.by_ref().take(tasks) {
        work.add_tasks(rows)?;
    }
    if unread {
        work.add_entries(answers.next().unwrap_or_default())?;
    }
    if found {
        work.add_found(answers.next().unwrap_or_default())?;
    }
    Ok(())
}

/// Deliveries whose ids are looked for.
#[derive(Default)]
pub(crate) struct Found {
    runs: Vec<Option<uuid::Uuid>>,
    ids: Vec<Option<String>>,
}

impl Found {
    /// A delivery needs the run's turn row, and the row of its claim.
    pub(crate) fn add(&mut self, delivery: &Delivery, places: &mut BTreeSet<At>) {
        self.look_for(delivery.run, delivery.id.clone());
        places.insert((delivery.run, Place::TURN));
        places.extend(delivery.claim.iter().map(|held| (delivery.run, held.claim.place)));
    }

    pub(crate) fn look_for(&mut self, run: RunId, id: String) {
        self.runs.push(Some(run.0));
        self.ids.push(Some(id));
    }

    pub(crate) fn call(self) -> Option<Call> {
        let params = vec![Param::Ids(self.runs.clone()), Param::Texts(self.ids)];
        (!self.runs.is_empty()).then_some(Call { sql: Sql::InboxFind, params })
    }
}

/// The run that a commit changes, and those that it delivers to.
fn targets(commit: &RunCommit) -> impl Iterator<Item = RunId> {
    let delivered = commit.deliveries.iter().map(|delivery| delivery.run);
    std::iter::once(commit.run).chain(delivered)
}

fn starts(commit: &RunCommit) -> bool {
    matches!(commit.base, Base::New(_))
}

fn ends(commit: &RunCommit) -> bool {
    commit.summary.as_ref().is_some_and(|summary| summary.status.has_ended())
}

/// The rows that a commit of an open run may touch.
fn places_of(commit: &RunCommit) -> impl Iterator<Item = At> {
    let claims = commit.claims.iter().chain(&commit.holder).map(|claim| claim.place);
    let all = claims.chain(commit.tasks.keys().copied()).chain([Place::TURN]);
    all.map(|place| (commit.run, place))
}

/// The inbox entries that a commit may read: after which number, and how many.
fn unread_of(commit: &RunCommit) -> (u64, usize) {
    match ends(commit) {
        // Whatever is left over becomes dead letters.
        true => (0, usize::MAX),
        false => (commit.inbox_used, UNREAD_MAX),
    }
}

/// Whether a commit is in the history, looked up under the run's lock.
pub(crate) struct LookUp {
    pub(crate) run: RunId,
    pub(crate) commit: CommitId,
}

impl Command for LookUp {
    const NAME: &'static str = "look up";

    type Answer = bool;

    async fn act<S: Session>(&self, work: &mut Work<'_, S>) -> Result<bool, Trouble> {
        let lock = Call { sql: Sql::RunsLock, params: vec![ids([self.run])] };
        let params = vec![Param::Id(Some(self.run.0)), Param::Id(Some(self.commit.0))];
        let answers = work.session.ask(vec![lock, Call { sql: Sql::HistoryLookUp, params }]);
        Ok(answers.await?.last().is_some_and(|rows| !rows.is_empty()))
    }
}

/// The events of each commit as they are stored.
pub(crate) fn stored_events(batch: &[RunCommit]) -> Vec<String> {
    batch.iter().map(|commit| Event::list_to_json(&commit.events)).collect()
}
