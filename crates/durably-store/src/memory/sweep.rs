//! Housekeeping: what is due, what is lost, what took too long.

use super::state::State;
use crate::answer::Swept;
use crate::command::{Delivery, SweepCall};
use crate::find::WorkerStatus;
use durably_kernel::{
    ActivityId, Fact, LossCause, Place, RunId, TaskKind, TaskPut, TaskState, TimeoutKind, TimerId,
    Timestamp,
};

impl State {
    pub(super) fn sweep(&mut self, call: &SweepCall, now: Timestamp) -> Swept {
        let mut swept = Swept::default();
        self.declare_dead(call, now, &mut swept);
        self.return_lost(call.most, now, &mut swept);
        self.fire_due(call.most, now, &mut swept);
        self.time_out(call.most, now, &mut swept);
        swept.next_due = self.next_due(now);
        swept
    }

    fn declare_dead(&mut self, call: &SweepCall, now: Timestamp, swept: &mut Swept) {
        if !call.may_declare {
            return;
        }
        for (who, worker) in &mut self.workers {
            let silent = now.since(worker.row.beat_at) > call.stale_after;
            let sweeper = call.who.as_ref() == Some(who);
            if worker.row.status.holds_claims() && silent && !sweeper {
                worker.row.status = WorkerStatus::Stale;
                swept.dead += 1;
            }
        }
    }

    /// Claims whose owner is missing or gone, whenever it went.
    fn return_lost(&mut self, most: usize, now: Timestamp, swept: &mut Swept) {
        let mut lost = Vec::new();
        for (run, record) in &self.runs {
            for (place, row) in &record.rows {
                let Some(owner) = &row.owner else { continue };
                if !self.is_alive(&owner.who) {
                    lost.push((*run, *place));
                }
            }
        }
        for (run, place) in lost.into_iter().take(most) {
            swept.returned += 1;
            self.return_row(run, place, now, swept);
        }
    }

    fn return_row(&mut self, run: RunId, place: Place, now: Timestamp, swept: &mut Swept) {
        let record = self.runs.get_mut(&run).expect("found before");
        let row = record.rows.get_mut(&place).expect("found before");
        if row.state == TaskState::Cancelling {
            record.rows.remove(&place);
            return;
        }
        row.note_loss(LossCause::Died, now);
        if row.kind == TaskKind::Activity && row.deaths >= row.most_deaths() {
            let row = record.rows.remove(&place).expect("found before");
            let fact = Fact::ActivityLost {
                activity_id: ActivityId::from(row.target.as_str()),
                seq: row.seq,
                losses: row.losses,
            };
            self.deliver_own(run, format!("lost:{}:{}", row.target, row.seq), fact, now, swept);
            return;
        }
        State::make_ready(&mut self.order, &mut self.hints, row);
        swept.ready += 1;
    }

    fn deliver_own(
        &mut self,
        run: RunId,
        id: String,
        fact: Fact,
        now: Timestamp,
        swept: &mut Swept,
    ) {
        self.deliver(Delivery { run, id, fact, claim: None }, now);
        swept.delivered += 1;
    }

    /// Waiting rows whose time has come, oldest first.
    fn fire_due(&mut self, most: usize, now: Timestamp, swept: &mut Swept) {
        let mut due = Vec::new();
        for (run, record) in &self.runs {
            for (place, row) in &record.rows {
                match (row.state, row.due) {
                    (TaskState::Waiting, Some(at)) if at <= now => due.push((at, *run, *place)),
                    _ => {}
                }
            }
        }
        due.sort();
        for (_, run, place) in due.into_iter().take(most) {
            let record = self.runs.get_mut(&run).expect("found before");
            // An earlier row of this very sweep may have taken it away.
            let Some(row) = record.rows.get_mut(&place) else {
                continue;
            };
            match row.kind {
                TaskKind::Turn | TaskKind::Activity => {
                    State::make_ready(&mut self.order, &mut self.hints, row);
                    swept.ready += 1;
                }
                TaskKind::Timer => {
                    let row = record.rows.remove(&place).expect("found before");
                    let timer_id = TimerId::from(row.target.as_str());
                    let id = format!("timer:{}:{}", row.target, row.seq);
                    let fact = Fact::TimerFired { timer_id, seq: row.seq };
                    self.deliver_own(run, id, fact, now, swept);
                }
                TaskKind::Retry => {
                    let row = record.rows.remove(&place).expect("found before");
                    let activity_id = ActivityId::from(row.target.as_str());
                    let id = format!("retry:{}:{}", row.target, row.seq);
                    let fact = Fact::RetryDue { activity_id, seq: row.seq };
                    self.deliver_own(run, id, fact, now, swept);
                }
                TaskKind::Timeout => self.fire_timeout(run, place, now, swept),
            }
        }
    }

