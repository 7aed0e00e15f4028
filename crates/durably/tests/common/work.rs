//! Work whose effects can be counted: what the tests of failures, and the program that they start
//! several times, let engines do.
#![allow(dead_code, reason = "each program uses a part of it")]
#![allow(clippy::disallowed_methods, reason = "work takes time")]

use durably::prelude::*;
use durably::{EngineBuilder, RunId};
use futures_util::future::try_join3;
use std::sync::Arc;

/// Five effects: one, three at once that are waited for together, a timer, one.
pub(crate) const MANY: WorkflowRef<u32, u32> = WorkflowRef::new("many");
/// One effect.
pub(crate) const SINGLE: WorkflowRef<u32, u32> = WorkflowRef::new("single");
const TOUCH: ActivityRef<String, u32> = ActivityRef::new("touch");

/// Lost processes are no fault of an activity's here.
const DEATHS_MAX: u32 = 1_000_000;

/// An attempt has done what it does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Effect {
    pub(crate) run: RunId,
    pub(crate) activity: String,
    pub(crate) attempt: u32,
}

/// Writes effects down, outside of the store; says whether the attempt may end.
pub(crate) type Ledger = Arc<dyn Fn(Effect) -> bool + Send + Sync>;

async fn touch(ctx: &Ctx, what: &str) -> Result<u32> {
    Ok(ctx.activity(TOUCH, &what.to_owned()).deaths_max(DEATHS_MAX).await?)
}

async fn many(ctx: Ctx, _: u32) -> Result<u32> {
    touch(&ctx, "first").await?;
    try_join3(touch(&ctx, "one"), touch(&ctx, "two"), touch(&ctx, "three")).await?;
    ctx.sleep(Duration::from_millis(20)).await?;
    touch(&ctx, "last").await
}

/// An engine that does it all.
pub(crate) fn engine(ledger: Ledger) -> EngineBuilder {
    Engine::builder()
        .function(MANY, many)
        .function(SINGLE, async |ctx: Ctx, _: u32| touch(&ctx, "only").await)
        .activity_fn(TOUCH, async move |ctx: ActivityContext, _: String| {
            tokio::time::sleep(Duration::from_millis(3)).await; // tidy: work takes a moment
            let (run, activity) = (ctx.run_id(), ctx.activity_id().to_owned());
            if !ledger(Effect { run, activity, attempt: ctx.attempt() }) {
                std::future::pending::<()>().await;
            }
            Ok(ctx.attempt())
        })
}
