//! The kernel is pure: no async, no clock, no randomness, no I/O, neither in what it depends on nor
//! in its sources.

use crate::Finding;
use crate::rust_file::{PathUse, RustFile};

/// The manifest that is to blame for a dependency.
pub const MANIFEST: &str = "crates/durably-kernel/Cargo.toml";
const SOURCES: &str = "crates/durably-kernel/src/";

/// Crates that bring an async runtime, a database, a clock or randomness; a final `*` stands for
/// any ending.
const IMPURE_CRATES: &[&str] = &[
    "tokio*",
    "futures*",
    "async-*",
    "smol",
    "rusqlite",
    "libsqlite3-sys",
    "tokio-postgres",
    "mysql_async",
    "sqlx*",
    "chrono",
    "time",
    "jiff",
    "rand*",
    "getrandom",
    "fastrand",
    "uuid-rng-internal*",
];

/// Features of uuid that draw random numbers.
const RANDOM_UUIDS: &[&str] = &["v4", "v7", "rng", "rng-getrandom", "rng-rand", "fast-rng"];

const IMPURE_WORDS: &[(&str, &str)] = &[
    ("async", "decide in plain functions; the runtime does what has to be awaited"),
    ("await", "decide in plain functions; the runtime does what has to be awaited"),
    ("Instant", "take the time as an argument"),
    ("SystemTime", "take the time as an argument"),
];

const IMPURE_MODULES: &[(&str, &str)] = &[
    ("fs", "files belong to stores and the command line"),
    ("net", "sockets belong to stores and the server"),
    ("thread", "threads belong to the runtime's environment"),
    ("process", "processes belong to the command line"),
    ("env", "take settings as arguments"),
];

/// Checks what the kernel is built with: lines of `name version|features`, see
/// [`normal_tree`](crate::repository::Repository::normal_tree).
pub fn check_tree(tree: &str) -> Vec<Finding> {
    let mut lines: Vec<&str> = tree.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.into_iter().filter_map(impurity).map(|advice| Finding::new(MANIFEST, 1, advice)).collect()
}

fn impurity(line: &str) -> Option<String> {
    let (package, features) = line.split_once('|').unwrap_or((line, ""));
    let name = package.split_whitespace().next()?;
    if IMPURE_CRATES.iter().any(|pattern| matches(pattern, name)) {
        return Some(format!(
            "the kernel is built with {name}, which is not pure: do that outside and pass the \
             result in"
        ));
    }
    let random = features.split([',', ' ']).find(|feature| RANDOM_UUIDS.contains(feature))?;
    (name == "uuid").then(|| {
        format!(
            "the kernel is built with uuid's feature {random}: make ids outside and pass them in"
        )
    })
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

/// Checks the kernel's sources; its tests may read files.
pub fn check_sources(files: &[RustFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with(SOURCES)) {
        for path in file.paths().iter().filter(|path| !file.is_test_line(path.line)) {
            findings.extend(
                impure_path(path).map(|advice| Finding::new(&file.path, path.line, advice)),
            );
        }
    }
    findings
}

fn impure_path(path: &PathUse) -> Option<String> {
    for name in &path.names {
        if let Some((word, instead)) = IMPURE_WORDS.iter().find(|(word, _)| word == name) {
            return Some(format!("`{word}` in the kernel, which is pure: {instead}"));
        }
    }
    let [root, module, ..] = path.names.as_slice() else {
        return None;
    };
    let (module, instead) = IMPURE_MODULES.iter().find(|(name, _)| name == module)?;
    (root == "std").then(|| format!("`std::{module}` in the kernel, which is pure: {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextFile;

    fn sources(text: &str) -> Vec<Finding> {
        let file = TextFile::new("crates/durably-kernel/src/run.rs", text);
        check_sources(&[RustFile::parse(file).expect("sample is Rust")])
    }

    #[test]
    fn a_pure_tree_passes() {
        let tree =
            "durably-kernel v0.1.0 (somewhere)|\nserde v1.0.2|derive\nuuid v1.2.0|serde,std\n";
        assert_eq!(check_tree(tree), []);
    }

    #[test]
    fn impure_crates_are_found() {
        for name in
            ["tokio", "futures-util", "async-stream", "jiff", "rand_core", "getrandom", "time"]
        {
            let findings = check_tree(&format!("serde v1.0.2|derive\n{name} v1.0.0|\n"));
            assert_eq!(findings.len(), 1, "{name}");
            assert!(findings[0].advice.contains(name));
        }
    }

    #[test]
    fn random_uuids_are_found() {
        assert_eq!(check_tree("uuid v1.2.0|serde,std,v7 (*)\n").len(), 1);
        assert_eq!(check_tree("uuid v1.2.0|rng\n").len(), 1);
    }

    #[test]
    fn impure_sources_are_found_with_their_line() {
        for sample in [
            "fn a() {}\nasync fn b() {}",
            "fn a() {}\nuse std::time::Instant;",
            "fn a() {}\nuse std::time::{Duration, SystemTime};",
            "fn a() {}\nuse std::{fmt, fs};",
            "fn a() {}\nfn b() { std::net::TcpStream::connect(x); }",
            "fn a() {}\nfn b() { std::thread::yield_now(); }",
        ] {
            let lines: Vec<usize> = sources(sample).iter().map(|finding| finding.line).collect();
            assert_eq!(lines, [2], "{sample}");
        }
    }

    #[test]
    fn comments_strings_and_tests_are_not_code() {
        let sample = "//! No async, no Instant.\nconst A: &str = \"std::fs\";\n#[cfg(test)]\nmod tests { use std::fs; }";
        assert_eq!(sources(sample), []);
    }
}
