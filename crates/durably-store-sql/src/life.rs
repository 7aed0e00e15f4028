//! Life of processes: registration, beats, hand-backs, the end.

use crate::command::{Command, Question};
use crate::error::Trouble;
use crate::field::{Columns, json, stored, text, time};
use crate::lead::stop_leading;
use crate::record::{read_task, read_worker};
use crate::session::{Call, Param, Session};
use crate::text::Sql;
use crate::work::{Work, worker};
use durably_kernel::{Claim, ClaimNumber, Place, RunId, Seq, TaskState, Timestamp, WorkerId};
use durably_store::rows::{At, Row};
use durably_store::{AskAnswer, Beat, BeatAnswer, HandBack, Registration, WorkerRow};
use std::collections::BTreeSet;

/// Begins the life of a process.
pub(crate) struct Register {
    pub(crate) new: Registration,
}

impl Command for Register {
    const NAME: &'static str = "register";

    type Answer = Timestamp;

    async fn act<S: Session>(&self, work: &mut Work<'_, S>) -> Result<Timestamp, Trouble> {
        let new = &self.new;
        work.lock_worker(&new.who).await?;
        if let Some(there) = work.state.workers.get(&new.who) {
            // The answer to the first time was lost.
            return Ok(there.row.started_at);
        }
        let rows = work.ask(Sql::RunsParked, vec![]).await?;
        let parked = rows.into_iter().map(|mut row| Ok(RunId(row.uuid("run")?)));
        let parked = parked.collect::<Result<BTreeSet<RunId>, Trouble>>()?;
        work.lock_runs(parked.iter().copied()).await?;
        work.lock_tasks(parked.into_iter().map(|run| (run, Place::TURN))).await?;
        work.state.register(new.clone(), work.now);
        let capacity = Param::Int(Some(i64::from(new.capacity)));
        let params = vec![
            worker(&new.who),
            text(&new.group),
            text(json(&new.queues)?),
            text(json(&new.can)?),
            capacity,
            text(&new.host),
            text(&new.version),
            time(work.now),
        ];
        work.also.push(Call { sql: Sql::WorkerInsert, params });
        Ok(work.now)
    }
}

/// The process claims no more.
pub(crate) struct Drain {
    pub(crate) who: WorkerId,
}

impl Command for Drain {
    const NAME: &'static str = "drain";

    type Answer = ();

    async fn act<S: Session>(&self, work: &mut Work<'_, S>) -> Result<(), Trouble> {
        work.lock_worker(&self.who).await?;
        work.state.drain(&self.who);
        save(work, &self.who);
        Ok(())
    }
}

/// The process ends.
pub(crate) struct Leave {
    pub(crate) who: WorkerId,
}

impl Command for Leave {
    const NAME: &'static str = "leave";

    type Answer = ();

    async fn act<S: Session>(&self, work: &mut Work<'_, S>) -> Result<(), Trouble> {
        work.lock_worker(&self.who).await?;
        let owned = owned(work, &self.who).await?;
        let places: BTreeSet<At> = owned.iter().map(|(run, row)| (*run, row.place)).collect();
        lock(work, places).await?;
        work.state.leave(&self.who, work.now);
        save(work, &self.who);
        stop_leading(work, &self.who).await?;
        Ok(())
    }
}

/// The tasks that a process has, not locked.
async fn owned<S: Session>(
    work: &mut Work<'_, S>,
    who: &WorkerId,
) -> Result<Vec<(RunId, Row)>, Trouble> {
    let rows = work.ask(Sql::TasksOfOwner, vec![worker(who)]).await?;
    rows.into_iter().map(read_task).collect()
}

/// Locks tasks that somebody has, and their runs before them.
async fn lock<S: Session>(work: &mut Work<'_, S>, places: BTreeSet<At>) -> Result<(), Trouble> {
    work.lock_runs(places.iter().map(|(run, _)| *run)).await?;
    let here: Vec<At> =
        places.into_iter().filter(|(run, _)| work.state.runs.contains(run)).collect();
    work.lock_tasks(here).await
}

/// Writes what may have changed about a process.
fn save<S: Session>(work: &mut Work<'_, S>, who: &WorkerId) {
    let Some(row) = work.state.workers.get(who).map(|worker| &worker.row) else { return };
    let params = vec![
        worker(who),
        text(row.status.name()),
        Param::Int(Some(i64::from(row.load))),
        time(row.beat_at),
        Param::Int(Some(stored(row.beats))),
    ];
    work.also.push(Call { sql: Sql::WorkerSave, params });
}

