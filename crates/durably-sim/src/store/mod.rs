//! The store as a process sees it: a memory store at the end of a bad line.
//!
//! A command is carried out by the store's own task: it takes effect, or not, whatever becomes of
//! the process that sent it.

mod faults;
mod judge;
mod lead;

pub use faults::{Faults, Kind, Outage, Rates};
pub(crate) use judge::count_letters;

use crate::dice::Dice;
use crate::executor::Group;
use crate::outside::{Outside, STORE, Strike};
use crate::tally;
use durably_kernel::{CommitId, RunId, Seq, Timestamp, WorkerId};
use durably_store::memory::MemoryStore;
use durably_store::{
    Answer, AskAnswer, Beat, BeatAnswer, ClaimCall, Claimed, CommitAnswer, DeadLetterRow,
    Delivered, Delivery, Examined, HandBack, Hint, Hints, HistoryPage, InboxEntry, LeadCall,
    LeaderRow, Led, LoadCall, Loaded, Registration, RunCommit, RunQuery, RunView, Store,
    StoreError, SweepCall, Swept, TaskRow, WorkerRow,
};
use faults::Fate;
use futures_util::FutureExt;
use judge::Judge;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A process is struck at one of its commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blow {
    /// The engine.
    pub engine: usize,
    /// At its command of this number.
    pub command: u64,
    /// After the command took effect rather than before it was sent.
    pub after: bool,
    /// How.
    pub strike: Strike,
}

/// Who is at this end of the line.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The engine, or none for operators.
    pub(crate) engine: Option<usize>,
    pub(crate) beat: Duration,
}

/// A memory store at the end of a bad line.
#[derive(Clone)]
pub(crate) struct FaultyStore {
    outside: Arc<Outside>,
    faults: Arc<Faults>,
    line: Line,
    blows: Arc<Vec<Blow>>,
    /// Commands that the engine sent, over all its lives.
    sent: Arc<Mutex<u64>>,
    dice: Arc<Mutex<Dice>>,
    hints: Hints,
    judge: Arc<Mutex<Judge>>,
}

impl FaultyStore {
    pub(crate) fn new(
        outside: &Arc<Outside>,
        faults: &Arc<Faults>,
        line: Line,
        blows: Arc<Vec<Blow>>,
        sent: Arc<Mutex<u64>>,
        dice: Dice,
    ) -> FaultyStore {
        let judge = Arc::new(Mutex::new(Judge::new(line.engine)));
        FaultyStore {
            outside: outside.clone(),
            faults: faults.clone(),
            line,
            blows,
            sent,
            dice: Arc::new(Mutex::new(dice)),
            hints: Hints::default(),
            judge,
        }
    }

    /// Passes the store's hints on to the process, those that are not lost.
    pub(crate) fn pass_hints(&self, group: Group) {
        let (outside, hints) = (self.outside.clone(), self.hints.clone());
        let (dice, lost) = (self.dice.clone(), self.faults.hints_lost_percent);
        let task = async move {
            let mut listener = outside.store.hints().listen();
            loop {
                let heard = listener.next().await;
                let inboxes = heard.inboxes.into_iter().map(Hint::Inbox);
                let flags = [
                    heard.ready.then_some(Hint::Ready),
                    heard.due.then_some(Hint::Due),
                    heard.claims.then_some(Hint::Claims),
                ];
                for hint in flags.into_iter().flatten().chain(inboxes) {
                    let drops = !outside.has_healed() && dice.lock().chance(lost);
                    match drops {
                        true => outside.saw(tally::HINT_LOST),
                        false => hints.give(hint),
                    }
                }
            }
        };
        self.outside.executor.spawn(group, Box::pin(task));
    }

    /// Counts a command, and says how the engine is struck at it.
    fn count(&self) -> (u64, Option<Blow>) {
        let Some(engine) = self.line.engine else { return (0, None) };
        let mut sent = self.sent.lock();
        *sent += 1;
        let blow = self.blows.iter().find(|b| (b.engine, b.command) == (engine, *sent));
        (*sent, blow.copied().filter(|_| !self.outside.has_healed()))
    }

    fn strike(&self, blow: Option<Blow>, after: bool) {
        if let Some(blow) = blow.filter(|blow| blow.after == after) {
            self.outside.struck.lock().push((blow.engine, blow.strike));
        }
    }

