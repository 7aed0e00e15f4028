//! Life of processes: registration, beats, hand-backs, the end.

use super::row::Row;
use super::state::{RunRecord, State, WorkerRecord};
use crate::answer::{AskAnswer, BeatAnswer, ClaimedTask};
use crate::command::{Beat, Claimable, HandBack, Registration, Returned};
use crate::find::{WorkerRow, WorkerStatus};
use durably_kernel::{
    ActivityOptions, Claim, LossCause, Place, RunId, TaskKind, TaskState, Timestamp, WorkerId,
};
use std::collections::BTreeSet;

/// A claim that so many beats in a row did not name goes back.
const UNNAMED_MAX: u32 = 3;

impl State {
    /// Begins the life of a process. Parked runs of its workflows become due.
    pub fn register(&mut self, new: Registration, now: Timestamp) -> Timestamp {
        self.wake_parked(&new.can);
        let row = WorkerRow {
            who: new.who.clone(),
            group: new.group,
            status: WorkerStatus::Active,
            capacity: new.capacity,
            load: 0,
            queues: new.queues,
            can: new.can,
            host: new.host,
            version: new.version,
            started_at: now,
            beat_at: now,
            beats: 0,
        };
        let birth = self.workers.len();
        self.workers.insert(new.who, WorkerRecord { row, birth });
        now
    }

    /// New code may fit where old code did not: parked runs of its types are due at once.
    fn wake_parked(&mut self, can: &[Claimable]) {
        let hosts = |row: &Row| {
            let key = (TaskKind::Turn, &*row.name, row.version);
            can.iter().any(|can| can.keys().contains(&key))
        };
        let wakes = |run: RunId, record: &RunRecord| {
            let row = record.rows.get(Place::TURN).filter(|_| record.parked.is_some())?;
            (row.state == TaskState::Waiting && hosts(row)).then_some(run)
        };
        let parked: Vec<RunId> =
            self.runs.iter().filter_map(|(run, record)| wakes(*run, record)).collect();
        for run in parked {
            self.make_ready_at(run, Place::TURN);
        }
    }

    /// The process claims no more; what it has stays its own.
    pub fn drain(&mut self, who: &WorkerId) {
        let worker = self.workers.get_mut(who);
        if let Some(worker) = worker.filter(|w| w.row.status == WorkerStatus::Active) {
            worker.row.status = WorkerStatus::Draining;
        }
    }

    /// The process ends: whatever it still has goes back to the queue.
    pub fn leave(&mut self, who: &WorkerId, now: Timestamp) {
        self.leader.leave(who);
        let Some(worker) = self.workers.get_mut(who) else {
            return;
        };
        if !worker.row.status.holds_claims() {
            return;
        }
        worker.row.status = WorkerStatus::Stopped;
        worker.row.load = 0;
        for (run, place) in self.rows_of(who) {
            self.give_up(run, place, Returned::Stopped, now);
        }
    }

    /// Gives a claim back, if it stands.
    pub fn hand_back(&mut self, who: &WorkerId, back: HandBack, now: Timestamp) {
        let Some(row) = self.row(back.claim.run, back.claim.place) else {
            return;
        };
        let named = row.seq == back.claim.seq && row.number == back.claim.number;
        if named && row.is_owned_by(who) {
            self.give_up(back.claim.run, back.claim.place, back.how, now);
        }
    }

    /// A claimed row goes back to the queue, a cancelling one goes.
    fn give_up(&mut self, run: RunId, place: Place, how: Returned, now: Timestamp) {
        let mut row = self.take_out(run, place).expect("found before");
        if row.state == TaskState::Cancelling {
            return;
        }
        match (how, row.kind) {
            // Only a cancelling row can be confirmed away: this one was revived meanwhile.
            (Returned::Confirmed, _) => return self.put_in(run, row),
            (Returned::Unstarted, TaskKind::Activity) => row.attempt -= 1,
            (Returned::Stopped, _) => row.note_loss(LossCause::Stopped, now),
            (Returned::Unstarted, _) => {}
        }
        self.make_ready(&mut row);
        self.put_in(run, row);
    }

    pub(crate) fn rows_of(&self, who: &WorkerId) -> Vec<(RunId, Place)> {
        self.index.rows_of(who).collect()
    }

