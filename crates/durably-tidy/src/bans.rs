//! What may not stand in our code, each with what to do instead.

use crate::rust_file::{RustFile, Token, TokenKind};
use crate::{Finding, TextFile};

/// Marks of unfinished work. Written in halves, since this file is checked too.
const UNFINISHED: [&str; 3] = [concat!("FIX", "ME"), concat!("TO", "DO"), concat!("HA", "CK")];
const CODE_ENDINGS: &[&str] =
    &["rs", "sql", "toml", "sh", "yml", "yaml", "proto", "ts", "js", "svelte", "css", "html"];
const UNFINISHED_MACROS: [&str; 3] = ["dbg", "todo", "unimplemented"];
const NAMES_FOR_NOTHING: [&str; 6] = ["util", "utils", "helper", "helpers", "manager", "managers"];
const SQL_VERBS: [&str; 5] = ["select", "insert", "update", "delete", "create"];
const EXEMPTION: &str = "// tidy: ";

/// Marks of unfinished work in anything that is code.
pub fn unfinished_marks(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_code(&file.path)) {
        for (index, line) in file.text.lines().enumerate() {
            for mark in UNFINISHED.iter().filter(|mark| has_word(line, mark)) {
                let advice = format!(
                    "`{mark}`: finish it, or open an issue and describe the limit in prose"
                );
                findings.push(Finding::new(&file.path, index + 1, advice));
            }
        }
    }
    findings
}

fn is_code(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    path.starts_with("scripts/") || path.starts_with(".ci/") || CODE_ENDINGS.contains(&ending)
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part =
        |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        !is_part(line[..at].chars().next_back()) && !is_part(line[at + word.len()..].chars().next())
    })
}

/// Macros that stand for code that is not there, or that print while debugging.
pub fn unfinished_macros(files: &[RustFile]) -> Vec<Finding> {
    each_token(files, |_, tokens| match tokens {
        [name, bang, ..] if bang.text == "!" && UNFINISHED_MACROS.contains(&name.text.as_str()) => {
            Some(format!("`{}!`: write the code, or return an error", name.text))
        }
        _ => None,
    })
}

/// A `select!` that picks a ready branch by chance, where simulation must be able to repeat the
/// choice.
pub fn unbiased_selects(files: &[RustFile]) -> Vec<Finding> {
    each_token(files, |file, tokens| {
        let ours = ["crates/durably-runtime/src/", "crates/durably/src/"];
        if !ours.iter().any(|folder| file.path.starts_with(folder)) {
            return None;
        }
        let [name, bang, open, rest @ ..] = tokens else {
            return None;
        };
        let begins = name.text == "select" && bang.text == "!" && "({[".contains(&open.text);
        let biased = matches!(rest, [word, end, ..] if word.text == "biased" && end.text == ";");
        (begins && !biased).then(|| {
            "`select!` without `biased;` chooses by chance: begin it with `biased;` and put the \
             branches in the order they should be looked at"
                .to_owned()
        })
    })
}

/// Files, folders and modules whose name says nothing about what is in them.
pub fn empty_names(files: &[RustFile]) -> Vec<Finding> {
    let mut findings = each_token(files, |_, tokens| match tokens {
        [keyword, name, ..] if keyword.text == "mod" => says_nothing(&name.text),
        _ => None,
    });
    for file in files {
        let path = file.path.trim_end_matches(".rs");
        let advice = path.split('/').find_map(says_nothing);
        findings.extend(advice.map(|advice| Finding::new(&file.path, 1, advice)));
    }
    findings
}

fn says_nothing(name: &str) -> Option<String> {
    NAMES_FOR_NOTHING.contains(&name).then(|| {
        format!(
            "`{name}` does not say what is in it: name it after the one thing it knows, or split it"
        )
    })
}

/// Tests that do not run.
pub fn ignored_tests(files: &[RustFile]) -> Vec<Finding> {
    each_token(files, |_, tokens| {
        let [hash, open, rest @ ..] = tokens else {
            return None;
        };
        if hash.text != "#" || open.text != "[" {
            return None;
        }
        let end = rest.iter().position(|token| token.text == "]").unwrap_or(rest.len());
        let attribute = &rest[..end];
        let first = attribute.first().map_or("", |token| token.text.as_str());
        let conditional =
            first == "cfg_attr" && attribute.iter().any(|token| is_word(token, "ignore"));
        (first == "ignore" || conditional).then(|| {
            "an ignored test tests nothing: repair it, delete it, or skip by a named capability \
             that the test prints"
                .to_owned()
        })
    })
}

/// Sleeps in tests. A test that waits for time to pass is slow when it passes and flaky when it
/// does not; a line that really means to pass time says so with `// tidy: <reason>`, on it or above
/// it.
pub fn sleeping_tests(files: &[RustFile]) -> Vec<Finding> {
    files.iter().flat_map(sleeps_of).collect()
}

