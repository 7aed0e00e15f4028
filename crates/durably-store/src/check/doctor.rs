//! Walks a whole store, in use or not, and says what does not hold. Reads only, and has one page of
//! ids and one run in memory at a time.
//!
//! A store in use changes while it is read. So whatever looks wrong is looked at again, until a
//! look was not disturbed: the run's row was the same before and after it. Only what that look
//! shows is reported.

use super::finding::{Finding, Weight};
use super::shot::RunShot;
use super::{Broken, Found, hold, stored, told_of};
use crate::answer::RunView;
use crate::error::{Class, StoreError};
use crate::find::{DeadLetterRow, Examined, WorkerStatus};
use crate::port::Store;
use durably_kernel::{DeadLetterKind, Event, RunId, Timestamp, WorkerId};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// So many ids are looked at together.
const PAGE: usize = 200;
/// So often a run that changes meanwhile is looked at again.
const LOOKS_MAX: usize = 20;
/// So many dead letters of a run are compared with its history.
const LETTERS_MAX: usize = 1_000;

/// Walks a store.
pub struct Doctor<'a> {
    store: &'a dyn Store,
    workers: BTreeMap<WorkerId, WorkerStatus>,
    /// Where to go on; none at the end.
    next: Option<RunId>,
}

/// What a page came to.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Runs looked at.
    pub runs: u64,
    /// The last of them.
    pub last: Option<RunId>,
    /// What is the matter with them.
    pub findings: Vec<Finding>,
}

/// What a look at a run came to.
enum Look {
    /// This, at one moment.
    Still(Vec<Finding>),
    /// The run changed meanwhile.
    Disturbed,
}

