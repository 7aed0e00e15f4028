//! What doctor tells people and programs.

use comfy_table::{ContentArrangement, Table, presets};
use durably_kernel::Timestamp;
use durably_store::check::{Finding, Weight};
use serde_json::json;

/// So many findings are shown; the rest is counted.
const SHOWN_MAX: usize = 1_000;

/// What was found.
pub(super) struct Report {
    /// Runs looked at.
    pub(super) runs: u64,
    /// What does not hold.
    pub(super) wrong: u64,
    /// What somebody should know.
    pub(super) notes: u64,
    findings: Vec<Finding>,
    now: Timestamp,
    /// The time of birth in the first id.
    first: std::cell::Cell<Option<i64>>,
}

impl Report {
    pub(super) fn new(now: Timestamp) -> Report {
        let first = std::cell::Cell::new(None);
        Report { runs: 0, wrong: 0, notes: 0, findings: Vec::new(), now, first }
    }

    /// Keeps a finding for the table.
    pub(super) fn keep(&mut self, finding: Finding) {
        if self.findings.len() < SHOWN_MAX {
            self.findings.push(finding);
        }
    }

    /// How far a time is between the first one and now, in parts.
    pub(super) fn part(&self, at: i64, parts: u64) -> Option<u64> {
        let first = self.first.get().unwrap_or(at);
        self.first.set(Some(first));
        let all = u64::try_from(self.now.0.saturating_sub(first)).ok().filter(|all| *all > 0)?;
        let done = u64::try_from(at.saturating_sub(first)).ok()?.min(all);
        Some((u128::from(done) * u128::from(parts) / u128::from(all)) as u64)
    }

    /// All findings, if there are.
    pub(super) fn table(&self) -> Option<Table> {
        if self.findings.is_empty() {
            return None;
        }
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["", "run", "what", "since", "what to do"]);
        for finding in &self.findings {
            table.add_row([
                finding.invariant.unwrap_or(finding.weight.name()).to_owned(),
                finding.run.map_or_else(|| "–".to_owned(), |run| run.to_string()),
                plain(&finding.what),
                finding.since.map_or_else(|| "–".to_owned(), |since| ago(self.now, since)),
                finding.advice.to_owned(),
            ]);
        }
        Some(table)
    }

    /// One line for people.
    pub(super) fn summary(&self) -> String {
        let more = (self.wrong + self.notes).saturating_sub(self.findings.len() as u64);
        let hidden = if more > 0 { format!(" ({more} are not shown)") } else { String::new() };
        let runs = counted(self.runs, "run", "runs");
        let notes = match self.notes {
            0 => String::new(),
            notes => format!(", {}", counted(notes, "note", "notes")),
        };
        match self.wrong {
            0 => format!("{runs}: nothing is wrong{notes}{hidden}"),
            wrong => {
                let wrong = counted(wrong, "thing is", "things are");
                format!("{runs}: {wrong} wrong{notes}{hidden}")
            }
        }
    }

    /// One line for programs.
    pub(super) fn summary_json(&self, kind: &str) -> serde_json::Value {
        json!({
            "store": kind, "runs": self.runs, "wrong": self.wrong, "notes": self.notes,
        })
    }
}

fn counted(number: u64, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// A finding for programs.
pub(super) fn json(finding: &Finding) -> serde_json::Value {
    json!({
        "kind": match finding.weight {
            Weight::Wrong => "wrong",
            Weight::Note => "note",
        },
        "invariant": finding.invariant,
        "run": finding.run.map(|run| run.to_string()),
        "what": finding.what,
        "since_ms": finding.since.map(|since| since.0),
        "advice": finding.advice,
    })
}

/// What stands in a damaged store may be anything; a terminal obeys control characters.
fn plain(text: &str) -> String {
    let plain = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(plain).collect()
}

/// How long ago something was, in the unit that says most.
fn ago(now: Timestamp, since: Timestamp) -> String {
    let seconds = now.since(since).as_secs();
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
    }

    #[test]
    fn times_are_told_in_the_unit_that_says_most() {
        let since = |seconds: i64| ago(Timestamp(seconds * 1_000), Timestamp(0));
        assert_eq!(since(5), "5 s");
        assert_eq!(since(600), "10 min");
        assert_eq!(since(90_000), "25 h");
        assert_eq!(since(900_000), "10 days");
        assert_eq!(ago(Timestamp(0), Timestamp(9_000)), "0 s", "a clock that went back");
    }

    #[test]
    fn progress_stays_within_its_bounds() {
        let report = Report::new(Timestamp(2_000));
        assert_eq!(report.part(1_000, 100), Some(0));
        assert_eq!(report.part(1_500, 100), Some(50));
        assert_eq!(report.part(9_000, 100), Some(100), "an id of the user's own making");
        assert_eq!(report.part(500, 100), None);
    }
}
