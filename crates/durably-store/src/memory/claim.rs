//! Fair claims: tenants in turn.

use super::UNREAD_MAX;
use super::row::Row;
use super::state::{RunRecord, State};
use crate::answer::{Claimed, ClaimedActivity, ClaimedTask, ClaimedWork};
use crate::command::{ClaimCall, Want};
use crate::find::WorkerStatus;
use durably_kernel::{
    ActivityId, ActivityOptions, ActivityType, Payload, Place, RunId, RunStatus, TaskKind,
    TaskState, Tenant, Timestamp,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// Ready tasks: by level (priority, then started before new), by tenant, by order.
type Waiting = BTreeMap<(Reverse<i32>, bool), BTreeMap<Tenant, BTreeMap<u64, (RunId, Place)>>>;

impl State {
    pub(super) fn claim(&mut self, call: &ClaimCall, now: Timestamp) -> Claimed {
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
    fn taken_before(&self, call: &ClaimCall) -> Vec<(RunId, Place)> {
        let mut rows = Vec::new();
        for (run, record) in &self.runs {
            for (place, row) in &record.rows {
                let owner = row.owner.as_ref();
                let same = owner.is_some_and(|o| o.who == call.who && o.call == Some(call.id));
                if same && row.state == TaskState::Claimed {
                    rows.push((row.order, (*run, *place)));
                }
            }
        }
        rows.sort();
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn waiting(&self, call: &ClaimCall, want: &Want) -> Waiting {
        let mut waiting = Waiting::new();
        let keys: Vec<_> = want.any.iter().flat_map(|can| can.keys()).collect();
        for (run, record) in &self.runs {
            for (place, row) in &record.rows {
                let fits = row.state == TaskState::Ready
                    && call.queues.contains(&row.queue)
                    && keys.contains(&(row.kind, row.name.as_str(), row.version));
                if fits {
                    waiting
                        .entry((Reverse(row.priority), row.fresh))
                        .or_default()
                        .entry(record.new.identity.tenant.clone())
                        .or_default()
                        .insert(row.order, (*run, *place));
                }
            }
        }
        waiting
    }

    fn take(
        &mut self,
        call: &ClaimCall,
        want: &Want,
        cursor: &mut Option<Tenant>,
        now: Timestamp,
    ) -> Vec<(RunId, Place)> {
        let mut taken = Vec::new();
        for tenants in self.waiting(call, want).into_values() {
            // The circle of tenants, beginning behind the cursor.
            let (before, after): (Vec<_>, Vec<_>) = tenants
                .into_iter()
                .partition(|(tenant, _)| cursor.as_ref().is_some_and(|at| tenant <= at));
            let mut circle: VecDeque<_> = after.into_iter().chain(before).collect();
            while let Some((tenant, mut tasks)) = circle.pop_front() {
                if taken.len() == want.most {
                    return taken;
                }
                if let Some((_, (run, place))) = tasks.pop_first() {
                    self.take_row(call, run, place, now);
                    taken.push((run, place));
                    *cursor = Some(tenant.clone());
                }
                if !tasks.is_empty() {
                    circle.push_back((tenant, tasks));
                }
            }
        }
        taken
    }

    fn take_row(&mut self, call: &ClaimCall, run: RunId, place: Place, now: Timestamp) {
        let record = self.runs.get_mut(&run).expect("found before");
        let row = record.rows.get_mut(&place).expect("found before");
        let (deadline, heartbeat) = match &row.options {
            Some(options) => (options.longest_attempt(), options.heartbeat),
            None => (call.turn_deadline, None),
        };
        let mut owner = State::owner(&call.who, now, deadline);
        owner.call = Some(call.id);
        owner.heartbeat = heartbeat;
        owner.heartbeat_by = heartbeat.map(|heartbeat| now.after(heartbeat));
        row.take(owner);
    }

    pub(super) fn claimed_task(&self, run: RunId, place: Place) -> ClaimedTask {
        let record = &self.runs[&run];
        let row = &record.rows[&place];
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
        id: ActivityId::from(row.target.as_str()),
        activity_type: ActivityType::from(row.name.as_str()),
        input: row.input.clone().unwrap_or_else(Payload::null),
        options: row.options.clone().unwrap_or_else(|| Box::new(ActivityOptions::default())),
        attempt: row.attempt_now().expect("a claimed row has an owner"),
        losses: row.losses.clone(),
        details: row.details.clone(),
    }
}
