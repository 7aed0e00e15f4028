//! Random deliveries, reads and registrations.

use super::command::Command;
use super::decide::outcome;
use super::flow::{FLOW, KINDS};
use super::generate::{Generator, Work, keep};
use super::raw::RAW;
use crate::sample::json;
use crate::world::{activities, turns};
use durably_kernel::{Claim, Fact, RunId, RunStatus, Seq, Signal, Timestamp, WorkerId};
use durably_store::{Delivery, Held, LoadCall, Registration, RunQuery};

/// So many processes live at a time.
const LIVING_MAX: usize = 4;

impl Generator {
    pub(super) fn signal_to(&mut self, run: RunId) -> Delivery {
        let id = format!("s{}", self.draw());
        let fact = Fact::Signal(Signal {
            id: id.clone(),
            signal_type: "go".to_owned(),
            payload: json(r#"{"x" : 1}"#),
            sent_at: Timestamp(0),
        });
        Delivery { run, id, fact, claim: None }
    }

    pub(super) async fn deliver(&mut self) -> Option<Command> {
        let mut batch = Vec::new();
        for _ in 0..self.dice.upto(3) {
            let run = self.any_run().await?;
            let mut delivery = self.signal_to(run);
            match self.dice.below(100) {
                0..5 => delivery.fact = Fact::CancelRequested { reason: "enough".to_owned() },
                5..8 => delivery.fact = Fact::ShutdownRequested {},
                8..16 => delivery = self.dice.pick(&self.deliveries).cloned().unwrap_or(delivery),
                _ => {}
            }
            self.remember(&delivery);
            batch.push(delivery);
        }
        Some(Command::Deliver(batch))
    }

    fn remember(&mut self, delivery: &Delivery) {
        self.deliveries.push(delivery.clone());
        keep(&mut self.deliveries);
    }

    pub(super) async fn outcome(&mut self) -> Option<Command> {
        let hand = self.pick_hand(|hand| matches!(hand.work, Work::Activity(_))).await?;
        let Work::Activity(work) = &hand.work else { return None };
        let fact = outcome(&mut self.dice, work, hand.claim);
        let Claim { place, seq, number, .. } = hand.claim;
        let mut held = Held { who: hand.who.clone(), claim: hand.claim };
        match self.dice.below(100) {
            0..4 => held.who = self.anybody().await?,
            4..10 => held.claim = self.tampered(&hand.who, hand.claim).await,
            _ => {}
        }
        let id = format!("outcome:{place}:{seq}:{number}");
        let delivery = Delivery { run: hand.claim.run, id, fact, claim: Some(held) };
        self.remember(&delivery);
        Some(Command::Deliver(vec![delivery]))
    }

    pub(super) async fn look_up(&mut self) -> Option<Command> {
        let (_, commit) = self.dice.pick(&self.commits)?.clone();
        let run = match self.dice.chance(20) {
            true => self.any_run().await?,
            false => commit.run,
        };
        Some(Command::LookUp(run, commit.id))
    }

    pub(super) async fn load_some(&mut self) -> Option<Command> {
        let run = self.any_run().await?;
        let claims: Vec<Claim> = self.hands.iter().map(|hand| hand.claim).collect();
        let claims: Vec<Claim> = self.dice.some(&claims, 40);
        Some(Command::Load(LoadCall {
            run,
            after: Seq(self.dice.below(6) as u64),
            claims,
            who: self.anybody().await,
            events_max: self.dice.upto(20),
        }))
    }

    pub(super) async fn read(&mut self) -> Option<Command> {
        let run = self.any_run().await?;
        let most = self.dice.upto(10);
        Some(match self.dice.below(3) {
            0 => Command::History(run, Seq(self.dice.below(5) as u64), most),
            1 => Command::DeadLetters(self.dice.chance(50).then_some(run), most),
            _ => Command::Runs(RunQuery {
                tenant: self.dice.chance(40).then(|| self.dice.one(&["a", "b"]).into()),
                workflow_type: self.dice.chance(30).then(|| FLOW.into()),
                statuses: match self.dice.chance(40) {
                    true => self.dice.some(&RunStatus::ALL, 40),
                    false => Vec::new(),
                },
                idempotency_key: self.dice.chance(20).then(|| "k".to_owned()),
                before: self.dice.chance(30).then_some(run),
                most,
            }),
        })
    }

    pub(super) async fn register(&mut self) -> Option<Command> {
        let living = self.living().await.len();
        if living >= LIVING_MAX || (living > 1 && self.dice.chance(60)) {
            return None;
        }
        let (version, number) = (self.dice.upto(2) as u32, self.draw());
        let who = WorkerId::from(format!("w{number}"));
        self.workers.push((who.clone(), version));
        let mut can = vec![turns(FLOW, version), turns(RAW, 1)];
        can.extend(self.dice.some(&KINDS, 80).into_iter().map(activities));
        Some(Command::Register(Registration {
            who,
            group: "g".to_owned(),
            queues: vec!["default".into(), "second".into()],
            can,
            capacity: self.dice.upto(10) as u32,
            host: "host".to_owned(),
            version: "1".to_owned(),
        }))
    }
}
