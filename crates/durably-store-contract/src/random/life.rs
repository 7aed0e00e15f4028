//! Commands of the life of processes: claims, beats, hand-backs, sweeps, ends.

use super::command::Command;
use super::flow::{FLOW, KINDS};
use super::generate::Generator;
use super::raw::RAW;
use crate::sample::{json, secs};
use crate::world::{activities, turns};
use durably_kernel::{Claim, Queue, WorkerId};
use durably_store::{
    Beat, ClaimCall, Claimable, HandBack, Heartbeat, LeadCall, Returned, SweepCall, Want,
};

impl Generator {
    pub(super) async fn of_life(&mut self, kind: &str) -> Option<Command> {
        match kind {
            "claim" => self.claim().await,
            "claim again" => Some(Command::Claim(self.dice.pick(&self.calls)?.clone())),
            "hand back" => self.hand_back().await,
            "beat" => self.beat().await,
            "ask" => Some(Command::Ask(self.anybody().await?)),
            "sweep" => Some(Command::Sweep(self.sweep().await)),
            "lead" => Some(Command::Lead(self.lead().await?)),
            "drain" => Some(Command::Drain(self.anybody().await?)),
            "leave" => Some(Command::Leave(self.anybody().await?)),
            other => panic!("{other} is no kind of command"),
        }
    }

    async fn claim(&mut self) -> Option<Command> {
        let who = self.anybody().await?;
        let version = self.version_of(&who);
        let all: Vec<Claimable> = [turns(FLOW, version), turns(RAW, 1)]
            .into_iter()
            .chain(KINDS.map(activities))
            .collect();
        let mut wants = Vec::new();
        for _ in 0..self.dice.upto(2) {
            wants.push(Want { any: self.dice.some(&all, 80), most: self.dice.below(4) });
        }
        let queues: Vec<Queue> = vec!["default".into(), "second".into()];
        let call = ClaimCall {
            id: self.call_id(),
            who,
            queues: self.dice.some(&queues, 90),
            wants,
            cursor: self.dice.chance(60).then(|| self.dice.one(&["a", "b", "bb", "z"]).into()),
            turn_deadline: self.dice.one(&[secs(20), secs(70)]),
        };
        self.calls.push(call.clone());
        let excess = self.calls.len().saturating_sub(10);
        self.calls.drain(..excess);
        Some(Command::Claim(call))
    }

    /// Claims that a worker has, and now and then one that it had.
    async fn claims_of(&mut self, who: &WorkerId, percent: usize) -> Vec<Claim> {
        let standing = self.memory.ask(who.clone()).await.expect("ask");
        let all: Vec<Claim> = standing.standing.into_iter().chain(standing.cancelling).collect();
        let mut claims = self.dice.some(&all, percent);
        if self.dice.chance(10) {
            let hands: Vec<Claim> = self.hands.iter().map(|hand| hand.claim).collect();
            claims.extend(self.dice.pick(&hands).copied());
        }
        claims
    }

    async fn hand_back(&mut self) -> Option<Command> {
        let who = self.anybody().await?;
        let ways = [Returned::Unstarted, Returned::Stopped, Returned::Confirmed];
        let mut batch = Vec::new();
        for claim in self.claims_of(&who, 50).await {
            batch.push(HandBack { claim, how: self.dice.one(&ways) });
        }
        (!batch.is_empty()).then_some(Command::HandBack(who, batch))
    }

    async fn beat(&mut self) -> Option<Command> {
        let who = self.anybody().await?;
        let claims = self.claims_of(&who, 85).await;
        let says = self.dice.some(&claims, 40);
        let heartbeats = says.into_iter().map(|claim| {
            let details = self.dice.chance(60).then(|| json(&self.dice.below(9).to_string()));
            Heartbeat { claim, details }
        });
        let heartbeats: Vec<Heartbeat> = heartbeats.collect();
        let load = self.dice.below(10) as u32;
        // Now and then one comes after a later one.
        let late = if self.dice.chance(10) { self.dice.below(50) as u64 } else { 0 };
        let number = self.draw().saturating_sub(late);
        Some(Command::Beat(Beat { who, number, load, claims, heartbeats }))
    }

    async fn lead(&mut self) -> Option<LeadCall> {
        let lease = self.dice.one(&[secs(2), secs(6), secs(20)]);
        Some(LeadCall { who: self.anybody().await?, lease })
    }

    async fn sweep(&mut self) -> SweepCall {
        SweepCall {
            who: if self.dice.chance(50) { self.anybody().await } else { None },
            most: self.dice.one(&[1, 2, 3, 1000, 1000, 1000]),
            stale_after: secs(60),
            may_declare: self.dice.chance(80),
        }
    }
}
