//! People and programs outside of the engines: they start, signal, cancel, and remember what was
//! acknowledged.

use crate::dice::Dice;
use crate::environment::SimEnvironment;
use crate::executor::Group;
use crate::outside::{OPERATOR, Outside};
use crate::plan::{SIGNALS, Style};
use crate::program::{FUNCTION, MACHINE};
use crate::scenario::{Known, RunSpec};
use crate::store::{Faults, FaultyStore, Line};
use durably::{Client, ClientError, SignalRef};
use durably_kernel::RunId;
use durably_runtime::RuntimeError;
use durably_store::Class;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// What was acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    /// Runs, by their number in the scenario.
    pub(crate) started: Vec<(usize, RunId)>,
    /// Signals: run and id.
    pub(crate) signals: BTreeSet<(RunId, String)>,
    /// How often each run was asked to start.
    pub(crate) start_calls: Vec<usize>,
    /// Starts of which the caller was told that nothing was done.
    pub(crate) start_failed: Vec<usize>,
    /// Runs that somebody tried to cancel or shut down.
    pub(crate) cancel_tried: BTreeSet<RunId>,
    /// Runs that somebody tried to terminate.
    pub(crate) terminate_tried: BTreeSet<RunId>,
    /// Runs whose termination was acknowledged.
    pub(crate) terminated: BTreeSet<RunId>,
    under_way: usize,
}

/// Something that was asked for and not answered yet; it may go down with its process.
struct UnderWay(Arc<Mutex<Receipts>>);

impl UnderWay {
    fn new(receipts: &Arc<Mutex<Receipts>>) -> UnderWay {
        receipts.lock().under_way += 1;
        UnderWay(receipts.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.lock().under_way -= 1;
    }
}

/// Somebody outside.
pub(crate) struct Operator {
    outside: Arc<Outside>,
    client: Client,
    receipts: Arc<Mutex<Receipts>>,
}

impl Operator {
    pub(crate) fn new(
        outside: &Arc<Outside>,
        faults: &Arc<Faults>,
        dice: Dice,
        receipts: Arc<Mutex<Receipts>>,
    ) -> Operator {
        let environment =
            SimEnvironment::new(&outside.executor, OPERATOR, dice.split(1), "operator");
        let line = Line { engine: None, beat: Duration::from_secs(3600) };
        let (blows, sent) = (Arc::default(), Arc::default());
        let store = FaultyStore::new(outside, faults, line, blows, sent, dice.split(2));
        let client = Client::connect_in(Arc::new(environment), Arc::new(store));
        Operator { outside: outside.clone(), client, receipts }
    }

    /// Whether nothing is asked for at the moment.
    pub(crate) fn is_idle(&self) -> bool {
        self.receipts.lock().under_way == 0
    }

    /// Asks for something, and notes what was acknowledged.
    fn ask<T>(
        &self,
        group: Group,
        what: String,
        call: impl Future<Output = Result<T, ClientError>> + Send + 'static,
        acknowledged: impl FnOnce(&mut Receipts, T) + Send + 'static,
    ) {
        let outside = self.outside.clone();
        let under_way = UnderWay::new(&self.receipts);
        let task = async move {
            let answer = call.await;
            let said = answer.as_ref().err().map(ToString::to_string);
            outside.trace.say(format!("{:?} {what}: {said:?}", outside.executor.now()));
            if let Ok(answer) = answer {
                acknowledged(&mut under_way.0.lock(), answer);
            }
        };
        self.outside.executor.spawn(group, Box::pin(task));
    }

    /// Starts a run, from within a process if one is given.
    pub(crate) fn start(&self, spec: &RunSpec, within: Option<(Group, Client)>) {
        let (group, client) = within.unwrap_or((OPERATOR, self.client.clone()));
        let number = spec.plan.number;
        self.receipts.lock().start_calls.push(number);
        let workflow = match spec.plan.style {
            Style::Machine => MACHINE,
            Style::Function => FUNCTION,
        };
        let mut start = client.start(workflow, &spec.plan);
        start = start.tenant(spec.tenant).priority(spec.priority);
        start = match spec.known {
            Known::ById => start.id(RunId::from_parts(number as u64 + 1, [7; 10])),
            Known::ByKey => start.idempotency_key(format!("run-{number}")),
            Known::Unknown => start,
        };
        if let Some(ms) = spec.timeout_ms {
            start = start.timeout(Duration::from_millis(ms));
        }
        if let Some(ms) = spec.delay_ms {
            start = start.delay(Duration::from_millis(ms));
        }
        if let Some(name) = spec.signal {
            start = start.signal(SignalRef::new(SIGNALS[name]), &"with the start".to_owned());
        }
        // A start that finds its run still has its signal to send, which may fail by itself.
        let (plain, receipts) = (spec.signal.is_none(), self.receipts.clone());
        let call = async move {
            let started = start.await;
            if plain && started.as_ref().err().is_some_and(nothing_done) {
                receipts.lock().start_failed.push(number);
            }
            Ok(started?.id())
        };
        self.ask(group, format!("start {number}"), call, move |receipts, run| {
            receipts.started.push((number, run));
        });
    }

    /// The run of a number, as far as there is one.
    fn run_of(&self, number: usize) -> Option<RunId> {
        let watch = self.outside.watch.lock();
        let mut runs = watch.runs();
        runs.find(|(_, seen)| seen.plan.number == number).map(|(run, _)| *run)
    }

    pub(crate) fn signal(&self, number: usize, name: usize, id: &str) {
        if let Some(run) = self.run_of(number) {
            self.signal_run(run, name, id);
        }
    }

    pub(crate) fn signal_run(&self, run: RunId, name: usize, id: &str) {
        let (client, id, name) = (self.client.clone(), format!("{id}-{name}"), SIGNALS[name]);
        let sent = id.clone();
        let call = async move { client.signal_by_name(run, name, &sent, Some(&sent)).await };
        self.ask(OPERATOR, format!("signal {run} {name} {id}"), call, move |receipts, ()| {
            receipts.signals.insert((run, id));
        });
    }

    pub(crate) fn cancel(&self, number: usize) {
        let Some(run) = self.run_of(number) else { return };
        self.receipts.lock().cancel_tried.insert(run);
        let handle = self.client.handle_by_id(run);
        let call = async move { handle.cancel("no longer wanted").await };
        self.ask(OPERATOR, format!("cancel {run}"), call, |_, ()| {});
    }

    pub(crate) fn shutdown(&self, number: usize) {
        let Some(run) = self.run_of(number) else { return };
        self.receipts.lock().cancel_tried.insert(run);
        let handle = self.client.handle_by_id(run);
        let call = async move { handle.shutdown().await };
        self.ask(OPERATOR, format!("shutdown {run}"), call, |_, ()| {});
    }

    pub(crate) fn terminate(&self, number: usize) {
        let Some(run) = self.run_of(number) else { return };
        self.receipts.lock().terminate_tried.insert(run);
        let handle = self.client.handle_by_id(run);
        let call = async move { handle.terminate("at once").await };
        self.ask(OPERATOR, format!("terminate {run}"), call, move |receipts, ()| {
            receipts.terminated.insert(run);
        });
    }
}

/// The caller is told that nothing was done.
fn nothing_done(error: &ClientError) -> bool {
    match error.kind() {
        RuntimeError::Store(error) => error.class() != Class::Ambiguous,
        _ => false,
    }
}
