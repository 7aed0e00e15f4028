//! Fair claims: tenants in turn.
//!
//! A claim walks the index of ready rows. It finds the highest level (priority, then tasks of
//! started runs before new ones) that any of the wanted keys has, goes from one tenant's head to
//! the next, beginning behind the cursor, and takes one task of each in rounds. What it costs
//! depends on how many tasks it takes and how many tenants it meets, never on how many tasks wait.

use crate::error::Trouble;
use crate::field::limit;
use crate::life::worker_status;
use crate::load::first_event;
use crate::run::Run;
use crate::sql;
use crate::task::{Owner, Task};
use crate::tx::Tx;
use durably_kernel::{
    ActivityId, ActivityOptions, ActivityType, Payload, Queue, RunStatus, TaskKind, Tenant,
};
use durably_store::{
    ClaimCall, Claimed, ClaimedActivity, ClaimedTask, ClaimedWork, Want, WorkerStatus,
};
use rusqlite::{OptionalExtension, Row, params};
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// What the index of ready rows begins with.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    pub(crate) queue: String,
    pub(crate) kind: TaskKind,
    pub(crate) name: String,
    pub(crate) version: u32,
}

impl Key {
    pub(crate) fn new(queue: &Queue, kind: TaskKind, name: &str, version: u32) -> Key {
        Key { queue: queue.to_string(), kind, name: name.to_owned(), version }
    }
}

/// Tasks of one level are shared out before those of the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Level {
    pub(crate) priority: Reverse<i32>,
    pub(crate) fresh: bool,
}

/// A ready row: its order, and the number that SQLite gave it.
type Head = (i64, i64);

/// A tenant that has tasks of a key, and the first of them.
pub(crate) struct Found {
    pub(crate) tenant: Tenant,
    head: Head,
}

/// The tasks of one tenant and key that were looked at and not taken yet.
struct Lane {
    key: usize,
    heads: VecDeque<Head>,
    /// The order of the last row fetched.
    after: i64,
    /// How many are fetched next; grows, so that few fetches take many tasks and a tenant that
    /// gives one task costs one row.
    fetch: usize,
    exhausted: bool,
}

/// A tenant in the circle.
struct Stop {
    tenant: Tenant,
    lanes: Vec<Lane>,
}

/// The tenants of a level, in a circle that begins behind the cursor.
struct Circle<'k> {
    keys: Vec<&'k Key>,
    level: Level,
    start: Option<Tenant>,
    /// Whether the walk has come to the tenants up to the cursor.
    wrapped: bool,
    /// The next tenant of each key.
    next: Vec<Option<Found>>,
}

/// A claim call while it takes tasks.
struct Taking<'c> {
    call: &'c ClaimCall,
    cursor: Option<Tenant>,
    taken: Vec<Task>,
    /// No more than this, for the want that is being served.
    most: usize,
}

impl Taking<'_> {
    fn missing(&self) -> usize {
        self.most.saturating_sub(self.taken.len())
    }
}