    /// The process lives, and this is what it has in its hands.
    pub fn beat(&mut self, beat: &Beat, now: Timestamp) -> BeatAnswer {
        let worker = self.workers.get_mut(&beat.who).map(|worker| &mut worker.row);
        let Some(worker) = worker.filter(|worker| worker.status.holds_claims()) else {
            return BeatAnswer::Refused;
        };
        let in_order = beat.number > worker.beats;
        if in_order {
            (worker.beat_at, worker.load, worker.beats) = (now, beat.load, beat.number);
            self.take_heartbeats(beat, now);
        }
        let (mut lost, mut cancelling) = (Vec::new(), Vec::new());
        for claim in &beat.claims {
            match self.state_of(claim, &beat.who) {
                Some(TaskState::Claimed) => {}
                Some(TaskState::Cancelling) => cancelling.push(*claim),
                _ => lost.push(*claim),
            }
        }
        let unnamed = if in_order { self.count_unnamed(beat, now) } else { Vec::new() };
        let unread = self.unread_of(&beat.who);
        BeatAnswer::Alive { lost, cancelling, unnamed, unread, now }
    }

    fn take_heartbeats(&mut self, beat: &Beat, now: Timestamp) {
        for heartbeat in &beat.heartbeats {
            let claim = &heartbeat.claim;
            let row = self.row(claim.run, claim.place);
            if !row.is_some_and(|row| row.stands(claim.run, claim, &beat.who)) {
                continue;
            }
            let mut row = self.take_out(claim.run, claim.place).expect("found before");
            if heartbeat.details.is_some() {
                row.details = heartbeat.details.clone();
            }
            if let Some(owner) = &mut row.owner {
                let every = *owner.heartbeat.get_or_insert(ActivityOptions::HEARTBEAT);
                owner.heartbeat_by = Some(now.after(every));
            }
            self.put_in(claim.run, row);
        }
    }

    /// Claims that the process did not name: reported, and given back after three beats.
    fn count_unnamed(&mut self, beat: &Beat, now: Timestamp) -> Vec<ClaimedTask> {
        let claims: BTreeSet<Claim> = beat.claims.iter().copied().collect();
        let mut unnamed = Vec::new();
        for (run, place) in self.rows_of(&beat.who) {
            let row = self.row(run, place).expect("owned rows are there");
            let missing = row.state == TaskState::Claimed && !claims.contains(&row.claim(run));
            let before = row.owner.as_ref().expect("owned").unnamed;
            let times = if missing { before + 1 } else { 0 };
            if times != before {
                let mut row = self.take_out(run, place).expect("found before");
                row.owner.as_mut().expect("owned").unnamed = times;
                self.put_in(run, row);
            }
            match times {
                0 => {}
                UNNAMED_MAX.. => self.give_up(run, place, Returned::Unstarted, now),
                _ => unnamed.push(self.claimed_task(run, place)),
            }
        }
        unnamed
    }

    fn state_of(&self, claim: &Claim, who: &WorkerId) -> Option<TaskState> {
        let row = self.row(claim.run, claim.place)?;
        let same = row.is_owned_by(who) && row.seq == claim.seq && row.number == claim.number;
        same.then_some(row.state)
    }

    fn unread_of(&self, who: &WorkerId) -> Vec<RunId> {
        let unread = |(run, place): (RunId, Place)| {
            let record = self.runs.get(&run).filter(|_| place == Place::TURN)?;
            let claimed = record.rows.get(place)?.state == TaskState::Claimed;
            (claimed && record.inbox_last > record.inbox_used).then_some(run)
        };
        self.index.rows_of(who).filter_map(unread).collect()
    }

    /// Which of its claims stand.
    pub fn ask(&self, who: &WorkerId) -> AskAnswer {
        let mut answer = AskAnswer { active: self.is_alive(who), ..AskAnswer::default() };
        for (run, place) in self.rows_of(who) {
            let row = self.row(run, place).expect("owned rows are there");
            match row.state {
                TaskState::Cancelling => answer.cancelling.push(row.claim(run)),
                _ => answer.standing.push(row.claim(run)),
            }
        }
        answer.unread = self.unread_of(who);
        answer
    }
}
