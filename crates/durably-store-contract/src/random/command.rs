//! Commands with everything in them, so that a sequence can be repeated, cut and printed.

use durably_kernel::{CommitId, RunId, Seq, Timestamp, WorkerId};
use durably_store::{
    AskAnswer, Beat, BeatAnswer, ClaimCall, Claimed, CommitAnswer, DeadLetterRow, Delivered,
    Delivery, HandBack, HistoryPage, LeadCall, Led, LoadCall, Loaded, ManualClock, Registration,
    RunCommit, RunQuery, RunView, Store, StoreError, SweepCall, Swept,
};
use std::time::Duration;

/// One command, or time that passes.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Pass(Duration),
    Register(Registration),
    Drain(WorkerId),
    Leave(WorkerId),
    Commit(Option<WorkerId>, Vec<RunCommit>),
    LookUp(RunId, CommitId),
    Claim(ClaimCall),
    Load(LoadCall),
    Deliver(Vec<Delivery>),
    HandBack(WorkerId, Vec<HandBack>),
    Beat(Beat),
    Ask(WorkerId),
    Sweep(SweepCall),
    Lead(LeadCall),
    Runs(RunQuery),
    History(RunId, Seq, usize),
    DeadLetters(Option<RunId>, usize),
}

/// What a store said.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Reply {
    Done,
    Time(Timestamp),
    Committed(Vec<CommitAnswer>),
    Found(bool),
    Claimed(Claimed),
    Loaded(Option<Box<Loaded>>),
    Delivered(Vec<Delivered>),
    Beaten(BeatAnswer),
    Asked(AskAnswer),
    Swept(Swept),
    Led(Led),
    Runs(Vec<RunView>),
    History(HistoryPage),
    DeadLetters(Vec<DeadLetterRow>),
    Failed(StoreError),
}

impl Command {
    /// The process that it comes from, if it is one's own.
    pub(super) fn who(&self) -> Option<&WorkerId> {
        match self {
            Command::Register(new) => Some(&new.who),
            Command::Drain(who) | Command::Leave(who) | Command::HandBack(who, _) => Some(who),
            Command::Ask(who) => Some(who),
            Command::Claim(call) => Some(&call.who),
            Command::Lead(call) => Some(&call.who),
            Command::Beat(beat) => Some(&beat.who),
            Command::Commit(who, _) => who.as_ref(),
            Command::Load(call) => call.who.as_ref(),
            Command::Sweep(call) => call.who.as_ref(),
            Command::Pass(_) | Command::LookUp(..) | Command::Deliver(_) => None,
            Command::Runs(_) | Command::History(..) | Command::DeadLetters(..) => None,
        }
    }

    /// Asks a store. Time passes for all stores on the clock at once.
    pub(super) async fn ask(&self, store: &dyn Store) -> Reply {
        self.try_ask(store).await.unwrap_or_else(Reply::Failed)
    }

    async fn try_ask(&self, store: &dyn Store) -> Result<Reply, StoreError> {
        let done = |()| Reply::Done;
        Ok(match self.clone() {
            Command::Pass(_) => Reply::Done,
            Command::Register(new) => Reply::Time(store.register(new).await?),
            Command::Drain(who) => store.drain(who).await.map(done)?,
            Command::Leave(who) => store.leave(who).await.map(done)?,
            Command::Commit(who, batch) => Reply::Committed(store.commit(who, batch.into()).await?),
            Command::LookUp(run, commit) => Reply::Found(store.look_up(run, commit).await?),
            Command::Claim(call) => Reply::Claimed(store.claim(call).await?),
            Command::Load(call) => Reply::Loaded(store.load(call).await?.map(Box::new)),
            Command::Deliver(batch) => Reply::Delivered(store.deliver(batch).await?),
            Command::HandBack(who, batch) => store.hand_back(who, batch).await.map(done)?,
            Command::Beat(beat) => Reply::Beaten(store.beat(beat).await?),
            Command::Ask(who) => Reply::Asked(store.ask(who).await?),
            Command::Sweep(call) => Reply::Swept(store.sweep(call).await?),
            Command::Lead(call) => Reply::Led(store.lead(call).await?),
            Command::Runs(query) => Reply::Runs(store.runs(query).await?),
            Command::History(run, after, most) => {
                Reply::History(store.history(run, after, most).await?)
            }
            Command::DeadLetters(run, most) => {
                Reply::DeadLetters(store.dead_letters(run, most).await?)
            }
        })
    }

    pub(super) fn pass_time(&self, clock: &ManualClock) {
        if let Command::Pass(time) = self {
            clock.advance(*time);
        }
    }

    /// A short name, for counting.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Command::Pass(_) => "pass",
            Command::Register(_) => "register",
            Command::Drain(_) => "drain",
            Command::Leave(_) => "leave",
            Command::Commit(..) => "commit",
            Command::LookUp(..) => "look up",
            Command::Claim(_) => "claim",
            Command::Load(_) => "load",
            Command::Deliver(_) => "deliver",
            Command::HandBack(..) => "hand back",
            Command::Beat(_) => "beat",
            Command::Ask(_) => "ask",
            Command::Sweep(_) => "sweep",
            Command::Lead(_) => "lead",
            Command::Runs(_) => "runs",
            Command::History(..) => "history",
            Command::DeadLetters(..) => "dead letters",
        }
    }
}
