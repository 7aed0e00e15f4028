//! Every relative link in our Markdown points at a file of the repository.

use std::collections::BTreeSet;

use crate::{Finding, TextFile};

/// Checks links in the Markdown files of the top folder and of `docs`, given every file of the
/// repository.
pub fn check(files: &[TextFile]) -> Vec<Finding> {
    let known: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let is_document =
        |path: &str| path.ends_with(".md") && (!path.contains('/') || path.starts_with("docs/"));
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_document(&file.path)) {
        for (line, target) in links(&file.text) {
            let problem = judge(&file.path, target, &known);
            findings.extend(problem.map(|advice| Finding::new(&file.path, line, advice)));
        }
    }
    findings
}

fn judge(document: &str, target: &str, known: &BTreeSet<&str>) -> Option<String> {
    let path = target.split(['#', '?']).next().unwrap_or_default();
    let elsewhere = target.starts_with("//") || has_scheme(target);
    if path.is_empty() || elsewhere {
        return None;
    }
    if path.starts_with('/') {
        return Some(format!(
            "`{target}` begins at the root of some disk: link relative to this file"
        ));
    }
    let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
    let Some(resolved) = resolve(folder, path) else {
        return Some(format!(
            "`{target}` leads out of the repository: link to its address on the web"
        ));
    };
    let inside = format!("{resolved}/");
    let exists = resolved.is_empty()
        || known.contains(resolved.as_str())
        || known.iter().any(|file| file.starts_with(&inside));
    (!exists).then(|| format!("`{target}` does not exist: correct the link, or add {resolved}"))
}

fn has_scheme(target: &str) -> bool {
    let scheme = target.split_once(':').map_or("", |(scheme, _)| scheme);
    !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
}

/// The path that a link in a folder means, or `None` if it leads out of the repository.
fn resolve(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The targets of inline links, images and link definitions, with their lines; what stands in code
/// is no link.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            (None, None) => {
                let targets = inline_targets(line).into_iter().chain(definition(line));
                found.extend(targets.map(|target| (index + 1, target)));
            }
            (Some(_), _) => {}
        }
    }
    found
}

/// `[name]: target`
fn definition(line: &str) -> Option<&str> {
    let (name, rest) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    (!name.starts_with('^') && !name.contains(']')).then(|| destination(rest)).flatten()
}

/// `[text](target)` and `![text](target)`
fn inline_targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    for (at, _) in line.match_indices("](") {
        let in_code = line[..at].matches('`').count() % 2 == 1;
        let rest = &line[at + 2..];
        let end = rest.find(')').unwrap_or(rest.len());
        if !in_code {
            targets.extend(destination(&rest[..end]));
        }
    }
    targets
}

/// The target without angle brackets and title.
fn destination(text: &str) -> Option<&str> {
    let text = text.trim();
    match text.strip_prefix('<') {
        Some(rest) => rest.split_once('>').map(|(target, _)| target),
        None => text.split_whitespace().next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let files = [
            TextFile::new(path, text),
            TextFile::new("docs/guide/start.md", ""),
            TextFile::new("docs/map.svg", ""),
        ];
        check(&files).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn links_to_files_and_folders_pass() {
        let text = "[a](docs/guide/start.md#x) ![m](<docs/map.svg>) [f](docs/guide/) \
                    [w](https://example.org/a) [h](#here) [m](mailto:a@example.org)\n\n[d]: \
                    docs/map.svg \"title\"\n";
        assert_eq!(findings("README.md", text), [""; 0]);
        assert_eq!(findings("docs/errors/README.md", "[a](../guide/start.md)"), [""; 0]);
    }

    #[test]
    fn dead_links_are_found() {
        for text in ["x\n[a](docs/gone.md)", "x\n![a](gone.svg)", "x\n[a]: gone.md"] {
            let found = findings("README.md", text);
            assert!(found.len() == 1 && found[0].starts_with("README.md:2: "), "{text}: {found:?}");
        }
        assert_eq!(findings("docs/a.md", "[a](docs/map.svg)").len(), 1);
    }

    #[test]
    fn links_out_of_the_repository_are_found() {
        assert_eq!(findings("docs/a.md", "[a](../../other/README.md)").len(), 1);
        assert_eq!(findings("docs/a.md", "[a](/etc/passwd)").len(), 1);
    }

    #[test]
    fn what_stands_in_code_is_no_link() {
        let text = "```rust\nlet a = b[c](gone.md);\n```\n`[a](gone.md)`\n";
        assert_eq!(findings("README.md", text), [""; 0]);
    }
}
