//! What is kept of a benchmark, and what it is compared with.

use super::checkpoint::{self, Checkpoint, Checkpoints, Machine};
use super::report::Measured;
use super::{Bench, BenchArgs, say, sizes_in_words};
use anyhow::ensure;

/// What is compared with and what is kept, looked at before anything is measured.
pub(super) struct Keeping {
    to: Checkpoints,
    before: Option<Checkpoint>,
}

impl Keeping {
    pub(super) fn of(args: &BenchArgs, bench: &Bench) -> anyhow::Result<Option<Keeping>> {
        if args.save.is_none() && args.compare.is_none() {
            return Ok(None);
        }
        let to = Checkpoints::in_folder(args.checkpoints.as_deref())?;
        let sizes = sizes_in_words(args);
        let load = |name: &String| to.load(name, bench.ground.kind(), &sizes);
        let before = args.compare.as_ref().map(load).transpose()?;
        args.save.as_deref().map(|name| to.prepare(name)).transpose()?;
        Ok(Some(Keeping { to, before }))
    }

    /// Saves, compares, and fails where too much was lost.
    pub(super) fn finish(
        self,
        args: &BenchArgs,
        bench: &Bench,
        all: &[Measured],
    ) -> anyhow::Result<()> {
        let Keeping { to, before } = self;
        let machine = Machine::here(bench.ground.server().map(|server| server.version()));
        let now = Checkpoint::of(all, bench.ground.kind(), &sizes_in_words(args), machine);
        if let Some(name) = &args.save {
            let file = to.save(name, &now)?;
            if !args.json {
                say(format!("saved as {name} in {}", file.display()))?;
            }
        }
        let Some(before) = before else { return Ok(()) };
        let changes = checkpoint::compare(&before, &now);
        match args.json {
            true => {
                changes.iter().try_for_each(|change| say(serde_json::to_string(change)?))?;
            }
            false => {
                checkpoint::differences(&before, &now).iter().try_for_each(say)?;
                say(checkpoint::table(&changes))?;
            }
        }
        let Some(max) = args.max_loss else { return Ok(()) };
        let lost: Vec<String> =
            changes.iter().filter(|one| one.exceeds(max)).map(|one| one.in_words()).collect();
        ensure!(lost.is_empty(), "worse by more than {max}%: {}", lost.join("; "));
        Ok(())
    }
}
