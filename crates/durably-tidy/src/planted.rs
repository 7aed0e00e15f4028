//! Planted bugs do not rot: every patch in `tests/planted` says what the bug is and which suites
//! must notice it, and fits the files as they are.

use crate::{Finding, TextFile};
use std::collections::BTreeMap;

/// Where the patches are.
const FOLDER: &str = "tests/planted/";
/// What `scripts/planted-bugs` can run.
const SUITES: [&str; 3] = ["contract", "contract-sqlite", "simulation"];
/// There are at least so many.
const BUGS_MIN: usize = 22;

/// Checks all patches among the files of the repository.
pub fn check(files: &[TextFile]) -> Vec<Finding> {
    let texts: BTreeMap<&str, Vec<&str>> =
        files.iter().map(|file| (file.path.as_str(), file.text.lines().collect())).collect();
    let is_patch = |path: &str| path.starts_with(FOLDER) && path.ends_with(".patch");
    let patches: Vec<&TextFile> = files.iter().filter(|file| is_patch(&file.path)).collect();
    let mut findings: Vec<Finding> =
        patches.iter().flat_map(|patch| check_patch(patch, &texts)).collect();
    if patches.len() < BUGS_MIN {
        let advice = format!("{} bugs are planted; there must be {BUGS_MIN}", patches.len());
        findings.push(Finding::new(FOLDER, 1, advice));
    }
    findings
}

fn check_patch(patch: &TextFile, texts: &BTreeMap<&str, Vec<&str>>) -> Vec<Finding> {
    let mut findings = check_header(patch);
    let mut hunks = 0;
    let mut target = "";
    let mut lines = patch.text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        if let Some(path) = line.strip_prefix("--- a/") {
            target = path;
        }
        if !line.starts_with("@@ ") {
            continue;
        }
        hunks += 1;
        let mut before = Vec::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| is_of_hunk(line)) {
            if !line.starts_with('+') {
                before.push(&line[1..]);
            }
        }
        let fits = |text: &Vec<&str>| text.windows(before.len()).any(|window| window == before);
        if !texts.get(target).is_some_and(fits) {
            let advice = format!("does not fit {target} any more: plant the bug anew");
            findings.push(Finding::new(&patch.path, at + 1, advice));
        }
    }
    if hunks == 0 {
        findings.push(Finding::new(&patch.path, 1, "has no diff: say what is to be changed"));
    }
    findings
}

/// The header of the next file looks like a line that goes.
fn is_of_hunk(line: &str) -> bool {
    line.starts_with([' ', '-', '+']) && !line.starts_with("--- a/")
}

/// What the bug is, and who must notice it.
fn check_header(patch: &TextFile) -> Vec<Finding> {
    let header: Vec<&str> =
        patch.text.lines().take_while(|line| !line.starts_with("--- ")).collect();
    let mut findings = Vec::new();
    if header.first().is_none_or(|line| line.trim().is_empty() || line.starts_with("tests:")) {
        findings.push(Finding::new(&patch.path, 1, "begins with its diff: say what the bug is"));
    }
    let suites = header.iter().find_map(|line| line.strip_prefix("tests:")).unwrap_or_default();
    let unknown = suites.split_whitespace().find(|suite| !SUITES.contains(suite));
    if suites.trim().is_empty() || unknown.is_some() {
        let advice = format!("needs a line `tests:` with some of: {}", SUITES.join(", "));
        findings.push(Finding::new(&patch.path, 1, advice));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "It adds.\ntests: contract\n\n--- a/one.rs\n+++ b/one.rs\n@@ -1,3 +1,3 @@\n fn a() {\n-    1 - 1\n+    1 + 1\n }\n--- a/two.rs\n+++ b/two.rs\n@@ -1,1 +1,0 @@\n-gone\n";

    fn advice(patch: &str, one: &str) -> Vec<String> {
        let files = [
            TextFile::new("tests/planted/adds.patch", patch),
            TextFile::new("one.rs", one),
            TextFile::new("two.rs", "gone\n"),
        ];
        let few = |finding: &Finding| finding.path != FOLDER;
        check(&files).into_iter().filter(few).map(|finding| finding.advice).collect()
    }

    #[test]
    fn a_patch_that_fits_is_no_finding() {
        assert_eq!(advice(PATCH, "//! A file.\n\nfn a() {\n    1 - 1\n}\n"), Vec::<String>::new());
    }

    #[test]
    fn a_patch_whose_lines_have_changed_is_found() {
        let found = advice(PATCH, "fn a() {\n    2 - 1\n}\n");
        assert_eq!(found, ["does not fit one.rs any more: plant the bug anew"]);
        let found = advice(&PATCH.replace("-gone", "-there"), "fn a() {\n    1 - 1\n}\n");
        assert_eq!(found, ["does not fit two.rs any more: plant the bug anew"]);
    }

    #[test]
    fn a_patch_without_words_or_suites_is_found() {
        let text = PATCH.replace("It adds.\n", "").replace("contract", "luck");
        let found = advice(&text, "fn a() {\n    1 - 1\n}\n");
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(advice("It adds.\ntests: contract\n", "").len(), 1);
    }

    #[test]
    fn too_few_patches_are_found() {
        let found = check(&[TextFile::new("tests/planted/adds.patch", PATCH)]);
        assert!(found.iter().any(|finding| finding.path == FOLDER), "{found:?}");
    }
}
