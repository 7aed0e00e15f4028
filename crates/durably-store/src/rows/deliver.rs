//! Facts for inboxes.

use super::state::{Entry, State};
use crate::answer::Delivered;
use crate::command::Delivery;
use crate::hint::Hint;
use durably_kernel::{Fact, Timestamp};

impl State {
    /// A repeat is recognised before anything else is looked at.
    pub fn deliver(&mut self, delivery: Delivery, now: Timestamp) -> Delivered {
        let Some(record) = self.runs.get(&delivery.run) else {
            return Delivered::Unknown;
        };
        if let Some(number) = record.inbox_ids.get(&delivery.id) {
            return Delivered::Entry(*number);
        }
        if record.status.has_ended() {
            return Delivered::Ended(record.status);
        }
        if let Some(held) = &delivery.claim {
            let row = record.rows.get(held.claim.place);
            if !row.is_some_and(|row| row.stands(delivery.run, &held.claim, &held.who)) {
                return Delivered::Fenced;
            }
            self.take_out(delivery.run, held.claim.place);
        }
        let wakes = delivery.fact.wakes();
        let fact = match delivery.fact {
            Fact::Signal(mut signal) => {
                signal.sent_at = now;
                Fact::Signal(signal)
            }
            fact => fact,
        };
        let record = self.record_mut(delivery.run);
        record.inbox_last += 1;
        let number = record.inbox_last;
        record.inbox.insert(number, Entry { id: delivery.id.clone(), fact });
        record.inbox_ids.insert(delivery.id, number);
        self.ensure_turn(delivery.run, wakes);
        self.hints.note(Hint::Inbox(delivery.run));
        Delivered::Entry(number)
    }
}
