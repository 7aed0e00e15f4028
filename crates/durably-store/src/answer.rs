//! What a store answers.

use crate::command::{Claimable, Term};
use durably_kernel::{
    ActivityId, ActivityOptions, ActivityType, Attempt, Claim, Event, Fact, LastError, Loss,
    Payload, RunId, RunIdentity, RunStatus, Seq, Tenant, Timestamp, Waits, WorkflowType,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Why a run's code cannot go on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parked {
    /// An error code.
    pub code: String,
    /// What happened.
    pub reason: String,
    /// How often in a row.
    pub times: u32,
    /// Since when.
    pub at: Timestamp,
}

/// A run's row.
#[derive(Clone, PartialEq, Debug)]
pub struct RunView {
    /// What it is known by.
    pub identity: RunIdentity,
    /// Its workflow.
    pub workflow_type: WorkflowType,
    /// Its version: asked for, or pinned.
    pub version: Option<u32>,
    /// The caller's key.
    pub idempotency_key: Option<String>,
    /// Attributes to search by.
    pub attributes: Option<Payload>,
    /// The last event.
    pub head: Seq,
    /// Where it stands.
    pub status: RunStatus,
    /// Why it cannot go on, if it cannot.
    pub parked: Option<Parked>,
    /// What it waits for from outside.
    pub waits: Waits,
    /// Retries so far.
    pub retries: u32,
    /// The last error.
    pub last_error: Option<Box<LastError>>,
    /// The last inbox number given.
    pub inbox_last: u64,
    /// The last inbox number used up.
    pub inbox_used: u64,
    /// When it was started.
    pub created_at: Timestamp,
    /// When its first turn was committed.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// An entry of a run's inbox.
#[derive(Clone, PartialEq, Debug)]
pub struct InboxEntry {
    /// Counts from 1 within the run.
    pub number: u64,
    /// Unique within the run.
    pub id: String,
    /// The fact.
    pub fact: Fact,
}

/// What a successful commit says.
#[derive(Clone, PartialEq, Debug)]
pub struct Committed {
    /// The run's head now.
    pub head: Seq,
    /// The turn row, where the committer holds the run afterwards.
    pub turn: Option<Claim>,
    /// Unread inbox entries, a bounded number; only for whoever holds the run.
    pub unread: Vec<InboxEntry>,
    /// The store's time.
    pub now: Timestamp,
    /// The tasks that begin in the committer's hands, of those it asked for.
    pub eager: Vec<Claim>,
}

/// What became of a commit.
#[derive(Clone, PartialEq, Debug)]
pub enum CommitAnswer {
    /// It is done.
    Committed(Box<Committed>),
    /// Somebody was faster: load what is new, decide again.
    Conflict,
    /// It would end the run over newer inbox entries: load them, decide again.
    EndConflict,
    /// These claims are not yours any more: drop their facts, load, decide again.
    Fenced(Vec<Claim>),
    /// Somebody else holds the run: deliver the facts instead.
    Held,
    /// There is no such run.
    Unknown,
    /// The start found a run of that id or key.
    Exists {
        /// The run.
        run: RunId,
        /// Whether workflow and input are the same.
        same: bool,
    },
}

/// What became of a delivery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Delivered {
    /// It is in the inbox under this number, now or by an earlier call.
    Entry(u64),
    /// The run has ended.
    Ended(RunStatus),
    /// There is no such run.
    Unknown,
    /// The claim is not yours any more.
    Fenced,
}

/// A task's activity.
#[derive(Clone, PartialEq, Debug)]
pub struct ClaimedActivity {
    /// Its id within the run.
    pub id: ActivityId,
    /// Its code.
    pub activity_type: ActivityType,
    /// What it gets.
    pub input: Payload,
    /// How it is executed.
    pub options: Arc<ActivityOptions>,
    /// This attempt.
    pub attempt: Attempt,
    /// Attempts that were lost since the last event about it.
    pub losses: Vec<Loss>,
    /// What an earlier attempt said last.
    pub details: Option<Payload>,
}

