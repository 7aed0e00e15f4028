//! A state machine: validate an order, charge it, ship it.
//!
//! Run it with `cargo run --example simple_workflow`.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use durably::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    item: String,
    cents: u32,
}

const VALIDATE: ActivityRef<Order, bool> = ActivityRef::new("validate");
const SHIP: ActivityRef<String, String> = ActivityRef::new("ship");

/// An activity with state of its own: a client of a payment service, say.
struct Charge {
    currency: &'static str,
}

impl Activity for Charge {
    const TYPE: &'static str = "charge";
    type Input = u32;
    type Output = String;

    async fn execute(&self, ctx: &ActivityContext, cents: u32) -> Result<String> {
        if cents == 0 {
            return Err(Error::permanent("nothing to charge").code("ZERO"));
        }
        // Give other systems this key: it is the same for all attempts.
        Ok(format!("{cents} {} under {}", self.currency, ctx.idempotency_key()))
    }
}

struct Shop {
    order: Order,
}

impl Workflow for Shop {
    const TYPE: &'static str = "shop";
    type Input = Order;
    type Output = String;

    fn new(order: Order) -> Self {
        Shop { order }
    }

    fn on_start(&mut self) -> Actions<Self> {
        actions![Action::activity("validate", VALIDATE, &self.order)]
    }

    fn on_activity_completed(&mut self, _id: &str, result: &Output) -> Actions<Self> {
        if let Some(valid) = result.of(VALIDATE)? {
            return match valid {
                true => actions![Action::activity("charge", Charge::REF, &self.order.cents)],
                false => actions![Action::complete(&"rejected".to_owned())],
            };
        }
        if result.of(Charge::REF)?.is_some() {
            return actions![Action::activity("ship", SHIP, &self.order.item)];
        }
        match result.of(SHIP)? {
            Some(tracking) => actions![Action::complete(&tracking)],
            None => actions![],
        }
    }
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::builder()
        .workflow::<Shop>()
        .activity(Charge { currency: "EUR" })
        .activity_fn(VALIDATE, async |_, order: Order| Ok(!order.item.is_empty()))
        .activity_fn(SHIP, async |_, item: String| Ok(format!("T-{item}")))
        .start("sqlite:simple_workflow.db")
        .await?;
    let order = Order { item: "tea".into(), cents: 450 };
    let run = engine.start(Shop::REF, &order).tenant("acme").idempotency_key("order-42").await?;
    println!("shipped: {}", run.result().await?);
    for task in run.trail().await? {
        println!("{}: {} entries", task.id, task.entries.len());
    }
    engine.stop().await?;
    Ok(())
}
