//! A program that is made to be killed. The crash test starts it on one SQLite file, kills it with
//! SIGKILL at random moments, starts it again, and compares the file with the ledger that this
//! program keeps beside it.
//!
//! `crash work URL LEDGER RUNS` starts runs of five steps in both styles and ends when all have
//! ended; `crash hold URL LEDGER` is a second process that holds its claims until the file
//! `LEDGER.release` appears; `crash abort URL activity|step` has an activity or a step that kills
//! its process every time.
#![allow(clippy::print_stdout, reason = "the test reads what it prints")]
#![allow(
    clippy::disallowed_methods,
    reason = "a program of its own: it works, and waits for files"
)]

use durably::prelude::*;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MACHINE_STEP: ActivityRef<String, String> = ActivityRef::new("machine-step");
const FUNCTION_STEP: ActivityRef<String, String> = ActivityRef::new("function-step");
const FUNCTION: WorkflowRef<u32, Vec<String>> = WorkflowRef::new("five-function");
const HELD: WorkflowRef<(), String> = WorkflowRef::new("held");
const ABORTING: WorkflowRef<String, String> = WorkflowRef::new("aborting");
const ABORT: ActivityRef<(), ()> = ActivityRef::new("abort");
const HOLD: ActivityRef<(), u32> = ActivityRef::new("hold");

/// Kills are many here, and none is the activity's fault.
const DEATHS_MAX: u32 = 1_000_000;

/// What happened outside of the store: one line for each effect, written before it is recorded.
#[derive(Clone)]
struct Ledger {
    path: Arc<PathBuf>,
    effects: Arc<AtomicU64>,
}

impl Ledger {
    fn new(path: &str) -> Ledger {
        Ledger { path: Arc::new(path.into()), effects: Arc::default() }
    }

    fn line(&self, line: &str) -> Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&*self.path)?;
        // One write, so that lines of several processes do not mix.
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(())
    }

    /// An effect that can be told from all others.
    fn effect(&self, run: durably::RunId, step: &str) -> Result<String> {
        let number = self.effects.fetch_add(1, Ordering::SeqCst);
        let token = format!("{}-{number}", std::process::id());
        self.line(&format!("effect {run} {step} {token}"))?;
        Ok(token)
    }
}

/// Five activities in a line.
struct FiveMachine {
    tokens: Vec<String>,
}

impl FiveMachine {
    fn next(&self) -> Actions<Self> {
        let id = format!("step-{}", self.tokens.len());
        actions![Action::activity(id.clone(), MACHINE_STEP, &id).deaths_max(DEATHS_MAX)]
    }
}

impl Workflow for FiveMachine {
    const TYPE: &'static str = "five-machine";
    type Input = u32;
    type Output = Vec<String>;

    fn new(_: u32) -> Self {
        FiveMachine { tokens: vec![] }
    }

    fn on_start(&mut self) -> Actions<Self> {
        self.next()
    }

    fn on_activity_completed(&mut self, _id: &str, result: &Output) -> Actions<Self> {
        self.tokens.extend(result.of(MACHINE_STEP)?);
        match self.tokens.len() {
            5 => actions![Action::complete(&self.tokens)],
            _ => self.next(),
        }
    }
}

/// Five steps, in place and through the queue, and a sleep.
async fn five_function(ctx: Ctx, ledger: Ledger) -> Result<Vec<String>> {
    let run = ctx.run_id();
    let mut tokens = vec![];
    for name in ["one", "two"] {
        let step = ctx.step(name, async || {
            tokio::time::sleep(Duration::from_millis(3)).await;
            ledger.effect(run, name)
        });
        tokens.push(step.deaths_max(DEATHS_MAX).await?);
    }
    let three = ctx.activity(FUNCTION_STEP, &"function-step".to_owned()).deaths_max(DEATHS_MAX);
    tokens.push(three.await?);
    ctx.sleep(Duration::from_millis(10)).await?;
    let four = ctx.activity(FUNCTION_STEP, &"function-step#2".to_owned()).deaths_max(DEATHS_MAX);
    tokens.push(four.await?);
    let five = ctx.step("five", async || ledger.effect(run, "five"));
    tokens.push(five.deaths_max(DEATHS_MAX).await?);
    Ok(tokens)
}

