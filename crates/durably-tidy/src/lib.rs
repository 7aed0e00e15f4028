//! The ground rules of the repository, as tests.
//!
//! Each module holds one check: a pure function from text, or from what cargo said, to
//! [`Finding`]s, with unit tests that show how it fails. `tests/repository.rs` runs all of them on
//! the repository itself.
//!
//! Checks look at Rust through its tokens, so a forbidden word in a string or in a comment is no
//! finding unless the check is about comments. Deliberately absent: everything that rustfmt, clippy
//! or rustdoc already find.

pub mod arrows;
pub mod bans;
pub mod error_codes;
pub mod failures;
pub mod kernel;
pub mod links;
pub mod planted;
pub mod repository;
pub mod rust_file;
pub mod size;
pub mod speech;

use std::fmt;

/// One violation: where it is, what is wrong, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path within the repository.
    pub path: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong and what to do instead.
    pub advice: String,
}

impl Finding {
    /// A finding at a line of a file.
    pub fn new(path: &str, line: usize, advice: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, advice: advice.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.advice)
    }
}

/// A file of the repository, as text.
#[derive(Clone, Debug)]
pub struct TextFile {
    /// Path within the repository, with forward slashes.
    pub path: String,
    /// Its content; bytes that are not UTF-8 are replaced.
    pub text: String,
}

impl TextFile {
    /// A file with this path and content.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }
}
