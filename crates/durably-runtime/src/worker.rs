//! Claims tasks as slots allow, and hands them to those who do the work.

use crate::execute;
use crate::hands::InHand;
use crate::mailbox::Message;
use crate::persist::{FOR_EVER, persist};
use crate::shared::{Shared, fresh_run_id};
use durably_kernel::Tenant;
use durably_store::{
    CallId, ClaimCall, Claimed, ClaimedTask, ClaimedWork, Class, HandBack, Returned, Want,
};
use std::sync::Arc;
use std::time::Duration;

/// Claims until the engine ends.
pub(crate) async fn run(shared: Arc<Shared>) {
    let settings = &shared.settings;
    let mut cursor = start_cursor(&shared);
    let mut pause = settings.poll_floor;
    while !shared.ended.is_cancelled() {
        let wants = wants(&shared);
        let freed = shared.hands.freed.notified();
        if wants.is_empty() || shared.is_draining() {
            tokio::select! {
                biased;
                () = shared.ended.cancelled() => return,
                () = freed => {}
                () = shared.environment.sleep(settings.poll_floor) => {}
            }
            continue;
        }
        match claim(&shared, wants, &mut cursor).await {
            Some(taken) if taken > 0 => {
                pause = settings.poll_floor;
                continue;
            }
            _ => {}
        }
        let hinted = tokio::select! {
            biased;
            () = shared.ended.cancelled() => return,
            () = shared.ready.notified() => true,
            () = freed => true,
            () = shared.environment.sleep(jittered(&shared, pause)) => false,
        };
        pause = match hinted {
            true => settings.poll_floor,
            false => (pause * 2).min(settings.poll_ceiling),
        };
    }
}

/// Cursors start at random, so that processes do not favour the same tenants.
fn start_cursor(shared: &Shared) -> Option<Tenant> {
    let letter = char::from(b'a' + (shared.environment.random() % 26) as u8);
    Some(Tenant::from(letter.to_string()))
}

fn jittered(shared: &Shared, pause: Duration) -> Duration {
    let tenth = pause.as_millis() as u64 / 10;
    pause + Duration::from_millis(shared.environment.random() % (tenth + 1))
}

/// What there is room for: turns and activities have bounds of their own, so that busy activities
/// do not block a signal.
fn wants(shared: &Shared) -> Vec<Want> {
    let settings = &shared.settings;
    let turns = settings.turns_max.min(settings.inline_max.saturating_sub(shared.hands.turns()));
    let taken = shared.hands.executing() + shared.hands.unconfirmed();
    let activities = settings.slots.saturating_sub(taken);
    let wants = [
        Want { any: shared.registry.turns(), most: turns },
        Want { any: shared.registry.activities(), most: activities },
    ];
    wants.into_iter().filter(|want| want.most > 0 && !want.any.is_empty()).collect()
}

/// One claim call, repeated under its id until it is answered. Says how many tasks it took.
async fn claim(
    shared: &Arc<Shared>,
    wants: Vec<Want>,
    cursor: &mut Option<Tenant>,
) -> Option<usize> {
    let environment = shared.environment.as_ref();
    let call = ClaimCall {
        id: CallId(fresh_run_id(environment, 0).0),
        who: shared.who(),
        queues: shared.settings.queues.clone(),
        wants,
        cursor: cursor.clone(),
        turn_deadline: shared.settings.turn_deadline,
    };
    let sent = environment.monotonic();
    let answer = loop {
        match persist(environment, FOR_EVER, || shared.store.claim(call.clone())).await {
            Ok(answer) => break answer,
            // Repeatable: the call's id stays on the rows it took.
            Err(error) if error.class() == Class::Ambiguous => {
                tracing::warn!(%error, "the answer to a claim was lost; repeating it");
                environment.sleep(Duration::from_millis(5)).await;
                if shared.ended.is_cancelled() {
                    return None;
                }
            }
            Err(error) => {
                tracing::error!(%error, code = %error.code(), "cannot claim tasks");
                environment.sleep(shared.settings.poll_ceiling).await;
                return None;
            }
        }
    };
    match answer {
        Claimed::Refused => {
            // The beat notices too and takes a new incarnation; until then there is nothing to do.
            shared.claims.notify_one();
            environment.sleep(shared.settings.poll_floor).await;
            None
        }
        Claimed::Tasks { tasks, cursor: next, now } => {
            shared.clock.hear(environment, now);
            *cursor = next;
            let taken = tasks.len();
            let late = environment.monotonic().saturating_sub(sent) > shared.settings.beat;
            match late {
                // The claims may have been taken back meanwhile: a beat must confirm them first.
                true => shared.hands.add_unconfirmed(tasks),
                false => tasks.into_iter().for_each(|task| take_up(shared, task)),
            }
            Some(taken)
        }
    }
}

/// Begins a claimed task, once.
pub(crate) fn take_up(shared: &Arc<Shared>, task: ClaimedTask) {
    let heartbeat = match &task.work {
        ClaimedWork::Activity(activity) => activity.options.heartbeat,
        ClaimedWork::Turn { .. } => None,
    };
    let in_hand = InHand {
        token: Default::default(),
        pulse: Default::default(),
        heartbeat,
        committing: false,
    };
    if !shared.hands.take_up(task.claim, in_hand.clone()) {
        return;
    }
    if shared.is_draining() {
        hand_back(shared, HandBack { claim: task.claim, how: Returned::Unstarted });
        return;
    }
    match &task.work {
        ClaimedWork::Turn { .. } => {
            let run = task.claim.run;
            shared.mailboxes.post(shared, run, Message::Turn(Box::new(task)));
        }
        ClaimedWork::Activity(_) => execute::spawn(shared, task, in_hand),
    }
}

/// Gives a claim back in the background.
pub(crate) fn hand_back(shared: &Arc<Shared>, back: HandBack) {
    let shared = shared.clone();
    shared.environment.clone().spawn(Box::pin(async move {
        let call = || shared.store.hand_back(shared.who(), vec![back]);
        while let Err(error) = persist(shared.environment.as_ref(), FOR_EVER, call).await {
            tracing::warn!(%error, "a claim could not be handed back, trying again");
            // Repeatable: a claim that went back does not stand any more.
            shared.environment.sleep(shared.settings.poll_ceiling).await;
            if shared.ended.is_cancelled() {
                break;
            }
        }
        shared.hands.let_go(&back.claim);
    }));
}
