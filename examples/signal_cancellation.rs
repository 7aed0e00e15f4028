//! Signals and cancellation: an approval with a time-out, and a run that compensates when it is
//! cancelled.
//!
//! Run it with `cargo run --example signal_cancellation`.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use durably::prelude::*;
use durably::{FailureKind, RunError};

const EXPENSE: WorkflowRef<u32, String> = WorkflowRef::new("expense");
const TRIP: WorkflowRef<(), String> = WorkflowRef::new("trip");
const APPROVAL: SignalRef<bool> = SignalRef::new("approval");
const LONG: ActivityRef<(), ()> = ActivityRef::new("long");

async fn expense(ctx: Ctx, cents: u32) -> Result<String> {
    match ctx.signal(APPROVAL).timeout(Duration::from_secs(60)).await? {
        None => Ok("expired".into()),
        Some(false) => Ok("refused".into()),
        Some(true) => Ok(format!("{cents} cents paid")),
    }
}

async fn trip(ctx: Ctx, (): ()) -> Result<String> {
    let flight = ctx.step("book-flight", async || Ok("LH 123".to_owned())).await?;
    match ctx.activity(LONG, &()).await {
        Ok(()) => Ok(flight),
        // A cancel arrives once, at the open await; what comes after it works as always.
        Err(failure) if failure.kind == FailureKind::Cancelled => {
            ctx.step("cancel-flight", async || {
                println!("{flight} is cancelled");
                Ok(())
            })
            .await?;
            Err(failure.into())
        }
        Err(failure) => Err(failure.into()),
    }
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::builder()
        .function(EXPENSE, expense)
        .function(TRIP, trip)
        .activity_fn(LONG, async |ctx: ActivityContext, ()| {
            ctx.cancellation().cancelled().await;
            let why = ctx.cancellation().reason().map(|reason| reason.to_string());
            println!("the long activity hears: {}", why.unwrap_or_default());
            Err(Error::cancelled("stopped half-way"))
        })
        .start("sqlite:signal_cancellation.db")
        .await?;

    // The signal may come before anybody waits for it.
    let run = engine.start(EXPENSE, &4200).signal(APPROVAL, &true).await?;
    println!("expense: {}", run.result().await?);

    let run = engine.start(TRIP, &()).await?;
    while !run.tasks().await?.iter().any(|task| task.name == LONG.name() && task.attempt.is_some())
    {
        tokio::task::yield_now().await;
    }
    run.cancel("the meeting is off").await?;
    match run.result().await {
        Err(RunError::Cancelled { reason, .. }) => println!("trip cancelled: {reason}"),
        other => println!("unexpected: {other:?}"),
    }
    engine.stop().await?;
    Ok(())
}
