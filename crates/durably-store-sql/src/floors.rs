//! What a process remembers of the tasks that it has claimed, so that its next claim need not pass
//! them again.
//!
//! Where a ready task stood in the index something is left until the server has cleaned up, for as
//! long as anybody looks at an older state of the database: with each claim there is more of it to
//! pass before the first task. So a claim begins behind the last task that was taken, the floor of
//! its lane: a key, a level and a tenant. Whatever becomes ready takes a fresh order number, which is
//! higher. What became ready in a transaction that took longer than the margin may stand below the
//! floor; it is found when the floors are forgotten, which they are all the time.

use crate::claim::Level;
use crate::eager::Key;
use durably_kernel::Tenant;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::{Duration, Instant};

/// Before the first task.
pub(crate) const BOTTOM: i64 = i64::MIN;

/// The floors of tenants.
pub(crate) type Tenants = BTreeMap<Tenant, i64>;

/// The lanes that are known to have had tasks, with their floors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes(BTreeMap<Key, BTreeMap<Level, Tenants>>);

impl Lanes {
    /// The highest level below one in which lanes of a key are known.
    pub(crate) fn top(&self, key: &Key, above: Level) -> Option<Level> {
        let levels = self.0.get(key)?.range((Bound::Excluded(above), Bound::Unbounded));
        levels.map(|(level, _)| *level).next()
    }

    /// The tenants with known lanes.
    pub(crate) fn tenants(&self, key: &Key, level: Level) -> impl Iterator<Item = &Tenant> {
        self.0.get(key).and_then(|levels| levels.get(&level)).into_iter().flat_map(Tenants::keys)
    }

    pub(crate) fn floor(&self, key: &Key, level: Level, tenant: &Tenant) -> Option<i64> {
        self.0.get(key)?.get(&level)?.get(tenant).copied()
    }

    pub(crate) fn set(&mut self, key: &Key, level: Level, tenant: &Tenant, floor: i64) {
        let levels = self.0.entry(key.clone()).or_default();
        levels.entry(level).or_default().insert(tenant.clone(), floor);
    }

    pub(crate) fn forget(&mut self, key: &Key, level: Level, tenant: &Tenant) {
        let Some(levels) = self.0.get_mut(key) else { return };
        let Some(tenants) = levels.get_mut(&level) else { return };
        tenants.remove(tenant);
        if tenants.is_empty() {
            levels.remove(&level);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.values().all(BTreeMap::is_empty)
    }

    fn count(&self) -> usize {
        self.0.values().flat_map(BTreeMap::values).map(Tenants::len).sum()
    }
}

/// The floors of a process's claims.
#[derive(Debug, Default)]
pub(crate) struct Floors(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    lanes: Lanes,
    /// When all of them are forgotten.
    end: Option<Instant>,
}

/// So long floors are used at least.
const USED_MIN: Duration = Duration::from_secs(1);
/// A claim without floors may take long; they are used for so many times as long as that.
const USED_TIMES: u32 = 20;
/// More lanes than this are not remembered.
const LANES_MAX: usize = 1_000;

/// A claim that knows what it knows.
#[derive(Debug)]
pub(crate) struct Knowing {
    pub(crate) lanes: Lanes,
    began: Instant,
    /// It begins without floors.
    anew: bool,
}

impl Floors {
    pub(crate) fn begin(&self) -> Knowing {
        let began = now();
        let mut memory = self.0.lock();
        if memory.end.is_some_and(|end| end <= began) {
            *memory = Memory::default();
        }
        Knowing { lanes: memory.lanes.clone(), began, anew: memory.lanes.is_empty() }
    }

    /// Remembers what a claim that was committed has learnt.
    pub(crate) fn end(&self, claim: &Knowing, lanes: Lanes) {
        let ended = now();
        let mut memory = self.0.lock();
        memory.lanes = if lanes.count() > LANES_MAX { Lanes::default() } else { lanes };
        if claim.anew {
            let took = ended.saturating_duration_since(claim.began);
            memory.end = Some(ended + (took * USED_TIMES).max(USED_MIN));
        }
    }

    /// Whether a claim was done is not known.
    pub(crate) fn forget(&self) {
        *self.0.lock() = Memory::default();
    }
}

#[expect(clippy::disallowed_methods, reason = "how long floors are used decides nothing else")]
fn now() -> Instant {
    Instant::now()
}
