//! Activities that begin here as soon as the commit that schedules them is acknowledged, without
//! waiting in the queue. The store grants it: it knows whether somebody with a better right waits.

use crate::execute::{Granted, OfRun};
use crate::hands::InHand;
use crate::shared::Shared;
use durably_kernel::{ActivityId, ActivityType, Attempt, Payload, TaskChange, TaskKind, TaskPut};
use durably_store::{ClaimedActivity, Committed, RunCommit};
use std::sync::Arc;
use std::time::Duration;

/// Activities of a commit that have a slot here, which is kept until they begin or this is dropped.
pub(crate) struct Eager {
    shared: Arc<Shared>,
    puts: Vec<TaskPut>,
}

impl Eager {
    /// Marks the activities of the commit that this process can execute and has free slots for.
    pub(crate) fn choose(shared: &Arc<Shared>, commit: &mut RunCommit) -> Eager {
        let mut puts = Vec::new();
        if !shared.is_draining() {
            let fitting = commit.tasks.values().filter_map(|change| match change {
                TaskChange::Put(put) if fits(shared, put) => Some(&**put),
                _ => None,
            });
            puts.extend(fitting.cloned());
            puts.truncate(shared.hands.reserve(puts.len(), shared.settings.slots));
        }
        commit.eager.extend(puts.iter().map(|put| put.place));
        Eager { shared: shared.clone(), puts }
    }

    /// Those that the store granted, to be taken up while the call that granted them still counts
    /// as under way, and then begun at once.
    pub(crate) fn granted(
        mut self,
        of: &OfRun,
        committed: &Committed,
        took: Duration,
    ) -> Vec<Granted> {
        let mut granted = Vec::new();
        let worker = self.shared.who();
        for claim in &committed.eager {
            let Some(at) = self.puts.iter().position(|put| put.place == claim.place) else {
                continue;
            };
            // The claims of a late answer may be gone: a beat reports those that stand.
            if self.shared.settings.is_late(took, self.puts[at].options.as_deref()) {
                continue;
            }
            let put = self.puts.swap_remove(at);
            self.shared.hands.release(1);
            let heartbeat = put.options.as_ref().and_then(|options| options.heartbeat);
            let in_hand = InHand { heartbeat, ..InHand::default() };
            let attempt = Attempt {
                number: put.attempt + 1,
                worker: worker.clone(),
                started_at: committed.now,
            };
            let (of, activity) = (of.clone(), claimed(put, attempt));
            granted.push(Granted { claim: *claim, of, activity, in_hand });
        }
        granted
    }
}

impl Drop for Eager {
    fn drop(&mut self) {
        self.shared.hands.release(self.puts.len());
    }
}

/// A first attempt, at once, of what this process hosts.
fn fits(shared: &Shared, put: &TaskPut) -> bool {
    put.kind == TaskKind::Activity
        && put.delay.is_none()
        && put.attempt == 0
        && shared.settings.queues.contains(&put.queue)
        && shared.registry.activity(&ActivityType::from(put.name.clone())).is_some()
}

fn claimed(put: TaskPut, attempt: Attempt) -> Box<ClaimedActivity> {
    Box::new(ClaimedActivity {
        id: ActivityId::from(put.target),
        activity_type: ActivityType::from(put.name),
        input: put.input.unwrap_or_else(Payload::null),
        options: put.options.unwrap_or_default(),
        attempt,
        losses: Vec::new(),
        details: put.details,
    })
}
