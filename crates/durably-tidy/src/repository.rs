//! The repository as it lies on disk: its files by git, its crates by cargo. The only module that
//! touches the world.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TextFile;
use crate::rust_file::{RustFile, Unparsed, parse_all};

/// The working copy that this crate was built from.
#[derive(Clone, Debug)]
pub struct Repository {
    root: PathBuf,
}

impl Repository {
    /// The repository around this crate.
    pub fn here() -> Self {
        let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = crate_folder.ancestors().nth(2).expect("this crate lies two folders deep");
        Self { root: root.to_owned() }
    }

    /// Every file that git tracks or would offer to track, sorted. Tracked files that were deleted
    /// are left out.
    pub fn files(&self) -> Vec<TextFile> {
        let listed = self.run("git", &["ls-files", "-co", "--exclude-standard", "-z"]);
        let mut paths: Vec<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
            .into_iter()
            .filter_map(|path| {
                // Gone between the listing and here, or a link into nowhere: not part of the
                // repository.
                let bytes = std::fs::read(self.root.join(path)).ok()?;
                Some(TextFile::new(path, String::from_utf8_lossy(&bytes)))
            })
            .collect()
    }

    /// Every Rust file, parsed; those that are not Rust (yet) apart.
    pub fn rust_files(&self) -> (Vec<RustFile>, Vec<Unparsed>) {
        let sources = self.files().into_iter().filter(|file| file.path.ends_with(".rs")).collect();
        parse_all(sources)
    }

    /// The manifest of each workspace member by the name of its crate, as a path within the
    /// repository.
    pub fn manifests(&self) -> BTreeMap<String, String> {
        let metadata = self.metadata();
        let packages = metadata["packages"].as_array().expect("cargo metadata lists packages");
        packages
            .iter()
            .map(|package| {
                let name = package["name"].as_str().expect("a package has a name");
                let manifest = package["manifest_path"].as_str().expect("a package has a manifest");
                let within = Path::new(manifest).strip_prefix(&self.root);
                let path = within.map_or_else(|_| manifest.into(), Path::to_string_lossy);
                (name.to_owned(), path.into_owned())
            })
            .collect()
    }

    /// What `cargo metadata` says about the members of the workspace.
    pub fn metadata(&self) -> serde_json::Value {
        let arguments = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
        serde_json::from_str(&self.cargo(&arguments)).expect("cargo metadata prints JSON")
    }

    /// The crates that a member is built with, itself included, a line each: `name
    /// version|feature,feature`.
    ///
    /// `cargo tree` for one package resolves features for that package alone; the graph of `cargo
    /// metadata` would show features that only other members switch on.
    pub fn normal_tree(&self, package: &str) -> String {
        let arguments = ["tree", "--offline", "-p", package, "-e", "normal", "--prefix", "none"];
        self.cargo(&[arguments.as_slice(), &["--format", "{p}|{f}"]].concat())
    }

    fn cargo(&self, arguments: &[&str]) -> String {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        self.run(&cargo.to_string_lossy(), arguments)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(&self.root)
            .output()
            .unwrap_or_else(|error| panic!("`{program}` does not start: {error}"));
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "`{program} {}`: {complaint}", arguments.join(" "));
        String::from_utf8(output.stdout).expect("output is UTF-8")
    }
}
