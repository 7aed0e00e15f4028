//! Where the programs of a server are, and as whom they run.

use crate::{Kind, TestbedError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const POSTGRES_VERSION_MIN: u32 = 13;

/// The programs that a supervisor needs, as absolute paths.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// Makes a data folder.
    pub(crate) init: PathBuf,
    /// The server.
    pub(crate) serve: PathBuf,
    /// Asks whether the server answers.
    pub(crate) ask: PathBuf,
    /// The user to run them as; `None` is ourselves.
    pub(crate) user: Option<&'static str>,
}

impl Programs {
    /// Finds them.
    pub(crate) fn find(kind: Kind) -> Result<Programs, TestbedError> {
        let found = match kind {
            Kind::Postgres => postgres(&postgres_folders()),
            Kind::Mysql => mariadb(&mariadb_folders()),
        }?;
        Ok(Programs { user: user(kind)?, ..found })
    }
}

/// The package that brings a server, by the name that Debian gives it.
fn package(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => "postgresql",
        Kind::Mysql => "mariadb-server",
    }
}

/// The variable that names a server to use instead of a private one.
pub(crate) fn variable(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => "DURABLY_TEST_POSTGRES_URL",
        Kind::Mysql => "DURABLY_TEST_MYSQL_URL",
    }
}

/// Several versions may be installed: the newest is first. What stands in the path is often a
/// wrapper that chooses among clusters, so it comes last.
fn postgres_folders() -> Vec<PathBuf> {
    let mut versioned: Vec<(u32, PathBuf)> = Vec::new();
    for (parent, prefix) in [("/usr/lib/postgresql", ""), ("/usr", "pgsql-")] {
        let Ok(entries) = std::fs::read_dir(parent) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let version = name.to_str().and_then(|name| name.strip_prefix(prefix)?.parse().ok());
            versioned.extend(version.map(|version| (version, entry.path().join("bin"))));
        }
    }
    versioned.sort();
    versioned.into_iter().rev().map(|(_, folder)| folder).chain(search_path()).collect()
}

/// Servers are for administrators, whose folders are not in everybody's path.
fn mariadb_folders() -> Vec<PathBuf> {
    let more = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/libexec"];
    search_path().into_iter().chain(more.map(PathBuf::from)).collect()
}

fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect())
        .unwrap_or_default()
}

fn postgres(folders: &[PathBuf]) -> Result<Programs, TestbedError> {
    let complete = folders.iter().find(|folder| {
        ["initdb", "postgres", "pg_isready"].iter().all(|name| folder.join(name).is_file())
            && postgres_version(&folder.join("postgres")) >= Some(POSTGRES_VERSION_MIN)
    });
    let folder = complete.ok_or_else(|| {
        missing(Kind::Postgres, "initdb, postgres and pg_isready of version 13 or newer", folders)
    })?;
    Ok(Programs {
        init: folder.join("initdb"),
        serve: folder.join("postgres"),
        ask: folder.join("pg_isready"),
        user: None,
    })
}

/// The major version, from `postgres (PostgreSQL) 15.8`.
fn postgres_version(program: &Path) -> Option<u32> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_numeric()))?;
    number.split(|c: char| !c.is_numeric()).next()?.parse().ok()
}

fn mariadb(folders: &[PathBuf]) -> Result<Programs, TestbedError> {
    let find = |names: &'static [&'static str]| {
        let mut paths =
            names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        paths.find(|path| path.is_file()).ok_or_else(|| missing(Kind::Mysql, names[0], folders))
    };
    Ok(Programs {
        init: find(&["mariadb-install-db"])?,
        serve: find(&["mariadbd", "mysqld"])?,
        ask: find(&["mariadb-admin", "mysqladmin"])?,
        user: None,
    })
}

/// PgBouncer.
pub(crate) fn pooler() -> Result<PathBuf, TestbedError> {
    let folders = mariadb_folders();
    let found = folders.iter().map(|folder| folder.join("pgbouncer")).find(|path| path.is_file());
    found.ok_or_else(|| TestbedError::NoPooler)
}

/// The library that makes a MariaDB server a node of a cluster. What it needs to send whole copies
/// must be there, too.
pub(crate) fn galera() -> Result<PathBuf, TestbedError> {
    let is_there = |name: &str| search_path().iter().any(|folder| folder.join(name).is_file());
    if !is_there("rsync") {
        return Err(TestbedError::NoGalera { program: "rsync" });
    }
    let folders = ["/usr/lib/galera", "/usr/lib64/galera-4", "/usr/lib/galera-4"];
    let mut libraries = folders.iter().map(|folder| Path::new(folder).join("libgalera_smm.so"));
    let found = libraries.find(|path| path.is_file());
    found.ok_or(TestbedError::NoGalera { program: "libgalera_smm.so" })
}

fn missing(kind: Kind, program: &'static str, folders: &[PathBuf]) -> TestbedError {
    let searched: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    TestbedError::Missing {
        server: kind.name(),
        program,
        searched: searched.join(", "),
        package: package(kind),
        variable: variable(kind),
    }
}

/// Servers refuse to run as root; their packages bring a user for each.
fn user(kind: Kind) -> Result<Option<&'static str>, TestbedError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let user = match kind {
        Kind::Postgres => "postgres",
        Kind::Mysql => "mysql",
    };
    let known = Command::new("id")
        .args(["-u", user])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if known {
        Ok(Some(user))
    } else {
        Err(TestbedError::NoUser { server: kind.name(), user, package: package(kind) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_an_error_that_says_what_to_install() {
        let nowhere = [PathBuf::from("/nonexistent")];
        let postgres = postgres(&nowhere).expect_err("nothing is there").to_string();
        assert!(postgres.contains("./scripts/test"), "{postgres}");
        assert!(postgres.contains("package postgresql"), "{postgres}");
        assert!(postgres.contains("DURABLY_TEST_POSTGRES_URL"), "{postgres}");
        let mariadb = mariadb(&nowhere).expect_err("nothing is there").to_string();
        assert!(mariadb.contains("no mariadb-install-db in /nonexistent"), "{mariadb}");
        assert!(mariadb.contains("package mariadb-server"), "{mariadb}");
        assert!(mariadb.contains("DURABLY_TEST_MYSQL_URL"), "{mariadb}");
    }

    #[test]
    fn postgres_is_taken_from_the_folder_of_its_newest_version() {
        let found = Programs::find(Kind::Postgres).expect("PostgreSQL is installed");
        assert!(postgres_version(&found.serve) >= Some(POSTGRES_VERSION_MIN), "{found:?}");
    }
}