/// What a claimed task is about.
#[derive(Clone, PartialEq, Debug)]
pub enum ClaimedWork {
    /// A turn: whoever claims it holds the run.
    Turn {
        /// Unread inbox entries, a bounded number.
        unread: Vec<InboxEntry>,
        /// Event 1, where no turn was taken yet.
        first: Option<Box<Event>>,
        /// Holders that were lost since the last commit.
        losses: Vec<Loss>,
    },
    /// An activity.
    Activity(Box<ClaimedActivity>),
}

/// A task in a worker's hands.
#[derive(Clone, PartialEq, Debug)]
pub struct ClaimedTask {
    /// The right to it.
    pub claim: Claim,
    /// Its run.
    pub run: Box<RunView>,
    /// What it is about.
    pub work: ClaimedWork,
}

/// What a claim took.
#[derive(Clone, PartialEq, Debug)]
pub enum Claimed {
    /// These tasks.
    Tasks {
        /// In the order in which they are to be begun.
        tasks: Vec<ClaimedTask>,
        /// The tenant after which to go on.
        cursor: Option<Tenant>,
        /// The store's time.
        now: Timestamp,
    },
    /// The process is not active: it takes a new incarnation.
    Refused,
}

/// A run for a turn.
#[derive(Clone, PartialEq, Debug)]
pub struct Loaded {
    /// Its row.
    pub view: RunView,
    /// Events after the one asked for, in order.
    pub events: Vec<Event>,
    /// Whether there are more.
    pub more: bool,
    /// Unread inbox entries, a bounded number.
    pub unread: Vec<InboxEntry>,
    /// Of the claims asked about, those that stand.
    pub standing: Vec<Claim>,
    /// The store's time.
    pub now: Timestamp,
}

/// What a beat learns.
#[derive(Clone, PartialEq, Debug)]
pub enum BeatAnswer {
    /// The process is active.
    Alive {
        /// Of the claims named, those that are not its own any more.
        lost: Vec<Claim>,
        /// Of the claims named, those whose work is no longer wanted.
        cancelling: Vec<Claim>,
        /// Claims of its own that it did not name: an answer was lost.
        unnamed: Vec<ClaimedTask>,
        /// Runs that it holds and that have unread inbox entries.
        unread: Vec<RunId>,
        /// The store's time.
        now: Timestamp,
    },
    /// The process was declared dead or has stopped: it takes a new incarnation.
    Refused,
}

/// What the one-second question learns.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AskAnswer {
    /// Claims that stand.
    pub standing: Vec<Claim>,
    /// Claims whose work is no longer wanted.
    pub cancelling: Vec<Claim>,
    /// Runs that it holds and that have unread inbox entries.
    pub unread: Vec<RunId>,
    /// Whether the process is active.
    pub active: bool,
}

/// Who leads, as one learns who asked to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Led {
    /// Whoever asked.
    Leads {
        /// Since it leads without a gap.
        term: Term,
        /// Nobody else can for so long.
        left: Duration,
    },
    /// Somebody else, or nobody whom the store knows to live.
    Follows {
        /// Nobody else can for so long.
        left: Duration,
    },
}

/// What a sweep did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Swept {
    /// Rows that became ready.
    pub ready: usize,
    /// Inbox entries written.
    pub delivered: usize,
    /// Claims taken back.
    pub returned: usize,
    /// Processes declared dead.
    pub dead: usize,
    /// When the next thing is due, from now; zero if the bound was reached.
    pub next_due: Option<Duration>,
}

impl Claimable {
    /// Kind, name and version as the queue's index has them; 0 is a version not pinned yet.
    pub fn keys(&self) -> Vec<(durably_kernel::TaskKind, &str, u32)> {
        use durably_kernel::TaskKind;
        match self {
            Claimable::Turn { workflow_type, version } => vec![
                (TaskKind::Turn, workflow_type.as_str(), 0),
                (TaskKind::Turn, workflow_type.as_str(), *version),
            ],
            Claimable::Activity { activity_type } => {
                vec![(TaskKind::Activity, activity_type.as_str(), 0)]
            }
        }
    }
}
