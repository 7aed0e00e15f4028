//! A run with its code, driven by facts: what the tests of the kernel share.
//!
//! After every turn the scene itself checks what must always hold: the live run is the fold of
//! its events, a fresh program replays to the same run, and the decisions keep the queue's rows
//! as the run wants them.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod rows;

use durably_kernel::{
    Action, ActivityOptions, Attempt, DeadLetter, Decision, Event, Fact, Failure, FailureKind,
    Fault, Heard, Loss, LossCause, Moment, Offered, Payload, Program, Queue, Retry, Run,
    RunIdentity, Seq, Signal, Start, Tenant, TimeoutKind, TimerId, Timestamp, Turn, replay,
    terminate,
};
use rows::Rows;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What workflow code answers to an event.
type Answer = dyn Fn(Heard<'_>, &Event) -> Vec<Action>;

/// Workflow code without a state of its own, so that a fresh program is a clone.
#[derive(Clone)]
pub(crate) struct Script(Rc<Answer>);

impl Script {
    /// Code that answers every event by a function of it.
    pub(crate) fn new(code: impl Fn(Heard<'_>, &Event) -> Vec<Action> + 'static) -> Script {
        Script(Rc::new(code))
    }

    /// Code that asks for something at the start and is deaf afterwards.
    pub(crate) fn at_start(actions: Vec<Action>) -> Script {
        Script::new(move |_, event| match event {
            Event::VersionPinned { .. } => actions.clone(),
            _ => vec![],
        })
    }

    /// Code that asks for something at the start, and for something else at every signal.
    pub(crate) fn on_signal(first: Vec<Action>, then: Vec<Action>) -> Script {
        Script::new(move |_, event| match event {
            Event::VersionPinned { .. } => first.clone(),
            Event::SignalReceived { .. } => then.clone(),
            _ => vec![],
        })
    }
}

impl Program for Script {
    fn react(&mut self, heard: Heard<'_>, event: &Event) -> Result<Vec<Action>, Fault> {
        Ok((self.0)(heard, event))
    }
}

/// A run under test.
pub(crate) struct Scene {
    pub(crate) run: Run,
    pub(crate) script: Script,
    pub(crate) events: Vec<Event>,
    pub(crate) rows: Rows,
    pub(crate) dead_letters: Vec<DeadLetter>,
    pub(crate) now: Timestamp,
}

/// When every run of a test starts.
pub(crate) const START: Timestamp = Timestamp(1_000_000);

impl Scene {
    /// A run before its first turn.
    pub(crate) fn pending(script: Script, timeout: Option<Duration>) -> Scene {
        let start = Start {
            workflow_type: "order".into(),
            input: Payload::null(),
            seed: 7,
            at: START,
            timeout,
        };
        let decision = Decision::start(start);
        let run = Run::fold(identity(), &decision.events).unwrap();
        let mut rows = Rows::default();
        rows.apply(&decision.tasks);
        rows.check(&run);
        let events = decision.events;
        Scene { run, script, events, rows, dead_letters: vec![], now: START }
    }

    /// A run after its first turn.
    pub(crate) fn begun(script: Script) -> Scene {
        let mut scene = Scene::pending(script, None);
        assert_eq!(scene.offer(&Fact::Begin { version: 1 }), [Offered::Admitted]);
        scene
    }

    /// One turn with one fact.
    pub(crate) fn offer(&mut self, fact: &Fact) -> Vec<Offered> {
        self.turn(std::slice::from_ref(fact)).0
    }

    /// One turn with one fact that must be recorded: its decision.
    pub(crate) fn admit(&mut self, fact: &Fact) -> Decision {
        let (offered, decision) = self.turn(std::slice::from_ref(fact));
        assert_eq!(offered, [Offered::Admitted], "{fact:?}");
        decision
    }

    /// One turn with one fact that must change nothing.
    pub(crate) fn refuse(&mut self, fact: &Fact) {
        let before = self.run.clone();
        let (offered, decision) = self.turn(std::slice::from_ref(fact));
        assert_eq!(offered, [Offered::Late], "{fact:?}");
        assert_eq!(decision, Decision::default());
        assert_eq!(self.run, before);
    }

    /// One turn.
    pub(crate) fn turn(&mut self, facts: &[Fact]) -> (Vec<Offered>, Decision) {
        let moment = self.moment();
        let mut program = self.script.clone();
        let mut turn = Turn::new(&mut self.run, moment);
        let offered = facts.iter().map(|fact| turn.offer(&mut program, fact).unwrap()).collect();
        let decision = turn.finish();
        self.commit(&decision);
        (offered, decision)
    }

    /// An operator ends the run.
    pub(crate) fn terminate(&mut self, reason: &str) -> Decision {
        let moment = self.moment();
        let decision = terminate(&mut self.run, reason, moment).unwrap();
        self.commit(&decision);
        decision
    }

    /// An operator puts the run back: the event is appended and everything is folded again.
    pub(crate) fn reset(&mut self, to: Seq) {
        let (reason, at) = ("try again".into(), self.moment().now);
        self.events.push(Event::WorkflowReset { to, reason, at });
        self.run = Run::fold(identity(), &self.events).unwrap();
        self.rows = self.rows.after_reset(&self.run);
        self.check();
    }

    fn moment(&mut self) -> Moment {
        self.now = self.now.after(Duration::from_secs(1));
        Moment { now: self.now, random: self.now.0 as u64 }
    }

    fn commit(&mut self, decision: &Decision) {
        self.events.extend(decision.events.iter().cloned());
        self.dead_letters.extend(decision.dead_letters.iter().cloned());
        self.rows.apply(&decision.tasks);
        if self.run.status.has_ended() {
            self.rows = Rows::default();
        }
        self.check();
    }

    fn check(&self) {
        assert_eq!(self.run.head, Seq(self.events.len() as u64));
        assert_eq!(
            self.run,
            Run::fold(identity(), &self.events).unwrap(),
            "live and folded run differ"
        );
        assert_eq!(
            self.run,
            replay(identity(), &mut self.script.clone(), &self.events).unwrap(),
            "live and replayed run differ"
        );
        self.run.check_all().unwrap();
        self.rows.check(&self.run);
    }

    /// The names of the last `count` events.
    pub(crate) fn last_names(&self, count: usize) -> Vec<&'static str> {
        let tail = &self.events[self.events.len() - count..];
        tail.iter().map(Event::name).collect()
    }

    /// The error that the run ended with.
    pub(crate) fn error(&self) -> &Failure {
        match self.events.last() {
            Some(Event::WorkflowFailed { error }) => error,
            other => panic!("the run did not fail: {other:?}"),
        }
    }

    /// What an outcome of an activity has to name now, and the next attempt's number.
    fn expected(&self, id: &str) -> (Seq, u32) {
        let activity = &self.run.activities[id];
        match activity.phase {
            durably_kernel::Phase::UnderWay(began) => (began, activity.attempt),
            _ => (activity.queued, activity.attempt + 1),
        }
    }

    /// The success of the present attempt.
    pub(crate) fn done(&self, id: &str) -> Fact {
        let (seq, number) = self.expected(id);
        completed(id, seq, number)
    }

    /// The failure of the present attempt.
    pub(crate) fn failure(&self, id: &str, error: Failure) -> Fact {
        let (seq, number) = self.expected(id);
        failed(id, seq, number, error)
    }

    /// A failure of the present attempt that may go away.
    pub(crate) fn hiccup(&self, id: &str) -> Fact {
        self.failure(id, Failure::new(FailureKind::Retryable, "hiccup"))
    }

    /// A time-out of the present attempt, or of the whole activity.
    pub(crate) fn timeout(&self, id: &str, timeout: TimeoutKind) -> Fact {
        let (queued, number) = self.expected(id);
        let (seq, attempt) = match timeout {
            TimeoutKind::ScheduleToStart => (self.run.activities[id].scheduled, None),
            TimeoutKind::ScheduleToClose => {
                (self.run.activities[id].scheduled, Some(attempt(number)))
            }
            _ => (queued, Some(attempt(number))),
        };
        Fact::ActivityTimedOut {
            activity_id: id.into(),
            seq,
            timeout,
            attempt,
            details: None,
            losses: vec![],
        }
    }

    /// The loss of the present attempt of an inline step.
    pub(crate) fn inline_lost(&self, id: &str, cause: LossCause) -> Fact {
        let (seq, number) = self.expected(id);
        Fact::InlineLost { activity_id: id.into(), seq, loss: loss(number, cause) }
    }

    /// A timer's time has come.
    pub(crate) fn fired(&self, id: &str) -> Fact {
        let seq = self.run.timers[id].started;
        Fact::TimerFired { timer_id: id.into(), seq }
    }
}

/// What every run under test is known by.
pub(crate) fn identity() -> RunIdentity {
    RunIdentity {
        id: "0190f3c8-0000-7000-8000-000000000001".parse().unwrap(),
        tenant: Tenant::default(),
        queue: Queue::from("orders"),
        priority: 3,
    }
}

/// An attempt with this number.
pub(crate) fn attempt(number: u32) -> Attempt {
    Attempt { number, worker: format!("worker-{number}").into(), started_at: START }
}

/// A lost attempt with this number.
pub(crate) fn loss(number: u32, cause: LossCause) -> Loss {
    let lost_at = START.after(Duration::from_millis(number.into()));
    Loss { attempt: attempt(number), lost_at, cause }
}

/// The success of an attempt.
pub(crate) fn completed(id: &str, seq: Seq, number: u32) -> Fact {
    Fact::ActivityCompleted {
        activity_id: id.into(),
        seq,
        attempt: attempt(number),
        result: Payload::of(&number).unwrap(),
        losses: vec![],
    }
}

/// The failure of an attempt.
pub(crate) fn failed(id: &str, seq: Seq, number: u32, error: Failure) -> Fact {
    Fact::ActivityFailed {
        activity_id: id.into(),
        seq,
        attempt: attempt(number),
        error,
        details: None,
        losses: vec![],
    }
}

/// The same outcome with losses that were noted on the row before it.
pub(crate) fn after_losses(mut fact: Fact, noted: Vec<Loss>) -> Fact {
    match &mut fact {
        Fact::ActivityCompleted { losses, .. }
        | Fact::ActivityFailed { losses, .. }
        | Fact::ActivityTimedOut { losses, .. }
        | Fact::ActivityLost { losses, .. } => *losses = noted,
        other => panic!("{other:?} has no losses"),
    }
    fact
}

/// A signal with this id.
pub(crate) fn signal(id: &str) -> Fact {
    Fact::Signal(Signal {
        id: id.into(),
        signal_type: "approval".into(),
        payload: Payload::null(),
        sent_at: START,
    })
}

/// Somebody wants the run to end.
pub(crate) fn cancel(reason: &str) -> Fact {
    Fact::CancelRequested { reason: reason.into() }
}

/// Options with a policy of so many attempts, a second apart.
pub(crate) fn attempts(attempts: u32) -> ActivityOptions {
    let retry = Retry::fixed(attempts, Duration::from_secs(1));
    ActivityOptions { retry: Some(retry), ..ActivityOptions::default() }
}

/// Options with all four time-outs.
pub(crate) fn time_limits() -> ActivityOptions {
    ActivityOptions {
        schedule_to_start: Some(Duration::from_secs(60)),
        start_to_close: Some(Duration::from_secs(10)),
        heartbeat: Some(Duration::from_secs(5)),
        schedule_to_close: Some(Duration::from_secs(300)),
        ..attempts(3)
    }
}

/// An activity through the queue.
pub(crate) fn queued(id: &str) -> Action {
    queued_with(id, ActivityOptions::default())
}

/// An activity through the queue, with options.
pub(crate) fn queued_with(id: &str, options: ActivityOptions) -> Action {
    Action::ScheduleActivity {
        id: id.into(),
        activity_type: "work".into(),
        input: Payload::of(id).unwrap(),
        options: Arc::new(options),
        inline: false,
    }
}

/// A step in the workflow's own task.
pub(crate) fn inline(id: &str) -> Action {
    inline_with(id, ActivityOptions::default())
}

/// A step in the workflow's own task, with options.
pub(crate) fn inline_with(id: &str, options: ActivityOptions) -> Action {
    match queued_with(id, options) {
        Action::ScheduleActivity { id, activity_type, input, options, .. } => {
            Action::ScheduleActivity { id, activity_type, input, options, inline: true }
        }
        other => other,
    }
}

/// A timer of a minute.
pub(crate) fn timer(id: &str) -> Action {
    let delay = Duration::from_secs(60);
    Action::StartTimer { id: TimerId::from(id), delay }
}

/// Gives an activity up.
pub(crate) fn give_up(id: &str) -> Action {
    Action::CancelActivity { id: id.into() }
}

/// Gives a timer up.
pub(crate) fn give_up_timer(id: &str) -> Action {
    Action::CancelTimer { id: id.into() }
}

/// Ends with a result.
pub(crate) fn complete() -> Action {
    Action::Complete { output: Payload::null() }
}
