//! Reads: for turns, and for people.

use super::UNREAD_MAX;
use super::state::{RunRecord, State};
use crate::answer::{InboxEntry, Loaded, RunView};
use crate::command::LoadCall;
use crate::find::{DeadLetterRow, EventRow, Examined, HistoryPage, RunQuery, TaskRow, WorkerRow};
use durably_kernel::{RunId, Seq, Timestamp};

impl State {
    /// A run for a turn.
    pub fn load(&self, call: &LoadCall, now: Timestamp) -> Option<Loaded> {
        let record = self.runs.get(&call.run)?;
        let page = record.page(call.after, call.events_max);
        let stands = |claim: &&durably_kernel::Claim| {
            let row = record.rows.get(claim.place);
            row.zip(call.who.as_ref()).is_some_and(|(row, who)| row.stands(call.run, claim, who))
        };
        Some(Loaded {
            view: record.view(),
            events: page.events.into_iter().map(|row| row.event).collect(),
            more: page.more,
            unread: record.unread(UNREAD_MAX),
            standing: call.claims.iter().filter(stands).copied().collect(),
            now,
        })
    }

    pub(crate) fn view(&self, run: RunId) -> Option<RunView> {
        self.runs.get(&run).map(|record| record.view())
    }

    pub(crate) fn views(&self, query: &RunQuery) -> Vec<RunView> {
        let fits = |record: &RunRecord| {
            let identity = &record.new.identity;
            query.tenant.as_ref().is_none_or(|tenant| *tenant == identity.tenant)
                && query.workflow_type.as_ref().is_none_or(|t| *t == record.new.workflow_type)
                && (query.statuses.is_empty() || query.statuses.contains(&record.status))
                && query.before.is_none_or(|before| identity.id < before)
                && (query.idempotency_key.is_none()
                    || query.idempotency_key == record.new.check.key)
        };
        let records =
            self.runs.iter().rev().map(|(_, record)| record).filter(|record| fits(record));
        records.take(query.most).map(|record| record.view()).collect()
    }

    pub(crate) fn history(&self, run: RunId, after: Seq, most: usize) -> HistoryPage {
        self.runs.get(&run).map(|record| record.page(after, most)).unwrap_or_default()
    }

    /// The live rows of a run, by place.
    pub fn task_rows(&self, run: RunId) -> Vec<TaskRow> {
        let Some(record) = self.runs.get(&run) else {
            return Vec::new();
        };
        let rows = record.rows.values();
        rows.map(|row| TaskRow {
            place: row.place,
            kind: row.kind,
            name: row.name.to_string(),
            target: row.target.to_string(),
            state: row.state,
            queue: row.queue.clone(),
            priority: row.priority,
            seq: row.seq,
            number: row.number.0,
            due_at: row.due,
            attempt: row.attempt_now(),
            attempts: row.attempt,
            losses: row.losses.clone(),
            details: row.details.clone(),
        })
        .collect()
    }

    pub(crate) fn entries(&self, run: RunId, after: u64, most: usize) -> Vec<InboxEntry> {
        self.runs.get(&run).map(|record| record.entries(after, most)).unwrap_or_default()
    }

    /// Rows are found by their runs here: every id is that of a run, and every row has its tenant.
    pub(crate) fn examine(&self, from: RunId, most: usize) -> Vec<Examined> {
        let records = self.runs.iter().filter(|(run, _)| **run >= from).take(most);
        let examined = records.map(|(run, record)| {
            let letters = self.dead_letters.iter().filter(|letter| letter.run == *run);
            Examined {
                run: *run,
                known: true,
                commits: record.history.len() as u64,
                events: record.history.iter().map(|row| row.events.len() as u64).sum(),
                tasks: record.rows.values().count() as u64,
                foreign_tasks: 0,
                entries: record.inbox.len() as u64,
                last_entry: record.inbox.keys().next_back().copied().unwrap_or(0),
                letters: letters.count() as u64,
                same_key: 0,
            }
        });
        examined.collect()
    }

    pub(crate) fn dead_letter_rows(&self, run: Option<RunId>, most: usize) -> Vec<DeadLetterRow> {
        let letters = self.dead_letters.iter().rev();
        letters
            .filter(|letter| run.is_none_or(|run| letter.run == run))
            .take(most)
            .cloned()
            .collect()
    }

    pub(crate) fn worker_rows(&self) -> Vec<WorkerRow> {
        let mut workers: Vec<_> = self.workers.values().collect();
        workers.sort_by_key(|worker| std::cmp::Reverse(worker.birth));
        workers.into_iter().map(|worker| worker.row.clone()).collect()
    }
}

impl RunRecord {
    /// The events after one, at most so many, of the history that is there.
    pub fn page(&self, after: Seq, most: usize) -> HistoryPage {
        let before = self.history.partition_point(|row| row.first <= after);
        let rows = self.history[before.saturating_sub(1)..].iter();
        let events = rows.flat_map(|row| {
            (row.first.0..).map(Seq).zip(&row.events).map(move |(seq, event)| (seq, event, row.at))
        });
        let events = events.filter(|(seq, ..)| *seq > after).take(most);
        let events: Vec<EventRow> = events
            .map(|(seq, event, committed_at)| EventRow { seq, event: event.clone(), committed_at })
            .collect();
        let more = events.last().is_some_and(|last| last.seq < self.head);
        HistoryPage { events, more }
    }
}
