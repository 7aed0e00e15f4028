//! What waits for a process that would begin a task at once.

use crate::error::Trouble;
use crate::field::Columns;
use crate::session::{Call, Param};
use crate::text::Sql;
use durably_kernel::{Place, Queue, TaskChange, TaskKind, Tenant};
use durably_store::{Claimable, Foremost, RunCommit, TurnAfter};
use std::collections::BTreeSet;

/// What a process registered.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) queues: Vec<Queue>,
    pub(crate) can: Vec<Claimable>,
}

/// What the commits of a batch would begin.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Begins {
    turns: bool,
    activities: bool,
}

impl Begins {
    pub(crate) fn any(self) -> bool {
        self.turns || self.activities
    }
}

pub(crate) fn begins<'a>(commits: impl Iterator<Item = &'a RunCommit>) -> Begins {
    let mut begins = Begins::default();
    for commit in commits {
        begins.turns |= begins_turn(commit);
        begins.activities |= begins_activities(commit);
    }
    begins
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

/// What has to fit before a row can be claimed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    pub(crate) queue: String,
    pub(crate) kind: TaskKind,
    pub(crate) name: String,
    pub(crate) version: u32,
}

/// Where the tasks that a process can execute may stand in the index of ready rows.
pub(crate) fn keys(queues: &[Queue], can: &[Claimable]) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for queue in queues {
        for (kind, name, version) in can.iter().flat_map(Claimable::keys) {
            keys.insert(Key { queue: queue.to_string(), kind, name: name.to_owned(), version });
        }
    }
    keys
}

/// Keys as parameters: queue, kind, name, version.
pub(crate) fn key_params<'k>(keys: impl Iterator<Item = &'k Key>) -> Vec<Param> {
    let (mut queues, mut kinds) = (Vec::new(), Vec::new());
    let (mut names, mut versions) = (Vec::new(), Vec::new());
    for key in keys {
        queues.push(Some(key.queue.clone()));
        kinds.push(Some(key.kind.name().to_owned()));
        names.push(Some(key.name.clone()));
        versions.push(Some(i64::from(key.version)));
    }
    vec![Param::Texts(queues), Param::Texts(kinds), Param::Texts(names), Param::Ints(versions)]
}

/// The question for what waits in front of the tasks that a process could execute.
pub(crate) fn foremost_call(who: &Registered, begins: Begins) -> Call {
    let keys = keys(&who.queues, &who.can);
    let wanted = keys.iter().filter(|key| match key.kind {
        TaskKind::Turn => begins.turns,
        _ => begins.activities,
    });
    Call { sql: Sql::Foremost, params: key_params(wanted) }
}

/// What waits in front, of turns and of activities.
pub(crate) fn read_foremost(
    rows: Vec<impl Columns>,
) -> Result<(Option<Foremost>, Option<Foremost>), Trouble> {
    let (mut turns, mut activities) = (None, None);
    for mut row in rows {
        let kind = row.name("kind", TaskKind::from_name)?;
        let priority = row.number("priority")?;
        let first = Tenant::from(row.words("tenant")?);
        let here = Foremost { priority, tenants: (first, Tenant::from(row.words("tenant")?)) };
        let of_kind = match kind {
            TaskKind::Turn => &mut turns,
            _ => &mut activities,
        };
        *of_kind = Some(here.join(of_kind.take()));
    }
    Ok((turns, activities))
}
