//! What is wrong with a store, for whoever has to mend it.

use super::{Broken, TIMES};
use crate::error::StoreError;
use durably_kernel::{RunId, Timestamp};

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Weight {
    /// Something that must hold does not.
    Wrong,
    /// Nothing is damaged, but somebody should know.
    Note,
}

impl Weight {
    /// The name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Weight::Wrong => "wrong",
            Weight::Note => "note",
        }
    }
}

/// Something that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// How bad it is.
    pub weight: Weight,
    /// The invariant that does not hold, if it is one.
    pub invariant: Option<&'static str>,
    /// The run, or the id under which rows of no run are.
    pub run: Option<RunId>,
    /// What is the matter.
    pub what: String,
    /// Since when, if that is known.
    pub since: Option<Timestamp>,
    /// What to do about it.
    pub advice: &'static str,
}

impl Finding {
    /// An invariant of a run that does not hold. A run that stands still does so since its last
    /// commit.
    pub(super) fn of_broken(run: RunId, broken: Broken, last: Option<Timestamp>) -> Finding {
        let stands_still = matches!(broken.invariant, "I5" | "I11");
        let times = broken.invariant == TIMES;
        Finding {
            weight: if times { Weight::Note } else { Weight::Wrong },
            invariant: Some(broken.invariant).filter(|_| !times),
            run: Some(run),
            what: broken.problem,
            since: last.filter(|_| stands_still),
            advice: advice(broken.invariant),
        }
    }

    /// Something that is wrong with a store as a whole.
    pub fn of_store(error: &StoreError) -> Finding {
        Finding {
            weight: Weight::Wrong,
            invariant: None,
            run: None,
            what: error.to_string(),
            since: None,
            advice: match error {
                StoreError::Unsafe { .. } => {
                    "change the setting: what was acknowledged may be lost when the machine stops"
                }
                _ => "stop all engines and restore the database from a backup",
            },
        }
    }

    /// Something that stands in the store and cannot be read.
    pub(super) fn unreadable(run: RunId, error: &StoreError) -> Finding {
        Finding {
            weight: Weight::Wrong,
            invariant: None,
            run: Some(run),
            what: error.to_string(),
            since: None,
            advice: match error {
                StoreError::EventNewer { .. } => {
                    "use the version of durably that wrote it; if there is none, the row was \
                     changed by hand: restore it from a backup"
                }
                _ => "the row was changed by something else than durably: restore it from a backup",
            },
        }
    }

    /// The row of the leader is damaged.
    pub(super) fn no_leader(error: &StoreError) -> Finding {
        Finding {
            weight: Weight::Wrong,
            invariant: None,
            run: None,
            what: error.to_string(),
            since: None,
            advice: "nobody can lead, so that dead processes are not noticed: put the row of \
                     durable_leader back, with id 1, no leader, and a term above all before",
        }
    }

    pub(super) fn note(
        run: RunId,
        what: String,
        since: Timestamp,
        advice: &'static str,
    ) -> Finding {
        let (run, since) = (Some(run), Some(since));
        Finding { weight: Weight::Note, invariant: None, run, what, since, advice }
    }
}

/// What to do about an invariant that does not hold.
fn advice(invariant: &str) -> &'static str {
    match invariant {
        TIMES => {
            "nothing, if the clock of the database was set back; otherwise the row was changed by \
             something else than durably"
        }
        "I1" | "I2" | "I3" | "I6" | "I13" | "I17" => {
            "the history is not what was committed: restore the run's rows in all tables from one \
             backup"
        }
        "I4" => {
            "the run's row and its history contradict each other, and the history decides: restore \
             the row in durable_runs from a backup"
        }
        "I5" | "I11" => {
            "the run cannot go on by itself: restore its rows in durable_tasks from a backup, or \
             terminate it and start it anew"
        }
        "I8" | "I9" => "no worker can use this row: restore it in durable_tasks from a backup",
        "I10" => "delete the row: what it stands for is no longer wanted",
        "I14" => {
            "signals or outcomes are lost or counted twice: restore the run's rows in \
             durable_inbox and its inbox numbers in durable_runs from a backup"
        }
        "I19" => "decide which of the runs is right, and terminate the other",
        "I27" => "give the tasks the tenant of their run: until then they count for another one",
        _ => "restore the run's rows in all tables from one backup",
    }
}