impl Tx<'_> {
    pub(crate) fn claim(&mut self, call: &ClaimCall) -> Result<Claimed, Trouble> {
        if worker_status(self.conn, &call.who)? != Some(WorkerStatus::Active) {
            return Ok(Claimed::Refused);
        }
        let (cursor, taken) = (call.cursor.clone(), self.taken_before(call)?);
        let repeats = !taken.is_empty();
        let mut taking = Taking { call, cursor, taken, most: 0 };
        for want in call.wants.iter().filter(|_| !repeats) {
            taking.most = taking.taken.len().saturating_add(want.most);
            self.take(want, &mut taking)?;
        }
        let Taking { taken, cursor, .. } = taking;
        let tasks = taken.into_iter().map(|task| self.claimed_task(task));
        let tasks = tasks.collect::<Result<Vec<_>, _>>()?;
        Ok(Claimed::Tasks { tasks, cursor, now: self.now })
    }

    /// What this call took when it was made before and its answer was lost.
    fn taken_before(&self, call: &ClaimCall) -> Result<Vec<Task>, Trouble> {
        let mut statement = self.conn.prepare_cached(sql::TASKS_OF_CALL)?;
        let bound = params![call.who.as_str(), call.id.0.as_bytes()];
        let rows = statement.query_map(bound, |row| row.get(0))?;
        let rows = rows.collect::<Result<Vec<i64>, _>>()?;
        rows.into_iter().map(|row| self.row(row)).collect()
    }

    fn row(&self, row: i64) -> Result<Task, Trouble> {
        Task::load_row(self.conn, row)?
            .ok_or_else(|| Trouble::Damaged("table durable_tasks: an index names no row".into()))
    }

    fn take(&mut self, want: &Want, taking: &mut Taking<'_>) -> Result<(), Trouble> {
        let keys = keys(taking.call, want);
        while taking.missing() > 0 {
            let Some((level, of_level)) = self.top_level(&keys)? else {
                return Ok(());
            };
            let before = taking.taken.len();
            let mut circle = Circle::new(of_level, level, taking.cursor.clone());
            self.take_level(&mut circle, taking)?;
            if taking.taken.len() == before {
                let problem = "table durable_tasks: the index of ready rows is not whole";
                return Err(Trouble::Damaged(problem.into()));
            }
        }
        Ok(())
    }

    /// The highest level that any key has, and the keys that have it.
    fn top_level<'k>(
        &self,
        keys: &'k BTreeSet<Key>,
    ) -> Result<Option<(Level, Vec<&'k Key>)>, Trouble> {
        let mut top: Option<(Level, Vec<&Key>)> = None;
        for key in keys {
            let Some((level, _)) = self.level(key)? else { continue };
            match &mut top {
                Some((best, of_best)) if *best == level => of_best.push(key),
                Some((best, _)) if *best < level => {}
                _ => top = Some((level, vec![key])),
            }
        }
        Ok(top)
    }

    /// The highest level of a key, and the first tenant that has it.
    pub(crate) fn level(&self, key: &Key) -> Result<Option<(Level, Tenant)>, Trouble> {
        let mut statement = self.conn.prepare_cached(sql::CLAIM_LEVEL)?;
        let bound = params![key.queue, key.kind.name(), key.name, key.version];
        let level = statement.query_row(bound, |row| {
            let level = Level { priority: Reverse(row.get(0)?), fresh: row.get(1)? };
            Ok((level, Tenant::from(row.get::<_, String>(2)?)))
        });
        Ok(level.optional()?)
    }

    /// Takes tasks of a level in rounds, until there are enough or the level is empty.
    fn take_level(
        &mut self,
        circle: &mut Circle<'_>,
        taking: &mut Taking<'_>,
    ) -> Result<(), Trouble> {
        let start = circle.start.clone();
        self.find_next(circle, start.as_ref())?;
        // The first round meets the tenants; the others go around those that it met.
        let mut stops = VecDeque::new();
        let mut first_round = true;
        while taking.missing() > 0 {
            let stop = match first_round {
                true => self.next_stop(circle)?,
                false => stops.pop_front(),
            };
            let Some(mut stop) = stop else {
                if !first_round {
                    return Ok(());
                }
                first_round = false;
                continue;
            };
            if let Some((_, row)) = self.next_head(circle, &mut stop, taking.missing())? {
                taking.taken.push(self.take_row(taking.call, row)?);
                taking.cursor = Some(stop.tenant.clone());
                stops.push_back(stop);
            }
        }
        Ok(())
    }

    /// Looks for the first tenant of each key after one, or at all.
    fn find_next(&self, circle: &mut Circle<'_>, after: Option<&Tenant>) -> Result<(), Trouble> {
        let next = circle.keys.iter().map(|key| self.tenant(key, circle.level, after));
        circle.next = next.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// The first tenant of a key that comes after one, or at all.
    pub(crate) fn tenant(
        &self,
        key: &Key,
        level: Level,
        after: Option<&Tenant>,
    ) -> Result<Option<Found>, Trouble> {
        let (kind, priority) = (key.kind.name(), level.priority.0);
        let read = |row: &Row<'_>| {
            let tenant = Tenant::from(row.get::<_, String>(0)?);
            Ok(Found { tenant, head: (row.get(1)?, row.get(2)?) })
        };
        let found = match after {
            None => self.conn.prepare_cached(sql::CLAIM_TENANT_FIRST)?.query_row(
                params![key.queue, kind, key.name, key.version, priority, level.fresh],
                read,
            ),
            Some(after) => self.conn.prepare_cached(sql::CLAIM_TENANT_AFTER)?.query_row(
                params![
                    key.queue,
                    kind,
                    key.name,
                    key.version,
                    priority,
                    level.fresh,
                    after.as_str()
                ],
                read,
            ),
        };
        Ok(found.optional()?)
    }

    /// The next tenant of the circle that was not met yet.
    fn next_stop(&self, circle: &mut Circle<'_>) -> Result<Option<Stop>, Trouble> {
        let mut tenant = circle.first();
        if tenant.is_none() && !circle.wrapped {
            circle.wrapped = true;
            self.find_next(circle, None)?;
            tenant = circle.first();
        }
        let Some(tenant) = tenant else { return Ok(None) };
        // Behind the cursor the circle is closed.
        if circle.wrapped && circle.start.as_ref().is_some_and(|start| tenant > *start) {
            return Ok(None);
        }
        let mut lanes = Vec::new();
        for at in 0..circle.keys.len() {
            let Some(found) = circle.next[at].take_if(|found| found.tenant == tenant) else {
                continue;
            };
            circle.next[at] = self.tenant(circle.keys[at], circle.level, Some(&tenant))?;
            lanes.push(Lane::new(at, found.head));
        }
        Ok(Some(Stop { tenant, lanes }))
    }

    /// The tenant's oldest ready task, whichever key it has.
    fn next_head(
        &self,
        circle: &Circle<'_>,
        stop: &mut Stop,
        missing: usize,
    ) -> Result<Option<Head>, Trouble> {
        for lane in &mut stop.lanes {
            if lane.heads.is_empty() && !lane.exhausted {
                self.fetch(circle, &stop.tenant, lane, missing)?;
            }
        }
        let lanes = stop.lanes.iter_mut();
        let first = lanes.filter(|lane| !lane.heads.is_empty()).min_by_key(|lane| lane.heads[0]);
        Ok(first.and_then(|lane| lane.heads.pop_front()))
    }

    fn fetch(
        &self,
        circle: &Circle<'_>,
        tenant: &Tenant,
        lane: &mut Lane,
        missing: usize,
    ) -> Result<(), Trouble> {
        let (key, level) = (circle.keys[lane.key], circle.level);
        let wanted = lane.fetch.min(missing);
        lane.fetch = lane.fetch.saturating_mul(Lane::GROWTH);
        let mut statement = self.conn.prepare_cached(sql::CLAIM_HEADS)?;
        let bound = params![
            key.queue,
            key.kind.name(),
            key.name,
            key.version,
            level.priority.0,
            level.fresh,
            tenant.as_str(),
            lane.after,
            limit(wanted),
        ];
        let heads = statement.query_map(bound, |row| Ok((row.get(0)?, row.get(1)?)))?;
        lane.heads = heads.collect::<Result<_, _>>()?;
        lane.after = lane.heads.back().map_or(lane.after, |(order, _)| *order);
        lane.exhausted = lane.heads.len() < wanted;
        Ok(())
    }

    fn take_row(&mut self, call: &ClaimCall, row: i64) -> Result<Task, Trouble> {
        let mut task = self.row(row)?;
        let mut owner = match task.kind {
            TaskKind::Turn => Owner::new(&call.who, self.now, call.turn_deadline),
            _ => Owner::of_activity(&call.who, self.now, task.options.as_deref()),
        };
        owner.call = Some(call.id);
        task.take(owner)?;
        task.save_taken(self.conn, row)?;
        Ok(task)
    }

    /// A claimed row as its worker gets it.
    pub(crate) fn claimed_task(&self, task: Task) -> Result<ClaimedTask, Trouble> {
        let run =
            Run::load(self.conn, task.run)?.ok_or_else(|| task.damaged("there is no such run"))?;
        let claim = task.claim();
        let work = match task.kind {
            TaskKind::Turn => ClaimedWork::Turn {
                unread: self.unread(&run)?,
                first: match run.status {
                    RunStatus::Pending => first_event(self.conn, task.run)?.map(Box::new),
                    _ => None,
                },
                losses: task.losses,
            },
            _ => ClaimedWork::Activity(Box::new(activity(task)?)),
        };
        Ok(ClaimedTask { claim, run: Box::new(run.into_view()), work })
    }
}

