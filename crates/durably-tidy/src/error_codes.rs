//! Every error code has a page, every page has its code, and one table holds them all.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust_file::{RustFile, Token};
use crate::{Finding, TextFile};

const PAGES: &str = "docs/errors/";
const HEADINGS: [&str; 2] = ["## What happened", "## What to do"];
const PREFIX: &str = "DUR-";
const DIGITS: usize = 4;

/// A code in a string of our code.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mention {
    code: String,
    path: String,
    line: usize,
    /// The string is the code and nothing else, as in the table.
    alone: bool,
}

/// Checks codes in `crates/*/src`, outside of tests, against pages in `docs/errors`. Without any
/// code there may be no page, and without any page no code.
pub fn check(sources: &[RustFile], files: &[TextFile]) -> Vec<Finding> {
    let mentions: Vec<Mention> =
        sources.iter().filter(|file| is_ours(&file.path)).flat_map(mentions_in).collect();
    let pages: BTreeMap<&str, &TextFile> =
        files.iter().filter_map(|file| Some((page_name(&file.path)?, file))).collect();
    let mut findings = table(&mentions);
    findings.extend(without_page(&mentions, &pages));
    findings.extend(pages.values().flat_map(|page| wrong_page(page, &mentions)));
    findings
}

fn is_ours(path: &str) -> bool {
    let mut folders = path.split('/');
    folders.next() == Some("crates") && folders.nth(1) == Some("src")
}

fn page_name(path: &str) -> Option<&str> {
    let name = path.strip_prefix(PAGES)?;
    (name != "README.md").then_some(name)
}

fn mentions_in(file: &RustFile) -> Vec<Mention> {
    let mut mentions = Vec::new();
    for token in file.tokens.iter().filter(|token| !file.is_test_line(token.line)) {
        let Some(text) = Token::string(token) else {
            continue;
        };
        for code in codes_in(text) {
            let alone = code == text;
            let (path, line) = (file.path.clone(), token.line);
            mentions.push(Mention { code: code.to_owned(), path, line, alone });
        }
    }
    mentions
}

/// The codes in a text: the prefix and exactly four digits.
fn codes_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(PREFIX).filter_map(move |(at, _)| {
        let rest = &text[at + PREFIX.len()..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        (digits == DIGITS).then(|| &text[at..at + PREFIX.len() + DIGITS])
    })
}

/// A string that is a code stands once, and all of them in one file; other strings speak of codes
/// that stand there.
fn table(mentions: &[Mention]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut known = BTreeSet::new();
    let home = mentions.iter().find(|mention| mention.alone).map_or("", |mention| &mention.path);
    for mention in mentions.iter().filter(|mention| mention.alone) {
        let Mention { code, path, line, .. } = mention;
        if path != home {
            let advice = format!(
                "{code} stands outside of the table in {home}: add it there and use it from there"
            );
            findings.push(Finding::new(path, *line, advice));
        } else if !known.insert(code) {
            let advice = format!(
                "{code} stands here a second time: a code means one thing, take the next free one"
            );
            findings.push(Finding::new(path, *line, advice));
        }
    }
    for mention in
        mentions.iter().filter(|mention| !mention.alone && !known.contains(&mention.code))
    {
        let advice =
            format!("{} is in no table: add it to the table of codes, or correct it", mention.code);
        findings.push(Finding::new(&mention.path, mention.line, advice));
    }
    findings
}

fn without_page(mentions: &[Mention], pages: &BTreeMap<&str, &TextFile>) -> Vec<Finding> {
    let missing = |mention: &&Mention| !pages.contains_key(format!("{}.md", mention.code).as_str());
    let advise = |mention: &Mention| {
        let headings = HEADINGS.join("` and `");
        let advice =
            format!("{0} has no page: write {PAGES}{0}.md with `{headings}`", mention.code);
        Finding::new(&mention.path, mention.line, advice)
    };
    mentions.iter().filter(|mention| mention.alone).filter(missing).map(advise).collect()
}

