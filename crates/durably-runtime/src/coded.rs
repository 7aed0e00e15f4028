//! A program whose payloads are coded: it hears and says plain ones, the run holds coded ones.

use crate::coder::Coder;
use crate::host::{HostedProgram, InlineStep, StepOutcome, WorkflowHost};
use durably_kernel::{Action, ActivityId, Event, Fault, Heard, Payload, Program, RunId, Waits};
use std::sync::Arc;
use std::task::{Context, Poll};

/// Every program of a process runs inside of one of these, also without a codec: coded payloads
/// of other processes are then refused rather than taken for the code's own values.
pub(crate) struct CodedProgram {
    plain: Box<dyn HostedProgram>,
    coder: Coder,
    /// The input cannot be decoded: nothing can be heard.
    fault: Option<Fault>,
}

/// A workflow's code, and what stands between it and the store.
#[derive(Clone)]
pub(crate) struct CodedHost {
    plain: Arc<dyn WorkflowHost>,
    coder: Coder,
}

impl CodedHost {
    pub(crate) fn new(plain: Arc<dyn WorkflowHost>, coder: Coder) -> CodedHost {
        CodedHost { plain, coder }
    }

    /// A program that has heard nothing yet.
    pub(crate) fn create(&self, run: RunId, input: &Payload, seed: u64) -> Box<dyn HostedProgram> {
        let (input, fault) = match self.coder.input(input) {
            Ok(input) => (input, None),
            Err(fault) => (Payload::null(), Some(fault)),
        };
        let (plain, coder) = (self.plain.create(run, &input, seed), self.coder.clone());
        Box::new(CodedProgram { plain, coder, fault })
    }
}

impl Program for CodedProgram {
    fn react(&mut self, heard: Heard<'_>, event: &Event) -> Result<Vec<Action>, Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let plain = self.coder.heard(event)?;
        let mut actions = self.plain.react(heard, plain.as_ref().unwrap_or(event))?;
        self.coder.encode_actions(&mut actions)?;
        Ok(actions)
    }

    fn waits(&self) -> Waits {
        self.plain.waits()
    }
}

impl HostedProgram for CodedProgram {
    fn begin(&mut self, step: InlineStep) {
        self.plain.begin(step);
    }

    fn give_up(&mut self, id: &ActivityId) {
        self.plain.give_up(id);
    }

    fn poll_steps(&mut self, cx: &mut Context<'_>) -> Poll<Result<StepOutcome, Fault>> {
        self.plain.poll_steps(cx).map_ok(|outcome| StepOutcome {
            result: self.coder.encode_outcome("step output", outcome.result),
            ..outcome
        })
    }

    fn size(&self) -> usize {
        self.plain.size() + size_of::<CodedProgram>()
    }
}
