//! What is written: lists of values, a list for each column.

use crate::error::Trouble;
use crate::field::{json, stored, stored_millis};
use crate::session::{Call, Param};
use crate::text::Sql;
use durably_kernel::{
    LastError, Payload, Place, RunId, RunStatus, TaskKind, TaskState, Timestamp, Waits,
};
use durably_store::rows::{Entry, Row, RunRecord};
use durably_store::{DeadLetterRow, Parked, RunCommit};
use uuid::Uuid;

/// Values for the columns of a statement, row by row.
#[derive(Default)]
pub(crate) struct Table {
    columns: Vec<Param>,
    /// The column that comes next.
    next: usize,
    rows: usize,
}

impl Table {
    /// The values of one more row, in the order of the columns.
    fn row(
        &mut self,
        values: impl FnOnce(&mut Self) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        self.next = 0;
        values(self)?;
        self.rows += 1;
        Ok(())
    }

    fn column(&mut self, empty: fn() -> Param) -> &mut Param {
        if self.columns.len() == self.next {
            self.columns.push(empty());
        }
        self.next += 1;
        &mut self.columns[self.next - 1]
    }

    fn int(&mut self, value: impl Into<Option<i64>>) {
        match self.column(|| Param::Ints(Vec::new())) {
            Param::Ints(values) => values.push(value.into()),
            other => unreachable!("a column of numbers holds {other:?}"),
        }
    }

    fn text(&mut self, value: Option<String>) {
        match self.column(|| Param::Texts(Vec::new())) {
            Param::Texts(values) => values.push(value),
            other => unreachable!("a column of text holds {other:?}"),
        }
    }

    fn words(&mut self, value: &str) {
        self.text(Some(value.to_owned()));
    }

    fn id(&mut self, value: impl Into<Option<Uuid>>) {
        match self.column(|| Param::Ids(Vec::new())) {
            Param::Ids(values) => values.push(value.into()),
            other => unreachable!("a column of ids holds {other:?}"),
        }
    }

    fn time(&mut self, value: Option<Timestamp>) {
        self.int(value.map(|at| at.0));
    }

    fn payload(&mut self, value: Option<&Payload>) {
        self.text(value.map(|payload| payload.text().to_owned()));
    }

    /// The statement for all rows, if there are any.
    pub(crate) fn call(self, sql: Sql) -> Option<Call> {
        (self.rows > 0).then_some(Call { sql, params: self.columns })
    }

    /// The same, with one value for all of them.
    pub(crate) fn call_with(self, sql: Sql, value: i64) -> Option<Call> {
        let mut call = self.call(sql)?;
        call.params.push(Param::Int(Some(value)));
        Some(call)
    }

    /// A place.
    pub(crate) fn at(&mut self, run: RunId, place: Place) {
        self.next = 0;
        self.id(run.0);
        self.int(i64::from(place.0));
        self.rows += 1;
    }

    /// Entries of a run's inbox after a number.
    pub(crate) fn unread(&mut self, run: RunId, after: u64, most: usize) {
        self.next = 0;
        self.id(run.0);
        self.int(stored(after));
        self.int(stored(most as u64));
        self.rows += 1;
    }

    /// A run that begins as most do ([`begins_plainly`]).
    pub(crate) fn begun_run(&mut self, record: &RunRecord, trace: Option<&str>) {
        self.next = 0;
        self.known_by(record, trace);
        self.int(stored(record.head.0));
        self.int(stored(record.turn_counter));
        self.time(Some(record.created_at));
        self.time(record.started_at);
        self.words(record.status.name());
        self.rows += 1;
    }

    fn known_by(&mut self, record: &RunRecord, trace: Option<&str>) {
        let (new, identity) = (&record.new, &record.new.identity);
        self.id(identity.id.0);
        self.words(identity.tenant.as_str());
        self.words(new.workflow_type.as_str());
        self.int(record.version.map(i64::from));
        self.words(identity.queue.as_str());
        self.int(i64::from(identity.priority));
        self.text(new.check.key.clone());
        self.words(&new.check.input_hash);
        self.payload(new.attributes.as_ref());
        self.text(trace.map(str::to_owned));
    }

    /// A first turn that waits to be claimed ([`waits_first`]).
    pub(crate) fn first_turn(&mut self, record: &RunRecord, row: &Row, trace: Option<&str>) {
        self.next = 0;
        self.id(record.new.identity.id.0);
        self.words(&row.name);
        self.int(i64::from(row.version));
        self.words(row.queue.as_str());
        self.words(record.new.identity.tenant.as_str());
        self.int(i64::from(row.priority));
        self.int(stored(row.seq.0));
        self.int(stored(row.order));
        self.text(trace.map(str::to_owned));
        self.rows += 1;
    }

