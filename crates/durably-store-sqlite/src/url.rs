//! Where the database is: `sqlite:path`, `sqlite://path` or a plain path. What stands there is
//! taken as it is: nothing is unescaped, and a question mark begins parameters, of which there are
//! none yet.

use durably_store::StoreError;
use std::path::{Path, PathBuf};

/// The path that a URL names, absolute.
pub(crate) fn path_of(url: &str) -> Result<PathBuf, StoreError> {
    let wrong =
        |problem: &str| StoreError::Url { url: url.to_owned(), problem: problem.to_owned() };
    let path = within(url).map_err(wrong)?;
    check_text(path).map_err(wrong)?;
    let path = std::path::absolute(path).map_err(|error| wrong(&error.to_string()))?;
    check_place(&path)?;
    Ok(path)
}

/// The path in a URL.
fn within(url: &str) -> Result<&str, &'static str> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Ok(url);
    };
    if scheme.eq_ignore_ascii_case("sqlite") {
        return Ok(rest.strip_prefix("//").unwrap_or(rest));
    }
    match scheme {
        "" => Ok(url),
        "file" => Err("write sqlite:FILE instead of file:FILE"),
        _ if is_scheme(scheme) => Err(
            "this is no SQLite store; write sqlite:FILE (or ./FILE, if it is the name of a file)",
        ),
        _ => Ok(url),
    }
}

/// Whether the text before a colon is a scheme rather than a part of a path. One letter is a
/// drive of Windows.
fn is_scheme(text: &str) -> bool {
    let mut characters = text.chars();
    text.len() > 1
        && characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn check_text(path: &str) -> Result<(), &'static str> {
    if path.trim().is_empty() {
        return Err("it names no file; write sqlite:FILE");
    }
    if path.contains('\0') {
        return Err("it has a NUL character; no file can have such a name");
    }
    if path.chars().any(char::is_control) {
        return Err("it has a control character; remove it");
    }
    if let Some((before, _)) = path.split_once('?') {
        return Err(match before.contains(":memory:") {
            true => MEMORY,
            false => "it has parameters (?…), and none is supported; remove them",
        });
    }
    if path.to_ascii_lowercase().contains(":memory:") {
        return Err(MEMORY);
    }
    if path.starts_with("file:") {
        return Err("write sqlite:FILE, without file:");
    }
    if path.ends_with(['/', std::path::MAIN_SEPARATOR]) {
        return Err("it names a folder; name a file in it");
    }
    Ok(())
}

const MEMORY: &str = "SQLite in memory is not supported; use memory: for a store in memory";

/// Whether a database can be at a place at all. Looks at names only: the file itself is opened by
/// SQLite and by nobody else, since whoever closes it drops SQLite's locks.
fn check_place(path: &Path) -> Result<(), StoreError> {
    let store = path.display().to_string();
    let cannot = |problem: String| StoreError::Open { store: store.clone(), problem };
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(cannot("it is a folder; name a file in it".into())),
        Ok(found) if !found.is_file() => {
            Err(cannot("it is no regular file; name another one".into()))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(path);
            match std::fs::metadata(folder) {
                Ok(found) if found.is_dir() => Ok(()),
                Ok(_) => Err(cannot(format!("{} is no folder", folder.display()))),
                Err(error) => Err(cannot(format!(
                    "the folder {} cannot be used ({error}); create it first",
                    folder.display()
                ))),
            }
        }
        Err(error) => Err(cannot(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url_problem(url: &str) -> String {
        match path_of(url) {
            Err(StoreError::Url { problem, .. }) => problem,
            other => panic!("{url:?} gave {other:?}"),
        }
    }

    fn open_problem(url: &str) -> String {
        match path_of(url) {
            Err(StoreError::Open { problem, .. }) => problem,
            other => panic!("{url:?} gave {other:?}"),
        }
    }

    #[test]
    fn a_path_may_be_written_in_several_ways() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("a.db");
        let text = file.to_str().expect("a plain path");
        for url in [
            format!("sqlite:{text}"),
            format!("sqlite://{text}"),
            format!("SQLite:{text}"),
            text.to_owned(),
        ] {
            assert_eq!(path_of(&url).expect("a path"), file, "{url}");
        }
        let here = std::env::current_dir().expect("a current folder");
        assert_eq!(path_of("sqlite:a.db").expect("a path"), here.join("a.db"));
        assert_eq!(path_of("sqlite://a.db").expect("a path"), here.join("a.db"));
        assert_eq!(path_of("./x:a.db").expect("a path"), here.join("x:a.db"));
    }

    #[test]
    fn urls_that_name_no_file_say_so() {
        for url in ["", "sqlite:", "sqlite://", "sqlite:  ", "  "] {
            assert!(url_problem(url).contains("names no file"), "{url:?}");
        }
        for url in [
            ":memory:",
            "sqlite::memory:",
            "sqlite://:memory:",
            "sqlite:file::memory:",
            "sqlite::memory:?cache=shared",
        ] {
            assert!(url_problem(url).contains("use memory:"), "{url:?}");
        }
        for url in ["sqlite:a\0b", "a\0b", "sqlite:a.db\n"] {
            assert!(url_problem(url).contains("character"), "{url:?}");
        }
        for url in ["sqlite:a.db?mode=ro", "a.db?x", "sqlite:?mode=memory"] {
            let problem = url_problem(url);
            assert!(problem.contains("parameters") || problem.contains("memory:"), "{url:?}");
        }
        for url in ["postgres://h/d", "memory:", "mysql://u@h/d", "file:a.db", "sqlite3:a.db"] {
            assert!(url_problem(url).contains("sqlite:FILE"), "{url:?}");
        }
        assert!(url_problem("sqlite:file:a.db").contains("without file:"));
        assert!(url_problem("sqlite:data/").contains("folder"));
    }

    #[test]
    fn places_where_no_database_can_be_say_so() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let text = folder.path().to_str().expect("a plain path");
        assert!(open_problem(&format!("sqlite:{text}")).contains("it is a folder"));
        assert!(open_problem(&format!("sqlite:{text}/no/a.db")).contains("create it first"));
        std::fs::write(folder.path().join("file"), "x").expect("writes a file");
        let within_file = open_problem(&format!("sqlite:{text}/file/a.db"));
        assert!(!within_file.is_empty());
        let long = format!("sqlite:{text}/{}", "x".repeat(5000));
        assert!(!open_problem(&long).is_empty());
        assert!(open_problem("sqlite:/dev/null").contains("no regular file"));
    }
}