fn wrong_page(page: &TextFile, mentions: &[Mention]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let name = page_name(&page.path).unwrap_or_default();
    let code = name.strip_suffix(".md").unwrap_or(name);
    if codes_in(code).next() != Some(code) {
        let advice = format!(
            "not the page of a code: {PAGES} holds README.md and one {PREFIX}0000.md per code"
        );
        findings.push(Finding::new(&page.path, 1, advice));
        return findings;
    }
    if !mentions.iter().any(|mention| mention.alone && mention.code == code) {
        let advice =
            format!("no code of ours is {code}: add it to the table of codes, or delete this page");
        findings.push(Finding::new(&page.path, 1, advice));
    }
    for heading in HEADINGS {
        if !page.text.lines().any(|line| line.trim_end() == heading) {
            findings.push(Finding::new(
                &page.path,
                1,
                format!("the heading `{heading}` is missing: add it"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# DUR-0001\n\n## What happened\n\nx\n\n## What to do\n\ny\n";
    const TABLE: &str = "fn code() -> &'static str {\n    \"DUR-0001\"\n}";

    fn findings(sources: &[(&str, &str)], pages: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<RustFile> = sources
            .iter()
            .map(|(path, text)| {
                RustFile::parse(TextFile::new(*path, *text)).expect("sample is Rust")
            })
            .collect();
        let pages: Vec<TextFile> = pages
            .iter()
            .map(|(name, text)| TextFile::new(format!("{PAGES}{name}"), *text))
            .collect();
        check(&sources, &pages).iter().map(Finding::to_string).collect()
    }

    fn only(found: &[String], start: &str) {
        assert!(
            found.len() == 1 && found[0].starts_with(start),
            "wanted `{start}…`, found {found:?}"
        );
    }

    #[test]
    fn a_code_with_its_page_passes_and_so_does_nothing_at_all() {
        let code = [("crates/durably/src/code.rs", TABLE)];
        assert_eq!(findings(&code, &[("DUR-0001.md", PAGE), ("README.md", "")]), [""; 0]);
        assert_eq!(findings(&[], &[("README.md", "")]), [""; 0]);
    }

    #[test]
    fn a_code_without_page_is_found() {
        let found = findings(&[("crates/durably/src/code.rs", TABLE)], &[]);
        only(&found, "crates/durably/src/code.rs:2: DUR-0001 has no page");
    }

    #[test]
    fn a_page_without_code_is_found() {
        only(
            &findings(&[], &[("DUR-0001.md", PAGE)]),
            "docs/errors/DUR-0001.md:1: no code of ours",
        );
        only(&findings(&[], &[("notes.md", PAGE)]), "docs/errors/notes.md:1: not the page");
    }

    #[test]
    fn a_page_without_its_headings_is_found() {
        let found = findings(
            &[("crates/durably/src/code.rs", TABLE)],
            &[("DUR-0001.md", "# DUR-0001\n\n## What happened\n")],
        );
        only(&found, "docs/errors/DUR-0001.md:1: the heading `## What to do`");
    }

    #[test]
    fn codes_stand_once_and_in_one_file() {
        let pages = [("DUR-0001.md", PAGE)];
        let twice = format!("{TABLE}\nfn again() -> &'static str {{ \"DUR-0001\" }}");
        let found = findings(&[("crates/durably/src/code.rs", &twice)], &pages);
        only(&found, "crates/durably/src/code.rs:4: DUR-0001 stands here a second time");
        let two =
            [("crates/durably-store/src/code.rs", TABLE), ("crates/durably/src/code.rs", TABLE)];
        only(&findings(&two, &pages), "crates/durably/src/code.rs:2: DUR-0001 stands outside");
    }

    #[test]
    fn strings_may_speak_only_of_codes_in_the_table() {
        let sources = [("crates/durably-cli/src/main.rs", "fn a() { b(\"see DUR-0009\"); }")];
        only(&findings(&sources, &[]), "crates/durably-cli/src/main.rs:1: DUR-0009 is in no table");
    }

    #[test]
    fn tests_and_documentation_do_not_count() {
        let sources = [
            ("crates/durably/tests/a.rs", TABLE),
            (
                "crates/durably/src/lib.rs",
                "/// \"DUR-0001\"\n#[cfg(test)]\nmod tests { const A: &str = \"DUR-0002\"; }",
            ),
        ];
        assert_eq!(findings(&sources, &[]), [""; 0]);
    }
}