    /// A run that begins.
    pub(crate) fn new_run(
        &mut self,
        record: &RunRecord,
        trace: Option<&str>,
    ) -> Result<(), Trouble> {
        self.row(|table| {
            table.known_by(record, trace);
            table.words(record.status.name());
            table.counters(record);
            table.parked(record.parked.as_ref());
            table.progress(record)?;
            table.time(Some(record.created_at));
            table.time(record.started_at);
            table.time(record.ended_at);
            Ok(())
        })
    }

    /// A run that went on by a step.
    pub(crate) fn head(&mut self, record: &RunRecord) {
        self.next = 0;
        self.id(record.new.identity.id.0);
        self.int(stored(record.head.0));
        self.rows += 1;
    }

    /// A run that ended ([`Rest::only_ends`]).
    pub(crate) fn end(&mut self, record: &RunRecord) {
        self.next = 0;
        self.id(record.new.identity.id.0);
        self.int(stored(record.head.0));
        self.words(record.status.name());
        self.time(record.ended_at);
        self.rows += 1;
    }

    /// A task that its worker goes on from ([`goes_on`]).
    pub(crate) fn step(&mut self, run: RunId, row: &Row, trace: Option<&str>) {
        let owner = row.owner.as_ref();
        self.next = 0;
        self.id(run.0);
        self.int(i64::from(row.place.0));
        self.words(&row.target);
        self.int(stored(row.seq.0));
        self.int(stored(row.number.0));
        self.time(owner.map(|owner| owner.claimed_at));
        self.time(owner.map(|owner| owner.deadline));
        self.int(i64::from(row.attempt));
        self.text(trace.map(str::to_owned));
        self.payload(row.input.as_ref());
        self.rows += 1;
    }

    /// A run that changed.
    pub(crate) fn run(&mut self, record: &RunRecord) -> Result<(), Trouble> {
        self.row(|table| {
            table.id(record.new.identity.id.0);
            table.int(record.version.map(i64::from));
            table.words(record.status.name());
            table.counters(record);
            table.parked(record.parked.as_ref());
            table.progress(record)?;
            table.time(record.started_at);
            table.time(record.ended_at);
            Ok(())
        })
    }

    fn counters(&mut self, record: &RunRecord) {
        self.int(stored(record.head.0));
        self.int(stored(record.inbox_last));
        self.int(stored(record.inbox_used));
        self.int(stored(record.turn_counter));
    }

    fn parked(&mut self, parked: Option<&Parked>) {
        self.text(parked.map(|parked| parked.code.clone()));
        self.text(parked.map(|parked| parked.reason.clone()));
        self.int(parked.map(|parked| i64::from(parked.times)));
        self.time(parked.map(|parked| parked.at));
    }

    fn progress(&mut self, record: &RunRecord) -> Result<(), Trouble> {
        self.text(match &record.waits {
            Waits::Any => None,
            Waits::Signals(names) => Some(json(names)?),
        });
        self.int(i64::from(record.retries));
        self.text(record.last_error.as_ref().map(json).transpose()?);
        Ok(())
    }

    /// The events of a commit as they are stored.
    pub(crate) fn history(
        &mut self,
        commit: &RunCommit,
        first: u64,
        now: Timestamp,
        events: String,
    ) -> Result<(), Trouble> {
        self.row(|table| {
            table.id(commit.run.0);
            table.int(stored(first));
            table.int(stored(commit.events.len() as u64));
            table.id(commit.id.0);
            table.time(Some(now));
            table.text(commit.trace.clone());
            table.text(Some(events));
            Ok(())
        })
    }

    /// All of a live task.
    pub(crate) fn task(
        &mut self,
        record: &RunRecord,
        row: &Row,
        trace: Option<&str>,
    ) -> Result<(), Trouble> {
        self.row(|table| {
            table.id(record.new.identity.id.0);
            table.int(i64::from(row.place.0));
            table.words(row.kind.name());
            table.words(&row.name);
            table.words(&row.target);
            table.int(row.watched.map(|place| i64::from(place.0)));
            table.int(i64::from(row.version));
            table.words(row.queue.as_str());
            table.words(record.new.identity.tenant.as_str());
            table.int(i64::from(row.priority));
            table.int(i64::from(row.fresh));
            table.standing(row);
            table.losses(row)?;
            table.text(row.options.as_deref().map(json).transpose()?);
            table.text(trace.map(str::to_owned));
            table.payload(row.details.as_ref());
            table.payload(row.input.as_ref());
            Ok(())
        })
    }

    /// What changes of a live task while it is about the same.
    pub(crate) fn task_change(&mut self, run: RunId, row: &Row) -> Result<(), Trouble> {
        self.row(|table| {
            table.id(run.0);
            table.int(i64::from(row.place.0));
            table.int(i64::from(row.version));
            table.int(i64::from(row.fresh));
            table.standing(row);
            table.losses(row)?;
            table.payload(row.details.as_ref());
            Ok(())
        })
    }

