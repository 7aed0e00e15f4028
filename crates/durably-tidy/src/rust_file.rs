//! A Rust file as the checks see it: its syntax tree, its tokens in a row, and which lines of it
//! are tests.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::{Finding, TextFile};

/// A parsed Rust file.
#[derive(Clone)]
pub struct RustFile {
    /// Path within the repository.
    pub path: String,
    /// The text as it stands.
    pub text: String,
    /// Its syntax tree.
    pub syntax: syn::File,
    /// Its tokens in a row, those inside of macros and groups included.
    pub tokens: Vec<Token>,
    /// The whole file is test code: it lies in a `tests` folder, or is a module under
    /// `#[cfg(test)]`.
    pub is_test: bool,
    test_lines: Vec<RangeInclusive<usize>>,
    children: Vec<String>,
}

/// One token and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// As written; `::` is one token, every other punctuation character one of its own.
    pub text: String,
    /// Line, from 1.
    pub line: usize,
    /// What it is.
    pub kind: TokenKind,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name or a keyword.
    Word,
    /// A literal in code.
    Literal,
    /// The text of a documentation comment.
    Documentation,
    /// Punctuation or a bracket.
    Mark,
}

/// A path such as `std::fs::read`, with groups written out: `use std::{fs, net}` gives two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathUse {
    /// Its names, in order.
    pub names: Vec<String>,
    /// The line of its last name.
    pub line: usize,
    /// It stands in a `use` declaration.
    pub imported: bool,
}

/// A file that is not Rust.
#[derive(Clone, Debug)]
pub struct Unparsed(pub Finding);

impl RustFile {
    /// Parses one file.
    pub fn parse(file: TextFile) -> Result<Self, Unparsed> {
        let TextFile { path, text } = file;
        let unparsed = |error: syn::Error| {
            let line = error.span().start().line;
            Unparsed(Finding::new(&path, line, format!("not Rust: {error}; cargo check says more")))
        };
        let syntax = syn::parse_file(&text).map_err(unparsed)?;
        let stream: TokenStream = text.parse().map_err(|error: proc_macro2::LexError| {
            unparsed(syn::Error::new(error.span(), error.to_string()))
        })?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let mut modules = TestModules::default();
        modules.visit_file(&syntax);
        let children = modules.elsewhere.iter().flat_map(|name| child_paths(&path, name)).collect();
        let is_test = path.split('/').any(|folder| folder == "tests");
        let test_lines = modules.lines;
        Ok(Self { path, text, syntax, tokens, is_test, test_lines, children })
    }

    /// Whether this line is test code.
    pub fn is_test_line(&self, line: usize) -> bool {
        self.is_test || self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// The text of a line, from 1.
    pub fn line(&self, number: usize) -> &str {
        number.checked_sub(1).and_then(|index| self.text.lines().nth(index)).unwrap_or("")
    }

    /// Every path in the file.
    pub fn paths(&self) -> Vec<PathUse> {
        let mut reader = PathReader { tokens: &self.tokens, imported: false, found: Vec::new() };
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            match token.text.as_str() {
                "use" => reader.imported = true,
                ";" => reader.imported = false,
                _ => {}
            }
            at = reader.read(&[], at);
        }
        reader.found
    }
}

impl Token {
    /// The content of a string literal, as written between its quotes.
    pub fn string(&self) -> Option<&str> {
        if self.kind != TokenKind::Literal {
            return None;
        }
        let start = self.text.find('"')? + 1;
        let end = self.text.rfind('"')?;
        self.text.get(start..end)
    }
}

