//! Fair claims: tenants in turn.
//!
//! A claim finds the highest level (priority, then tasks of started runs before new ones) that any
//! of the wanted keys has, goes from one tenant's head to the next, beginning behind the cursor,
//! and takes one task of each in rounds. It reads first what there is to take, then locks as many
//! of each key and tenant as it takes, and no more: a row that is locked and not taken would hide
//! from everybody else. What it costs depends on how many tasks it takes and how many tenants it
//! meets, never on how many tasks wait, nor on how many were taken before (`floors`).

use crate::command::Command;
use crate::eager::{Key, key_params, keys};
use crate::error::Trouble;
use crate::field::{Columns, limit, stored};
use crate::floors::{BOTTOM, Lanes};
use crate::record::read_task;
use crate::session::{Call, Param, Session};
use crate::text::Sql;
use crate::work::{Work, worker};
use durably_kernel::{RunId, Tenant, WorkerId};
use durably_store::rows::{At, Row};
use durably_store::{ClaimCall, Claimed, ClaimedTask, Want, WorkerStatus};
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Takes tasks.
pub(crate) struct Claims {
    pub(crate) call: ClaimCall,
    /// The lanes that are known; afterwards those that are known then. A second attempt knows none.
    pub(crate) lanes: Mutex<Lanes>,
    /// A transaction in which something becomes ready takes no longer than this, mostly.
    pub(crate) margin: Duration,
}

/// Tasks of one level are shared out before those of the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Level {
    priority: Reverse<i64>,
    fresh: i64,
}

impl Level {
    /// Comes before every other.
    const ABOVE_ALL: Level = Level { priority: Reverse(i64::MAX), fresh: 1 };

    fn params(self) -> [Param; 2] {
        [Param::Int(Some(self.priority.0)), Param::Int(Some(self.fresh))]
    }
}

/// A level, and the keys that have it.
struct Tops<'k> {
    level: Level,
    keys: Vec<&'k Key>,
}

/// The tasks of one key and tenant.
struct Lane<'k> {
    key: &'k Key,
    tenant: Tenant,
    /// The order of those that were looked at and are not planned to be taken yet.
    heads: VecDeque<i64>,
    /// How many are planned to be taken.
    takes: i64,
    /// Behind which they are looked for.
    floor: Option<i64>,
    /// The order of all that were looked at.
    seen: Vec<i64>,
}

impl Lane<'_> {
    /// Where the next claim may begin: before everything that was seen and not taken.
    fn next_floor(&self, taken: &BTreeSet<i64>, most: i64) -> i64 {
        let left = self.seen.iter().find(|order| !taken.contains(order));
        let last = taken.last().copied().unwrap_or(BOTTOM);
        let floor = left.map_or(last, |order| order - 1).min(most);
        floor.max(self.floor.unwrap_or(BOTTOM))
    }
}

impl Command for Claims {
    const NAME: &'static str = "claim";

    type Answer = Claimed;

    fn opening(&self) -> Vec<Call> {
        let (who, id) = (worker(&self.call.who), Param::Id(Some(self.call.id.0)));
        vec![
            Call { sql: Sql::WorkerLock, params: vec![who.clone()] },
            Call { sql: Sql::TasksOfCall, params: vec![who, id] },
        ]
    }

    fn holder(&self) -> Option<&WorkerId> {
        Some(&self.call.who)
    }

    async fn act<S: Session>(&self, work: &mut Work<'_, S>) -> Result<Claimed, Trouble> {
        let call = &self.call;
        let workers = work.opened(Sql::WorkerLock);
        work.add_workers(workers)?;
        let row = work.state.workers.get(&call.who);
        if row.is_none_or(|worker| worker.row.status != WorkerStatus::Active) {
            return Ok(Claimed::Refused);
        }
        let before = work
            .opened(Sql::TasksOfCall)
            .into_iter()
            .map(read_task)
            .collect::<Result<Vec<_>, _>>()?;
        if !before.is_empty() {
            work.remember_nothing();
        }
        let mut taken: Vec<At> = before.iter().map(|(run, row)| (*run, row.place)).collect();
        let mut cursor = call.cursor.clone();
        let mut lanes = std::mem::take(&mut *self.lanes.lock());
        if before.is_empty() {
            for want in &call.wants {
                taken.extend(self.take(work, want, &mut cursor, &mut lanes).await?);
            }
        }
        *self.lanes.lock() = lanes;
        take_up(work, before).await?;
        let tasks = claimed_tasks(work, &taken).await?;
        Ok(Claimed::Tasks { tasks, cursor, now: work.now })
    }
}

