//! What holds of a run's rows by themselves.

use super::shot::{RunShot, UNREAD_MAX};
use super::{Found, TIMES, hold};
use crate::find::TaskRow;
use durably_kernel::{Place, TaskKind, TaskState};
use std::collections::BTreeSet;

/// Every row is in a state that makes sense by itself.
pub(super) fn sound(shot: &RunShot, found: &mut Found) {
    let places = shot.tasks.windows(2).all(|two| two[0].place < two[1].place);
    hold(found, places, "I5", || "two rows at a place, or not in order");
    for row in &shot.tasks {
        claimed(row, found);
        let ended = shot.view.status.has_ended();
        let cancelling = row.state == TaskState::Cancelling;
        hold(found, !ended || cancelling, "I10", || {
            format!("a live row of an ended run: {}", named(row))
        });
        let turn = row.kind == TaskKind::Turn;
        hold(found, turn == (row.place == Place::TURN), "I5", || {
            format!("place 0 is for the turn row and for nothing else: {}", named(row))
        });
    }
}

fn claimed(row: &TaskRow, found: &mut Found) {
    let owned = matches!(row.state, TaskState::Claimed | TaskState::Cancelling);
    hold(found, owned == row.attempt.is_some(), "I9", || {
        format!("claimed without an owner, or owned unclaimed: {}", named(row))
    });
    hold(found, !owned || row.number > 0, "I9", || {
        format!("claimed without a claim number: {}", named(row))
    });
    let waits = row.state == TaskState::Waiting;
    hold(found, waits == row.due_at.is_some(), "I9", || {
        format!("a time without waiting, or waiting for no time: {}", named(row))
    });
    let claimable = matches!(row.kind, TaskKind::Turn | TaskKind::Activity);
    hold(found, claimable || waits, "I9", || {
        format!("a row that nobody claims does not wait: {}", named(row))
    });
    let losses = row.losses.iter().all(|loss| loss.lost_at >= loss.attempt.started_at);
    hold(found, losses, TIMES, || format!("an attempt was lost before it began: {}", named(row)));
}

/// A row, for people.
pub(super) fn named(row: &TaskRow) -> String {
    let (kind, state) = (row.kind.name(), row.state.name());
    match row.target.is_empty() {
        true => format!("place {} ({kind}, {state})", row.place),
        false => format!("place {} ({kind} {}, {state})", row.place, row.target),
    }
}

/// The inbox has no gaps, and what is unread has a turn row.
pub(super) fn inbox(shot: &RunShot, found: &mut Found) {
    let view = &shot.view;
    hold(found, view.inbox_used <= view.inbox_last, "I14", || {
        format!("{} entries are used up, {} were delivered", view.inbox_used, view.inbox_last)
    });
    let unread = view.inbox_last.saturating_sub(view.inbox_used);
    hold(found, shot.unread.len() as u64 >= unread.min(UNREAD_MAX as u64), "I14", || {
        format!("{unread} entries are unread, {} are there", shot.unread.len())
    });
    let mut numbers = shot.unread.iter().zip(view.inbox_used + 1..);
    let gap = numbers.find(|(entry, number)| entry.number != *number);
    hold(found, gap.is_none(), "I14", || {
        format!("inbox numbers have gaps: {} is missing", gap.map_or(0, |(_, number)| number))
    });
    let ids: BTreeSet<&str> = shot.unread.iter().map(|entry| entry.id.as_str()).collect();
    hold(found, ids.len() == shot.unread.len(), "I14", || "one id twice in the inbox");
    let ended = view.status.has_ended();
    hold(found, !ended || unread == 0, "I14", || "unread entries of an ended run");
    hold(found, ended || unread == 0 || shot.has_turn(), "I11", || {
        format!("{unread} unread inbox entries without a turn row: nobody will read them")
    });
}