fn sleeps_of(file: &RustFile) -> Vec<Finding> {
    let is_sleep = |names: &[String]| match names {
        [.., module, name] => {
            ["thread", "time"].contains(&module.as_str())
                && ["sleep", "sleep_until"].contains(&name.as_str())
        }
        _ => false,
    };
    let paths = file.paths();
    let imported = paths.iter().any(|path| path.imported && is_sleep(&path.names));
    let whole = file.is_test || file.path.starts_with("crates/durably-store-contract/");
    let mut lines: Vec<usize> = paths
        .iter()
        .filter(|path| !path.imported && is_sleep(&path.names))
        .map(|path| path.line)
        .collect();
    if imported {
        lines.extend(file.tokens.windows(3).filter_map(bare_sleep));
    }
    lines.retain(|line| (whole || file.is_test_line(*line)) && !is_exempt(file, *line));
    let advice = "a test that sleeps: await a signal, a status or the virtual clock; if time \
                  itself is what is tested, say so with `// tidy: <reason>`";
    lines.into_iter().map(|line| Finding::new(&file.path, line, advice)).collect()
}

/// The line of a call of an imported `sleep`.
fn bare_sleep(tokens: &[Token]) -> Option<usize> {
    let [before, name, open] = tokens else {
        return None;
    };
    let called = ["sleep", "sleep_until"].contains(&name.text.as_str()) && open.text == "(";
    let bare = ![".", "::", "fn"].contains(&before.text.as_str());
    (called && bare).then_some(name.line)
}

/// The line, or a comment of its own above it, carries an exemption with a reason.
fn is_exempt(file: &RustFile, line: usize) -> bool {
    let has_reason = |text: &str| {
        text.split_once(EXEMPTION).is_some_and(|(_, reason)| !reason.trim().is_empty())
    };
    let above = file.line(line.saturating_sub(1)).trim_start();
    has_reason(file.line(line)) || (above.starts_with("//") && has_reason(above))
}

/// The `async_trait` macro, which boxes every call.
pub fn async_traits(files: &[RustFile]) -> Vec<Finding> {
    each_token(files, |_, tokens| {
        is_word(tokens.first()?, "async_trait").then(|| {
            "`async_trait`: write `fn name(&self) -> impl Future<Output = T> + Send`, or return a \
             boxed future by hand where the trait must be an object"
                .to_owned()
        })
    })
}

/// SQL put together by `format!` in a store.
pub fn formatted_sql(files: &[RustFile]) -> Vec<Finding> {
    each_token(files, |file, tokens| {
        let [name, bang, _, literal, ..] = tokens else {
            return None;
        };
        let in_store = file.path.starts_with("crates/durably-store");
        if !in_store || name.text != "format" || bang.text != "!" {
            return None;
        }
        let text = literal.string()?.trim_start().to_lowercase();
        let verb = text.split(|c: char| !c.is_alphanumeric()).next()?;
        SQL_VERBS.contains(&verb).then(|| {
            "SQL built with `format!`: put the statement into a file under sql/, include it, and \
             bind what varies"
                .to_owned()
        })
    })
}

fn is_word(token: &Token, text: &str) -> bool {
    token.kind == TokenKind::Word && token.text == text
}