impl Claims {
    /// Levels one after the other, until there are enough.
    async fn take<S: Session>(
        &self,
        work: &mut Work<'_, S>,
        want: &Want,
        cursor: &mut Option<Tenant>,
        lanes: &mut Lanes,
    ) -> Result<Vec<At>, Trouble> {
        let keys = keys(&self.call.queues, &want.any);
        let (mut taken, mut above) = (Vec::new(), Level::ABOVE_ALL);
        while taken.len() < want.most {
            let Some(tops) = tops(work, &keys, above, lanes).await? else { break };
            let most = want.most - taken.len();
            let of_level = self.take_level(work, &tops, most, cursor, lanes).await?;
            if of_level.taken.is_empty() && !of_level.forgot {
                // Whatever is left of the level is in somebody else's hands.
                above = tops.level;
            }
            taken.extend(of_level.taken);
        }
        Ok(taken)
    }

    /// Takes tasks of a level in rounds, as far as one look at it reaches.
    async fn take_level<S: Session>(
        &self,
        work: &mut Work<'_, S>,
        tops: &Tops<'_>,
        most: usize,
        cursor: &mut Option<Tenant>,
        known: &mut Lanes,
    ) -> Result<OfLevel, Trouble> {
        let circle = circle(work, tops, cursor.as_ref(), most, known).await?;
        let mut lanes = lanes(work, tops, &circle, most, known).await?;
        let emptied = lanes.iter().filter(|lane| lane.floor.is_some() && lane.seen.is_empty());
        let mut forgot = false;
        for lane in emptied {
            known.forget(lane.key, tops.level, &lane.tenant);
            forgot = true;
        }
        if forgot {
            // They stood in the circle in the place of others.
            return Ok(OfLevel { taken: Vec::new(), forgot });
        }
        let rounds = plan(&circle, &mut lanes, most);
        let mut locked = lock(work, tops.level, &lanes).await?;
        let (mut taken, mut orders) = (Vec::new(), vec![BTreeSet::new(); lanes.len()]);
        for lane in rounds {
            let Some((order, at)) = locked.get_mut(lane).and_then(VecDeque::pop_front) else {
                continue;
            };
            work.state.take_row(&self.call, at, work.now);
            *cursor = Some(lanes[lane].tenant.clone());
            orders[lane].insert(order);
            taken.push(at);
        }
        let most = work.order_before(self.margin);
        for (lane, taken) in lanes.iter().zip(&orders).filter(|(lane, _)| !lane.seen.is_empty()) {
            known.set(lane.key, tops.level, &lane.tenant, lane.next_floor(taken, most));
        }
        if !taken.is_empty() {
            // Later statements of this claim must not meet them again.
            work.write().await?;
        }
        Ok(OfLevel { taken, forgot })
    }
}

/// What one look at a level came to.
struct OfLevel {
    taken: Vec<At>,
    /// Lanes that were known had nothing: all is looked for anew.
    forgot: bool,
}

/// The highest level below one that any key has.
async fn tops<'k, S: Session>(
    work: &mut Work<'_, S>,
    keys: &'k BTreeSet<Key>,
    above: Level,
    lanes: &Lanes,
) -> Result<Option<Tops<'k>>, Trouble> {
    let mut levels: Vec<Option<Level>> = keys.iter().map(|key| lanes.top(key, above)).collect();
    let known = |part: fn(&Level) -> i64| {
        Param::Ints(levels.iter().map(|level| level.as_ref().map(part)).collect())
    };
    let known = [known(|level| level.priority.0), known(|level| level.fresh)];
    let params = key_params(keys.iter()).into_iter().chain(known).chain(above.params()).collect();
    for mut row in work.ask(Sql::ClaimLevels, params).await? {
        let at = row.number::<usize>("key")? - 1;
        let priority = Reverse(row.number("priority")?);
        let found = Level { priority, fresh: row.number("fresh")? };
        if let Some(level) = levels.get_mut(at) {
            *level = Some(level.map_or(found, |level| level.min(found)));
        }
    }
    let Some(level) = levels.iter().flatten().min().copied() else { return Ok(None) };
    let of_level = keys.iter().zip(&levels).filter(|(_, its)| **its == Some(level));
    Ok(Some(Tops { level, keys: of_level.map(|(key, _)| key).collect() }))
}

