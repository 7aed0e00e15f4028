//! Whether everything that was acknowledged is there, once.

use crate::common::check::check;
use crate::common::work::Effect;
use durably::{Client, RunId, RunQuery};
use durably_store::check::{Doctor, Weight};
use std::collections::BTreeSet;

/// The effects of a run.
const STEPS: usize = 5;

/// What is judged.
pub(crate) struct Case<'a> {
    pub(crate) client: &'a Client,
    pub(crate) url: &'a str,
    pub(crate) acknowledged: &'a [RunId],
    pub(crate) effects: &'a [Effect],
}

/// Lines that say what holds and what does not.
#[derive(Default)]
struct Lines {
    wrong: u32,
}

impl Lines {
    fn add(&mut self, what: &str, found: usize, wanted: usize) {
        let verdict = if found == wanted { "" } else { "   WRONG" };
        self.wrong += u32::from(found != wanted);
        println!("{what:58} {found:7}{verdict}");
    }

    /// For information.
    fn note(&self, what: &str, found: usize) {
        println!("{what:58} {found:7}");
    }
}

/// Prints a line for each thing that must hold, and says how many do not.
pub(crate) async fn judge(case: Case<'_>) -> u32 {
    let Case { client, url, acknowledged, effects } = case;
    let mut lines = Lines::default();
    let (there, known) = (runs_of(client).await, acknowledged.iter().copied().collect());
    lines.add("starts acknowledged", BTreeSet::len(&known), acknowledged.len());
    lines.add("of these lost", known.difference(&there).count(), 0);
    lines.add("runs that nobody started, or started twice", there.difference(&known).count(), 0);
    let (once, done) = attempts_and_steps(effects);
    lines.add("attempts that two had at once", effects.len() - once, 0);
    lines.add("steps done", done, known.len() * STEPS);
    lines.note("of these done again, since not recorded before", once - done);
    let (runs, problems) = doctor(url).await;
    lines.add("runs that doctor looked at", runs, known.len());
    lines.add("of these wrong", problems.len(), 0);
    problems.iter().for_each(|problem| println!("    {problem}"));
    if lines.wrong == 0 {
        // Histories are gapless, and agree with the effects.
        let checked = check(client, acknowledged, effects).await;
        lines.add("runs completed once, each step recorded once", checked.completed, known.len());
        lines.add("timers fired once", checked.timers, known.len());
    }
    lines.wrong
}

/// The same where acknowledged work was lost: what is left must be whole.
pub(crate) async fn judge_loss(case: Case<'_>) -> u32 {
    let Case { client, url, acknowledged, effects } = case;
    let mut lines = Lines::default();
    let (there, known) = (runs_of(client).await, acknowledged.iter().copied().collect());
    lines.note("starts acknowledged", BTreeSet::len(&known));
    let lost = known.difference(&there).count();
    lines.note("of these lost", lost);
    lines.add("a loss was to be seen", usize::from(lost > 0), 1);
    lines.add("runs that nobody started, or started twice", there.difference(&known).count(), 0);
    lines.note(
        "attempts done again, since the store forgot them",
        effects.len() - attempts_and_steps(effects).0,
    );
    let (runs, problems) = doctor(url).await;
    lines.add("runs that doctor looked at, all completed", runs, there.len());
    lines.add("of these wrong", problems.len(), 0);
    problems.iter().for_each(|problem| println!("    {problem}"));
    lines.wrong
}

async fn runs_of(client: &Client) -> BTreeSet<RunId> {
    let query = RunQuery { most: 1_000_000, ..RunQuery::default() };
    client.runs(query).await.unwrap().iter().map(|run| run.identity.id).collect()
}

/// How many attempts there were, and of how many steps.
fn attempts_and_steps(effects: &[Effect]) -> (usize, usize) {
    let attempts: BTreeSet<&Effect> = effects.iter().collect();
    let steps: BTreeSet<(RunId, &str)> =
        effects.iter().map(|effect| (effect.run, effect.activity.as_str())).collect();
    (attempts.len(), steps.len())
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
