//! Facts for inboxes.

use crate::error::Trouble;
use crate::field::stored;
use crate::run::Run;
use crate::sql;
use crate::task::{Task, claim_stands};
use crate::tx::Tx;
use durably_kernel::{Fact, RunId};
use durably_store::{Delivered, Delivery, Hint};
use rusqlite::{OptionalExtension, params};

impl Tx<'_> {
    /// A repeat is recognised before the run's status and the claim are looked at.
    pub(crate) fn deliver(&mut self, delivery: Delivery) -> Result<Delivered, Trouble> {
        let Some(mut run) = Run::load(self.conn, delivery.run)? else {
            return Ok(Delivered::Unknown);
        };
        if let Some(number) = self.delivered_before(delivery.run, &delivery.id)? {
            return Ok(Delivered::Entry(number));
        }
        if run.status.has_ended() {
            return Ok(Delivered::Ended(run.status));
        }
        if let Some(held) = &delivery.claim {
            if !claim_stands(self.conn, delivery.run, &held.claim, Some(&held.who))? {
                return Ok(Delivered::Fenced);
            }
            Task::delete(self.conn, delivery.run, held.claim.place)?;
        }
        let wakes = delivery.fact.wakes();
        let fact = match delivery.fact {
            Fact::Signal(mut signal) => {
                signal.sent_at = self.now;
                Fact::Signal(signal)
            }
            fact => fact,
        };
        run.inbox_last += 1;
        self.conn.prepare_cached(sql::INBOX_INSERT)?.execute(params![
            delivery.run.0.as_bytes(),
            stored(run.inbox_last),
            delivery.id,
            fact.name(),
            self.now.0,
            fact.to_json(),
        ])?;
        self.ensure_turn(&mut run, wakes)?;
        run.save_inbox(self.conn)?;
        self.hint(Hint::Inbox(delivery.run));
        Ok(Delivered::Entry(run.inbox_last))
    }

    fn delivered_before(&self, run: RunId, id: &str) -> Result<Option<u64>, Trouble> {
        let mut statement = self.conn.prepare_cached(sql::INBOX_FIND)?;
        let number: Option<i64> =
            statement.query_row(params![run.0.as_bytes(), id], |row| row.get(0)).optional()?;
        Ok(number.and_then(|number| u64::try_from(number).ok()))
    }
}
