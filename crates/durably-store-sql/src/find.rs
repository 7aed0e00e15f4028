//! Reads for people. They take no locks.

use crate::command::Question;
use crate::error::Trouble;
use crate::field::{id, limit, stored, text};
use crate::load::history;
use crate::record::{read_entry, read_examined, read_letter, read_run, read_task, read_worker};
use crate::session::{Call, Param, Session};
use crate::text::Sql;
use durably_kernel::{RunId, Seq};
use durably_store::rows::{RunRecord, State};
use durably_store::{
    DeadLetterRow, Examined, HistoryPage, InboxEntry, RunQuery, RunView, TaskRow, WorkerRow,
};
use std::cmp::Reverse;

/// One question, its rows.
async fn rows<S: Session>(
    session: &mut S,
    sql: Sql,
    params: Vec<Param>,
) -> Result<Vec<S::Row>, Trouble> {
    let answers = session.ask(vec![Call { sql, params }]).await?;
    Ok(answers.into_iter().next().unwrap_or_default())
}

async fn record<S: Session>(session: &mut S, run: RunId) -> Result<Option<RunRecord>, Trouble> {
    let rows = rows(session, Sql::RunById, vec![id(run.0)]).await?;
    rows.into_iter().next().map(read_run).transpose()
}

/// One run.
pub(crate) struct FindRun {
    pub(crate) run: RunId,
}

impl Question for FindRun {
    const NAME: &'static str = "run";

    type Answer = Option<RunView>;

    async fn ask<S: Session>(&self, session: &mut S) -> Result<Self::Answer, Trouble> {
        Ok(record(session, self.run).await?.map(|record| record.view()))
    }
}

/// Runs, newest first.
pub(crate) struct FindRuns {
    pub(crate) query: RunQuery,
}

impl Question for FindRuns {
    const NAME: &'static str = "runs";

    type Answer = Vec<RunView>;

    async fn ask<S: Session>(&self, session: &mut S) -> Result<Self::Answer, Trouble> {
        let query = &self.query;
        let params = |most: usize, also: Option<&str>| {
            let before = Param::Id(query.before.map(|run| run.0));
            let tenant = Param::Text(query.tenant.as_ref().map(ToString::to_string));
            let workflow = Param::Text(query.workflow_type.as_ref().map(ToString::to_string));
            let params = [before, tenant, workflow, limit(most)];
            params.into_iter().chain(also.map(text)).collect::<Vec<_>>()
        };
        let mut runs = Vec::new();
        if let Some(key) = &query.idempotency_key {
            let found = rows(session, Sql::RunsByKey, params(usize::MAX, Some(key))).await?;
            runs.extend(views(found)?);
            runs.retain(|run| query.statuses.is_empty() || query.statuses.contains(&run.status));
        } else if query.statuses.is_empty() {
            runs.extend(views(rows(session, Sql::RunsAll, params(query.most, None)).await?)?);
        } else {
            let mut statuses = query.statuses.clone();
            statuses.sort();
            statuses.dedup();
            for status in statuses {
                let params = params(query.most, Some(status.name()));
                runs.extend(views(rows(session, Sql::RunsByStatus, params).await?)?);
            }
            runs.sort_by_key(|run| Reverse(run.identity.id));
        }
        runs.truncate(query.most);
        Ok(runs)
    }
}

fn views(rows: Vec<impl crate::session::Fields>) -> Result<Vec<RunView>, Trouble> {
    rows.into_iter().map(|row| Ok(read_run(row)?.view())).collect()
}

/// A page of a run's history.
pub(crate) struct FindHistory {
    pub(crate) run: RunId,
    pub(crate) after: Seq,
    pub(crate) most: usize,
}

impl Question for FindHistory {
    const NAME: &'static str = "history";

    type Answer = HistoryPage;

    async fn ask<S: Session>(&self, session: &mut S) -> Result<Self::Answer, Trouble> {
        let Some(mut record) = record(session, self.run).await? else {
            return Ok(HistoryPage::default());
        };
        if self.after < record.head {
            record.history = history(session, self.run, self.after, self.most).await?;
        }
        Ok(record.page(self.after, self.most))
    }
}

/// The live rows of a run.
pub(crate) struct FindTasks {
    pub(crate) run: RunId,
}

impl Question for FindTasks {
    const NAME: &'static str = "tasks";

    type Answer = Vec<TaskRow>;

    async fn ask<S: Session>(&self, session: &mut S) -> Result<Self::Answer, Trouble> {
        let Some(record) = record(session, self.run).await? else { return Ok(Vec::new()) };
        let mut state = State::default();
        state.insert_run(Box::new(record));
        for row in rows(session, Sql::TasksOfRun, vec![id(self.run.0)]).await? {
            let (run, task) = read_task(row)?;
            state.insert_row(run, task);
        }
        Ok(state.task_rows(self.run))
    }
}

/// Dead letters, newest first.
pub(crate) struct FindLetters {
    pub(crate) run: Option<RunId>,
    pub(crate) most: usize,
}

impl Question for FindLetters {
    const NAME: &'static str = "dead letters";

    type Answer = Vec<DeadLetterRow>;

    async fn ask<S: Session>(&self, session: &mut S) -> Result<Self::Answer, Trouble> {
        let found = match self.run {
            None => rows(session, Sql::LettersAll, vec![limit(self.most)]).await?,
            Some(run) => {
                let params = vec![limit(self.most), id(run.0)];
                rows(session, Sql::LettersOfRun, params).await?
            }
        };
        found.into_iter().map(read_letter).collect()
    }
}

/// All processes, newest first.
pub(crate) struct FindWorkers;

impl Question for FindWorkers {
    const NAME: &'static str = "workers";

    type Answer = Vec<WorkerRow>;

    async fn ask<S: Session>(&self, session: &mut S) -> Result<Self::Answer, Trouble> {
        rows(session, Sql::WorkersAll, vec![]).await?.into_iter().map(read_worker).collect()
    }
}

/// A page of a run's inbox.
pub(crate) struct FindInbox {
    pub(crate) run: RunId,
    pub(crate) after: u64,
    pub(crate) most: usize,
}

impl Question for FindInbox {
    const NAME: &'static str = "inbox";

    type Answer = Vec<InboxEntry>;

    async fn ask<S: Session>(&self, session: &mut S) -> Result<Self::Answer, Trouble> {
        let after = Param::Int(Some(stored(self.after)));
        let params = vec![id(self.run.0), after, limit(self.most)];
        let entries = rows(session, Sql::InboxPage, params).await?;
        let read = |row| {
            let (_, number, entry) = read_entry(row)?;
            Ok(InboxEntry { number, id: entry.id, fact: entry.fact })
        };
        entries.into_iter().map(read).collect()
    }
}

/// What the tables hold, by id.
pub(crate) struct Examine {
    pub(crate) from: RunId,
    pub(crate) most: usize,
}

impl Question for Examine {
    const NAME: &'static str = "examine";

    type Answer = Vec<Examined>;

    async fn ask<S: Session>(&self, session: &mut S) -> Result<Self::Answer, Trouble> {
        let params = vec![id(self.from.0), limit(self.most)];
        rows(session, Sql::Examine, params).await?.into_iter().map(read_examined).collect()
    }
}
