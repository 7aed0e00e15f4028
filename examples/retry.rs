//! Retries: an activity that fails twice, one that never succeeds, and the dead letter it leaves.
//!
//! Run it with `cargo run --example retry`.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use durably::prelude::*;

const FLAKY: ActivityRef<(), u32> = ActivityRef::new("flaky");
const BROKEN: ActivityRef<(), ()> = ActivityRef::new("broken");
const TRY_ALL: WorkflowRef<(), String> = WorkflowRef::new("try-all");

async fn try_all(ctx: Ctx, (): ()) -> Result<String> {
    let soon = Retry::attempts(3).first(Duration::from_millis(20));
    let attempts = ctx.activity(FLAKY, &()).retry(soon.clone()).await?;
    // What failed for good comes back as data: go on without it, or return it with `?`.
    let failure = match ctx.activity(BROKEN, &()).retry(soon).await {
        Ok(()) => "nothing".to_owned(),
        Err(failure) => failure.to_string(),
    };
    Ok(format!("flaky took {attempts} attempts; broken: {failure}"))
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::builder()
        .function(TRY_ALL, try_all)
        .activity_fn(FLAKY, async |ctx: ActivityContext, ()| match ctx.attempt() {
            1 | 2 => Err(Error::retryable("try again")),
            attempt => Ok(attempt),
        })
        .activity_fn(BROKEN, async |_, ()| Err(Error::retryable("always down").code("DOWN")))
        .start("sqlite:retry.db")
        .await?;
    let run = engine.start(TRY_ALL, &()).await?;
    println!("{}", run.result().await?);
    println!("retries: {}", run.status().await?.retries);
    for letter in engine.dead_letters(Some(run.id()), 10).await? {
        let errors = letter.errors.len();
        println!(
            "dead letter: {} after {} attempts, {errors} errors",
            letter.activity_id, letter.attempts
        );
    }
    engine.stop().await?;
    Ok(())
}
