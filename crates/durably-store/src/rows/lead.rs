//! Leadership: one process at a time does what one is enough for.

use super::state::State;
use crate::answer::Led;
use crate::command::{LeadCall, Term};
use crate::find::{LeaderRow, WorkerStatus};
use durably_kernel::{Timestamp, WorkerId};

impl State {
    /// Who asks begins to lead, goes on, or learns that it does not.
    pub fn lead(&mut self, call: &LeadCall, now: Timestamp) -> Led {
        let status = self.workers.get(&call.who).map(|worker| worker.row.status);
        self.leader.lead(call, status, now)
    }
}

impl LeaderRow {
    /// What becomes of the row when a process of this status asks.
    pub fn lead(&mut self, call: &LeadCall, status: Option<WorkerStatus>, now: Timestamp) -> Led {
        let left = self.left(now);
        let goes_on = !left.is_zero() && self.who.as_ref() == Some(&call.who);
        let may = match status {
            Some(WorkerStatus::Active) => goes_on || left.is_zero(),
            Some(WorkerStatus::Draining) => goes_on,
            Some(WorkerStatus::Stopped | WorkerStatus::Stale) | None => false,
        };
        if !may {
            return Led::Follows { left };
        }
        if !goes_on {
            self.term = Term(self.term.0 + 1);
            self.who = Some(call.who.clone());
        }
        (self.renewed_at, self.lease) = (now, call.lease);
        Led::Leads { term: self.term, left: call.lease }
    }

    /// A process leaves; whether it led.
    pub fn leave(&mut self, who: &WorkerId) -> bool {
        self.who.take_if(|leader| leader == who).is_some()
    }
}