impl<'a> Doctor<'a> {
    /// Begins.
    pub fn new(store: &'a dyn Store) -> Doctor<'a> {
        Doctor { store, workers: BTreeMap::new(), next: Some(RunId(Uuid::nil())) }
    }

    /// Looks at the next runs; none at the end.
    pub async fn page(&mut self) -> Result<Option<Seen>, StoreError> {
        let Some(from) = self.next else { return Ok(None) };
        let page = self.store.examine(from, PAGE).await?;
        let mut seen = Seen { last: page.last().map(|last| last.run), ..Seen::default() };
        let last = seen.last.filter(|_| page.len() == PAGE);
        self.next = last.and_then(|last| last.0.as_u128().checked_add(1)).map(id);
        if from.0.is_nil() {
            seen.findings.extend(self.leader().await?);
        }
        for examined in &page {
            seen.runs += u64::from(examined.known);
            seen.findings.extend(self.run(examined).await?);
        }
        Ok(Some(seen))
    }

    /// Whether somebody can lead.
    async fn leader(&self) -> Result<Option<Finding>, StoreError> {
        match self.store.leader().await {
            Ok(_) => Ok(None),
            Err(error) if error.class() == Class::Corrupt => Ok(Some(Finding::no_leader(&error))),
            Err(error) => Err(error),
        }
    }

    /// One id; what looks wrong is looked at again.
    async fn run(&mut self, examined: &Examined) -> Result<Vec<Finding>, StoreError> {
        if let Look::Still(findings) = self.look(examined).await?
            && findings.iter().all(|finding| finding.weight == Weight::Note)
        {
            return Ok(findings);
        }
        let run = examined.run;
        for _ in 0..LOOKS_MAX {
            let again = self.store.examine(run, 1).await?;
            let Some(again) = again.first().filter(|again| again.run == run) else {
                return Ok(Vec::new());
            };
            if let Look::Still(findings) = self.look(again).await? {
                return Ok(findings);
            }
        }
        let what = "it changes too fast to be looked at".to_owned();
        let now = self.store.now().await?;
        Ok(vec![Finding::note(run, what, now, "run doctor again when there is less to do")])
    }

    async fn look(&mut self, examined: &Examined) -> Result<Look, StoreError> {
        let run = examined.run;
        if !examined.known {
            return Ok(Look::Still(orphans(examined)));
        }
        let read = async {
            let Some(view) = self.store.run(run).await? else { return Ok(None) };
            let shot = RunShot::of(self.store, view).await?;
            let letters = match examined.letters {
                0 => Vec::new(),
                _ => self.store.dead_letters(Some(run), LETTERS_MAX).await?,
            };
            let same = self.store.run(run).await?.as_ref() == Some(&shot.view);
            Ok(same.then_some((shot, letters)))
        };
        let (shot, letters) = match read.await {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(Look::Disturbed),
            Err(error) => {
                return unreadable(run, &error).map(|f| Look::Still(vec![f])).ok_or(error);
            }
        };
        let mut found = Found::new();
        counted(examined, &shot, &mut found);
        stored(&shot, &mut found);
        told_of(&shot, self.store.now().await?, &mut found);
        dead(&shot, &letters, &mut found);
        let last = shot.history.last().map(|row| row.committed_at);
        let mut findings: Vec<Finding> =
            found.into_iter().map(|broken| Finding::of_broken(run, broken, last)).collect();
        findings.extend(parked(&shot.view));
        findings.extend(self.lost_claims(&shot).await?);
        Ok(Look::Still(findings))
    }

    /// Claims of processes that are gone. Nothing is lost: a sweep returns them.
    async fn lost_claims(&mut self, shot: &RunShot) -> Result<Vec<Finding>, StoreError> {
        let mut findings = Vec::new();
        for attempt in shot.tasks.iter().filter_map(|row| row.attempt.as_ref()) {
            if self.is_alive(&attempt.worker) {
                continue;
            }
            self.workers = self.read_workers().await?;
            if !self.is_alive(&attempt.worker) {
                let what = format!("a task is claimed by {}, which is gone", attempt.worker);
                let advice = "nothing, if a process of yours is running: it takes the claim back";
                let run = shot.view.identity.id;
                findings.push(Finding::note(run, what, attempt.started_at, advice));
            }
        }
        Ok(findings)
    }

    fn is_alive(&self, who: &WorkerId) -> bool {
        self.workers.get(who).is_some_and(|status| status.holds_claims())
    }

    async fn read_workers(&self) -> Result<BTreeMap<WorkerId, WorkerStatus>, StoreError> {
        let workers = self.store.workers().await?;
        Ok(workers.into_iter().map(|worker| (worker.who, worker.status)).collect())
    }
}

fn id(number: u128) -> RunId {
    RunId(Uuid::from_u128(number))
}

/// Damage is what we look for; other errors mean that nothing can be seen.
fn unreadable(run: RunId, error: &StoreError) -> Option<Finding> {
    let damage = match error.class() {
        Class::Corrupt => true,
        Class::Permanent => matches!(error, StoreError::EventNewer { .. }),
        Class::Transient { .. } | Class::Ambiguous => false,
    };
    damage.then(|| Finding::unreadable(run, error))
}

/// Rows under an id that no run has.
fn orphans(examined: &Examined) -> Vec<Finding> {
    let tables = [
        ("durable_history", examined.commits),
        ("durable_tasks", examined.tasks),
        ("durable_inbox", examined.entries),
        ("durable_dead_letter_queue", examined.letters),
    ];
    let orphaned = tables.into_iter().filter(|(_, rows)| *rows > 0);
    let finding = |(table, rows): (&str, u64)| Finding {
        weight: Weight::Wrong,
        invariant: None,
        run: Some(examined.run),
        what: format!("{rows} rows in {table} belong to no run"),
        since: None,
        advice: "restore the run's row in durable_runs from a backup, or delete these rows",
    };
    orphaned.map(finding).collect()
}

/// What only the tables show.
fn counted(examined: &Examined, shot: &RunShot, found: &mut Found) {
    let events = shot.history.len() as u64;
    hold(found, examined.events == events, "I1", || {
        format!("the rows of the history count {} events, there are {events}", examined.events)
    });
    let last = shot.view.inbox_last;
    hold(found, (examined.entries, examined.last_entry) == (last, last), "I14", || {
        format!(
            "the inbox has {} entries, the last is number {}; {last} were delivered",
            examined.entries, examined.last_entry
        )
    });
    let tenant = &shot.view.identity.tenant;
    hold(found, examined.foreign_tasks == 0, "I27", || {
        format!("{} tasks are not of the run's tenant, {tenant}", examined.foreign_tasks)
    });
    hold(found, examined.same_key == 0, "I19", || {
        format!("{} other runs of {tenant} have the same idempotency key", examined.same_key)
    });
}

/// An activity has a dead letter exactly if it used up its attempts or its workers.
fn dead(shot: &RunShot, letters: &[DeadLetterRow], found: &mut Found) {
    let letters = letters.iter().filter(|letter| letter.kind == DeadLetterKind::Activity);
    let letters: BTreeSet<&str> = letters.map(|letter| letter.activity_id.as_str()).collect();
    let mut dead: BTreeSet<&str> = BTreeSet::new();
    for row in &shot.history {
        if let Event::ActivityFailed { activity_id, dead: true, .. }
        | Event::ActivityTimedOut { activity_id, dead: true, .. } = &row.event
        {
            dead.insert(activity_id.as_str());
        }
    }
    let all_read = letters.len() < LETTERS_MAX;
    let missing = dead.difference(&letters).next().filter(|_| all_read);
    let surplus = letters.difference(&dead).next();
    for (id, what) in [
        (missing, "was given up and has no dead letter"),
        (surplus, "has a dead letter and was not given up"),
    ] {
        found.extend(
            id.map(|id| Broken { invariant: "I17", problem: format!("activity {id} {what}") }),
        );
    }
}

/// A run whose code cannot go on.
fn parked(view: &RunView) -> Option<Finding> {
    let parked = view.parked.as_ref()?;
    let what = format!("parked ({}, {} times): {}", parked.code, parked.times, parked.reason);
    let advice = "deploy code that fits its history; the page of the code says more";
    let since: Timestamp = parked.at;
    Some(Finding::note(view.identity.id, what, since, advice))
}