/// Parses files that belong together, so that a module declared under `#[cfg(test)]` in one file is
/// known to be a test in its own.
pub fn parse_all(files: Vec<TextFile>) -> (Vec<RustFile>, Vec<Unparsed>) {
    let mut parsed = Vec::new();
    let mut unparsed = Vec::new();
    for file in files {
        match RustFile::parse(file) {
            Ok(file) => parsed.push(file),
            Err(error) => unparsed.push(error),
        }
    }
    let tests: BTreeSet<String> = parsed.iter().flat_map(|file| file.children.clone()).collect();
    for file in &mut parsed {
        file.is_test |= tests.iter().any(|test| {
            let folder = test.strip_suffix("/mod.rs").or_else(|| test.strip_suffix(".rs"));
            let below = folder.and_then(|folder| file.path.strip_prefix(folder));
            file.path == *test || below.is_some_and(|rest| rest.starts_with('/'))
        });
    }
    (parsed, unparsed)
}

/// Where `mod name;` in the file at `path` may have its source.
fn child_paths(path: &str, name: &str) -> [String; 2] {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.trim_end_matches(".rs");
    let base = match stem {
        "mod" | "lib" | "main" => folder.to_owned(),
        _ => format!("{folder}/{stem}"),
    };
    [format!("{base}/{name}.rs"), format!("{base}/{name}/mod.rs")]
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let mut colon = false;
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                let end = group.span_close().end().line;
                tokens.push(Token { text: open.to_owned(), line, kind: TokenKind::Mark });
                flatten(group.stream(), tokens);
                tokens.push(Token { text: close.to_owned(), line: end, kind: TokenKind::Mark });
            }
            TokenTree::Ident(ident) => {
                let text = ident.to_string().trim_start_matches("r#").to_owned();
                tokens.push(Token { text, line, kind: TokenKind::Word });
            }
            TokenTree::Literal(literal) => {
                let documents = match tokens.as_slice() {
                    [.., name, equals] => name.text == "doc" && equals.text == "=",
                    _ => false,
                };
                let kind = if documents { TokenKind::Documentation } else { TokenKind::Literal };
                tokens.push(Token { text: literal.to_string(), line, kind });
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' && colon => {
                colon = false;
                tokens.last_mut().expect("the first colon").text = "::".to_owned();
                continue;
            }
            TokenTree::Punct(mark) => {
                colon = mark.as_char() == ':' && mark.spacing() == Spacing::Joint;
                let text = mark.as_char().to_string();
                tokens.push(Token { text, line, kind: TokenKind::Mark });
                continue;
            }
        }
        colon = false;
    }
}

struct PathReader<'tokens> {
    tokens: &'tokens [Token],
    imported: bool,
    found: Vec<PathUse>,
}

impl PathReader<'_> {
    /// Reads the path that begins at `at`, if one does, after these names; returns where to go on.
    fn read(&mut self, before: &[String], mut at: usize) -> usize {
        let mut names = before.to_vec();
        while let Some(token) = self.tokens.get(at).filter(|token| token.kind == TokenKind::Word) {
            names.push(token.text.clone());
            at += 1;
            if self.text(at) != "::" {
                self.found.push(PathUse { names, line: token.line, imported: self.imported });
                return at;
            }
            at += 1;
        }
        if names.is_empty() || self.text(at) != "{" {
            return at + 1;
        }
        at += 1;
        while at < self.tokens.len() && self.text(at) != "}" {
            at = self.read(&names, at);
        }
        at + 1
    }

    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text.as_str())
    }
}

/// Finds the lines of items under `#[cfg(test)]`, and the names of such modules whose source is
/// elsewhere.
#[derive(Default)]
struct TestModules {
    lines: Vec<RangeInclusive<usize>>,
    elsewhere: Vec<String>,
}

impl TestModules {
    fn note(&mut self, attributes: &[syn::Attribute], item: &impl Spanned) -> bool {
        let marked = attributes.iter().any(is_cfg_test);
        if marked {
            let first = attributes.iter().map(|attribute| attribute.span().start().line).min();
            let span = item.span();
            self.lines.push(first.unwrap_or(span.start().line)..=span.end().line);
        }
        marked
    }
}

