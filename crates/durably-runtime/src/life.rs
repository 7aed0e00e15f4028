//! Keeps the process alive in the store's eyes, and hears what became of its claims.

use crate::mailbox::Message;
use crate::persist::{FOR_EVER, persist};
use crate::shared::{Shared, host_name};
use crate::token::CancelReason;
use crate::worker::{hand_back, take_up_all};
use durably_kernel::{Claim, Place};
use durably_store::{Beat, BeatAnswer, ClaimedTask, HandBack, Registration, Returned};
use std::sync::Arc;
use std::time::Duration;

/// Introduces this incarnation to the store.
pub(crate) fn registration(shared: &Shared) -> Registration {
    Registration {
        who: shared.who(),
        group: shared.settings.group.clone(),
        queues: shared.settings.queues.clone(),
        can: shared.registry.can(),
        capacity: u32::try_from(shared.settings.slots).unwrap_or(u32::MAX),
        host: host_name(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Beats until the engine ends.
pub(crate) async fn beats(shared: Arc<Shared>) {
    loop {
        let shortest = shared.hands.shortest_heartbeat().map(|heartbeat| heartbeat / 3);
        let pause = shared.settings.beat.min(shortest.unwrap_or(Duration::MAX));
        tokio::select! {
            biased;
            () = shared.ended.cancelled() => return,
            () = shared.environment.sleep(pause.max(Duration::from_millis(10))) => {}
        }
        beat(&shared).await;
    }
}

async fn beat(shared: &Arc<Shared>) {
    let beat = Beat {
        who: shared.who(),
        number: shared.next_beat(),
        load: u32::try_from(shared.hands.executing()).unwrap_or(u32::MAX),
        claims: shared.hands.claims(),
        heartbeats: shared.hands.heartbeats(),
    };
    let sent = shared.environment.monotonic();
    let _naming = shared.hands.naming();
    let answer = match shared.store.beat(beat.clone()).await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::warn!(%error, "a beat failed");
            shared.beat_failed();
            shared.hands.refresh(&beat.heartbeats);
            return;
        }
    };
    match answer {
        BeatAnswer::Refused => reborn(shared).await,
        BeatAnswer::Alive { lost, cancelling, unnamed, unread, now } => {
            shared.beat_succeeded();
            shared.hear(now);
            let confirmed = shared.hands.take_unconfirmed(&beat.claims);
            let stands = |task: &ClaimedTask| {
                !lost.contains(&task.claim) && !cancelling.contains(&task.claim)
            };
            let (mut ours, gone): (Vec<_>, Vec<_>) = confirmed.into_iter().partition(stands);
            for task in gone {
                hand_back(shared, HandBack { claim: task.claim, how: Returned::Confirmed });
            }
            lost.iter().for_each(|claim| claim_lost(shared, claim));
            for claim in &cancelling {
                shared.hands.cancel(claim, CancelReason::RunCancelled);
            }
            ours.extend(unnamed);
            let took = shared.environment.monotonic().saturating_sub(sent);
            take_up_all(shared, ours, took);
            for run in unread {
                shared.mailboxes.tell(run, Message::Unread);
            }
        }
    }
}

fn claim_lost(shared: &Shared, claim: &Claim) {
    // A claim that a commit is using up is gone for a good reason.
    if !shared.hands.is_settled(claim) {
        return;
    }
    shared.hands.cancel(claim, CancelReason::ClaimLost);
    if claim.place == Place::TURN {
        shared.mailboxes.tell(claim.run, Message::HoldLost(*claim));
    }
}

/// A process declared dead stays dead: what it has is lost, and it begins anew.
async fn reborn(shared: &Arc<Shared>) {
    if shared.is_draining() {
        return;
    }
    tracing::warn!(worker = %shared.who(), "declared dead by others; taking a new incarnation");
    for claim in shared.hands.settled() {
        claim_lost(shared, &claim);
    }
    shared.reincarnate();
    let call = || shared.store.register(registration(shared));
    if let Err(error) = persist(shared.environment.as_ref(), FOR_EVER, call).await {
        tracing::error!(%error, code = %error.code(), "cannot register with the store");
    }
    shared.ready.notify_one();
}

/// While it holds claims, the process asks which of them stand.
pub(crate) async fn questions(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            biased;
            () = shared.ended.cancelled() => return,
            () = shared.claims.notified() => {}
            () = shared.environment.sleep(shared.settings.ask) => {}
        }
        let mine = shared.hands.settled();
        if mine.is_empty() {
            continue;
        }
        match shared.store.ask(shared.who()).await {
            Ok(answer) => {
                for claim in &mine {
                    if answer.cancelling.contains(claim) {
                        shared.hands.cancel(claim, CancelReason::RunCancelled);
                    } else if !answer.standing.contains(claim) {
                        claim_lost(&shared, claim);
                    }
                }
                for run in answer.unread {
                    shared.mailboxes.tell(run, Message::Unread);
                }
            }
            Err(error) => tracing::debug!(%error, "could not ask which claims stand"),
        }
    }
}

/// Passes the store's hints on.
pub(crate) async fn hints(shared: Arc<Shared>) {
    let mut listener = shared.store.hints().listen();
    loop {
        let heard = tokio::select! {
            biased;
            () = shared.ended.cancelled() => return,
            heard = listener.next() => heard,
        };
        if heard.ready {
            shared.ready.notify_one();
        }
        if heard.due {
            shared.due.notify_one();
        }
        if heard.claims {
            shared.claims.notify_one();
        }
        for run in heard.inboxes {
            shared.mailboxes.tell(run, Message::Unread);
        }
        if heard.missed {
            shared.mailboxes.tell_all(|| Message::Unread);
        }
    }
}
