//! Whether everything that was acknowledged is there, once.

use crate::common::check::check;
use crate::common::work::Effect;
use durably::{Client, RunId, RunQuery};
use durably_store::check::{Doctor, Weight};
use std::cell::Cell;
use std::collections::BTreeSet;

/// The effects of a run.
const STEPS: usize = 5;

/// Prints a line for each thing that must hold, and says how many do not.
pub(crate) async fn judge(
    client: &Client,
    url: &str,
    acknowledged: &[RunId],
    effects: &[Effect],
) -> u32 {
    let wrong = Cell::new(0);
    let line = |what: &str, found: usize, wanted: usize| {
        let verdict = if found == wanted { "" } else { "   WRONG" };
        wrong.set(wrong.get() + u32::from(found != wanted));
        println!("{what:58} {found:7}{verdict}");
    };
    let query = RunQuery { most: 1_000_000, ..RunQuery::default() };
    let all = client.runs(query).await.unwrap();
    let there: BTreeSet<RunId> = all.iter().map(|run| run.identity.id).collect();
    let known: BTreeSet<RunId> = acknowledged.iter().copied().collect();
    line("starts acknowledged", known.len(), acknowledged.len());
    line("of these lost", known.difference(&there).count(), 0);
    line("runs that nobody was told of, or started twice", there.difference(&known).count(), 0);
    let once: BTreeSet<&Effect> = effects.iter().collect();
    line("attempts that two had at once", effects.len() - once.len(), 0);
    let done: BTreeSet<(RunId, &str)> =
        effects.iter().map(|effect| (effect.run, effect.activity.as_str())).collect();
    line("steps done", done.len(), known.len() * STEPS);
    println!(
        "{:58} {:7}",
        "of these done again, since not recorded before",
        once.len() - done.len()
    );
    let (runs, problems) = doctor(url).await;
    line("runs that doctor looked at", runs, known.len());
    line("of these wrong", problems.len(), 0);
    problems.iter().for_each(|problem| println!("    {problem}"));
    if wrong.get() == 0 {
        // Histories are gapless, and agree with the effects.
        let checked = check(client, acknowledged, effects).await;
        line("runs completed once, each step recorded once", checked.completed, known.len());
        line("timers fired once", checked.timers, known.len());
    }
    wrong.get()
}

/// What `durably doctor` finds wrong.
async fn doctor(url: &str) -> (usize, Vec<String>) {
    let patient = durably::open_to_look(url).await.unwrap();
    let mut problems: Vec<String> = patient.wrong.iter().map(ToString::to_string).collect();
    let (mut doctor, mut runs) = (Doctor::new(patient.store.as_ref()), 0);
    while let Some(seen) = doctor.page().await.unwrap() {
        runs += seen.runs as usize;
        let wrong = seen.findings.into_iter().filter(|finding| finding.weight == Weight::Wrong);
        problems.extend(wrong.map(|finding| format!("{:?}: {}", finding.run, finding.what)));
    }
    (runs, problems)
}
