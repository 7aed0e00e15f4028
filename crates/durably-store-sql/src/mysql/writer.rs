//! Which node of a Galera cluster is written to.
//!
//! All nodes take writes, but they must not have them at the same time from us: a row that a claim
//! skips as locked on one node is free on another, what was committed on one is not yet to be seen
//! on another, and a conflict between two shows only at COMMIT. So the name of one node stands in
//! row 0 of `durable_schema`, which the cluster itself keeps the same everywhere:
//!
//! - Who connects looks there, after the node has caught up with the others, and goes to that node.
//! - Where that node is out of reach, the first one of the URL that is not writes its own name.
//! - Every transaction looks whether the name is still that of its node.
//!
//! Nobody goes back by himself to a node that returns: whoever came meanwhile is elsewhere, and
//! processes that do not go back at the same moment would write to two nodes.

use crate::error::{Kind, Trouble};
use crate::mysql::connect::bind;
use crate::mysql::error::trouble_before_commit;
use crate::mysql::line::Line;
use crate::mysql::param::MyRow;
use crate::session::Fields;
use crate::text::{Dialect, Naming, render};
use mysql_async::{Row, Value};

const SCHEMA_THERE: &str = include_str!("../../sql/mysql/schema_there.sql");
const WRITER: &str = include_str!("../../sql/mysql/writer.sql");
const WRITER_LOCK: &str = include_str!("../../sql/mysql/writer_lock.sql");
const WRITER_TAKE: &str = include_str!("../../sql/mysql/writer_take.sql");

/// What stands in the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Recorded {
    /// There are no tables yet.
    NoTables,
    /// Nobody wrote a name so far.
    Nobody,
    /// A node.
    Node(String),
}

/// A connection to a node that may become the one that is written to.
pub(super) struct Candidate<'a> {
    pub(super) line: &'a mut Line,
    pub(super) naming: &'a Naming,
}

impl Candidate<'_> {
    /// Who is written to, as all nodes know it: waits until this one has caught up with what the
    /// others have committed. That includes whatever a node that is gone had acknowledged.
    pub(super) async fn recorded(&mut self) -> Result<Recorded, Trouble> {
        self.tell("set session wsrep_sync_wait = 1").await?;
        let table = Value::from(render("durable_schema", Dialect::Mysql, self.naming));
        let there = first(bind(self.line, SCHEMA_THERE, vec![table]).await?);
        let recorded = match there.map(|mut row| row.int()).transpose()?.flatten() {
            Some(1) => self.name(WRITER).await?,
            _ => Recorded::NoTables,
        };
        self.tell("set session wsrep_sync_wait = default").await?;
        Ok(recorded)
    }

    /// Writes the name of this node, unless another one than was seen stands there by now. Says
    /// whether it did.
    pub(super) async fn take(&mut self, node: &str, seen: &Recorded) -> Result<bool, Trouble> {
        let taken = self.take_within(node, seen).await;
        if !matches!(taken, Ok(true)) {
            self.tell("rollback").await?;
        }
        match taken {
            // Another node was quicker.
            Err(trouble) if trouble.repeats() => Ok(false),
            taken => taken,
        }
    }

    async fn take_within(&mut self, node: &str, seen: &Recorded) -> Result<bool, Trouble> {
        self.tell("start transaction").await?;
        if self.name(WRITER_LOCK).await? != *seen {
            return Ok(false);
        }
        let text = render(WRITER_TAKE, Dialect::Mysql, self.naming);
        bind(self.line, &text, vec![Value::from(node)]).await?;
        self.tell("commit").await?;
        Ok(true)
    }

    async fn name(&mut self, text: &str) -> Result<Recorded, Trouble> {
        let rows = bind(self.line, &render(text, Dialect::Mysql, self.naming), Vec::new()).await?;
        Ok(match first(rows).map(|mut row| row.text()).transpose()?.flatten() {
            Some(name) => Recorded::Node(name),
            None => Recorded::Nobody,
        })
    }

    async fn tell(&mut self, text: &str) -> Result<(), Trouble> {
        self.line.tell(text).await.map(|_| ()).map_err(|error| trouble_before_commit(&error))
    }
}

fn first(rows: Vec<Row>) -> Option<MyRow> {
    rows.into_iter().next().map(MyRow::from)
}

/// Whether a transaction that began on a node may go on there.
pub(super) fn check(node: &str, recorded: Option<&str>) -> Result<(), Trouble> {
    match recorded {
        Some(recorded) if recorded == node => Ok(()),
        recorded => {
            let recorded = recorded.unwrap_or("none");
            let problem = format!("the cluster is written to on node {recorded}, this is {node}");
            Err(Trouble::server(Kind::Away, problem))
        }
    }
}