    fn fire_timeout(&mut self, run: RunId, place: Place, now: Timestamp, swept: &mut Swept) {
        let record = self.runs.get_mut(&run).expect("found before");
        let row = record.rows.remove(&place).expect("found before");
        let kind = TaskPut::timeout_kind(&row.name).expect("written by the kernel");
        if kind == TimeoutKind::Run {
            self.deliver_own(run, "timeout:run".into(), Fact::RunTimedOut {}, now, swept);
            return;
        }
        let watched = row.watched.and_then(|place| record.rows.get(&place)).cloned();
        if kind == TimeoutKind::ScheduleToStart {
            // A worker has begun it, now or before: the time-out is met.
            let waits = watched.as_ref().is_some_and(|row| {
                row.attempt == 0 && matches!(row.state, TaskState::Ready | TaskState::Gated)
            });
            if !waits {
                return;
            }
        }
        if let Some(watched) = &watched {
            record.rows.remove(&watched.place);
        }
        let fact = Fact::ActivityTimedOut {
            activity_id: ActivityId::from(row.target.as_str()),
            seq: row.seq,
            timeout: kind,
            attempt: watched.as_ref().and_then(|watched| watched.attempt_now()),
            details: None,
            losses: watched.map(|watched| watched.losses).unwrap_or_default(),
        };
        let id = format!("timeout:{}:{}:{}", kind.name(), row.target, row.seq);
        self.deliver_own(run, id, fact, now, swept);
    }

    /// Claimed rows that took too long or were silent for too long.
    fn time_out(&mut self, most: usize, now: Timestamp, swept: &mut Swept) {
        let mut late = Vec::new();
        for (run, record) in &self.runs {
            for (place, row) in &record.rows {
                let Some(owner) = &row.owner else { continue };
                let silent = owner.heartbeat_by.is_some_and(|by| by <= now);
                let silent = silent && row.state == TaskState::Claimed;
                if owner.deadline <= now {
                    late.push((*run, *place, TimeoutKind::StartToClose));
                } else if silent {
                    late.push((*run, *place, TimeoutKind::Heartbeat));
                }
            }
        }
        for (run, place, timeout) in late.into_iter().take(most) {
            let record = self.runs.get_mut(&run).expect("found before");
            let Some(row) = record.rows.get(&place) else {
                continue;
            };
            if row.state == TaskState::Cancelling || row.kind == TaskKind::Turn {
                swept.returned += 1;
                self.return_row(run, place, now, swept);
                continue;
            }
            let row = record.rows.remove(&place).expect("found before");
            let fact = Fact::ActivityTimedOut {
                activity_id: ActivityId::from(row.target.as_str()),
                seq: row.seq,
                timeout,
                attempt: row.attempt_now(),
                details: row.details.clone(),
                losses: row.losses.clone(),
            };
            let id = format!("timeout:{}:{}:{}", row.target, row.seq, row.number);
            self.hints.push(crate::hint::Hint::Claims);
            self.deliver_own(run, id, fact, now, swept);
        }
    }

    fn next_due(&self, now: Timestamp) -> Option<std::time::Duration> {
        let rows = self.runs.values().flat_map(|record| record.rows.values());
        rows.filter_map(|row| match &row.owner {
            // The bound was reached before this one could return.
            Some(owner) if !self.is_alive(&owner.who) => Some(now),
            Some(owner) if row.state == TaskState::Claimed => {
                owner.heartbeat_by.into_iter().chain([owner.deadline]).min()
            }
            Some(owner) => Some(owner.deadline),
            None => row.due,
        })
        .min()
        .map(|at| at.since(now))
    }
}
