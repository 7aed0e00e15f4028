//! The repository speaks of the project alone: not of the machine that somebody worked on, nor of
//! where packages came from that day. Such lines are wrong for everybody else.

use crate::{Finding, TextFile};

/// Folders of one machine. All needles are written in halves, since this file is checked too.
const MACHINE_FOLDERS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// Hosts from which packages are fetched.
const PACKAGE_HOSTS: [&str; 9] = [
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("registry.", "npmjs.org"),
    concat!("registry.", "yarnpkg.com"),
    concat!("py", "pi.org"),
    concat!("files.", "pythonhosted.org"),
    concat!("proxy.", "golang.org"),
    concat!("deb.", "debian.org"),
    concat!("arti", "factory"),
];

/// What a lock file says about a package of the public registry; any other source is a mirror or a
/// private registry.
const LOCKED: &str = concat!("registry", "+https://github.com/rust-lang/", "crates.io-index");
const OTHER_SOURCES: [&str; 3] =
    [concat!("registry", "+"), concat!("sparse", "+"), concat!("replace", "-with")];

/// Checks every file.
pub fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            findings.extend(judge(line).map(|advice| Finding::new(&file.path, index + 1, advice)));
        }
    }
    findings
}

fn judge(line: &str) -> Option<String> {
    let has = |needle: &&&str| line.contains(**needle);
    if let Some(folder) = MACHINE_FOLDERS.iter().find(has) {
        return Some(format!(
            "`{folder}` is a folder of one machine: use a path within the repository, or a \
             temporary folder"
        ));
    }
    if let Some(host) = PACKAGE_HOSTS.iter().find(has) {
        return Some(format!("`{host}` serves packages: leave it to each user's settings"));
    }
    let rest = line.replace(LOCKED, "");
    let source = OTHER_SOURCES.iter().find(|source| rest.contains(**source))?;
    Some(format!(
        "`{source}` names a package source of somebody's own: resolve against the public one"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&[TextFile::new("docs/a.md", text)]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn folders_of_a_machine_are_found() {
        for folder in MACHINE_FOLDERS {
            assert_eq!(lines(&format!("fine\nsee {folder}notes.md\n")), [2]);
        }
    }

    #[test]
    fn package_hosts_are_found() {
        for host in PACKAGE_HOSTS {
            assert_eq!(lines(&format!("fetched from https://{host}/x\n")), [1]);
        }
    }

    #[test]
    fn lock_files_may_name_the_public_registry_only() {
        assert_eq!(lines(&format!("source = \"{LOCKED}\"\n")), [0usize; 0]);
        let mirror = concat!("source = \"registry", "+https://mirror.example/index\"");
        assert_eq!(lines(mirror), [1]);
    }
}
