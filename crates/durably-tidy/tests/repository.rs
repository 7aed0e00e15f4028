//! The ground rules, checked on this repository.

use durably_tidy::repository::Repository;
use durably_tidy::rust_file::RustFile;
use durably_tidy::{
    Finding, arrows, bans, error_codes, failures, kernel, links, planted, size, speech,
};

/// Fails with every finding, a line each.
#[track_caller]
fn assert_tidy(findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(lines.is_empty(), "{} untidy:\n{}", lines.len(), lines.join("\n"));
}

/// The Rust files of the repository. What does not parse is reported by a test of its own.
fn rust_files() -> Vec<RustFile> {
    let (files, _) = Repository::here().rust_files();
    assert!(!files.is_empty(), "git lists no Rust files");
    files
}

#[test]
fn rust_files_parse() {
    let (_, unparsed) = Repository::here().rust_files();
    let findings: Vec<Finding> = unparsed.into_iter().map(|file| file.0).collect();
    assert_tidy(&findings);
}

#[test]
fn arrows_between_crates_point_down() {
    let repository = Repository::here();
    let manifests = repository.manifests();
    assert_tidy(&arrows::check(&repository.metadata(), |name| manifests[name].clone()));
}

#[test]
fn kernel_is_built_with_pure_crates_only() {
    let tree = Repository::here().normal_tree("durably-kernel");
    assert!(tree.contains("durably-kernel"), "cargo tree says nothing of the kernel: {tree}");
    assert_tidy(&kernel::check_tree(&tree));
}

#[test]
fn kernel_sources_are_pure() {
    assert_tidy(&kernel::check_sources(&rust_files()));
}

#[test]
fn files_are_short() {
    assert_tidy(&size::check_files(&rust_files()));
}

#[test]
fn functions_are_short() {
    assert_tidy(&size::check_functions(&rust_files()));
}

#[test]
fn nothing_is_marked_as_unfinished() {
    assert_tidy(&bans::unfinished_marks(&Repository::here().files()));
    assert_tidy(&bans::unfinished_macros(&rust_files()));
}

#[test]
fn selects_are_biased() {
    assert_tidy(&bans::unbiased_selects(&rust_files()));
}

#[test]
fn files_and_modules_have_names_that_say_something() {
    assert_tidy(&bans::empty_names(&rust_files()));
}

#[test]
fn no_test_is_ignored() {
    assert_tidy(&bans::ignored_tests(&rust_files()));
}

#[test]
fn no_test_sleeps() {
    assert_tidy(&bans::sleeping_tests(&rust_files()));
}

#[test]
fn no_async_trait() {
    assert_tidy(&bans::async_traits(&rust_files()));
}

#[test]
fn sql_is_not_formatted() {
    assert_tidy(&bans::formatted_sql(&rust_files()));
}

#[test]
fn the_repository_speaks_of_the_project_alone() {
    assert_tidy(&speech::check(&Repository::here().files()));
}

#[test]
fn error_codes_and_their_pages_agree() {
    assert_tidy(&error_codes::check(&rust_files(), &Repository::here().files()));
}

#[test]
fn links_point_at_files() {
    assert_tidy(&links::check(&Repository::here().files()));
}

#[test]
fn planted_bugs_fit_the_files() {
    assert_tidy(&planted::check(&Repository::here().files()));
}

#[test]
fn failures_are_tried_by_tests_that_exist() {
    assert_tidy(&failures::check(&Repository::here().files()));
}
