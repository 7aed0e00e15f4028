//! Fair claims: tenants in turn.

use super::UNREAD_MAX;
use super::index::{At, Key, Level};
use super::row::Row;
use super::state::{RunRecord, State};
use crate::answer::{Claimed, ClaimedActivity, ClaimedTask, ClaimedWork};
use crate::command::{ClaimCall, Claimable, Want};
use crate::find::WorkerStatus;
use durably_kernel::{
    ActivityId, ActivityOptions, ActivityType, Payload, Place, Queue, RunId, RunStatus, TaskKind,
    TaskState, Tenant, Timestamp,
};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// Where the tasks that are wanted may stand in the index.
pub(crate) fn keys(
    queues: &[Queue],
    any: &[Claimable],
    of_kind: Option<TaskKind>,
) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for queue in queues {
        for (kind, name, version) in any.iter().flat_map(|can| can.keys()) {
            if of_kind.is_none_or(|wanted| wanted == kind) {
                keys.insert(Key::new(kind, name, version, queue));
            }
        }
    }
    keys
}

impl State {
    /// Takes tasks in turn.
    pub fn claim(&mut self, call: &ClaimCall, now: Timestamp) -> Claimed {
        let active = self
            .workers
            .get(&call.who)
            .is_some_and(|worker| worker.row.status == WorkerStatus::Active);
        if !active {
            return Claimed::Refused;
        }
        let mut taken = self.taken_before(call);
        let mut cursor = call.cursor.clone();
        if taken.is_empty() {
            for want in &call.wants {
                taken.extend(self.take(call, want, &mut cursor, now));
            }
        }
        let tasks = taken.iter().map(|(run, place)| self.claimed_task(*run, *place)).collect();
        Claimed::Tasks { tasks, cursor, now }
    }

    /// What this call took when it was made before and its answer was lost.
    fn taken_before(&self, call: &ClaimCall) -> Vec<At> {
        let of_call = |at: &At| {
            let row = self.row(at.0, at.1).expect("owned rows are there");
            let same = row.owner.as_ref().is_some_and(|owner| owner.call == Some(call.id));
            (same && row.state == TaskState::Claimed).then_some((row.order, *at))
        };
        let mut rows: Vec<_> =
            self.index.rows_of(&call.who).filter_map(|at| of_call(&at)).collect();
        rows.sort();
        rows.into_iter().map(|(_, at)| at).collect()
    }

    /// Levels one after the other, until there are enough.
    fn take(
        &mut self,
        call: &ClaimCall,
        want: &Want,
        cursor: &mut Option<Tenant>,
        now: Timestamp,
    ) -> Vec<At> {
        let keys = keys(&call.queues, &want.any, None);
        let mut taken = Vec::new();
        while taken.len() < want.most {
            let levels = keys.iter().filter_map(|key| self.index.top(key)).map(|(level, _)| level);
            let Some(level) = levels.min() else { break };
            let missing = want.most - taken.len();
            let mut circle = self.circle(&keys, level, cursor.as_ref(), missing);
            while let Some(tenant) = circle.pop_front().filter(|_| taken.len() < want.most) {
                if let Some(at) = self.head(&keys, level, &tenant) {
                    self.take_row(call, at, now);
                    taken.push(at);
                    *cursor = Some(tenant.clone());
                    circle.push_back(tenant);
                }
            }
        }
        taken
    }

    /// The tenants of a level in a circle that begins behind the cursor; no more than are needed.
    fn circle(
        &self,
        keys: &BTreeSet<Key>,
        level: Level,
        cursor: Option<&Tenant>,
        most: usize,
    ) -> VecDeque<Tenant> {
        let behind = |tenant: &Tenant| cursor.is_none_or(|cursor| tenant > cursor);
        let mut circle = BTreeSet::new();
        for lanes in keys.iter().filter_map(|key| self.index.lanes(key, level)) {
            let from = cursor.map_or(Bound::Unbounded, Bound::Excluded);
            let after = lanes.range::<Tenant, _>((from, Bound::Unbounded));
            let up_to = cursor.map(|cursor| lanes.range::<Tenant, _>(..=cursor));
            let tenants = after.chain(up_to.into_iter().flatten()).map(|(tenant, _)| tenant);
            circle.extend(tenants.take(most).map(|tenant| (!behind(tenant), tenant.clone())));
        }
        circle.into_iter().map(|(_, tenant)| tenant).collect()
    }

    /// The tenant's oldest ready task, whichever key it has.
    fn head(&self, keys: &BTreeSet<Key>, level: Level, tenant: &Tenant) -> Option<At> {
        let lanes = keys.iter().filter_map(|key| self.index.lanes(key, level)?.get(tenant));
        lanes.filter_map(|lane| lane.first()).min().map(|(_, at)| *at)
    }

    /// Takes one that is ready.
    pub fn take_row(&mut self, call: &ClaimCall, (run, place): At, now: Timestamp) {
        let mut row = self.take_out(run, place).expect("found before");
        let mut owner = match row.kind {
            TaskKind::Turn => State::owner(&call.who, now, call.turn_deadline),
            _ => row.owner_of(&call.who, now),
        };
        owner.call = Some(call.id);
        row.take(owner);
        self.put_in(run, row);
    }

    /// A claimed row as its worker gets it.
    pub fn claimed_task(&self, run: RunId, place: Place) -> ClaimedTask {
        let record = &self.runs[&run];
        let row = record.rows.get(place).expect("claimed rows are there");
        ClaimedTask {
            claim: row.claim(run),
            run: Box::new(record.view()),
            work: match row.kind {
                TaskKind::Turn => ClaimedWork::Turn {
                    unread: record.unread(UNREAD_MAX),
                    first: first_event(record),
                    losses: row.losses.clone(),
                },
                _ => ClaimedWork::Activity(Box::new(activity(row))),
            },
        }
    }
}

fn first_event(record: &RunRecord) -> Option<Box<durably_kernel::Event>> {
    let first = record.history.first()?.events.first()?;
    (record.status == RunStatus::Pending).then(|| Box::new(first.clone()))
}

fn activity(row: &Row) -> ClaimedActivity {
    ClaimedActivity {
        id: ActivityId::from(row.target.clone()),
        activity_type: ActivityType::from(row.name.clone()),
        input: row.input.clone().unwrap_or_else(Payload::null),
        options: row.options.clone().unwrap_or_else(|| Arc::new(ActivityOptions::default())),
        attempt: row.attempt_now().expect("a claimed row has an owner"),
        losses: row.losses.clone(),
        details: row.details.clone(),
    }
}
