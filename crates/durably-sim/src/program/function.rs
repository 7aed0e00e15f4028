//! The durable function that does what its plan says.

use super::{Call, Entries, activity, heard, settle, with_options};
use crate::outside::{Outside, PLANNED_PANIC};
use crate::plan::{Plan, SIGNALS, Stage, Work};
use durably::{Ctx, Failure, Result, Retry, SignalRef};
use durably_kernel::FailureKind;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all, select_all};
use std::sync::Arc;
use std::time::Duration;

struct Interpreter {
    outside: Arc<Outside>,
    engine: usize,
    broken: bool,
    ctx: Ctx,
}

type Ended = (u32, std::result::Result<String, Failure>);

pub(super) async fn interpret(
    outside: Arc<Outside>,
    (engine, broken): (usize, bool),
    ctx: Ctx,
    plan: Plan,
) -> Result<Entries> {
    let interpreter = Interpreter { outside, engine, broken, ctx };
    let mut entries = Entries::new();
    let result = interpreter.stages(&plan, &mut entries).await;
    let failure = result.as_ref().err();
    let cancelled = failure.is_some_and(|failure| failure.kind == FailureKind::Cancelled);
    if let (true, Some(work)) = (cancelled, &plan.compensation) {
        // However it ends: the run ends as cancelled.
        let _ = interpreter.work(work).await;
    }
    result?;
    Ok(entries)
}

impl Interpreter {
    async fn stages(&self, plan: &Plan, entries: &mut Entries) -> std::result::Result<(), Failure> {
        for (at, stage) in plan.stages.iter().enumerate() {
            if at > 0 && self.broken && !self.outside.has_healed() {
                std::panic::panic_any(PLANNED_PANIC);
            }
            match stage {
                Stage::All(works) => {
                    let ended = join_all(works.iter().map(|work| self.work(work))).await;
                    settle(works, &ended, entries)?;
                }
                Stage::First(works) => {
                    let under_way = works.iter().map(|work| self.work(work));
                    let (ended, _, others) = select_all(under_way).await;
                    drop(others);
                    settle(works, &[ended], entries)?;
                }
                Stage::Sleep { ms } => {
                    self.ctx.sleep(Duration::from_millis(*ms)).await?;
                    entries.push("slept".to_owned());
                }
                Stage::Signal { name, timeout_ms } => {
                    let name = SIGNALS[*name];
                    let wait = self.ctx.signal::<String>(SignalRef::new(name));
                    let says = match timeout_ms {
                        Some(ms) => wait.timeout(Duration::from_millis(*ms)).await?,
                        None => Some(wait.await?),
                    };
                    entries.push(heard(name, says.as_deref()));
                }
            }
        }
        Ok(())
    }

    fn work<'a>(&'a self, work: &'a Work) -> BoxFuture<'a, Ended> {
        let number = work.number;
        match work.activity {
            Some(index) => {
                let call = Call { work: work.clone() };
                let asked = self.ctx.activity(activity(index), &call);
                with_options!(asked, work).map(move |result| (number, result)).boxed()
            }
            None => {
                let (outside, engine, run) = (self.outside.clone(), self.engine, self.ctx.run_id());
                let step = self.ctx.step(format!("w{number}"), move || async move {
                    outside.perform(engine, run, work, None).await
                });
                with_options!(step, work).map(move |result| (number, result)).boxed()
            }
        }
    }
}
