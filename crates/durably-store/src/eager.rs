//! Who may begin at once: the rule by which stores grant tasks to whoever commits them, without
//! their waiting in the queue.

use durably_kernel::{TaskKind, Tenant, WorkerId};

/// Whose commits a batch holds, and what waits for that process as the batch begins.
#[derive(Debug)]
pub struct Committer {
    /// The process.
    pub id: WorkerId,
    /// A process that drains or is gone begins nothing. A store may look only where a commit asks.
    pub active: bool,
    /// Of the turns that it could decide.
    pub turns: Option<Foremost>,
    /// Of the activities that it could execute.
    pub activities: Option<Foremost>,
}

impl Committer {
    /// Whether a task may begin at once: nothing that waits has a better right.
    pub fn may_begin(&self, kind: TaskKind, priority: i32, tenant: &Tenant) -> bool {
        let foremost = match kind {
            TaskKind::Turn => &self.turns,
            _ => &self.activities,
        };
        let better = foremost.as_ref().is_some_and(|waits| {
            let others = waits.tenants.0 != *tenant || waits.tenants.1 != *tenant;
            waits.priority > priority || (waits.priority == priority && others)
        });
        self.active && !better
    }
}

/// The highest priority that waits, and the first and last tenant with it.
#[derive(Debug)]
pub struct Foremost {
    /// The priority.
    pub priority: i32,
    /// The first and the last tenant.
    pub tenants: (Tenant, Tenant),
}

impl Foremost {
    /// Both together: of the higher priority only that one's tenants count.
    #[must_use]
    pub fn join(self, other: Option<Foremost>) -> Foremost {
        match other {
            None => self,
            Some(other) if other.priority > self.priority => other,
            Some(other) if other.priority < self.priority => self,
            Some(other) => Foremost {
                priority: self.priority,
                tenants: (self.tenants.0.min(other.tenants.0), self.tenants.1.max(other.tenants.1)),
            },
        }
    }
}
