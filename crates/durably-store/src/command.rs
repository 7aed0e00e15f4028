//! What the runtime asks of a store.

use durably_kernel::{
    ActivityType, Claim, CommitId, DeadLetter, Decision, Event, Fact, Payload, Place, Queue, RunId,
    RunIdentity, Seq, Summary, TaskChange, Timestamp, WorkerId, WorkflowType,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use uuid::Uuid;

/// One claim call; repeated under the same id it gives the same tasks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CallId(pub Uuid);

/// What distinguishes a repeated start from another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyCheck {
    /// The caller's key, if there is one.
    pub key: Option<String>,
    /// Hash of the canonical input, before any codec.
    pub input_hash: String,
}

/// A run's row at its birth.
#[derive(Clone, PartialEq, Debug)]
pub struct NewRun {
    /// What it is known by.
    pub identity: RunIdentity,
    /// Its workflow.
    pub workflow_type: WorkflowType,
    /// The version asked for; none is pinned by the first turn.
    pub version: Option<u32>,
    /// What makes a repeated start the same.
    pub check: KeyCheck,
    /// Attributes to search by, a JSON object.
    pub attributes: Option<Payload>,
}

/// What a commit builds upon.
#[derive(Clone, PartialEq, Debug)]
pub enum Base {
    /// Nothing: it starts the run.
    New(Box<NewRun>),
    /// The history up to this event.
    Head(Seq),
}

/// What becomes of the run's turn row.
#[derive(Clone, PartialEq, Debug)]
pub enum TurnAfter {
    /// Nothing is under way: the holder lets go, unless the inbox has more.
    Release,
    /// Inline steps are under way here: the holder keeps the row, a non-holder gets it if there is
    /// none, unless a turn that it could decide waits in the queue and has a better right.
    Keep,
    /// Somebody else is to go on: ready.
    Return,
    /// A turn is wanted: at once, or not before the delay. For starts.
    Want {
        /// From now.
        delay: Option<Duration>,
    },
    /// The run's code cannot go on: the row waits, the reason stands on the run.
    Park {
        /// From now.
        delay: Duration,
        /// An error code.
        code: String,
        /// What happened.
        reason: String,
    },
}

/// The deadline of a turn row that its holder keeps. It moves on by a second or more: that way few
/// steps have to write it.
pub fn kept_deadline(before: Timestamp, wanted: Timestamp) -> Timestamp {
    const LEAST: Duration = Duration::from_secs(1);
    let stays = wanted >= before && wanted < before.after(LEAST);
    if stays { before } else { wanted }
}

/// A change of a run: whole or not at all.
#[derive(Clone, PartialEq, Debug)]
pub struct RunCommit {
    /// Unique to this attempt.
    pub id: CommitId,
    /// The run.
    pub run: RunId,
    /// What it builds upon.
    pub base: Base,
    /// The claim of the turn row, if the committer holds the run.
    pub holder: Option<Claim>,
    /// Claims of tasks that it uses up.
    pub claims: Vec<Claim>,
    /// An operator's commit is not refused because somebody holds the run.
    pub operator: bool,
    /// Events to append.
    pub events: Vec<Event>,
    /// Changes of the run's other rows.
    pub tasks: BTreeMap<Place, TaskChange>,
    /// Of the activities it puts without delay: those that the committer has a free slot for. They
    /// begin claimed by it, unless a task that it could execute waits in the queue and has a better
    /// right: a higher priority, or the same and another tenant.
    pub eager: BTreeSet<Place>,
    /// Every inbox entry up to this number is used up.
    pub inbox_used: u64,
    /// Of them, entries that came after the fact that ended the run.
    pub unread: Vec<u64>,
    /// Work that was given up.
    pub dead_letters: Vec<DeadLetter>,
    /// Facts for inboxes, its own included.
    pub deliveries: Vec<Delivery>,
    /// What people see of the run afterwards; none leaves it as it is.
    pub summary: Option<Summary>,
    /// What becomes of the turn row.
    pub turn: TurnAfter,
    /// If the committer holds the run afterwards: the turn row is lost after this long, or up to a
    /// second earlier where it held the run before ([`kept_deadline`]).
    pub turn_deadline: Duration,
    /// Ends the run although newer entries are in its inbox: they become dead letters.
    pub end_anyway: bool,
    /// W3C trace context, stored with the history row.
    pub trace: Option<String>,
}

impl RunCommit {
    /// A commit of nothing, to be filled in.
    pub fn empty(id: CommitId, run: RunId, base: Base) -> RunCommit {
        RunCommit {
            id,
            run,
            base,
            holder: None,
            claims: Vec::new(),
            operator: false,
            events: Vec::new(),
            tasks: BTreeMap::new(),
            eager: BTreeSet::new(),
            inbox_used: 0,
            unread: Vec::new(),
            dead_letters: Vec::new(),
            deliveries: Vec::new(),
            summary: None,
            turn: TurnAfter::Release,
            turn_deadline: Duration::from_secs(70),
            end_anyway: false,
            trace: None,
        }
    }

