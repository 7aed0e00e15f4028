//! What workflow code asks for.

use crate::failure::Failure;
use crate::id::{ActivityId, ActivityType, TimerId};
use crate::options::ActivityOptions;
use crate::payload::Payload;
use std::sync::Arc;
use std::time::Duration;

/// What workflow code asks for. Ids are the workflow's own and unique within a run.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Have an activity executed.
    ScheduleActivity {
        /// Its id.
        id: ActivityId,
        /// Its code.
        activity_type: ActivityType,
        /// What it gets.
        input: Payload,
        /// How it is executed.
        options: Arc<ActivityOptions>,
        /// In the workflow's own task rather than through the queue.
        inline: bool,
    },
    /// Give an activity up. One that is not open is left alone.
    CancelActivity {
        /// Its id.
        id: ActivityId,
    },
    /// Be told after a while.
    StartTimer {
        /// Its id.
        id: TimerId,
        /// How long.
        delay: Duration,
    },
    /// Give a timer up. One that is not open is left alone.
    CancelTimer {
        /// Its id.
        id: TimerId,
    },
    /// End with a result.
    Complete {
        /// The result.
        output: Payload,
    },
    /// End with an error.
    Fail {
        /// The error.
        error: Failure,
    },
    /// End as cancelled.
    Cancelled {
        /// Why.
        reason: String,
    },
}
