//! How long a file and a function may be.

use syn::visit::{self, Visit};

use crate::Finding;
use crate::rust_file::RustFile;

const FILE_LINES_MAX: usize = 800;
const TEST_FILE_LINES_MAX: usize = 1500;
const FUNCTION_LINES_MAX: usize = 70;

/// Checks the length of files; test code counts only in files that are nothing else.
pub fn check_files(files: &[RustFile]) -> Vec<Finding> {
    files.iter().filter_map(long_file).collect()
}

fn long_file(file: &RustFile) -> Option<Finding> {
    let total = file.text.lines().count();
    let (lines, most, instead) = if file.is_test {
        (total, TEST_FILE_LINES_MAX, "split it by topic")
    } else {
        let code = (1..=total).filter(|line| !file.is_test_line(*line)).count();
        (code, FILE_LINES_MAX, "find the second thing this file does and give it a file of its own")
    };
    let advice = format!("{lines} lines, at most {most}: {instead}");
    (lines > most).then(|| Finding::new(&file.path, most + 1, advice))
}

/// Checks the length of function bodies outside of tests: the lines between the braces.
pub fn check_functions(files: &[RustFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !file.is_test) {
        let mut functions = Functions::default();
        functions.visit_file(&file.syntax);
        for Function { name, line, lines } in functions.found {
            if lines > FUNCTION_LINES_MAX && !file.is_test_line(line) {
                let advice = format!(
                    "`{name}` has {lines} lines, at most {FUNCTION_LINES_MAX}: keep branches and \
                     state here and move pure parts into functions of their own"
                );
                findings.push(Finding::new(&file.path, line, advice));
            }
        }
    }
    findings
}

struct Function {
    name: String,
    line: usize,
    lines: usize,
}

#[derive(Default)]
struct Functions {
    found: Vec<Function>,
}

impl Functions {
    fn note(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let braces = block.brace_token.span;
        let lines = braces.close().start().line.saturating_sub(braces.open().start().line + 1);
        let name = &signature.ident;
        self.found.push(Function { name: name.to_string(), line: name.span().start().line, lines });
    }
}

impl<'syntax> Visit<'syntax> for Functions {
    fn visit_item_fn(&mut self, item: &'syntax syn::ItemFn) {
        self.note(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'syntax syn::ImplItemFn) {
        self.note(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'syntax syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.note(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextFile;

    fn parse(path: &str, text: &str) -> Vec<RustFile> {
        vec![RustFile::parse(TextFile::new(path, text)).expect("sample is Rust")]
    }

    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    work();\n".repeat(lines))
    }

    #[test]
    fn long_files_are_found_and_tests_do_not_count() {
        let path = "crates/x/src/lib.rs";
        let code = "fn a() {}\n".repeat(FILE_LINES_MAX);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "fn b() {}\n".repeat(900));
        assert_eq!(check_files(&parse(path, &format!("{code}{tests}"))), []);
        let findings = check_files(&parse(path, &format!("{code}fn c() {{}}\n{tests}")));
        assert!(findings[0].advice.starts_with("801 lines"), "{findings:?}");
    }

    #[test]
    fn test_files_may_be_longer() {
        let path = "crates/x/tests/long.rs";
        let lines = |count| "fn a() {}\n".repeat(count);
        assert_eq!(check_files(&parse(path, &lines(TEST_FILE_LINES_MAX))), []);
        assert_eq!(check_files(&parse(path, &lines(TEST_FILE_LINES_MAX + 1))).len(), 1);
    }

    #[test]
    fn long_functions_are_found_wherever_they_stand() {
        let path = "crates/x/src/lib.rs";
        assert_eq!(check_functions(&parse(path, &function(FUNCTION_LINES_MAX))), []);
        let long = function(FUNCTION_LINES_MAX + 1);
        for sample in [
            long.clone(),
            format!("impl X {{ {long} }}"),
            format!("trait X {{ {long} }}"),
            format!("mod inner {{ {long} }}"),
        ] {
            assert_eq!(check_functions(&parse(path, &sample)).len(), 1, "{sample}");
        }
    }

    #[test]
    fn long_tests_are_no_finding() {
        let long = function(FUNCTION_LINES_MAX + 1);
        for sample in
            [format!("#[test]\n{long}"), format!("#[cfg(test)]\nmod tests {{\n{long}}}\n")]
        {
            assert_eq!(check_functions(&parse("crates/x/src/lib.rs", &sample)), [], "{sample}");
        }
        assert_eq!(check_functions(&parse("crates/x/tests/a.rs", &long)), []);
    }
}