/// Asks `judge` at every token, with all that follow it, and blames the line of that token.
fn each_token(
    files: &[RustFile],
    judge: impl Fn(&RustFile, &[Token]) -> Option<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (at, token) in file.tokens.iter().enumerate() {
            let advice = judge(file, &file.tokens[at..]);
            findings.extend(advice.map(|advice| Finding::new(&file.path, token.line, advice)));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    type Check = fn(&[RustFile]) -> Vec<Finding>;

    /// The lines on which a check finds something in a sample at a path.
    fn lines(check: Check, path: &str, text: &str) -> Vec<usize> {
        let file = RustFile::parse(TextFile::new(path, text)).expect("sample is Rust");
        check(&[file]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn marks_of_unfinished_work_are_found_as_words() {
        for mark in UNFINISHED {
            for path in ["crates/x/src/lib.rs", "scripts/test", "crates/x/sql/commit.sql"] {
                let file = TextFile::new(path, format!("ok\n# {mark}: later\n"));
                assert_eq!(unfinished_marks(&[file])[0].line, 2, "{mark} in {path}");
            }
            let part = TextFile::new("crates/x/src/lib.rs", format!("const {mark}_COUNT: u8 = 1;"));
            assert_eq!(unfinished_marks(&[part]), []);
        }
    }

    #[test]
    fn unfinished_macros_are_found_outside_of_strings() {
        let path = "crates/x/src/lib.rs";
        for name in UNFINISHED_MACROS {
            let sample = format!("fn a() {{\n    {name}!();\n}}");
            assert_eq!(lines(unfinished_macros, path, &sample), [2], "{name}");
        }
        assert_eq!(lines(unfinished_macros, path, "const A: &str = \"todo!()\";"), [0usize; 0]);
    }

    #[test]
    fn unbiased_selects_are_found_where_they_matter() {
        let bad = "async fn a() {\n    tokio::select! {\n        _ = b() => {}\n    }\n}";
        let good = "async fn a() { tokio::select! { biased; _ = b() => {} } }";
        let runtime = "crates/durably-runtime/src/worker.rs";
        assert_eq!(lines(unbiased_selects, runtime, bad), [2]);
        assert_eq!(lines(unbiased_selects, "crates/durably/src/client.rs", bad), [2]);
        assert_eq!(lines(unbiased_selects, runtime, good), [0usize; 0]);
        assert_eq!(lines(unbiased_selects, "crates/durably-cli/src/main.rs", bad), [0usize; 0]);
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        assert_eq!(lines(empty_names, "crates/x/src/utils.rs", ""), [1]);
        assert_eq!(lines(empty_names, "crates/x/src/helpers/clock.rs", ""), [1]);
        assert_eq!(lines(empty_names, "crates/x/src/lib.rs", "mod a;\nmod manager;"), [2]);
        assert_eq!(lines(empty_names, "crates/x/src/clock.rs", "mod run;"), [0usize; 0]);
    }

    #[test]
    fn ignored_tests_are_found() {
        let path = "crates/x/tests/a.rs";
        assert_eq!(lines(ignored_tests, path, "#[test]\n#[ignore]\nfn a() {}"), [2]);
        assert_eq!(lines(ignored_tests, path, "#[ignore = \"slow\"]\nfn a() {}"), [1]);
        assert_eq!(lines(ignored_tests, path, "#[cfg_attr(windows, ignore)]\nfn a() {}"), [1]);
        assert_eq!(lines(ignored_tests, path, "#[must_use]\nfn ignore() {}"), [0usize; 0]);
    }

    #[test]
    fn sleeping_tests_are_found() {
        let path = "crates/x/tests/a.rs";
        for sample in [
            "fn a() {}\nfn b() { std::thread::sleep(x); }",
            "use std::thread;\nfn b() { thread::sleep(x); }",
            "use tokio::time::{Duration, sleep};\nasync fn b() { sleep(x).await; }",
            "fn a() {}\nasync fn b() { tokio::time::sleep_until(x).await; }",
        ] {
            assert_eq!(lines(sleeping_tests, path, sample), [2], "{sample}");
        }
        let in_module = "#[cfg(test)]\nmod tests {\n    fn b() { std::thread::sleep(x); }\n}";
        assert_eq!(lines(sleeping_tests, "crates/x/src/lib.rs", in_module), [3]);
    }

    #[test]
    fn sleeps_with_a_reason_of_workflows_or_outside_of_tests_pass() {
        let path = "crates/x/tests/a.rs";
        for sample in [
            "fn b() {\n    std::thread::sleep(x); // tidy: the beat of a real process is what is tested\n}",
            "fn b() {\n    // tidy: the beat of a real process is what is tested\n    std::thread::sleep(x);\n}",
            "async fn b() { ctx.sleep(x).await; Step::sleep(x); }",
        ] {
            assert_eq!(lines(sleeping_tests, path, sample), [0usize; 0], "{sample}");
        }
        let bare_mark = "fn b() {\n    std::thread::sleep(x); // tidy: \n}";
        assert_eq!(lines(sleeping_tests, path, bare_mark), [2]);
        let code = "fn b() { std::thread::sleep(x); }";
        assert_eq!(lines(sleeping_tests, "crates/x/src/lib.rs", code), [0usize; 0]);
    }

    #[test]
    fn async_traits_are_found() {
        let sample = "struct A;\n#[async_trait]\ntrait B {}";
        assert_eq!(lines(async_traits, "crates/x/src/lib.rs", sample), [2]);
        let sample = "struct A;\n#[async_trait::async_trait]\ntrait B {}";
        assert_eq!(lines(async_traits, "crates/x/src/lib.rs", sample), [2, 2]);
    }

    #[test]
    fn formatted_sql_is_found_in_stores() {
        let bad = "fn a() {\n    format!(\" SELECT * FROM {t}\");\n}";
        let store = "crates/durably-store-sqlite/src/find.rs";
        assert_eq!(lines(formatted_sql, store, bad), [2]);
        assert_eq!(lines(formatted_sql, "crates/durably/src/client.rs", bad), [0usize; 0]);
        let prose = "fn a() { format!(\"selected {n} rows\"); format!(\"{x} updated\"); }";
        assert_eq!(lines(formatted_sql, store, prose), [0usize; 0]);
        let raw = "fn a() {\n    format!(r#\"insert into {t}\"#);\n}";
        assert_eq!(lines(formatted_sql, store, raw), [2]);
    }
}
