//! Rebuilds a program from a run's history, and notices where code and history part.
//!
//! The code hears every fact that counted, in order; what it asks for is compared, by kind, id and
//! type, with the decisions that the history holds after that fact. Inputs are not compared: code
//! may compute them differently.

use crate::action::Action;
use crate::decide::decide;
use crate::event::{Event, Reach};
use crate::id::Seq;
use crate::invariant::Broken;
use crate::program::{Fault, Program};
use crate::run::{Run, RunIdentity, effective};
use crate::turn::consequences;
use std::collections::VecDeque;
use std::fmt;

/// Where code and history part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The event at which it was noticed.
    pub seq: Seq,
    /// What the history holds there; none where it ends.
    pub recorded: Option<String>,
    /// What the code asked for there; none where it asked for nothing.
    pub asked: Option<String>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recorded = self.recorded.as_deref().unwrap_or("the end of the history");
        let asked = self.asked.as_deref().unwrap_or("nothing");
        write!(f, "code and history part at event {}: ", self.seq)?;
        write!(f, "recorded was {recorded}, the code asked for {asked}")
    }
}

/// A history that could not be replayed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplayError {
    /// Code and history part.
    #[error("{0}")]
    Diverged(Divergence),
    /// The code could not take an event.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The history itself is damaged.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// Folds the events and lets the program hear them; both are then at the history's head.
pub fn replay(
    identity: RunIdentity,
    program: &mut dyn Program,
    events: &[Event],
) -> Result<Run, ReplayError> {
    let kept = effective(events);
    let given_up_from = given_up_from(&kept);
    let mut kept = kept.into_iter();
    let (_, first) = kept.next().ok_or_else(|| Broken::new("a run without events"))?;
    let mut run = Run::begin(identity, first)?;
    let mut asked = Asked { given_up_from, ..Asked::default() };
    for (seq, event) in kept {
        run.head = Seq(seq.0 - 1);
        match event.reach() {
            Reach::Decided => asked.expect(&run, seq, event)?,
            Reach::Heard | Reach::Noted => asked.nothing_left(&run, seq, event)?,
        }
        run.apply(event)?;
        if event.reach() != Reach::Decided {
            asked.actions.extend(consequences(&run, program, event)?);
        }
    }
    let end = Seq(events.len() as u64);
    run.head = end;
    if let Some(next) = asked.next(&run) {
        let asked = Some(describe(&next));
        return Err(ReplayError::Diverged(Divergence { seq: end.next(), recorded: None, asked }));
    }
    Ok(run)
}

/// What the code asked for and the history has not shown yet.
#[derive(Default)]
struct Asked {
    actions: VecDeque<Action>,
    events: VecDeque<Event>,
    /// From here on an operator's termination gives up what is open; no code asked for that.
    given_up_from: Option<Seq>,
}

impl Asked {
    fn next(&mut self, run: &Run) -> Option<Event> {
        while self.events.is_empty() {
            let action = self.actions.pop_front()?;
            self.events = decide(run, action).into();
        }
        self.events.pop_front()
    }

    fn expect(&mut self, run: &Run, seq: Seq, recorded: &Event) -> Result<(), ReplayError> {
        let asked = self.next(run);
        match &asked {
            Some(asked) if asked.signature() == recorded.signature() => Ok(()),
            None if self.given_up_from.is_some_and(|from| from <= seq) => Ok(()),
            _ => Err(ReplayError::Diverged(Divergence {
                seq,
                recorded: Some(describe(recorded)),
                asked: asked.as_ref().map(describe),
            })),
        }
    }

    fn nothing_left(&mut self, run: &Run, seq: Seq, recorded: &Event) -> Result<(), ReplayError> {
        match self.next(run) {
            None => Ok(()),
            Some(asked) => Err(ReplayError::Diverged(Divergence {
                seq,
                recorded: Some(describe(recorded)),
                asked: Some(describe(&asked)),
            })),
        }
    }
}

/// Where the end of a terminated run begins.
fn given_up_from(kept: &[(Seq, &Event)]) -> Option<Seq> {
    let (last, before) = kept.split_last()?;
    let given_up = before.iter().rev().take_while(|(_, event)| is_giving_up(event)).last();
    let terminated = matches!(last.1, Event::WorkflowTerminated { .. });
    terminated.then(|| given_up.unwrap_or(last).0)
}

fn is_giving_up(event: &Event) -> bool {
    matches!(event, Event::ActivityCancelled { .. } | Event::TimerCancelled { .. })
}

fn describe(event: &Event) -> String {
    let (name, id, kind) = event.signature();
    match (id, kind) {
        (Some(id), Some(kind)) => format!("{name} {id:?} of type {kind:?}"),
        (Some(id), None) => format!("{name} {id:?}"),
        (None, _) => name.to_owned(),
    }
}
