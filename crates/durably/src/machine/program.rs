//! A state machine behind the kernel's trait.

use crate::error::Error;
use crate::machine::{Actions, Output, Signal, TurnInfo, Workflow};
use durably_kernel::{
    Action as Asked, ActivityId, ActivityType, Code, Event, Failure, Fault, Heard, Payload,
    Program, RunId, timeout_failure,
};
use durably_runtime::{HostedProgram, WorkflowHost, panic_text};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;

/// Makes programs of a state machine.
pub(crate) struct MachineHost<W>(PhantomData<fn() -> W>);

impl<W> MachineHost<W> {
    pub(crate) fn new() -> MachineHost<W> {
        MachineHost(PhantomData)
    }
}

impl<W: Workflow> WorkflowHost for MachineHost<W> {
    fn create(&self, run: RunId, input: &Payload, seed: u64) -> Box<dyn HostedProgram> {
        Box::new(MachineProgram::<W> {
            run,
            input: input.clone(),
            seed,
            machine: None,
            types: BTreeMap::new(),
        })
    }
}

struct MachineProgram<W> {
    run: RunId,
    input: Payload,
    seed: u64,
    machine: Option<W>,
    /// Types of the activities that are open.
    types: BTreeMap<ActivityId, ActivityType>,
}

impl<W: Workflow> HostedProgram for MachineProgram<W> {
    fn size(&self) -> usize {
        size_of::<W>() + self.input.text().len() + 256
    }
}

impl<W: Workflow> Program for MachineProgram<W> {
    fn react(&mut self, heard: Heard<'_>, event: &Event) -> Result<Vec<Asked>, Fault> {
        let turn = TurnInfo {
            run: self.run,
            now: heard.run.now,
            random: crate::function::mixed(self.seed, heard.seq.0),
        };
        let handled = AssertUnwindSafe(|| self.handle(&turn, event));
        let actions = std::panic::catch_unwind(handled)
            .map_err(|panic| Fault::Panicked { message: panic_text(&*panic) })?;
        let asked = actions.and_then(|actions| {
            actions.into_iter().map(|action| action.asked).collect::<Result<Vec<_>, Error>>()
        });
        let asked = asked.unwrap_or_else(|error| vec![Asked::Fail { error: error.into() }]);
        for action in &asked {
            if let Asked::ScheduleActivity { id, activity_type, .. } = action {
                self.types.insert(id.clone(), activity_type.clone());
            }
        }
        Ok(asked)
    }
}

impl<W: Workflow> MachineProgram<W> {
    fn handle(&mut self, turn: &TurnInfo, event: &Event) -> Actions<W> {
        if let Event::VersionPinned { .. } = event {
            let input = self.input.decode().map_err(|error| {
                Error::invalid_input(format!("workflow input: {error}")).code(Code::DECODE.as_str())
            })?;
            self.machine = Some(W::new(input));
        }
        let Some(machine) = &mut self.machine else {
            return Err(Error::permanent("an event came before the beginning"));
        };
        machine.on_turn(turn);
        match event {
            Event::VersionPinned { .. } => machine.on_start(),
            Event::ActivityCompleted { activity_id, result, .. } => {
                let activity_type = self.types.remove(activity_id);
                let output = Output {
                    activity_type: activity_type.map_or(String::new(), |name| name.to_string()),
                    payload: result.clone(),
                };
                machine.on_activity_completed(activity_id.as_str(), &output)
            }
            Event::ActivityFailed { activity_id, error, .. } => {
                self.types.remove(activity_id);
                let failure = Failure::clone(error).from_origin(activity_id.as_str());
                machine.on_activity_failed(activity_id.as_str(), &failure)
            }
            Event::ActivityTimedOut { activity_id, timeout_type, .. } => {
                self.types.remove(activity_id);
                let failure = timeout_failure(*timeout_type).from_origin(activity_id.as_str());
                machine.on_activity_failed(activity_id.as_str(), &failure)
            }
            Event::TimerFired { timer_id, .. } => machine.on_timer_fired(timer_id.as_str()),
            Event::SignalReceived { signal, .. } => {
                machine.on_signal(&Signal { signal: signal.clone() })
            }
            Event::WorkflowCancelRequested { reason, .. } => machine.on_cancel(reason),
            _ => Ok(vec![]),
        }
    }
}
