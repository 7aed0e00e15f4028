//! Claims tasks as slots allow, and hands them to those who do the work.

use crate::execute::{self, Begun, Granted, OfRun};
use crate::hands::InHand;
use crate::mailbox::Message;
use crate::persist::{FOR_EVER, persist};
use crate::shared::{Shared, fresh_run_id};
use durably_kernel::{Claim, Place, Tenant};
use durably_store::{
    CallId, ClaimCall, Claimable, Claimed, ClaimedTask, ClaimedWork, Class, HandBack, Returned,
    Want,
};
use std::sync::Arc;
use std::time::Duration;

/// Claims until the engine ends. Between claims it waits for a hint or for the poll. Room that
/// becomes free is a reason only where there was none: otherwise the last claim took all there was.
pub(crate) async fn run(shared: Arc<Shared>) {
    let settings = &shared.settings;
    let mut cursor = start_cursor(&shared);
    let mut pause = settings.poll_floor;
    while !shared.ended.is_cancelled() {
        let waiting = shared.hands.waiting();
        let freed = waiting.freed();
        let room = Room::keep(&shared);
        if room.is_empty() || shared.is_draining() {
            drop(room);
            tokio::select! {
                biased;
                () = shared.ended.cancelled() => return,
                () = freed => {}
                () = shared.environment.sleep(settings.poll_floor) => {}
            }
            continue;
        }
        let crowded = room.is_crowded();
        let _waiting = Some(waiting).filter(|_| crowded);
        if claim(&shared, room, &mut cursor).await {
            pause = settings.poll_floor;
            continue;
        }
        let hinted = tokio::select! {
            biased;
            () = shared.ended.cancelled() => return,
            () = shared.ready.notified() => true,
            () = freed, if crowded => true,
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

/// What there is room for. Turns and activities have bounds of their own, so that busy activities
/// do not block a signal; slots are kept until the claim is answered.
struct Room<'a> {
    shared: &'a Shared,
    /// None if no workflow is hosted.
    turns: Option<usize>,
    /// None if no activity is hosted.
    activities: Option<usize>,
}

impl<'a> Room<'a> {
    fn keep(shared: &'a Shared) -> Room<'a> {
        let settings = &shared.settings;
        let hosted = |any: Vec<Claimable>| !any.is_empty();
        let turns = hosted(shared.registry.turns()).then(|| {
            settings.turns_max.min(settings.inline_max.saturating_sub(shared.hands.turns()))
        });
        let activities = hosted(shared.registry.activities())
            .then(|| shared.hands.reserve(settings.slots, settings.slots));
        Room { shared, turns, activities }
    }

    fn is_empty(&self) -> bool {
        self.turns.unwrap_or(0) + self.activities.unwrap_or(0) == 0
    }

    /// There is work that there is no room for at all.
    fn is_crowded(&self) -> bool {
        self.turns == Some(0) || self.activities == Some(0)
    }

    fn wants(&self) -> Vec<Want> {
        let registry = &self.shared.registry;
        let wants = [
            Want { any: registry.turns(), most: self.turns.unwrap_or(0) },
            Want { any: registry.activities(), most: self.activities.unwrap_or(0) },
        ];
        wants.into_iter().filter(|want| want.most > 0).collect()
    }

    /// Whether a claim took all it could of turns or of activities: there may be more.
    fn is_used_up_by(&self, tasks: &[ClaimedTask]) -> bool {
        let turns = tasks.iter().filter(|task| task.claim.place == Place::TURN).count();
        let activities = tasks.len() - turns;
        (turns > 0 && Some(turns) >= self.turns)
            || (activities > 0 && Some(activities) >= self.activities)
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.shared.hands.release(self.activities.unwrap_or(0));
    }
}

/// One claim call, repeated under its id until it is answered. Says whether there may be more.
async fn claim(shared: &Arc<Shared>, room: Room<'_>, cursor: &mut Option<Tenant>) -> bool {
    let environment = shared.environment.as_ref();
    let call = ClaimCall {
        id: CallId(fresh_run_id(environment, 0).0),
        who: shared.who(),
        queues: shared.settings.queues.clone(),
        wants: room.wants(),
        cursor: cursor.clone(),
        turn_deadline: shared.settings.turn_deadline,
    };
    let sent = environment.monotonic();
    let _naming = shared.hands.naming();
    let answer = loop {
        match persist(environment, FOR_EVER, || shared.store.claim(call.clone())).await {
            Ok(answer) => break answer,
            // Repeatable: the call's id stays on the rows it took.
            Err(error) if error.class() == Class::Ambiguous => {
                tracing::warn!(%error, "the answer to a claim was lost; repeating it");
                environment.sleep(Duration::from_millis(5)).await;
                if shared.ended.is_cancelled() {
                    return false;
                }
            }
            Err(error) => {
                tracing::error!(%error, code = %error.code(), "cannot claim tasks");
                environment.sleep(shared.settings.poll_ceiling).await;
                return false;
            }
        }
    };
    match answer {
        Claimed::Refused => {
            // The beat notices too and takes a new incarnation; until then there is nothing to do.
            shared.claims.notify_one();
            environment.sleep(shared.settings.poll_floor).await;
            false
        }
        Claimed::Tasks { tasks, cursor: next, now } => {
            shared.hear(now);
            *cursor = next;
            let more = room.is_used_up_by(&tasks);
            drop(room);
            take_up_all(shared, tasks, environment.monotonic().saturating_sub(sent));
            more
        }
    }
}

/// Begins what an answer gave that took so long; what may be gone by now waits for a beat.
pub(crate) fn take_up_all(shared: &Arc<Shared>, tasks: Vec<ClaimedTask>, took: Duration) {
    let (late, fresh): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|task| {
        let options = match &task.work {
            ClaimedWork::Activity(activity) => Some(&*activity.options),
            ClaimedWork::Turn { .. } => None,
        };
        shared.settings.is_late(took, options)
    });
    shared.hands.add_unconfirmed(late);
    fresh.into_iter().for_each(|task| take_up(shared, task));
}

/// Begins a claimed task, once.
fn take_up(shared: &Arc<Shared>, task: ClaimedTask) {
    let ClaimedTask { claim, run, work } = task;
    match work {
        ClaimedWork::Activity(activity) => {
            let of = OfRun::at_claim(*run);
            let heartbeat = activity.options.heartbeat;
            let in_hand = InHand { heartbeat, ..InHand::default() };
            if shared.hands.take_up(claim, in_hand.clone()) {
                begin_taken_up(shared, Granted { claim, of, activity, in_hand }, false);
            }
        }
        ClaimedWork::Turn { .. } => {
            if shared.hands.take_up(claim, InHand::default()) && !unwanted(shared, claim) {
                let task = ClaimedTask { claim, run, work };
                shared.mailboxes.post(shared, claim.run, Message::Turn(Box::new(task)));
            }
        }
    }
}

/// Begins an activity that is taken up, once.
pub(crate) fn begin_taken_up(shared: &Arc<Shared>, granted: Granted, may_be_here: bool) -> Begun {
    match unwanted(shared, granted.claim) {
        true => Begun::Not,
        false => execute::begin(shared, granted, may_be_here),
    }
}

/// A process that drains begins nothing.
fn unwanted(shared: &Arc<Shared>, claim: Claim) -> bool {
    let draining = shared.is_draining();
    if draining {
        hand_back(shared, HandBack { claim, how: Returned::Unstarted });
    }
    draining
}

/// Gives a claim back in the background.
pub(crate) fn hand_back(shared: &Arc<Shared>, back: HandBack) {
    let shared = shared.clone();
    shared.environment.clone().spawn(Box::pin(async move {
        let _abandon = AbandonOnPanic { shared: &shared, claim: back.claim };
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

/// A claim that could not be handed back because of a panic, which is a defect of the store's, goes
/// back all the same when beats name it no more.
struct AbandonOnPanic<'a> {
    shared: &'a Shared,
    claim: Claim,
}

impl Drop for AbandonOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.hands.abandon(&self.claim);
        }
    }
}