    /// The same with what a turn decided.
    #[must_use]
    pub fn with(mut self, decision: Decision) -> RunCommit {
        self.events = decision.events;
        self.tasks = decision.tasks;
        self.dead_letters = decision.dead_letters;
        self
    }
}

/// A fact for a run's inbox.
#[derive(Clone, PartialEq, Debug)]
pub struct Delivery {
    /// The run.
    pub run: RunId,
    /// Unique within the run: the same id is delivered once.
    pub id: String,
    /// The fact. A signal's time is set by the store.
    pub fact: Fact,
    /// The claim that the fact is an outcome of; checked and used up in the same transaction.
    pub claim: Option<Held>,
}

/// A claim and who has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// The process.
    pub who: WorkerId,
    /// The claim.
    pub claim: Claim,
}

/// What a worker can execute.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claimable {
    /// Turns of a workflow: of this version, and of runs whose version is not pinned yet.
    Turn {
        /// The workflow.
        workflow_type: WorkflowType,
        /// The version of its code.
        version: u32,
    },
    /// Activities of a type.
    Activity {
        /// The type.
        activity_type: ActivityType,
    },
}

/// How much of what a claim is to take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Want {
    /// Any of these.
    pub any: Vec<Claimable>,
    /// At most so many.
    pub most: usize,
}

/// Takes tasks. A process has one such call at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimCall {
    /// Unique, except for repeats.
    pub id: CallId,
    /// The process.
    pub who: WorkerId,
    /// The queues it serves.
    pub queues: Vec<Queue>,
    /// What it wants; each entry is walked by itself.
    pub wants: Vec<Want>,
    /// The tenant after which to go on.
    pub cursor: Option<durably_kernel::Tenant>,
    /// A claimed turn row is lost after this long.
    pub turn_deadline: Duration,
}

/// Reads a run for a turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadCall {
    /// The run.
    pub run: RunId,
    /// Events after this one.
    pub after: Seq,
    /// Claims of `who` to check in the same breath.
    pub claims: Vec<Claim>,
    /// The process.
    pub who: Option<WorkerId>,
    /// At most so many events; the answer says whether there are more.
    pub events_max: usize,
}

/// What an activity said while it runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Heartbeat {
    /// Under this claim.
    pub claim: Claim,
    /// What it said; none keeps what it said before.
    pub details: Option<Payload>,
}

/// One write for all of a process.
#[derive(Clone, PartialEq, Debug)]
pub struct Beat {
    /// The process.
    pub who: WorkerId,
    /// Counts its beats. One that comes after a later one is out of date: it learns something and
    /// changes nothing.
    pub number: u64,
    /// Slots in use.
    pub load: u32,
    /// All claims in its hands.
    pub claims: Vec<Claim>,
    /// Heartbeats since the last beat.
    pub heartbeats: Vec<Heartbeat>,
}

/// How a claim goes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returned {
    /// Nothing was begun: it counts neither as attempt nor as lost.
    Unstarted,
    /// Its process stops: an attempt, but no death.
    Stopped,
    /// It was cancelling, and its worker has let go.
    Confirmed,
}

/// A claim that goes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandBack {
    /// The claim.
    pub claim: Claim,
    /// How.
    pub how: Returned,
}

/// A process that begins to work.
#[derive(Clone, PartialEq, Debug)]
pub struct Registration {
    /// Never used before.
    pub who: WorkerId,
    /// A name for processes of one kind.
    pub group: String,
    /// The queues it serves.
    pub queues: Vec<Queue>,
    /// What it can execute. Parked runs of its workflows become due.
    pub can: Vec<Claimable>,
    /// Its slots.
    pub capacity: u32,
    /// Its host's name.
    pub host: String,
    /// The program's version.
    pub version: String,
}

/// A time in which one process leads; a later one has a higher number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Term(pub u64);

/// Asks to lead, or to go on leading.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeadCall {
    /// The process.
    pub who: WorkerId,
    /// Nobody else leads for so long, unless it leaves before.
    pub lease: Duration,
}

/// Housekeeping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SweepCall {
    /// The process that sweeps.
    pub who: Option<WorkerId>,
    /// At most so many rows of each kind.
    pub most: usize,
    /// A process is gone when its last beat is older than this. One that is so far in the future is
    /// one before the clock was set back, and counts as one of now.
    pub stale_after: Duration,
    /// Whether the sweeper's own beats succeeded all that time: otherwise nobody is declared dead
    /// by time, since the store may have been out of reach for all.
    pub may_declare: bool,
}
