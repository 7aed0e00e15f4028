//! The table of failures names tests that exist, and leaves no failure out.

use crate::{Finding, TextFile};
use std::collections::BTreeMap;

/// Where the table is.
const PAGE: &str = "docs/failures.md";
/// Where nothing tries it, the page says so in these words.
const NOTHING: &str = "nothing yet";

/// The numbers that must have a row.
fn wanted() -> impl Iterator<Item = u32> {
    (20..=48).chain([54, 55, 64, 70, 75])
}

/// Checks the table against all files of the repository.
pub fn check(files: &[TextFile]) -> Vec<Finding> {
    let texts: BTreeMap<&str, &str> =
        files.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
    let Some(page) = texts.get(PAGE) else {
        return vec![Finding::new(PAGE, 1, "is missing: say which test tries which failure")];
    };
    let mut findings = Vec::new();
    let mut rows = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let Some((number, tried)) = row(line) else { continue };
        rows.push(number);
        let named: Vec<&str> = tried.split('`').skip(1).step_by(2).collect();
        let problems = named.iter().filter_map(|named| judge(named, &texts));
        findings.extend(problems.map(|advice| Finding::new(PAGE, index + 1, advice)));
        if named.is_empty() && !tried.contains(NOTHING) {
            let advice = format!("F{number}: name a test or a command, or write '{NOTHING}'");
            findings.push(Finding::new(PAGE, index + 1, advice));
        }
    }
    for number in wanted().filter(|number| !rows.contains(number)) {
        findings.push(Finding::new(PAGE, 1, format!("F{number} has no row")));
    }
    findings
}

/// The number of a row, and its last column.
fn row(line: &str) -> Option<(u32, &str)> {
    let cells: Vec<&str> =
        line.strip_prefix("| F")?.trim_end_matches([' ', '|']).split(" | ").collect();
    Some((cells.first()?.trim().parse().ok()?, cells.last()?))
}

/// What is wrong with a test or a command, if anything.
fn judge(named: &str, texts: &BTreeMap<&str, &str>) -> Option<String> {
    let (path, test) = match named.split_once("::") {
        Some((path, test)) => (path, Some(test)),
        None => (named.split(' ').next().unwrap_or_default().trim_start_matches("./"), None),
    };
    let Some(text) = texts.get(path) else {
        return Some(format!("`{named}`: there is no file {path}"));
    };
    let missing = test.filter(|test| !text.contains(&format!("fn {test}(")))?;
    Some(format!("`{named}`: {path} has no test {missing}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(row: &str) -> Vec<String> {
        let rows: String = wanted()
            .filter(|n| *n != 20)
            .map(|n| format!("| F{n} | x | nothing yet |\n"))
            .collect();
        let files = [
            TextFile::new(PAGE, format!("{row}\n{rows}")),
            TextFile::new("crates/x/tests/a.rs", "async fn it_holds(kind: Kind) {}"),
            TextFile::new("scripts/cluster-test", ""),
        ];
        check(&files).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn rows_that_name_what_is_there_pass() {
        for tried in ["`crates/x/tests/a.rs::it_holds`", "`./scripts/cluster-test galera`", NOTHING]
        {
            assert_eq!(findings(&format!("| F20 | a thing | {tried} |")), [""; 0], "{tried}");
        }
    }

    #[test]
    fn what_is_not_there_is_found() {
        for tried in ["`crates/x/tests/a.rs::it_did`", "`crates/y/tests/a.rs::it_holds`", "soon"] {
            assert_eq!(findings(&format!("| F20 | a thing | {tried} |")).len(), 1, "{tried}");
        }
        assert_eq!(findings("no row"), ["docs/failures.md:1: F20 has no row"]);
    }
}
