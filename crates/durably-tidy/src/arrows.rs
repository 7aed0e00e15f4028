//! Which crate may depend on which. Arrows point one way, from the binary down to the kernel.

use serde_json::Value;

use crate::Finding;

const ADAPTERS: &[&str] = &["durably-store-sqlite", "durably-store-sql"];
const CONTRACT: &str = "durably-store-contract";
const TESTBED: &str = "durably-testbed";

/// The crates of ours that a crate may be built with, or `None` for a crate that has no place yet.
fn allowed(name: &str) -> Option<Vec<&'static str>> {
    const PORT: [&str; 2] = ["durably-store", "durably-kernel"];
    const ENGINE: [&str; 3] = ["durably-runtime", "durably-store", "durably-kernel"];
    let below = match name {
        "durably-kernel" | "durably-proto" | "durably-tidy" | TESTBED => vec![],
        "durably-store" => vec!["durably-kernel"],
        CONTRACT | "durably-runtime" => PORT.to_vec(),
        adapter if ADAPTERS.contains(&adapter) => PORT.to_vec(),
        "durably" => [&ENGINE, ADAPTERS].concat(),
        "durably-sim" => [&["durably"], ENGINE.as_slice(), ADAPTERS].concat(),
        "durably-server" => vec!["durably", "durably-proto"],
        // The benchmark measures the port (decision 11).
        "durably-cli" => [["durably", "durably-server"], PORT].concat(),
        _ => return None,
    };
    Some(below)
}

/// What tests reach beyond the arrows of their crate. The suite: adapters pass it, and so does the
/// memory store, which lives with the port (a cycle that cargo permits, since only tests close it).
/// The testbed, which knows none of our crates: tests of whatever meets a database server.
fn allowed_in_tests(name: &str, dependency: &str) -> bool {
    let is_adapter = ADAPTERS.contains(&name);
    match dependency {
        CONTRACT => name == "durably-store" || is_adapter,
        TESTBED => is_adapter || ["durably", "durably-server", "durably-cli"].contains(&name),
        // Its own tests want features that are not on by default.
        "durably" => name == dependency,
        _ => false,
    }
}

/// Checks every arrow between members of the workspace, given what `cargo metadata` said;
/// `manifest` names the file to blame for a crate.
pub fn check(metadata: &Value, manifest: impl Fn(&str) -> String) -> Vec<Finding> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut findings = Vec::new();
    for package in packages {
        let Some(name) = package["name"].as_str() else {
            continue;
        };
        let Some(allowed) = allowed(name) else {
            let advice = format!(
                "{name} is a new crate: give it a place in durably-tidy's arrows.rs and write a \
                 decision record"
            );
            findings.push(Finding::new(&manifest(name), 1, advice));
            continue;
        };
        for dependency in package["dependencies"].as_array().map_or(&[][..], Vec::as_slice) {
            let Some(target) = dependency["name"].as_str() else {
                continue;
            };
            let in_tests = dependency["kind"] == "dev";
            let fits = allowed.contains(&target) || (in_tests && allowed_in_tests(name, target));
            if !names.contains(&target) || fits {
                continue;
            }
            let advice = wrong_arrow(name, target, in_tests, &allowed);
            findings.push(Finding::new(&manifest(name), 1, advice));
        }
    }
    findings
}

fn wrong_arrow(name: &str, target: &str, in_tests: bool, allowed: &[&str]) -> String {
    let how = if in_tests { "dev-depends" } else { "depends" };
    let instead = match allowed {
        [] => "none of ours".to_owned(),
        below => format!("only {}", below.join(", ")),
    };
    format!(
        "{name} {how} on {target}, but may use {instead}: move what both need further down, or \
         the test further up"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Checks a workspace of two crates, of which the first depends on the second.
    fn arrow(from: &str, to: &str, kind: Value) -> Vec<Finding> {
        let metadata = json!({ "packages": [
            { "name": from, "dependencies": [{ "name": to, "kind": kind }] },
            { "name": to, "dependencies": [] },
        ]});
        check(&metadata, |name| format!("crates/{name}/Cargo.toml"))
    }

    #[test]
    fn arrows_down_are_allowed() {
        for (from, to) in [
            ("durably-store", "durably-kernel"),
            ("durably-store-sqlite", "durably-store"),
            ("durably-runtime", "durably-store"),
            ("durably", "durably-store-sqlite"),
            ("durably-cli", "durably"),
        ] {
            assert_eq!(arrow(from, to, Value::Null), [], "{from} → {to}");
        }
    }

    #[test]
    fn arrows_up_and_across_are_found() {
        for (from, to) in [
            ("durably-kernel", "durably-store"),
            ("durably-store", "durably-runtime"),
            ("durably-store", "durably-store-contract"),
            ("durably-runtime", "durably-store-sqlite"),
            ("durably-cli", "durably-runtime"),
            ("durably-tidy", "durably-kernel"),
        ] {
            let findings = arrow(from, to, Value::Null);
            assert_eq!(findings.len(), 1, "{from} → {to}");
            assert_eq!(findings[0].path, format!("crates/{from}/Cargo.toml"));
        }
    }

    #[test]
    fn the_contract_is_for_tests_of_stores_only() {
        assert_eq!(arrow("durably-store", CONTRACT, json!("dev")), []);
        assert_eq!(arrow("durably-store-sqlite", CONTRACT, json!("dev")), []);
        assert_eq!(arrow("durably-store-sqlite", CONTRACT, Value::Null).len(), 1);
        assert_eq!(arrow("durably-kernel", CONTRACT, json!("dev")).len(), 1);
        assert_eq!(arrow("durably-runtime", "durably", json!("dev")).len(), 1);
    }

    #[test]
    fn the_testbed_is_for_tests_of_what_meets_a_server_only() {
        assert_eq!(arrow("durably-store-sql", TESTBED, json!("dev")), []);
        assert_eq!(arrow("durably", TESTBED, json!("dev")), []);
        assert_eq!(arrow("durably", TESTBED, Value::Null).len(), 1);
        assert_eq!(arrow("durably-kernel", TESTBED, json!("dev")).len(), 1);
        assert_eq!(arrow(TESTBED, "durably", json!("dev")).len(), 1);
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        let metadata = json!({ "packages": [{ "name": "durably-extra", "dependencies": [] }] });
        let findings = check(&metadata, str::to_owned);
        assert!(findings[0].advice.contains("decision record"), "{findings:?}");
    }
}
