//! Looks at who leads.

use crate::outside::Outside;
use crate::tally;
use crate::watch::at_once;
use durably_kernel::{Timestamp, WorkerId};
use durably_store::{LeaderRow, Led, Store, WorkerStatus};

/// Somebody asked to lead, and this was the answer.
pub(super) fn led(outside: &Outside, who: &WorkerId, led: &Led) {
    let now = outside.store_now();
    let row = at_once(outside.store.leader());
    let before = std::mem::replace(&mut *outside.leader.lock(), row.clone());
    outside.trace.note("led", &[row.term.0], || format!("  {who} {led:?}: {row:?}"));
    if let Err(broken) = check(outside, &before, &row, now) {
        outside.violated(format!("leadership: {broken}: {before:?}, then {row:?} at {now:?}"));
    }
    let leads = matches!(led, Led::Leads { .. });
    if leads && (row.who.as_ref() != Some(who) || row.left(now).is_zero()) {
        outside.violated(format!("leadership: {who} was told that it leads: {row:?}"));
    }
}

/// One term has one leader, and a new one begins only when the one before is over.
fn check(
    outside: &Outside,
    before: &LeaderRow,
    row: &LeaderRow,
    now: Timestamp,
) -> Result<(), &'static str> {
    let (Some(leader), Some(next)) = (&before.who, &row.who) else {
        return if row.term >= before.term { Ok(()) } else { Err("the term went back") };
    };
    if row.term == before.term {
        return if leader == next { Ok(()) } else { Err("two have led in one term") };
    }
    let workers = at_once(outside.store.workers());
    let stopped = |worker: &durably_store::WorkerRow| {
        worker.who == *leader && worker.status == WorkerStatus::Stopped
    };
    let left = workers.iter().any(stopped);
    if row.term < before.term {
        return Err("the term went back");
    }
    if !left && !before.left(now).is_zero() {
        return Err("taken over before its time");
    }
    outside.saw(match (leader == next, left) {
        (true, _) => tally::LED_AGAIN,
        (false, true) => tally::LED_AFTER_STOP,
        (false, false) => tally::LED_BY_ANOTHER,
    });
    Ok(())
}
