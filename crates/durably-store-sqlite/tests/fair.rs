//! Claims walk an index here and plain maps in the memory store: both take the same tasks in the
//! same order, whatever waits. (The suite compares all commands; this gives claims more to choose
//! from.)

mod scene;

use durably_kernel::{Claim, Place, Queue, Seq, TaskChange, Tenant};
use durably_store::memory::MemoryStore;
use durably_store::{
    Base, CallId, ClaimCall, Claimable, Claimed, Clock, HandBack, Returned, RunCommit, Store,
    TurnAfter, Want,
};
use durably_store_sqlite::SqliteStore;
use scene::{activity, clock, open_at, place, registration, run_id, start, wait};
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

const TENANTS: [&str; 7] = ["a", "b", "B", "ab", "", "ä", "zz"];
const QUEUES: [&str; 3] = ["default", "slow", "Default"];
const TYPES: [&str; 4] = ["charge", "mail", "order", "pay"];

/// Random numbers that a seed repeats.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }

    /// The start of a run with a ready turn, some ready activities, or both.
    fn start(&mut self, number: u64) -> RunCommit {
        let mut commit = start(number);
        let Base::New(new) = &mut commit.base else { unreachable!("it is a start") };
        new.identity.tenant = self.pick(&TENANTS).into();
        new.identity.queue = self.pick(&QUEUES).into();
        new.identity.priority = self.roll(3) as i32 - 1;
        new.workflow_type = self.pick(&TYPES).into();
        new.version = [None, Some(1), Some(2)][self.roll(3)];
        if self.roll(3) == 0 {
            commit.summary = None;
        }
        commit.tasks = BTreeMap::new();
        for at in 1..=self.roll(4) as u32 {
            let mut put = activity(Seq(2));
            (put.place, put.target) = (Place(at), at.to_string().into());
            put.name = self.pick(&TYPES).into();
            put.queue = self.pick(&QUEUES).into();
            put.priority = self.roll(3) as i32 - 1;
            commit.tasks.insert(put.place, TaskChange::Put(Box::new(put)));
        }
        commit.turn = match self.roll(2) {
            0 => TurnAfter::Want { delay: None },
            _ => TurnAfter::Release,
        };
        commit
    }

    fn want(&mut self) -> Want {
        let any = (0..=self.roll(5)).map(|_| match self.roll(2) {
            0 => Claimable::Activity { activity_type: self.pick(&TYPES).into() },
            _ => Claimable::Turn {
                workflow_type: self.pick(&TYPES).into(),
                version: self.roll(3) as u32,
            },
        });
        let any = any.collect();
        let most = [0, 1, 2, 3, 5, 8, 40, usize::MAX][self.roll(8)];
        Want { any, most }
    }

    fn call(&mut self, number: u64) -> ClaimCall {
        ClaimCall {
            id: CallId(Uuid::from_u64_pair(3, number)),
            who: "worker".into(),
            queues: (0..=self.roll(3)).map(|_| Queue::from(self.pick(&QUEUES))).collect(),
            wants: (0..=self.roll(2)).map(|_| self.want()).collect(),
            cursor: [None, Some(Tenant::from(self.pick(&TENANTS))), Some("aa".into())]
                [self.roll(3)]
            .clone(),
            turn_deadline: Duration::from_secs(70),
        }
    }
}

struct Pair {
    model: MemoryStore,
    store: SqliteStore,
}

impl Pair {
    /// The claims that both took.
    async fn claim(&self, call: ClaimCall, seed: u64) -> Vec<Claim> {
        let wanted = self.model.claim(call.clone()).await.expect("claims");
        let found = self.store.claim(call.clone()).await.expect("claims");
        assert_eq!(found, wanted, "seed {seed}: {call:?}");
        match found {
            Claimed::Tasks { tasks, .. } => tasks.into_iter().map(|task| task.claim).collect(),
            Claimed::Refused => panic!("seed {seed}: the worker is active"),
        }
    }
}

async fn compare(seed: u64) {
    let (_folder, path) = place();
    let clock = clock();
    let store = open_at(&path, &clock);
    let pair = Pair { model: MemoryStore::with_clock(Clock::Manual(clock)), store };
    let stores: [&dyn Store; 2] = [&pair.model, &pair.store];
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for store in stores {
        store.register(registration("worker", "here")).await.expect("registers");
    }
    let mut taken = Vec::new();
    for round in 0..25 {
        let batch: Vec<_> = (0..6).map(|at| dice.start(round * 100 + at)).collect();
        for store in stores {
            store.commit(None, batch.clone().into()).await.expect("commits");
        }
        let call = dice.call(round);
        taken.extend(pair.claim(call.clone(), seed).await);
        if dice.roll(4) == 0 {
            pair.claim(call, seed).await;
        }
        let returned = taken.split_off(taken.len() - dice.roll(taken.len() + 1));
        let back: Vec<_> = returned
            .into_iter()
            .map(|claim| HandBack { claim, how: Returned::Unstarted })
            .collect();
        for store in stores {
            store.hand_back("worker".into(), back.clone()).await.expect("hands back");
        }
    }
    let one = pair.model.run(run_id(0)).await.expect("reads");
    assert_eq!(pair.store.run(run_id(0)).await.expect("reads"), one, "seed {seed}");
}

#[test]
fn the_same_tasks_are_taken_in_the_same_order_as_in_memory() {
    let first = u64::from(std::process::id()) * 1000;
    #[allow(clippy::print_stdout, reason = "a random test prints its seed")]
    {
        println!("seeds {first} and up");
    }
    for seed in first..first + 8 {
        wait(compare(seed));
    }
}
