//! One of several engine processes on one store, for the tests that start and kill them.
//!
//! `fleet URL LEDGER SLOTS [EFFECTS|- [STALE]]` says `ready` and what its clock shows, does what it
//! finds, writes a line `RUN ACTIVITY ATTEMPT PROCESS` for each effect, and stops gracefully at the
//! end of its input. After so many effects it ends nothing any more, so that it has something in its
//! hands when it is killed. After so many seconds without a beat others take its work away.
#![allow(clippy::print_stdout, reason = "the test reads what it prints")]
#![allow(clippy::disallowed_methods, reason = "the test wants to know what its clock shows")]

#[path = "../common/work.rs"]
mod work;

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use work::Effect;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (url, ledger, slots, more) = match args.as_slice() {
        [url, ledger, slots, more @ ..] => (url, ledger, slots, more),
        _ => return Err("usage: fleet URL LEDGER SLOTS [EFFECTS|- [STALE]]".into()),
    };
    let most = match more.first().map(String::as_str) {
        None | Some("-") => usize::MAX,
        Some(most) => most.parse()?,
    };
    let stale = more.get(1).map_or(Ok(3), |seconds| seconds.parse())?;
    let file = OpenOptions::new().create(true).append(true).open(ledger)?;
    let effects = AtomicUsize::new(0);
    let write = move |effect: Effect| {
        let Effect { run, activity, attempt } = effect;
        // One write, so that lines of several processes do not mix.
        let line = format!("{run} {activity} {attempt} {}\n", std::process::id());
        (&file).write_all(line.as_bytes()).expect("the ledger can be written");
        effects.fetch_add(1, Ordering::SeqCst) < most
    };
    let engine = work::engine(Arc::new(write))
        .slots(slots.parse()?)
        .beat(Duration::from_millis(300))
        .stale_after(Duration::from_secs(stale))
        .start(url)
        .await?;
    println!("ready {}", SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis());
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()))
        .await??;
    engine.stop().await?;
    println!("stopped");
    Ok(())
}