    /// Sends a command along the line.
    fn send<T: Send + 'static>(
        &self,
        kind: Kind,
        call: impl FnOnce(&MemoryStore) -> Answer<'_, T> + Send + 'static,
        judge: impl FnOnce(&mut Judge, &Outside, &T, &Fate) + Send + 'static,
    ) -> Answer<'_, T> {
        let line = self.clone();
        Box::pin(async move {
            let (number, blow) = line.count();
            let now = line.outside.executor.now();
            let healed = line.outside.has_healed();
            let fate = line.faults.fate(&mut line.dice.lock(), kind, line.line.engine, now, healed);
            let (engine, name) = (line.line.engine.map_or(0, |e| e as u64 + 1), kind.name());
            let fate_number = fate.number();
            line.outside.trace.note(name, &[engine, number, fate_number], || {
                format!("{now:?} e{:?} {name} #{number}: {fate:?}", line.line.engine)
            });
            if blow.is_some_and(|blow| !blow.after) {
                line.strike(blow, false);
                // It is never sent: the process is struck before anything else happens.
                line.outside.executor.sleep(Duration::from_millis(1)).await;
            }
            let (reply, answer) = oneshot::channel();
            let outside = line.outside.clone();
            let task = line.clone().carry_out(kind, fate, blow, call, judge, reply);
            outside.executor.spawn(STORE, Box::pin(task));
            let lost = || StoreError::Ambiguous { operation: name, problem: "lost".to_owned() };
            match fate {
                Fate::Astray { .. } => {
                    outside.executor.sleep(Duration::from_millis(1)).await;
                    Err(lost())
                }
                Fate::Unavailable | Fate::Refused => {
                    let problem = "a planned fault".to_owned();
                    answer.await.ok();
                    Err(match fate {
                        Fate::Refused => StoreError::Refused { operation: name, problem },
                        _ => {
                            let retry_after = None;
                            StoreError::Unavailable { operation: name, problem, retry_after }
                        }
                    })
                }
                Fate::LostBefore | Fate::LostAfter => {
                    answer.await.ok();
                    Err(lost())
                }
                Fate::Fine { .. } => answer.await.map_err(|_| lost()),
            }
        })
    }

    /// What the store's end does about a command.
    async fn carry_out<T: Send + 'static>(
        self,
        kind: Kind,
        fate: Fate,
        blow: Option<Blow>,
        call: impl FnOnce(&MemoryStore) -> Answer<'_, T> + Send + 'static,
        judge: impl FnOnce(&mut Judge, &Outside, &T, &Fate) + Send + 'static,
        reply: oneshot::Sender<T>,
    ) {
        let outside = self.outside.clone();
        let (before, after) = fate.delays();
        if !before.is_zero() {
            outside.executor.sleep(before).await;
        }
        if !fate.is_done() {
            judge::not_done(&outside, kind, &fate);
            return;
        }
        outside.store_now();
        let answer = match call(&outside.store).now_or_never() {
            Some(Ok(answer)) => answer,
            _ => return outside.violated("the memory store failed".to_owned()),
        };
        judge(&mut self.judge.lock(), &outside, &answer, &fate);
        self.strike(blow, true);
        if before + after > self.line.beat {
            outside.saw(tally::LATE_ANSWER);
        }
        if !after.is_zero() {
            outside.executor.sleep(after).await;
        }
        // A caller that is gone does not hear the answer.
        let _ = reply.send(answer);
    }

    fn read<T: Send + 'static>(
        &self,
        kind: Kind,
        call: impl FnOnce(&MemoryStore) -> Answer<'_, T> + Send + 'static,
    ) -> Answer<'_, T> {
        self.send(kind, call, |_, _, _, _| {})
    }
}

