//! Checkpoints: what was measured, kept under a name and compared with later.
//!
//! A checkpoint is a folder of that name with a file for each kind of store, in JSON, so that one
//! run of a script over several stores fills one checkpoint.

use super::report::{Measured, shown};
use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where it was measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Machine {
    processors: usize,
    processor: Option<String>,
    memory_mb: Option<u64>,
    system: String,
    /// What the database server calls itself.
    server: Option<String>,
}

impl Machine {
    pub(super) fn here(server: Option<&str>) -> Machine {
        let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let kilobytes = memory.and_then(|text| text.strip_suffix("kB")?.trim().parse::<u64>().ok());
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        let release = read("/proc/sys/kernel/osrelease");
        Machine {
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            processor: field(&read("/proc/cpuinfo"), "model name"),
            memory_mb: kilobytes.map(|kilobytes| kilobytes / 1024),
            system: format!("{os} {arch} {}", release.trim()).trim_end().to_owned(),
            server: server.map(str::to_owned),
        }
    }
}

/// One line of a checkpoint.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Figure {
    workload: String,
    style: Option<String>,
    metric: String,
    value: f64,
    limit: Option<f64>,
}

/// The file of one kind of store.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    store: String,
    version: String,
    saved_at_ms: i64,
    /// What sizes it was measured with: only equals are compared.
    sizes: String,
    machine: Machine,
    figures: Vec<Figure>,
}

impl Checkpoint {
    pub(super) fn of(measured: &[Measured], store: &str, sizes: &str, machine: Machine) -> Self {
        let figure = |one: &Measured| Figure {
            workload: one.workload.into(),
            style: one.style.map(str::to_owned),
            metric: one.metric.into(),
            value: one.value(),
            limit: one.limit(),
        };
        Checkpoint {
            store: store.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            saved_at_ms: super::now_ms(),
            sizes: sizes.to_owned(),
            machine,
            figures: measured.iter().map(figure).collect(),
        }
    }
}

/// Where checkpoints are.
pub(super) struct Checkpoints(PathBuf);

impl Checkpoints {
    /// In a folder that was given, or where the platform keeps a user's data.
    pub(super) fn in_folder(given: Option<&Path>) -> anyhow::Result<Checkpoints> {
        if let Some(folder) = given {
            return Ok(Checkpoints(folder.to_owned()));
        }
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let data = set("XDG_DATA_HOME").map(PathBuf::from);
        let home = || set("HOME").map(|home| PathBuf::from(home).join(".local/share"));
        let data = data.or_else(home);
        let data = data.context(
            "there is no home folder to keep checkpoints in; name one with --checkpoints FOLDER",
        )?;
        Ok(Checkpoints(data.join("durably").join("bench")))
    }

    fn file(&self, name: &str, store: &str) -> PathBuf {
        self.0.join(name).join(format!("{store}.json"))
    }

    /// Makes the folder, so that what cannot be saved is known before it is measured.
    pub(super) fn prepare(&self, name: &str) -> anyhow::Result<()> {
        let folder = self.0.join(name);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))
    }

    /// Keeps a checkpoint, in the place of one of the same name and store.
    pub(super) fn save(&self, name: &str, checkpoint: &Checkpoint) -> anyhow::Result<PathBuf> {
        let file = self.file(name, &checkpoint.store);
        let text = serde_json::to_string_pretty(checkpoint)?;
        let folder = file.parent().unwrap_or(&self.0);
        let written = tempfile::NamedTempFile::new_in(folder)
            .and_then(|new| std::fs::write(new.path(), text + "\n").map(|()| new));
        let kept = written.and_then(|new| new.persist(&file).map_err(|error| error.error));
        kept.with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    /// The checkpoint of a name, for a kind of store and sizes.
    pub(super) fn load(&self, name: &str, store: &str, sizes: &str) -> anyhow::Result<Checkpoint> {
        let file = self.file(name, store);
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                bail!("{}", self.missing(name, store))
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", file.display()));
            }
        };
        let found: Checkpoint = serde_json::from_str(&text)
            .with_context(|| format!("{} is no checkpoint; save it again", file.display()))?;
        ensure!(
            found.store == store,
            "the checkpoint {name} is of {}, not of {store}; save one on {store} first",
            found.store
        );
        ensure!(
            found.sizes == sizes,
            "the checkpoint {name} was measured with {}, this would be with {sizes}; figures of \
             different sizes are not compared",
            found.sizes
        );
        Ok(found)
    }

    fn missing(&self, name: &str, store: &str) -> String {
        let others = names(&self.0.join(name));
        if !others.is_empty() {
            let others: Vec<&str> =
                others.iter().map(|file| file.trim_end_matches(".json")).collect();
            let others = others.join(" and ");
            return format!(
                "the checkpoint {name} is of {others}, not of {store}; save one on {store} first"
            );
        }
        let all = names(&self.0);
        let folder = self.0.display();
        match all.is_empty() {
            true => format!("there is no checkpoint in {folder}; make one with --save {name}"),
            false => format!(
                "there is no checkpoint {name} in {folder}; there are {}; make one with --save",
                all.join(", ")
            ),
        }
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A name that is one folder's: for clap.
pub(super) fn checkpoint_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let fits = !text.is_empty() && text.len() <= 64 && !text.starts_with('.');
    match fits && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err("write up to 64 letters, digits, -, _ and ., not beginning with a dot".into()),
    }
}

/// A part of a hundred, with or without its sign: for clap.
pub(super) fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(number) if (0.0..=100.0).contains(&number) => Ok(number),
        _ => Err("write a percentage from 0% to 100%, as 30%".into()),
    }
}