/// What lies between the tenants of which lanes are known, for each key of a level: before the first
/// of them, or behind a tenant, and behind each.
fn gaps(tops: &Tops<'_>, behind: Option<&Tenant>, known: &Lanes) -> Vec<Param> {
    let (mut keys, mut lows, mut highs) = (Vec::new(), Vec::new(), Vec::new());
    for (at, key) in tops.keys.iter().enumerate() {
        let mut low = behind;
        let tenants = known.tenants(key, tops.level);
        let tenants = tenants.filter(|tenant| behind.is_none_or(|behind| *tenant > behind));
        for high in tenants.map(Some).chain([None]) {
            keys.push((at, *key));
            lows.push(low.map(ToString::to_string));
            highs.push(high.map(ToString::to_string));
            low = high;
        }
    }
    let at = keys.iter().map(|(at, _)| i64::try_from(*at).ok()).collect();
    let mut params = key_params(keys.iter().map(|(_, key)| *key));
    params.extend([Param::Texts(lows), Param::Texts(highs), Param::Ints(at)]);
    params
}

/// The tenants of a level in a circle that begins behind the cursor, no more than are needed; with
/// the keys that each has.
async fn circle<S: Session>(
    work: &mut Work<'_, S>,
    tops: &Tops<'_>,
    cursor: Option<&Tenant>,
    most: usize,
    known: &Lanes,
) -> Result<Vec<(Tenant, Vec<usize>)>, Trouble> {
    let call = |behind: Option<&Tenant>| {
        let gaps = gaps(tops, behind, known).into_iter();
        let params = gaps.chain(tops.level.params()).chain([limit(most)]);
        Call { sql: Sql::ClaimTenants, params: params.collect() }
    };
    let from_first = cursor.map(|_| call(None));
    let calls = [call(cursor)].into_iter().chain(from_first).collect();
    let mut circle: BTreeMap<(bool, Tenant), Vec<usize>> = BTreeMap::new();
    for (key, tenants) in tops.keys.iter().map(|key| known.tenants(key, tops.level)).enumerate() {
        for tenant in tenants {
            let wrapped = cursor.is_some_and(|cursor| tenant <= cursor);
            circle.entry((wrapped, tenant.clone())).or_default().push(key);
        }
    }
    for (part, rows) in work.session.ask(calls).await?.into_iter().enumerate() {
        for mut row in rows {
            let key = row.number::<usize>("key")?;
            let tenant = Tenant::from(row.words("tenant")?);
            let wrapped = part == 1;
            // Behind the cursor the circle is closed.
            if !wrapped || cursor.is_some_and(|cursor| tenant <= *cursor) {
                circle.entry((wrapped, tenant)).or_default().push(key);
            }
        }
    }
    Ok(circle.into_iter().take(most).map(|((_, tenant), keys)| (tenant, keys)).collect())
}

/// The heads of each key and tenant, as many as are needed if all tenants have enough.
async fn lanes<'k, S: Session>(
    work: &mut Work<'_, S>,
    tops: &Tops<'k>,
    circle: &[(Tenant, Vec<usize>)],
    most: usize,
    known: &Lanes,
) -> Result<Vec<Lane<'k>>, Trouble> {
    let of_circle =
        circle.iter().flat_map(|(tenant, keys)| keys.iter().map(move |key| (tenant, key)));
    let mut lanes: Vec<Lane<'k>> = of_circle
        .map(|(tenant, key)| {
            let (key, tenant) = (tops.keys[*key], tenant.clone());
            let floor = known.floor(key, tops.level, &tenant);
            Lane { key, tenant, heads: VecDeque::new(), takes: 0, floor, seen: Vec::new() }
        })
        .collect();
    if lanes.is_empty() {
        return Ok(lanes);
    }
    let share = most.div_ceil(circle.len());
    let params = lane_params(&lanes).into_iter().chain(tops.level.params()).chain([limit(share)]);
    for mut row in work.ask(Sql::ClaimHeads, params.collect()).await? {
        let lane = row.number::<usize>("lane")? - 1;
        let order = row.number("ready_order")?;
        if let Some(lane) = lanes.get_mut(lane) {
            lane.heads.push_back(order);
        }
    }
    for lane in &mut lanes {
        lane.heads.make_contiguous().sort_unstable();
        lane.seen = lane.heads.iter().copied().collect();
    }
    Ok(lanes)
}

