//! Parts of a workload that a process of its own does: this program, started once more. It reads
//! what to do from its standard input, so that a password in a URL stands on no command line.

use super::flows::{SLOTS, Style};
use super::pace::{peak_mb, resident_mb};
use super::watched::Watched;
use super::{line, many, say, sleepers};
use anyhow::{Context, ensure};
use durably::Client;
use durably::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

/// What a process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Task {
    /// Start an engine, do a step, and say what it took.
    StartUp,
    /// Do so many runs of B2.
    Steps { style: Style, runs: usize },
    /// Work with so many slots, from one word to the next.
    Claims { slots: usize },
}

#[derive(Serialize, Deserialize)]
struct Order {
    url: String,
    task: Task,
}

/// What a process says of an engine in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) start_up_s: f64,
    pub(super) mb: Option<f64>,
}

/// A process at work. It ends with this.
pub(super) struct Part {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Part {
    pub(super) fn start(url: &str, task: Task) -> anyhow::Result<Part> {
        let program = std::env::current_exe().context("this program does not know its own file")?;
        let mut command = Command::new(program);
        command.args(["bench", "--part"]).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let from = BufReader::new(from.context("a process has no output")?);
        let mut part = Part { child, to, from };
        part.tell(&serde_json::to_string(&Order { url: url.to_owned(), task })?)?;
        Ok(part)
    }

    /// Sends a line.
    pub(super) fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        let to = self.to.as_mut().context("a process has no input")?;
        writeln!(to, "{line}").context("a process of the benchmark is gone")?;
        Ok(to.flush()?)
    }

    /// The next line that it says.
    pub(super) async fn hear<T: DeserializeOwned + Send + 'static>(
        self,
    ) -> anyhow::Result<(Part, T)> {
        tokio::task::spawn_blocking(move || self.hear_blocking()).await?
    }

    fn hear_blocking<T: DeserializeOwned>(mut self) -> anyhow::Result<(Part, T)> {
        let mut said = String::new();
        self.from.read_line(&mut said)?;
        if said.is_empty() {
            let mut why = String::new();
            if let Some(errors) = &mut self.child.stderr {
                errors.read_to_string(&mut why)?;
            }
            anyhow::bail!("a process of the benchmark failed: {}", why.trim());
        }
        let said = serde_json::from_str(&said).context("a process said something unexpected")?;
        Ok((self, said))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It is the end of its input that ends it; whoever does not hear that is killed.
        self.to = None;
        let done = matches!(self.child.try_wait(), Ok(Some(_)));
        if !done {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The process itself: reads what to do, does it, and says what came of it.
pub(super) async fn obey() -> anyhow::Result<()> {
    let order: Order = serde_json::from_str(&listen().await?).context("no order was given")?;
    match order.task {
        Task::StartUp => start_up(&order.url).await,
        Task::Steps { style, runs } => steps(&order.url, style, runs).await,
        Task::Claims { slots } => claims(&order.url, slots).await,
    }
}

/// The next line of our input; empty when nobody is there any more.
async fn listen() -> anyhow::Result<String> {
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    Ok(line.await??)
}

fn tell(what: &impl Serialize) -> anyhow::Result<()> {
    say(serde_json::to_string(what)?)
}

async fn start_up(url: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    let builder = Engine::builder().slots(SLOTS).function(sleepers::SLEEPER, sleepers::sleeper);
    let engine = builder.start(url).await?;
    let start_up_s = began.elapsed().as_secs_f64();
    engine.run(sleepers::SLEEPER, &sleepers::awake()).await?;
    let mb = resident_mb();
    engine.stop().await?;
    tell(&Seen { start_up_s, mb })
}

async fn steps(url: &str, style: Style, runs: usize) -> anyhow::Result<()> {
    let began = Instant::now();
    let client = Client::connect(url).await?;
    let start_up_s = began.elapsed().as_secs_f64();
    line::steps(&client, style, runs).await?;
    tell(&Seen { start_up_s, mb: peak_mb() })
}

async fn claims(url: &str, slots: usize) -> anyhow::Result<()> {
    let client = Client::connect(url).await?;
    let claims = Arc::new(many::Claims::default());
    let store = Arc::new(Watched { inner: client.store(), by: claims.clone() });
    let noting = claims.clone();
    let engine = Style::Machine.engine(Arc::new(move |run, _| noting.began(run)));
    tell(&"ready")?;
    ensure!(!listen().await?.is_empty(), "nobody said go");
    let engine = engine.slots(slots).start_on(store).await?;
    listen().await?;
    engine.stop().await?;
    tell(&claims.seen())
}
