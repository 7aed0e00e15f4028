//! Executes one attempt of an activity.

use crate::hands::InHand;
use crate::host::{ActivityContext, ActivityHost, panic_text};
use crate::mailbox::{Finished, Message};
use crate::shared::Shared;
use crate::token::CancelReason;
use crate::worker::hand_back;
use durably_kernel::{
    Claim, Code, Fact, Failure, FailureKind, Payload, TimeoutKind, check_payload,
};
use durably_store::{ClaimedActivity, ClaimedTask, ClaimedWork, HandBack, Returned, RunView};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tracing::Instrument;

/// Executes a claimed activity in a task of its own.
pub(crate) fn spawn(shared: &Arc<Shared>, task: ClaimedTask, in_hand: InHand) {
    let ClaimedTask { claim, run, work } = task;
    let ClaimedWork::Activity(activity) = work else {
        unreachable!("only activities are executed");
    };
    let Some(host) = shared.registry.activity(&activity.activity_type) else {
        hand_back(shared, HandBack { claim, how: Returned::Unstarted });
        return;
    };
    shared.hands.begin_executing();
    let execution = Execution { shared: shared.clone(), claim, run, activity, host, in_hand };
    let span = tracing::info_span!(
        "durable.activity.execute",
        durable.workflow.id = %claim.run,
        durable.activity.id = %execution.activity.id,
        durable.activity.type = %execution.activity.activity_type,
        durable.activity.attempt = execution.activity.attempt.number,
    );
    shared.environment.spawn(Box::pin(execution.go().instrument(span)));
}

struct Execution {
    shared: Arc<Shared>,
    claim: Claim,
    run: Box<RunView>,
    activity: Box<ClaimedActivity>,
    host: Arc<dyn ActivityHost>,
    in_hand: InHand,
}

/// How an attempt ended.
enum Ended {
    Result(Result<Payload, Failure>),
    TimedOut,
}

impl Execution {
    async fn go(self) {
        let ended = self.attempt().await;
        self.shared.hands.end_executing();
        let token = &self.in_hand.token;
        if token.reason() == Some(CancelReason::Stopping) && !matches!(ended, Ended::Result(Ok(_)))
        {
            // A graceful stop is no failure: the attempt goes back to the queue.
            hand_back(&self.shared, HandBack { claim: self.claim, how: Returned::Stopped });
            return;
        }
        let fact = self.fact(ended);
        let finished = Finished { claim: self.claim, fact, run: self.run };
        let run = self.claim.run;
        self.shared.mailboxes.post(&self.shared, run, Message::Outcome(Box::new(finished)));
    }

    async fn attempt(&self) -> Ended {
        let token = &self.in_hand.token;
        let context = ActivityContext {
            run: self.claim.run,
            tenant: self.run.identity.tenant.clone(),
            id: self.activity.id.clone(),
            activity_type: self.activity.activity_type.clone(),
            attempt: self.activity.attempt.clone(),
            attempts_max: self.activity.options.retry_policy().attempts,
            details: self.activity.details.clone(),
            token: token.clone(),
            pulse: self.in_hand.pulse.clone(),
        };
        let input = self.activity.input.clone();
        let host = self.host.clone();
        // The call itself is users' code too, so it happens inside of what is caught.
        let work = AssertUnwindSafe(async move { host.execute(context, input).await });
        let work = work.catch_unwind();
        let deadline = self.activity.options.longest_attempt();
        tokio::select! {
            biased;
            result = work => Ended::Result(result.unwrap_or_else(|panic| Err(panicked(&*panic)))),
            () = self.shared.environment.sleep(deadline) => {
                token.cancel(CancelReason::TimedOut);
                Ended::TimedOut
            }
        }
    }

    fn fact(&self, ended: Ended) -> Fact {
        let activity_id = self.activity.id.clone();
        let (seq, attempt) = (self.claim.seq, self.activity.attempt.clone());
        let losses = self.activity.losses.clone();
        let details = self.in_hand.pulse.last();
        let result = match ended {
            Ended::TimedOut => {
                return Fact::ActivityTimedOut {
                    activity_id,
                    seq,
                    timeout: TimeoutKind::StartToClose,
                    attempt: Some(attempt),
                    details,
                    losses,
                };
            }
            Ended::Result(result) => result.and_then(|result| checked("activity output", result)),
        };
        match result {
            Ok(result) => Fact::ActivityCompleted { activity_id, seq, attempt, result, losses },
            Err(error) => {
                Fact::ActivityFailed { activity_id, seq, attempt, error, details, losses }
            }
        }
    }
}

/// A result that the store takes, or the failure that it is none.
pub(crate) fn checked(what: &'static str, result: Payload) -> Result<Payload, Failure> {
    check_payload(what, &result).map(|()| result).map_err(|invalid| {
        Failure::new(FailureKind::Permanent, invalid.to_string()).code(invalid.code().as_str())
    })
}

/// What is recorded when an activity or a step panicked.
pub fn panicked(panic: &(dyn std::any::Any + Send)) -> Failure {
    Failure::new(FailureKind::Panicked, panic_text(panic)).code(Code::ACTIVITY_PANICKED.as_str())
}
