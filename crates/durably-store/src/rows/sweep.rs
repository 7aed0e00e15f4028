//! Housekeeping: what is due, what is lost, what took too long.

use super::index::At;
use super::row::Row;
use super::state::State;
use crate::answer::Swept;
use crate::command::{Delivery, SweepCall};
use crate::find::WorkerStatus;
use crate::hint::Hint;
use durably_kernel::{
    ActivityId, Fact, LossCause, Place, RunId, TaskKind, TaskPut, TaskState, TimeoutKind, TimerId,
    Timestamp,
};
use std::collections::BTreeSet;

impl State {
    /// Returns what is lost, fires what is due, ends what took too long.
    pub fn sweep(&mut self, call: &SweepCall, now: Timestamp) -> Swept {
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
            // A beat in the future is one before the clock was set back: it counts as one of now.
            let alive = worker.row.status.holds_claims();
            if alive && worker.row.beat_at > now.after(call.stale_after) {
                worker.row.beat_at = now;
            }
            let silent = now.since(worker.row.beat_at) > call.stale_after;
            let sweeper = call.who.as_ref() == Some(who);
            if alive && silent && !sweeper {
                worker.row.status = WorkerStatus::Stale;
                swept.dead += 1;
            }
        }
    }

    /// Claims whose owner is missing or gone, whenever it went.
    fn return_lost(&mut self, most: usize, now: Timestamp, swept: &mut Swept) {
        let owners = self.index.owners().filter(|(who, _)| !self.is_alive(who));
        let lost: BTreeSet<At> = owners.flat_map(|(_, rows)| rows.iter().copied()).collect();
        for (run, place) in lost.into_iter().take(most) {
            swept.returned += 1;
            self.return_row(run, place, now, swept);
        }
    }

    fn return_row(&mut self, run: RunId, place: Place, now: Timestamp, swept: &mut Swept) {
        let mut row = self.take_out(run, place).expect("found before");
        if row.state == TaskState::Cancelling {
            return;
        }
        row.note_loss(LossCause::Died, now);
        if row.kind == TaskKind::Activity && row.deaths >= row.most_deaths() {
            let id = row.lost_id();
            let fact = Fact::ActivityLost {
                activity_id: ActivityId::from(row.target.clone()),
                seq: row.seq,
                losses: row.losses,
            };
            self.deliver_own(run, id, fact, now, swept);
            return;
        }
        self.make_ready(&mut row);
        self.put_in(run, row);
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
        let due: Vec<At> = self.index.due(now).take(most).collect();
        for (run, place) in due {
            // An earlier row of this very sweep may have taken it away.
            let Some(mut row) = self.take_out(run, place) else {
                continue;
            };
            match row.kind {
                TaskKind::Turn | TaskKind::Activity => {
                    self.make_ready(&mut row);
                    self.put_in(run, row);
                    swept.ready += 1;
                }
                TaskKind::Timer => {
                    let timer_id = TimerId::from(row.target.clone());
                    let id = row.due_id();
                    let fact = Fact::TimerFired { timer_id, seq: row.seq };
                    self.deliver_own(run, id, fact, now, swept);
                }
                TaskKind::Retry => {
                    let activity_id = ActivityId::from(row.target.clone());
                    let id = row.due_id();
                    let fact = Fact::RetryDue { activity_id, seq: row.seq };
                    self.deliver_own(run, id, fact, now, swept);
                }
                TaskKind::Timeout => self.fire_timeout(run, &row, now, swept),
            }
        }
    }

    fn fire_timeout(&mut self, run: RunId, row: &Row, now: Timestamp, swept: &mut Swept) {
        let kind = TaskPut::timeout_kind(&row.name).expect("written by the kernel");
        if kind == TimeoutKind::Run {
            self.deliver_own(run, row.due_id(), Fact::RunTimedOut {}, now, swept);
            return;
        }
        if kind == TimeoutKind::ScheduleToStart {
            // A worker has begun it, now or before: the time-out is met.
            let watched = row.watched.and_then(|place| self.row(run, place));
            let waits = watched.is_some_and(|row| {
                row.attempt == 0 && matches!(row.state, TaskState::Ready | TaskState::Gated)
            });
            if !waits {
                return;
            }
        }
        let watched = row.watched.and_then(|place| self.take_out(run, place));
        let fact = Fact::ActivityTimedOut {
            activity_id: ActivityId::from(row.target.clone()),
            seq: row.seq,
            timeout: kind,
            attempt: watched.as_ref().and_then(|watched| watched.attempt_now()),
            details: None,
            losses: watched.map(|watched| watched.losses).unwrap_or_default(),
        };
        let id = row.due_id();
        self.deliver_own(run, id, fact, now, swept);
    }

    /// Claimed rows that took too long or were silent for too long.
    fn time_out(&mut self, most: usize, now: Timestamp, swept: &mut Swept) {
        for (run, place) in self.index.late(now).into_iter().take(most) {
            let row = self.row(run, place).expect("owned rows are there");
            let deadline = row.owner.as_ref().map(|owner| owner.deadline);
            let timeout = match deadline.is_some_and(|deadline| deadline <= now) {
                true => TimeoutKind::StartToClose,
                false => TimeoutKind::Heartbeat,
            };
            if row.state == TaskState::Cancelling || row.kind == TaskKind::Turn {
                swept.returned += 1;
                self.return_row(run, place, now, swept);
                continue;
            }
            let row = self.take_out(run, place).expect("found before");
            let fact = Fact::ActivityTimedOut {
                activity_id: ActivityId::from(row.target.clone()),
                seq: row.seq,
                timeout,
                attempt: row.attempt_now(),
                details: row.details.clone(),
                losses: row.losses.clone(),
            };
            let id = row.late_id();
            self.hints.note(Hint::Claims);
            self.deliver_own(run, id, fact, now, swept);
        }
    }

    fn next_due(&self, now: Timestamp) -> Option<std::time::Duration> {
        // The bound was reached before these could return.
        let lost = self.index.owners().any(|(who, _)| !self.is_alive(who));
        let lost = lost.then_some(now);
        self.index.next().into_iter().chain(lost).min().map(|at| at.since(now))
    }
}

/// What the inbox entries are called that a sweep delivers.
impl Row {
    /// A row whose time has come.
    fn due_id(&self) -> String {
        match self.kind {
            TaskKind::Timer | TaskKind::Retry => {
                format!("{}:{}:{}", self.kind.name(), self.target, self.seq)
            }
            TaskKind::Timeout if self.name.as_ref() == TimeoutKind::Run.name() => {
                "timeout:run".to_owned()
            }
            TaskKind::Turn | TaskKind::Activity | TaskKind::Timeout => {
                format!("timeout:{}:{}:{}", self.name, self.target, self.seq)
            }
        }
    }

    /// A claim that took too long.
    fn late_id(&self) -> String {
        format!("timeout:{}:{}:{}", self.target, self.seq, self.number)
    }

    /// A claim that was lost for the last time.
    fn lost_id(&self) -> String {
        format!("lost:{}:{}", self.target, self.seq)
    }

    /// Every id under which a sweep may deliver something about it.
    pub fn swept_ids(&self) -> [String; 3] {
        [self.due_id(), self.late_id(), self.lost_id()]
    }
}