    fn standing(&mut self, row: &Row) {
        let owner = row.owner.as_ref();
        self.int(stored(row.seq.0));
        self.int(stored(row.number.0));
        self.words(row.state.name());
        self.int(stored(row.order));
        self.time(row.due);
        self.text(owner.map(|owner| owner.who.to_string()));
        self.id(owner.and_then(|owner| owner.call).map(|call| call.0));
        self.time(owner.map(|owner| owner.claimed_at));
        self.time(owner.map(|owner| owner.deadline));
        self.int(owner.and_then(|owner| owner.heartbeat).map(stored_millis));
        self.time(owner.and_then(|owner| owner.heartbeat_by));
        self.int(owner.map_or(0, |owner| i64::from(owner.unnamed)));
        self.int(i64::from(row.attempt));
        self.int(i64::from(row.deaths));
    }

    fn losses(&mut self, row: &Row) -> Result<(), Trouble> {
        let none = row.losses.is_empty();
        self.text(if none { None } else { Some(json(&row.losses)?) });
        Ok(())
    }

    /// An inbox entry.
    pub(crate) fn entry(
        &mut self,
        run: RunId,
        number: u64,
        entry: &Entry,
        now: Timestamp,
    ) -> Result<(), Trouble> {
        self.row(|table| {
            table.id(run.0);
            table.int(stored(number));
            table.words(&entry.id);
            table.words(entry.fact.name());
            table.time(Some(now));
            table.text(Some(entry.fact.to_json()));
            Ok(())
        })
    }

    /// Work that was given up.
    pub(crate) fn letter(&mut self, letter: &DeadLetterRow) -> Result<(), Trouble> {
        self.row(|table| {
            table.id(letter.run.0);
            table.words(letter.kind.name());
            table.words(letter.activity_id.as_str());
            table.words(&letter.activity_type);
            table.payload(Some(&letter.input));
            table.int(i64::from(letter.attempts));
            table.text(Some(letter.errors.last().map(ToString::to_string).unwrap_or_default()));
            table.text(Some(json(&letter.errors)?));
            table.time(Some(letter.dead_at));
            Ok(())
        })
    }
}

/// Whether a run that begins has nothing to say but what it is known by and how far it is.
pub(crate) fn begins_plainly(record: &RunRecord) -> bool {
    (record.inbox_last, record.inbox_used) == (0, 0)
        && record.parked.is_none()
        && record.waits == Waits::Any
        && record.retries == 0
        && record.last_error.is_none()
        && record.ended_at.is_none()
}

/// Whether a row is a run's first turn, as it waits to be claimed: all else is as it is at first.
pub(crate) fn waits_first(row: &Row) -> bool {
    row.kind == TaskKind::Turn
        && row.place == Place::TURN
        && row.state == TaskState::Ready
        && row.fresh
        && row.target.is_empty()
        && row.number.0 == 0
        && (row.attempt, row.deaths) == (0, 0)
        && row.losses.is_empty()
        && (row.watched.is_none() && row.due.is_none() && row.owner.is_none())
        && (row.input.is_none() && row.options.is_none() && row.details.is_none())
}

/// Whether a worker goes on from one task to the next of the same kind: most columns are as they
/// were.
pub(crate) fn goes_on(before: &Row, row: &Row) -> bool {
    let (Some(owned), Some(owner)) = (&before.owner, &row.owner) else { return false };
    let same_work = before.kind == row.kind
        && before.name == row.name
        && before.watched == row.watched
        && before.version == row.version
        && before.queue == row.queue
        && before.priority == row.priority
        && before.fresh == row.fresh
        && before.options == row.options
        && before.details == row.details;
    let same_standing = before.state == row.state
        && before.order == row.order
        && before.due == row.due
        && before.deaths == row.deaths
        && before.losses == row.losses;
    let same_owner = owned.who == owner.who
        && owned.call == owner.call
        && owned.heartbeat == owner.heartbeat
        && owned.heartbeat_by == owner.heartbeat_by
        && owned.unnamed == owner.unnamed;
    same_work && same_standing && same_owner
}

/// What is written of a run beside its head.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Rest {
    version: Option<u32>,
    status: RunStatus,
    inbox: (u64, u64),
    turn_counter: u64,
    parked: Option<Parked>,
    waits: Waits,
    retries: u32,
    last_error: Option<Box<LastError>>,
    times: (Option<Timestamp>, Option<Timestamp>),
}

impl Rest {
    /// Whether the run has ended since, and nothing else is different.
    pub(crate) fn only_ends(&self, after: &Rest) -> bool {
        let (status, times) = (after.status, (self.times.0, after.times.1));
        status.has_ended() && Rest { status, times, ..self.clone() } == *after
    }

    pub(crate) fn of(record: &RunRecord) -> Rest {
        Rest {
            version: record.version,
            status: record.status,
            inbox: (record.inbox_last, record.inbox_used),
            turn_counter: record.turn_counter,
            parked: record.parked.clone(),
            waits: record.waits.clone(),
            retries: record.retries,
            last_error: record.last_error.clone(),
            times: (record.started_at, record.ended_at),
        }
    }
}
