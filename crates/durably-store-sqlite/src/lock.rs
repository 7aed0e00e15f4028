//! Lock files: proof that a process is dead (decision 5).
//!
//! Each process has a file of its own in a folder beside the database, where whoever shares the
//! database's log finds it, and holds a lock on it that the operating system frees when the process
//! ends. The lock is taken before the process's row is written and freed after the row says that
//! it stopped, so a row that says "alive" without a held lock is proof of death, at once.
//!
//! A proof is only asked for where the row says that a lock was taken: a file system that has no
//! locks, or grants them twice, leaves it to the beat.

use durably_kernel::WorkerId;
use durably_store::StoreError;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The lock files that this store holds.
#[derive(Debug)]
pub(crate) struct Locks {
    folder: PathBuf,
    held: BTreeMap<WorkerId, Held>,
}

/// A lock that ends with the value.
#[derive(Debug)]
struct Held {
    _file: File,
    host: String,
}

/// What an attempt to take a lock came to.
enum Tried {
    Taken(File),
    /// Somebody else has it.
    Held,
    /// Nothing is known: no such file, no rights, no locks.
    Unknown(ErrorKind),
}

impl Locks {
    /// The locks beside a database.
    pub(crate) fn beside(database: &Path) -> Locks {
        let mut folder = database.as_os_str().to_owned();
        folder.push(".workers");
        Locks { folder: folder.into(), held: BTreeMap::new() }
    }

    /// Whether the process registered here.
    pub(crate) fn holds(&self, who: &WorkerId) -> bool {
        self.held.contains_key(who)
    }

    /// Takes the lock of a process that is about to register. False where locks do not work.
    pub(crate) fn take(&mut self, who: &WorkerId, host: &str) -> Result<bool, StoreError> {
        if self.holds(who) {
            return Ok(true);
        }
        if std::fs::create_dir_all(&self.folder).is_err() {
            return Ok(false);
        }
        let path = self.path(who);
        let file = match try_lock(&path, OpenOptions::new().create(true)) {
            Tried::Taken(file) => file,
            Tried::Unknown(_) => return Ok(false),
            Tried::Held => {
                return Err(StoreError::Refused {
                    operation: "register",
                    problem: format!("another process is registered as {who} and lives"),
                });
            }
        };
        // A file system that grants a lock twice would prove the living dead.
        if !matches!(try_lock(&path, &mut OpenOptions::new()), Tried::Held) {
            drop(file);
            self.remove(who);
            return Ok(false);
        }
        self.held.insert(who.clone(), Held { _file: file, host: host.to_owned() });
        Ok(true)
    }

    /// The process has ended: its file goes, then its lock.
    pub(crate) fn release(&mut self, who: &WorkerId) {
        if let Some(held) = self.held.remove(who) {
            self.remove(who);
            drop(held);
        }
    }

    /// Whether the lock of a process, which its row says was taken on this host, is free or gone.
    pub(crate) fn proves_dead(&self, who: &WorkerId) -> bool {
        if self.holds(who) {
            return false;
        }
        match try_lock(&self.path(who), &mut OpenOptions::new()) {
            Tried::Taken(_) | Tried::Unknown(ErrorKind::NotFound) => true,
            Tried::Held | Tried::Unknown(_) => false,
        }
    }

    /// Removes the file of a process that was declared dead.
    pub(crate) fn remove(&self, who: &WorkerId) {
        // A file that stays is only a file: nobody asks for it again.
        let _ = std::fs::remove_file(self.path(who));
    }

    /// The hosts under whose names processes registered here.
    pub(crate) fn hosts(&self) -> BTreeSet<String> {
        self.held.values().map(|held| held.host.clone()).collect()
    }

    /// How many processes registered here.
    pub(crate) fn count(&self) -> usize {
        self.held.len()
    }

    fn path(&self, who: &WorkerId) -> PathBuf {
        self.folder.join(file_name(who.as_str()))
    }
}

fn try_lock(path: &Path, options: &mut OpenOptions) -> Tried {
    let file = match options.read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) => return Tried::Unknown(error.kind()),
    };
    match file.try_lock() {
        Ok(()) => Tried::Taken(file),
        Err(TryLockError::WouldBlock) => Tried::Held,
        Err(TryLockError::Error(error)) => Tried::Unknown(error.kind()),
    }
}

/// The process's id where it can be the name of a file everywhere, otherwise a hash of it.
fn file_name(who: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let fits = !who.is_empty() && who.len() <= 200 && !who.starts_with('.');
    match fits && who.bytes().all(plain) {
        true => format!("{who}.lock"),
        false => format!("{}.lock", blake3::hash(who.as_bytes()).to_hex()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    #[test]
    fn a_held_lock_proves_nothing_and_a_free_or_missing_one_death() {
        let folder = folder();
        let database = folder.path().join("a.db");
        let who = WorkerId::from("host-1-a");
        let (mut mine, theirs) = (Locks::beside(&database), Locks::beside(&database));
        assert!(mine.take(&who, "host").expect("takes the lock"));
        assert!(mine.take(&who, "host").expect("has the lock already"));
        assert!(!mine.proves_dead(&who) && !theirs.proves_dead(&who));
        drop(mine);
        assert!(theirs.proves_dead(&who), "its holder is gone");
        theirs.remove(&who);
        assert!(theirs.proves_dead(&who), "the file is gone");
    }

    #[test]
    fn an_id_that_lives_is_refused_to_others() {
        let folder = folder();
        let database = folder.path().join("a.db");
        let who = WorkerId::from("host-1-a");
        let (mut mine, mut theirs) = (Locks::beside(&database), Locks::beside(&database));
        assert!(mine.take(&who, "host").expect("takes the lock"));
        assert!(matches!(theirs.take(&who, "host"), Err(StoreError::Refused { .. })));
        mine.release(&who);
        assert!(theirs.take(&who, "host").expect("takes the lock"));
    }

    #[test]
    fn ids_that_are_no_file_names_have_a_lock_all_the_same() {
        let folder = folder();
        let mut locks = Locks::beside(&folder.path().join("a.db"));
        for who in ["../a", "", "a/b", "..", "ä", &"x".repeat(300)] {
            let name = file_name(who);
            assert!(name.len() == 69 && !name.contains('/'), "{name}");
            assert!(locks.take(&WorkerId::from(who), "host").expect("takes the lock"), "{who:?}");
        }
        let files = std::fs::read_dir(&locks.folder).expect("the folder").count();
        assert_eq!(files, 6);
    }

    #[test]
    fn without_a_folder_for_locks_the_beat_decides() {
        let folder = folder();
        let database = folder.path().join("a.db");
        std::fs::write(folder.path().join("a.db.workers"), "in the way").expect("writes a file");
        let mut locks = Locks::beside(&database);
        assert!(!locks.take(&WorkerId::from("w"), "host").expect("is no error"));
    }
}