/// Which way is better.
fn better(metric: &str) -> Option<Better> {
    const HIGHER: [&str; 3] = ["function_to_machine", "end_to_start", "back_to_start"];
    const LOWER: [&str; 6] =
        ["startup_s", "claim_ratio", "late_to_early", "duplicates", "ledger_violations", "ms"];
    if metric.starts_with("limit_") {
        return None;
    }
    if metric.ends_with("per_s") || HIGHER.contains(&metric) {
        return Some(Better::Higher);
    }
    let cost = ["_ms", "_us", "_mb", "_us_none"].iter().any(|end| metric.ends_with(end));
    (cost || metric.contains("us_per_") || LOWER.contains(&metric)).then_some(Better::Lower)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Better {
    Higher,
    Lower,
}

/// A metric then and now.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Change {
    workload: String,
    style: Option<String>,
    metric: String,
    before: f64,
    now: f64,
    /// In per cent of what it was.
    change: f64,
    /// In per cent, where it is worse than it was.
    loss: Option<f64>,
}

impl Change {
    /// What got worse, in words.
    pub(super) fn in_words(&self) -> String {
        let style = self.style.as_deref().map(|style| format!(" {style}")).unwrap_or_default();
        let (loss, now) = (self.loss.unwrap_or(0.0), shown(self.now));
        let before = shown(self.before);
        format!("{}{style} {}: {loss:.0}% ({before} → {now})", self.workload, self.metric)
    }

    /// Whether it lost more than so many per cent.
    pub(super) fn exceeds(&self, max: f64) -> bool {
        self.loss.is_some_and(|loss| loss > max)
    }
}

/// What both have, then and now.
pub(super) fn compare(before: &Checkpoint, now: &Checkpoint) -> Vec<Change> {
    let key = |one: &Figure| (one.workload.clone(), one.style.clone(), one.metric.clone());
    let mut changes = Vec::new();
    for one in &now.figures {
        let Some(then) = before.figures.iter().find(|then| key(then) == key(one)) else { continue };
        let change = match then.value == one.value {
            true => 0.0,
            false => (one.value / then.value - 1.0) * 100.0,
        };
        let loss = match better(&one.metric) {
            // Per cent of the rate that is gone, or of the cost that has come on top.
            Some(Better::Higher) => Some(-change),
            Some(Better::Lower) => Some(change),
            None => None,
        };
        changes.push(Change {
            workload: one.workload.clone(),
            style: one.style.clone(),
            metric: one.metric.clone(),
            before: then.value,
            now: one.value,
            change,
            loss: loss.filter(|loss| *loss > 0.0),
        });
    }
    changes
}

/// What to know beside the figures: another machine, another version.
pub(super) fn differences(before: &Checkpoint, now: &Checkpoint) -> Vec<String> {
    let minutes = (now.saved_at_ms - before.saved_at_ms) / 60_000;
    let mut lines = vec![format!("compared with what was saved {minutes} minutes ago:")];
    if before.version != now.version {
        lines.push(format!("that was durably {}, this is {}", before.version, now.version));
    }
    if before.machine != now.machine {
        lines.push("it was measured on another machine, or with another server".into());
    }
    lines
}

/// A table for people.
pub(super) fn table(changes: &[Change]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header(["workload", "style", "metric", "before", "now", "change"]);
    for column in 3..6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    for change in changes {
        let worse = if change.loss.is_some() { " worse" } else { "" };
        table.add_row([
            change.workload.clone(),
            change.style.clone().unwrap_or_else(|| "–".into()),
            change.metric.clone(),
            shown(change.before),
            shown(change.now),
            format!("{:+.1}%{worse}", change.change),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(value: f64, metric: &str) -> Checkpoint {
        let (workload, style, limit) = ("B2".to_owned(), None, None);
        let figures = vec![Figure { workload, style, metric: metric.into(), value, limit }];
        let machine = Machine::here(None);
        let none = Checkpoint::of(&[], "memory", "usual sizes", machine);
        Checkpoint { figures, ..none }
    }

    fn loss(metric: &str, before: f64, now: f64) -> Option<f64> {
        compare(&checkpoint(before, metric), &checkpoint(now, metric))[0].loss
    }

    #[test]
    fn a_loss_is_a_lower_rate_or_a_higher_cost() {
        assert_eq!(loss("steps_per_s", 100.0, 75.0), Some(25.0));
        assert_eq!(loss("steps_per_s", 100.0, 175.0), None);
        assert_eq!(loss("p99_ms", 2.0, 3.0), Some(50.0));
        assert_eq!(loss("p99_ms", 2.0, 1.0), None);
        assert_eq!(loss("server_us_per_step", 2.0, 3.0), Some(50.0));
        assert_eq!(loss("ledger_steps", 2.0, 3.0), None);
        assert_eq!(loss("limit_512_per_s", 3.0, 2.0), None);
        assert_eq!(loss("duplicates", 0.0, 0.0), None);
        assert_eq!(loss("duplicates", 0.0, 1.0), Some(f64::INFINITY));
    }

    #[test]
    fn what_is_only_in_one_is_not_compared() {
        assert_eq!(compare(&checkpoint(1.0, "a"), &checkpoint(1.0, "b")), []);
    }

    #[test]
    fn names_and_percentages_are_checked() {
        assert_eq!(checkpoint_name("before-1.2_x"), Ok("before-1.2_x".into()));
        for wrong in ["", ".x", "../x", "a/b", "a b", &"x".repeat(65)] {
            assert!(checkpoint_name(wrong).is_err(), "{wrong}");
        }
        assert_eq!(percentage("30%"), Ok(30.0));
        assert_eq!(percentage("0.5"), Ok(0.5));
        for wrong in ["", "%", "-1%", "101%", "NaN", "much"] {
            assert!(percentage(wrong).is_err(), "{wrong}");
        }
    }
}