impl Lane {
    const GROWTH: usize = 4;

    fn new(key: usize, head: Head) -> Lane {
        let heads = VecDeque::from([head]);
        Lane { key, heads, after: head.0, fetch: Lane::GROWTH, exhausted: false }
    }
}

impl<'k> Circle<'k> {
    fn new(keys: Vec<&'k Key>, level: Level, start: Option<Tenant>) -> Circle<'k> {
        Circle { keys, level, wrapped: start.is_none(), start, next: Vec::new() }
    }

    /// The next tenant of all keys.
    fn first(&self) -> Option<Tenant> {
        self.next.iter().flatten().map(|found| &found.tenant).min().cloned()
    }
}

/// Where the tasks that are wanted may stand in the index.
fn keys(call: &ClaimCall, want: &Want) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for queue in &call.queues {
        for (kind, name, version) in want.any.iter().flat_map(|can| can.keys()) {
            keys.insert(Key::new(queue, kind, name, version));
        }
    }
    keys
}

fn activity(task: Task) -> Result<ClaimedActivity, Trouble> {
    let attempt = task.attempt_now().ok_or_else(|| task.damaged("claimed without an owner"))?;
    Ok(ClaimedActivity {
        id: ActivityId::from(task.target),
        activity_type: ActivityType::from(task.name),
        input: task.input.unwrap_or_else(Payload::null),
        options: task.options.unwrap_or_else(|| Arc::new(ActivityOptions::default())),
        attempt,
        losses: task.losses,
        details: task.details,
    })
}