impl<'syntax> Visit<'syntax> for TestModules {
    fn visit_item_mod(&mut self, item: &'syntax syn::ItemMod) {
        if self.note(&item.attrs, item) {
            if item.content.is_none() {
                self.elsewhere.push(item.ident.to_string());
            }
            return;
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_fn(&mut self, item: &'syntax syn::ItemFn) {
        let is_test = item.attrs.iter().any(is_test_attribute);
        if is_test {
            let span = item.span();
            self.lines.push(span.start().line..=span.end().line);
        } else {
            self.note(&item.attrs, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'syntax syn::ItemImpl) {
        if !self.note(&item.attrs, item) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'syntax syn::ImplItemFn) {
        self.note(&item.attrs, item);
    }
}

/// `#[cfg(test)]`, also as part of `all(test, …)`; not `not(test)`.
fn is_cfg_test(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else {
        return false;
    };
    let mut words = Vec::new();
    flatten(list.tokens.clone(), &mut words);
    let says = |word: &str| words.iter().any(|token| token.text == word);
    attribute.path().is_ident("cfg") && says("test") && !says("not") && !says("any")
}

/// `#[test]`, `#[tokio::test]` and their like.
fn is_test_attribute(attribute: &syn::Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "test")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> RustFile {
        RustFile::parse(TextFile::new("crates/x/src/lib.rs", text)).expect("sample is Rust")
    }

    #[test]
    fn groups_in_paths_are_written_out() {
        let file = parse("use std::{fs, net::{TcpStream, *}}; fn f() { tokio::time::sleep(x); }");
        let paths: Vec<String> = file.paths().iter().map(|path| path.names.join("::")).collect();
        for wanted in ["std::fs", "std::net::TcpStream", "tokio::time::sleep"] {
            assert!(paths.contains(&wanted.to_owned()), "{wanted} is missing in {paths:?}");
        }
        let imported: Vec<_> = file.paths().into_iter().filter(|path| path.imported).collect();
        assert!(imported.iter().all(|path| path.names != ["tokio", "time", "sleep"]));
        assert!(imported.iter().any(|path| path.names == ["std", "fs"]));
    }

    #[test]
    fn lines_under_cfg_test_are_test_lines() {
        let file = parse("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n");
        let tests: Vec<usize> = (1..=6).filter(|line| file.is_test_line(*line)).collect();
        assert_eq!(tests, [2, 3, 4, 5]);
    }

    #[test]
    fn code_outside_of_tests_by_cfg_is_no_test() {
        let file = parse("#[cfg(not(test))]\nmod real {\n}\n");
        assert!(!file.is_test_line(2));
    }

    #[test]
    fn test_modules_in_their_own_file_are_tests() {
        let (files, unparsed) = parse_all(vec![
            TextFile::new("crates/x/src/run.rs", "#[cfg(test)]\nmod tests;\n"),
            TextFile::new("crates/x/src/run/tests.rs", "fn helper() {}"),
            TextFile::new("crates/x/src/run/fold.rs", "fn fold() {}"),
        ]);
        assert!(unparsed.is_empty());
        let tests: Vec<bool> = files.iter().map(|file| file.is_test).collect();
        assert_eq!(tests, [false, true, false]);
    }

    #[test]
    fn what_is_not_rust_is_named_with_its_line() {
        let parsed = RustFile::parse(TextFile::new("crates/x/src/a.rs", "fn a() {}\nfn {"));
        let Unparsed(finding) = parsed.err().expect("sample is not Rust");
        assert_eq!((finding.path.as_str(), finding.line), ("crates/x/src/a.rs", 2));
    }

    #[test]
    fn documentation_is_no_literal() {
        let file = parse("/// says \"x\"\nfn a() -> &'static str { \"y\" }");
        let strings: Vec<&str> = file.tokens.iter().filter_map(Token::string).collect();
        assert_eq!(strings, ["y"]);
    }
}