/// Shares out in rounds: the lane from which each task is taken, in order.
fn plan(circle: &[(Tenant, Vec<usize>)], lanes: &mut [Lane<'_>], most: usize) -> Vec<usize> {
    let mut first = 0;
    let mut stops: VecDeque<std::ops::Range<usize>> = VecDeque::new();
    for (_, keys) in circle {
        stops.push_back(first..first + keys.len());
        first += keys.len();
    }
    let mut rounds = Vec::new();
    while let Some(stop) = stops.pop_front().filter(|_| rounds.len() < most) {
        // The tenant's oldest, whichever key it has.
        let oldest = stop.clone().filter(|lane| !lanes[*lane].heads.is_empty());
        let Some(lane) = oldest.min_by_key(|lane| lanes[*lane].heads[0]) else { continue };
        lanes[lane].heads.pop_front();
        lanes[lane].takes += 1;
        rounds.push(lane);
        stops.push_back(stop);
    }
    rounds
}

/// Locks as many of each lane as are planned to be taken; whatever somebody else has locked is left
/// to them, and the next one comes instead.
async fn lock<S: Session>(
    work: &mut Work<'_, S>,
    level: Level,
    lanes: &[Lane<'_>],
) -> Result<Vec<VecDeque<(i64, At)>>, Trouble> {
    let mut locked = vec![VecDeque::new(); lanes.len()];
    if lanes.iter().all(|lane| lane.takes == 0) {
        return Ok(locked);
    }
    let takes = Param::Ints(lanes.iter().map(|lane| Some(lane.takes)).collect());
    let params = lane_params(lanes).into_iter().chain([takes]).chain(level.params()).collect();
    let mut rows = Vec::new();
    for mut row in work.ask(Sql::ClaimTake, params).await? {
        let lane = row.number::<usize>("lane")? - 1;
        let (run, task) = read_task(row)?;
        rows.push((lane, run, task));
    }
    rows.sort_by_key(|(lane, run, task)| (*lane, task.order, *run, task.place));
    for (lane, run, task) in &rows {
        if let Some(lane) = locked.get_mut(*lane) {
            lane.push_back((stored(task.order), (*run, task.place)));
        }
    }
    take_up(work, rows.into_iter().map(|(_, run, task)| (run, task)).collect()).await?;
    Ok(locked)
}

fn lane_params(lanes: &[Lane<'_>]) -> Vec<Param> {
    let tenants = lanes.iter().map(|lane| Some(lane.tenant.to_string())).collect();
    let floors = lanes.iter().map(|lane| Some(lane.floor.unwrap_or(BOTTOM))).collect();
    let mut params = key_params(lanes.iter().map(|lane| lane.key));
    params.extend([Param::Texts(tenants), Param::Ints(floors)]);
    params
}

/// Takes up tasks that are locked, and reads their runs in a later statement.
async fn take_up<S: Session>(
    work: &mut Work<'_, S>,
    tasks: Vec<(RunId, Row)>,
) -> Result<(), Trouble> {
    work.read_runs(tasks.iter().map(|(run, _)| *run)).await?;
    tasks.into_iter().try_for_each(|(run, task)| work.add_task(run, task))
}

/// Claimed rows as their worker gets them.
async fn claimed_tasks<S: Session>(
    work: &mut Work<'_, S>,
    taken: &[At],
) -> Result<Vec<ClaimedTask>, Trouble> {
    work.read_for_turns(taken.iter().map(|(run, _)| *run)).await?;
    Ok(taken.iter().map(|(run, place)| work.state.claimed_task(*run, *place)).collect())
}
