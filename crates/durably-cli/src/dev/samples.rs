//! The sample workflows: an order as a durable function, a report as a state machine.

use super::{open_runs, waits_for};
use durably::EngineBuilder;
use durably::prelude::*;
use serde::{Deserialize, Serialize};

const ORDER: WorkflowRef<Order, String> = WorkflowRef::new("order");
const CHARGE: ActivityRef<u32, String> = ActivityRef::new("charge");
const COUNT: ActivityRef<u32, u32> = ActivityRef::new("count");
const APPROVAL: SignalRef<String> = SignalRef::new("approval");

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    item: String,
    cents: u32,
}

/// Steps, a payment that fails twice, a timer, and a signal from the manager.
async fn order(ctx: Ctx, order: Order) -> Result<String> {
    let slip = ctx.step("reserve", async || Ok(format!("slip for {}", order.item))).await?;
    let receipt = ctx.activity(CHARGE, &order.cents).retry(Retry::exponential()).await?;
    ctx.sleep(Duration::from_secs(3)).await?;
    let approved = ctx.signal(APPROVAL).timeout(Duration::from_secs(60)).await?;
    let Some(manager) = approved else { return Ok("nobody approved".into()) };
    ctx.step("ship", async || Ok(format!("{slip}, {receipt}, approved by {manager}")))
        .await
        .map_err(Into::into)
}

/// Counts three times with a pause in between, as a state machine.
struct Report {
    total: u32,
    round: u32,
}

impl Workflow for Report {
    const TYPE: &'static str = "report";
    type Input = u32;
    type Output = u32;

    fn new(first: u32) -> Self {
        Report { total: first, round: 0 }
    }

    fn on_start(&mut self) -> Actions<Self> {
        actions![Action::activity("count-0", COUNT, &self.total)]
    }

    fn on_activity_completed(&mut self, _id: &str, result: &Output) -> Actions<Self> {
        self.total += result.of(COUNT)?.unwrap_or(0);
        self.round += 1;
        match self.round {
            3 => actions![Action::complete(&self.total)],
            round => actions![Action::timer(format!("pause-{round}"), Duration::from_secs(2))],
        }
    }

    fn on_timer_fired(&mut self, _id: &str) -> Actions<Self> {
        actions![Action::activity(format!("count-{}", self.round), COUNT, &self.total)]
    }
}

/// An engine that hosts the samples.
pub(super) fn engine() -> EngineBuilder {
    Engine::builder()
        .function(ORDER, order)
        .workflow::<Report>()
        .activity_fn(CHARGE, async |ctx: ActivityContext, cents: u32| match ctx.attempt() {
            1 | 2 => Err(Error::retryable("the payment service is out of reach")),
            attempt => Ok(format!("{cents} cents charged at attempt {attempt}")),
        })
        .activity_fn(COUNT, async |_, so_far: u32| Ok(so_far + 1))
}

pub(super) async fn start_order(client: &Client) -> anyhow::Result<()> {
    let order = Order { item: "tea".into(), cents: 450 };
    client.start(ORDER, &order).await?;
    Ok(())
}

pub(super) async fn start_report(client: &Client) -> anyhow::Result<()> {
    client.start(Report::REF, &1).await?;
    Ok(())
}

/// The manager: approves whatever waits for it, once.
pub(super) async fn approve_waiting(client: &Client) -> anyhow::Result<()> {
    for run in open_runs(client).await?.iter().filter(|run| waits_for(run, APPROVAL.name())) {
        let handle = client.handle(ORDER, run.identity.id);
        if let Err(error) = handle.signal_once(APPROVAL, &"the manager".into(), "approval").await {
            // The run may have ended a moment ago; anything else shows at the next tick.
            tracing::debug!(%error, "could not approve");
        }
    }
    Ok(())
}
