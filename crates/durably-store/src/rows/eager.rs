//! Tasks that begin in the hands of whoever commits them, without waiting in the queue.

use super::claim::keys;
use super::index::Lanes;
use super::state::State;
use crate::command::{RunCommit, TurnAfter};
use crate::eager::{Committer, Foremost};
use crate::find::{WorkerRow, WorkerStatus};
use durably_kernel::{TaskKind, WorkerId};
use std::cmp::Reverse;

/// What waits at one level.
fn foremost_of(priority: i32, lanes: &Lanes) -> Foremost {
    let first = lanes.first_key_value().expect("an empty level is forgotten");
    let last = lanes.last_key_value().expect("an empty level is forgotten");
    Foremost { priority, tenants: (first.0.clone(), last.0.clone()) }
}

impl State {
    /// The committer of a batch. What waits is looked up only if some commit asks for it.
    pub(crate) fn committer(&self, id: WorkerId, batch: &[RunCommit]) -> Committer {
        let worker = self.workers.get(&id).map(|worker| &worker.row);
        let active = worker.is_some_and(|worker| worker.status == WorkerStatus::Active);
        let keeps = batch.iter().any(|commit| commit.turn == TurnAfter::Keep);
        let begins = batch.iter().any(|commit| !commit.eager.is_empty());
        let turns = worker.filter(|_| keeps).and_then(|w| self.foremost(w, TaskKind::Turn));
        let activities =
            worker.filter(|_| begins).and_then(|w| self.foremost(w, TaskKind::Activity));
        Committer { id, active, turns, activities }
    }

    /// What waits in front, of the tasks that the process could execute.
    fn foremost(&self, worker: &WorkerRow, kind: TaskKind) -> Option<Foremost> {
        let mut found: Option<Foremost> = None;
        for key in keys(&worker.queues, &worker.can, Some(kind)) {
            let Some(((Reverse(priority), _), _)) = self.index.top(&key) else {
                continue;
            };
            let levels = [false, true].map(|fresh| (Reverse(priority), fresh));
            for lanes in levels.into_iter().filter_map(|level| self.index.lanes(&key, level)) {
                found = Some(foremost_of(priority, lanes).join(found));
            }
        }
        found
    }
}