/// Gives claims back.
pub(crate) struct HandBacks {
    pub(crate) who: WorkerId,
    pub(crate) batch: Vec<HandBack>,
}

impl Command for HandBacks {
    const NAME: &'static str = "hand back";

    type Answer = ();

    async fn act<S: Session>(&self, work: &mut Work<'_, S>) -> Result<(), Trouble> {
        let claims = self.batch.iter().map(|back| &back.claim);
        lock(work, claims.map(|claim| (claim.run, claim.place)).collect()).await?;
        self.batch.iter().for_each(|back| work.state.hand_back(&self.who, *back, work.now));
        Ok(())
    }
}

/// The process lives, and this is what it has in its hands.
pub(crate) struct Beats {
    pub(crate) beat: Beat,
}

impl Command for Beats {
    const NAME: &'static str = "beat";

    type Answer = BeatAnswer;

    async fn act<S: Session>(&self, work: &mut Work<'_, S>) -> Result<BeatAnswer, Trouble> {
        let beat = &self.beat;
        work.lock_worker(&beat.who).await?;
        let alive = work.state.workers.get(&beat.who);
        if alive.is_none_or(|worker| !worker.row.status.holds_claims()) {
            return Ok(BeatAnswer::Refused);
        }
        let owned = owned(work, &beat.who).await?;
        // Only what a beat changes is locked: commits go on meanwhile.
        let touched = touched(beat, &owned);
        lock(work, touched.clone()).await?;
        work.read_runs(owned.iter().map(|(run, _)| *run)).await?;
        work.read_for_turns(touched.iter().map(|(run, _)| *run)).await?;
        for (run, task) in owned {
            if !touched.contains(&(run, task.place)) {
                work.add_task(run, task)?;
            }
        }
        let answer = work.state.beat(beat, work.now);
        save(work, &beat.who);
        Ok(answer)
    }
}

/// The rows that a beat may change: those it brings heartbeats for, and those that it does not
/// name, or named again.
fn touched(beat: &Beat, owned: &[(RunId, Row)]) -> BTreeSet<At> {
    let named: BTreeSet<Claim> = beat.claims.iter().copied().collect();
    let said: BTreeSet<Claim> = beat.heartbeats.iter().map(|heartbeat| heartbeat.claim).collect();
    let changes = |(run, row): &&(RunId, Row)| {
        let claim = Claim { run: *run, place: row.place, seq: row.seq, number: row.number };
        let before = row.owner.as_ref().map_or(0, |owner| owner.unnamed);
        !named.contains(&claim) || said.contains(&claim) || before > 0
    };
    owned.iter().filter(changes).map(|(run, row)| (*run, row.place)).collect()
}

/// Which claims of a process stand.
pub(crate) struct Ask {
    pub(crate) who: WorkerId,
}

impl Question for Ask {
    const NAME: &'static str = "ask";

    type Answer = AskAnswer;

    async fn ask<S: Session>(&self, session: &mut S) -> Result<AskAnswer, Trouble> {
        let calls = [Sql::WorkerById, Sql::ClaimsOfOwner, Sql::OwnerUnread];
        let calls = calls.map(|sql| Call { sql, params: vec![worker(&self.who)] });
        let mut answers = session.ask(calls.into()).await?.into_iter();
        let mut next = || answers.next().unwrap_or_default();
        let workers = next().into_iter().map(read_worker).collect::<Result<Vec<WorkerRow>, _>>()?;
        let active = workers.iter().any(|worker| worker.status.holds_claims());
        let mut answer = AskAnswer { active, ..AskAnswer::default() };
        for mut row in next() {
            let run = RunId(row.uuid("run")?);
            let place = Place(row.number("place")?);
            let seq = Seq(row.number("seq")?);
            let number = ClaimNumber(row.number("claim_number")?);
            let claim = Claim { run, place, seq, number };
            match row.name("state", TaskState::from_name)? {
                TaskState::Cancelling => answer.cancelling.push(claim),
                _ => answer.standing.push(claim),
            }
        }
        for mut row in next() {
            answer.unread.push(RunId(row.uuid("run")?));
        }
        Ok(answer)
    }
}
