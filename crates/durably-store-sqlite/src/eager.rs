//! Tasks that begin in the hands of whoever commits them, without waiting in the queue.

use crate::claim::{Key, Level};
use crate::error::Trouble;
use crate::field::Fields;
use crate::sql;
use crate::tx::Tx;
use durably_kernel::{Place, Queue, TaskChange, TaskKind, Tenant, WorkerId};
use durably_store::{Claimable, Committer, Foremost, RunCommit, TurnAfter, WorkerStatus};
use rusqlite::{OptionalExtension, params};
use std::collections::BTreeSet;

/// What a process registered.
struct Registered {
    active: bool,
    queues: Vec<Queue>,
    can: Vec<Claimable>,
}

impl Tx<'_> {
    /// The committer of a batch. What waits is looked up only if some commit asks for it.
    pub(crate) fn committer(
        &self,
        id: WorkerId,
        batch: &[RunCommit],
    ) -> Result<Committer, Trouble> {
        let activities = batch.iter().any(begins_activities);
        let turns = batch.iter().any(begins_turn);
        let mut committer = Committer { id, active: false, turns: None, activities: None };
        if !activities && !turns {
            return Ok(committer);
        }
        let Some(registered) = self.registered(&committer.id)? else { return Ok(committer) };
        committer.active = registered.active;
        if registered.active && turns {
            committer.turns = self.foremost(&registered, TaskKind::Turn)?;
        }
        if registered.active && activities {
            committer.activities = self.foremost(&registered, TaskKind::Activity)?;
        }
        Ok(committer)
    }

    fn registered(&self, who: &WorkerId) -> Result<Option<Registered>, Trouble> {
        let mut statement = self.conn.prepare_cached(sql::WORKER_CAN)?;
        let mut rows = statement.query(params![who.as_str()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let mut fields = Fields::of(row);
        Ok(Some(Registered {
            active: fields.name(WorkerStatus::from_name)? == WorkerStatus::Active,
            queues: fields.json()?.unwrap_or_default(),
            can: fields.json()?.unwrap_or_default(),
        }))
    }

    /// What waits in front, of the tasks that the process could execute.
    fn foremost(&self, who: &Registered, kind: TaskKind) -> Result<Option<Foremost>, Trouble> {
        let mut keys = BTreeSet::new();
        for queue in &who.queues {
            for (of_kind, name, version) in who.can.iter().flat_map(|can| can.keys()) {
                if of_kind == kind {
                    keys.insert(Key::new(queue, kind, name, version));
                }
            }
        }
        let mut found: Option<Foremost> = None;
        for key in &keys {
            let Some((level, first)) = self.level(key)? else { continue };
            if found.as_ref().is_some_and(|found| found.priority > level.priority.0) {
                continue;
            }
            let mut here = self.foremost_of(key, level, first)?;
            let newer = Level { fresh: true, ..level };
            if kind == TaskKind::Turn
                && level != newer
                && let Some(first) = self.tenant(key, newer, None)?
            {
                here = here.join(Some(self.foremost_of(key, newer, first.tenant)?));
            }
            found = Some(here.join(found));
        }
        Ok(found)
    }

    fn foremost_of(&self, key: &Key, level: Level, first: Tenant) -> Result<Foremost, Trouble> {
        let mut statement = self.conn.prepare_cached(sql::CLAIM_TENANT_LAST)?;
        let priority = level.priority.0;
        let bound =
            params![key.queue, key.kind.name(), key.name, key.version, priority, level.fresh];
        let last: Option<String> = statement.query_row(bound, |row| row.get(0)).optional()?;
        let last = last.map_or_else(|| first.clone(), Tenant::from);
        Ok(Foremost { priority, tenants: (first, last) })
    }
}

/// Whether a commit asks for tasks that begin at once.
fn begins_activities(commit: &RunCommit) -> bool {
    let put = |place: &Place| matches!(commit.tasks.get(place), Some(TaskChange::Put(_)));
    commit.eager.iter().any(put)
}

/// Whether a commit may ask for a turn row that is not there.
fn begins_turn(commit: &RunCommit) -> bool {
    let there = commit.holder.is_some()
        && !commit.tasks.contains_key(&Place::TURN)
        && commit.claims.iter().all(|claim| claim.place != Place::TURN);
    commit.turn == TurnAfter::Keep && !there
}