async fn work(url: &str, ledger: Ledger, runs: u32) -> Result<()> {
    let (a, b, c) = (ledger.clone(), ledger.clone(), ledger.clone());
    let engine = Engine::builder()
        .slots(4)
        .workflow::<FiveMachine>()
        .function(FUNCTION, move |ctx: Ctx, _: u32| five_function(ctx, a.clone()))
        .activity_fn(MACHINE_STEP, async move |ctx: ActivityContext, step: String| {
            tokio::time::sleep(Duration::from_millis(20)).await;
            b.effect(ctx.run_id(), &step)
        })
        .activity_fn(FUNCTION_STEP, async move |ctx: ActivityContext, step: String| {
            tokio::time::sleep(Duration::from_millis(20)).await;
            c.effect(ctx.run_id(), &step)
        })
        .start(url)
        .await?;
    println!("ready");
    let mut handles = vec![];
    for n in 0..runs {
        let key = format!("run-{n}");
        let handle = match n % 2 {
            0 => engine.start(FiveMachine::REF, &n).idempotency_key(&key).await?,
            _ => engine.start(FUNCTION, &n).idempotency_key(&key).await?,
        };
        if !handle.existed() {
            ledger.line(&format!("ack {} {key}", handle.id()))?;
        }
        handles.push(handle);
    }
    for handle in handles {
        handle.result().await?;
    }
    engine.stop().await?;
    println!("done");
    Ok(())
}

async fn released(path: &Path) {
    while !path.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Holds an activity and, in place, a step.
async fn hold(url: &str, ledger: &str) -> Result<()> {
    let release: Arc<PathBuf> = Arc::new(format!("{ledger}.release").into());
    let (in_step, in_activity) = (release.clone(), release.clone());
    let engine = Engine::builder()
        .queue("held")
        .function(HELD, move |ctx: Ctx, ()| {
            let release = in_step.clone();
            async move {
                let step = ctx.step("in-place", async || {
                    println!("holding a step");
                    released(&release).await;
                    Ok(std::process::id())
                });
                let activity = ctx.activity(HOLD, &());
                let (step, attempt) = futures_util::future::join(step, activity).await;
                Ok(format!("{} {}", step?, attempt?))
            }
        })
        .activity_fn(HOLD, async move |ctx: ActivityContext, ()| {
            println!("holding an activity");
            released(&in_activity).await;
            Ok(ctx.attempt())
        })
        .start(url)
        .await?;
    let run = engine.start(HELD, &()).queue("held").idempotency_key("held").await?;
    println!("held run {}", run.id());
    println!("result {}", run.result().await?);
    engine.stop().await?;
    Ok(())
}

fn die() -> Result<()> {
    std::process::abort()
}

/// Work that kills its process, in an activity or in place.
async fn abort(url: &str, how: &str) -> Result<()> {
    let engine = Engine::builder()
        .function(ABORTING, async |ctx: Ctx, how: String| {
            let failed = match how.as_str() {
                "step" => ctx.step("abort", async || die()).await,
                _ => ctx.activity(ABORT, &()).await,
            };
            Ok(failed.map_or_else(|failure| failure.kind.to_string(), |()| "survived".to_owned()))
        })
        .activity_fn(ABORT, async |_, ()| die())
        .start(url)
        .await?;
    let run = engine.start(ABORTING, &how.to_owned()).idempotency_key("abort").await?;
    println!("ended as {}", run.result().await?);
    engine.stop().await?;
    Ok(())
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["work", url, ledger, runs] => work(url, Ledger::new(ledger), runs.parse()?).await,
        ["hold", url, ledger] => hold(url, ledger).await,
        ["abort", url, how] => abort(url, how).await,
        _ => {
            return Err(
                "usage: crash work URL LEDGER RUNS | hold URL LEDGER | abort URL HOW".into()
            );
        }
    };
    done.map_err(|error| error.to_string().into())
}