impl Store for FaultyStore {
    fn kind(&self) -> &'static str {
        "faulty"
    }
    fn hints(&self) -> &Hints {
        &self.hints
    }
    /// Some stores want one batch under way, others two: every second engine has two.
    fn batches(&self) -> usize {
        1 + self.line.engine.unwrap_or(0) % 2
    }
    fn now(&self) -> Answer<'_, Timestamp> {
        self.read(Kind::Read, |store| store.now())
    }
    fn register(&self, registration: Registration) -> Answer<'_, Timestamp> {
        self.send(
            Kind::Register,
            move |store| store.register(registration),
            |judge, outside, _, _| judge.registered(outside),
        )
    }
    fn drain(&self, who: WorkerId) -> Answer<'_, ()> {
        self.read(Kind::Leave, move |store| store.drain(who))
    }
    fn leave(&self, who: WorkerId) -> Answer<'_, ()> {
        self.send(
            Kind::Leave,
            move |store| store.leave(who),
            |judge, outside, _, _| judge.look_at_open(outside),
        )
    }
    fn commit(
        &self,
        who: Option<WorkerId>,
        batch: Arc<Vec<RunCommit>>,
    ) -> Answer<'_, Vec<CommitAnswer>> {
        let sent = batch.clone();
        self.send(
            Kind::Commit,
            move |store| store.commit(who, batch),
            move |judge, outside, answers, fate| judge.committed(outside, &sent, answers, fate),
        )
    }
    fn look_up(&self, run: RunId, commit: CommitId) -> Answer<'_, bool> {
        self.send(
            Kind::LookUp,
            move |store| store.look_up(run, commit),
            |judge, outside, found, _| judge.looked_up(outside, *found),
        )
    }
    fn claim(&self, call: ClaimCall) -> Answer<'_, Claimed> {
        let id = call.id;
        self.send(
            Kind::Claim,
            move |store| store.claim(call),
            move |judge, outside, claimed, fate| judge.claimed(outside, id, claimed, fate),
        )
    }
    fn load(&self, call: LoadCall) -> Answer<'_, Option<Loaded>> {
        let (run, after) = (call.run, call.after);
        self.send(
            Kind::Load,
            move |store| store.load(call),
            move |judge, outside, loaded, _| judge.loaded(outside, run, after, loaded),
        )
    }
    fn deliver(&self, batch: Vec<Delivery>) -> Answer<'_, Vec<Delivered>> {
        let sent = batch.clone();
        self.send(
            Kind::Deliver,
            move |store| store.deliver(batch),
            move |judge, outside, answers, _| judge.delivered(outside, &sent, answers),
        )
    }
    fn hand_back(&self, who: WorkerId, batch: Vec<HandBack>) -> Answer<'_, ()> {
        let runs: Vec<RunId> = batch.iter().map(|back| back.claim.run).collect();
        self.send(
            Kind::HandBack,
            move |store| store.hand_back(who, batch),
            move |judge, outside, _, _| judge.look_at(outside, &runs),
        )
    }
    fn beat(&self, beat: Beat) -> Answer<'_, BeatAnswer> {
        self.send(
            Kind::Beat,
            move |store| store.beat(beat),
            |judge, outside, answer, _| judge.beaten(outside, answer),
        )
    }
    fn ask(&self, who: WorkerId) -> Answer<'_, AskAnswer> {
        self.read(Kind::Ask, move |store| store.ask(who))
    }
    fn sweep(&self, call: SweepCall) -> Answer<'_, Swept> {
        self.send(
            Kind::Sweep,
            move |store| store.sweep(call),
            |judge, outside, swept, _| judge.swept(outside, swept),
        )
    }
    fn lead(&self, call: LeadCall) -> Answer<'_, Led> {
        let who = call.who.clone();
        self.send(
            Kind::Lead,
            move |store| store.lead(call),
            move |_, outside, led, _| lead::led(outside, &who, led),
        )
    }
    fn run(&self, run: RunId) -> Answer<'_, Option<RunView>> {
        self.read(Kind::Read, move |store| store.run(run))
    }
    fn runs(&self, query: RunQuery) -> Answer<'_, Vec<RunView>> {
        self.read(Kind::Read, move |store| store.runs(query))
    }
    fn history(&self, run: RunId, after: Seq, most: usize) -> Answer<'_, HistoryPage> {
        self.read(Kind::Read, move |store| store.history(run, after, most))
    }
    fn tasks(&self, run: RunId) -> Answer<'_, Vec<TaskRow>> {
        self.read(Kind::Read, move |store| store.tasks(run))
    }
    fn inbox(&self, run: RunId, after: u64, most: usize) -> Answer<'_, Vec<InboxEntry>> {
        self.read(Kind::Read, move |store| store.inbox(run, after, most))
    }
    fn dead_letters(&self, run: Option<RunId>, most: usize) -> Answer<'_, Vec<DeadLetterRow>> {
        self.read(Kind::Read, move |store| store.dead_letters(run, most))
    }
    fn workers(&self) -> Answer<'_, Vec<WorkerRow>> {
        self.read(Kind::Read, |store| store.workers())
    }
    fn leader(&self) -> Answer<'_, LeaderRow> {
        self.read(Kind::Read, |store| store.leader())
    }
    fn examine(&self, from: RunId, most: usize) -> Answer<'_, Vec<Examined>> {
        self.read(Kind::Read, move |store| store.examine(from, most))
    }
}
