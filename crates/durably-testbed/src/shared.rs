//! One server of each kind, which all test processes of a clone share while they run.
//!
//! Its folder has a name that all of them know. In it, `users.lock` is locked by each user as long
//! as it lives, shared, and by the supervisor, exclusively, while it removes the folder; a lock on a
//! file that is no longer at its path is worth nothing. `starter.lock` is held by who starts the
//! server, `supervisor.lock` by the supervisor while there is a server. The operating system frees
//! the locks of processes that were killed.

use crate::programs::variable;
use crate::supervisor::{self, Address, Birth, SCRIPT, Watch};
use crate::{Kind, TestbedError};
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

const STARTS_MAX: usize = 5;
const UNUSED_ASKED_MAX: usize = 100;
const UNUSED_PAUSE: Duration = Duration::from_millis(20);

/// The URL of a PostgreSQL server: of the one that `DURABLY_TEST_POSTGRES_URL` names, or else of a
/// private one, started if it does not run yet. Its user may do everything. The server stays as
/// long as this process.
///
/// # Errors
///
/// If there is none and none can be started.
pub fn postgres() -> Result<String, TestbedError> {
    static SERVER: OnceLock<SharedServer> = OnceLock::new();
    url_of(Kind::Postgres, &SERVER)
}

/// The URL of a MariaDB or MySQL server, without a database: of the one that
/// `DURABLY_TEST_MYSQL_URL` names, or else of a private MariaDB; as [`postgres`] otherwise.
///
/// # Errors
///
/// If there is none and none can be started.
pub fn mysql() -> Result<String, TestbedError> {
    static SERVER: OnceLock<SharedServer> = OnceLock::new();
    url_of(Kind::Mysql, &SERVER)
}

fn url_of(kind: Kind, server: &OnceLock<SharedServer>) -> Result<String, TestbedError> {
    if let Ok(given) = std::env::var(variable(kind)) {
        return Ok(given);
    }
    // Two threads that join at once both may: a process may hold several locks.
    let joined = match server.get() {
        Some(joined) => joined,
        None => {
            let joined = SharedServer::join(kind)?;
            server.get_or_init(|| joined)
        }
    };
    Ok(joined.url.clone())
}

/// Stops the shared servers of this clone that nobody uses, without waiting for their next user,
/// and returns when they are gone.
///
/// # Errors
///
/// If their folders cannot be read.
pub fn stop_unused() -> Result<(), TestbedError> {
    for kind in [Kind::Postgres, Kind::Mysql] {
        let folder = folder_of(kind);
        let Some(supervisor) = opened(OpenOptions::new().write(true), &folder, "supervisor.lock")?
        else {
            continue;
        };
        let Some(users) = opened(OpenOptions::new().write(true), &folder, "users.lock")? else {
            continue;
        };
        let unused = is_unused(&users);
        drop(users);
        let pid = std::fs::read_to_string(folder.join("supervisor.pid")).unwrap_or_default();
        let pid = pid.trim().parse().ok().and_then(rustix::process::Pid::from_raw);
        if let (true, Some(pid)) = (unused, pid) {
            // It may have ended by itself meanwhile.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            supervisor.lock().map_err(TestbedError::io("wait for a supervisor"))?;
        }
    }
    Ok(())
}

/// Asks for a while, since the supervisor also has the lock for a moment when it has noticed that
/// the last user is gone.
fn is_unused(users: &File) -> bool {
    (0..UNUSED_ASKED_MAX).any(|_| {
        users.try_lock().is_ok() || {
            std::thread::sleep(UNUSED_PAUSE);
            false
        }
    })
}

struct SharedServer {
    url: String,
    /// Holds the server as long as this process lives.
    _users: File,
}

impl SharedServer {
    fn join(kind: Kind) -> Result<SharedServer, TestbedError> {
        let folder = folder_of(kind);
        let users = enter(&folder)?;
        let starter = create(&folder, "starter.lock")?;
        starter.lock().map_err(TestbedError::io("lock starter.lock"))?;
        if is_supervised(&folder)? {
            let path = folder.join("url");
            let url = std::fs::read_to_string(&path)
                .map_err(TestbedError::io(format!("read {}", path.display())))?;
            return Ok(SharedServer { url, _users: users });
        }
        let url = start(kind, &folder)?;
        Ok(SharedServer { url, _users: users })
    }
}

/// One folder for each clone of the repository, and for each way to supervise.
fn folder_of(kind: Kind) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_MANIFEST_DIR"), SCRIPT).hash(&mut hasher);
    let (user, clone) = (rustix::process::geteuid().as_raw(), hasher.finish());
    std::env::temp_dir().join(format!("durably-{}-{user}-{clone:016x}", kind.scheme()))
}

/// Takes a user's lock, in a folder that is made if need be.
fn enter(folder: &Path) -> Result<File, TestbedError> {
    loop {
        make(folder)?;
        let mut options = OpenOptions::new();
        let Some(users) = opened(options.write(true).create(true), folder, "users.lock")? else {
            continue;
        };
        users.lock_shared().map_err(TestbedError::io("lock users.lock"))?;
        let ours = users.metadata().map_err(TestbedError::io("look at users.lock"))?;
        let there = std::fs::metadata(folder.join("users.lock"));
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(users);
        }
    }
}

fn make(folder: &Path) -> Result<(), TestbedError> {
    let doing = || format!("make the folder {}", folder.display());
    match DirBuilder::new().mode(0o711).create(folder) {
        // The server's user must get through, whatever our umask is.
        Ok(()) => std::fs::set_permissions(folder, Permissions::from_mode(0o711))
            .or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
            .map_err(TestbedError::io(doing())),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let owner = std::fs::symlink_metadata(folder)
                .map(|found| found.is_dir().then_some(found.uid()))
                .unwrap_or_default();
            let ours = rustix::process::geteuid().as_raw();
            match owner {
                Some(owner) if owner == ours => Ok(()),
                Some(_) => Err(TestbedError::ForeignFolder(folder.to_owned())),
                // It was removed since, or is no folder, which opening a file in it will tell.
                None => Ok(()),
            }
        }
        Err(error) => Err(TestbedError::io(doing())(error)),
    }
}

/// Opens a file of a folder, or returns `None` if it, or the folder, is not there.
fn opened(
    options: &mut OpenOptions,
    folder: &Path,
    name: &str,
) -> Result<Option<File>, TestbedError> {
    let path = folder.join(name);
    match options.mode(0o600).open(&path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TestbedError::io(format!("open {}", path.display()))(error)),
    }
}

fn create(folder: &Path, name: &str) -> Result<File, TestbedError> {
    let path = folder.join(name);
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(TestbedError::io(format!("open {}", path.display())))
}

fn is_supervised(folder: &Path) -> Result<bool, TestbedError> {
    match create(folder, "supervisor.lock")?.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(TestbedError::io("lock supervisor.lock")(error)),
    }
}

/// Starts the server, under the lock of its starter.
fn start(kind: Kind, folder: &Path) -> Result<String, TestbedError> {
    let mut last = None;
    for _ in 0..STARTS_MAX {
        clear(folder)?;
        let address = Address::draw()?;
        let url = address.url(kind);
        let path = folder.join("url");
        create(folder, "url")?;
        std::fs::write(&path, &url)
            .map_err(TestbedError::io(format!("write {}", path.display())))?;
        let (settings, birth) = (settings(kind), Birth::default());
        let watch = Watch { kind, folder, address: &address, settings: &settings, birth: &birth };
        match supervisor::share(&watch) {
            Ok(()) => return Ok(url),
            Err(error @ TestbedError::NotStarted { .. }) if address.is_taken() => {
                last = Some(error)
            }
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or(TestbedError::SupervisorGone { server: kind.name() }))
}

/// Removes what a start that failed, or a supervisor that was killed, left behind.
fn clear(folder: &Path) -> Result<(), TestbedError> {
    let absent_is_fine = |result: std::io::Result<()>| match result {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    absent_is_fine(std::fs::remove_dir_all(folder.join("data")))
        .and_then(|()| absent_is_fine(std::fs::remove_dir_all(folder.join("tmp"))))
        .and_then(|()| absent_is_fine(std::fs::remove_file(folder.join("server.log"))))
        .map_err(TestbedError::io(format!("clear {}", folder.display())))
}

/// Small, but with room for the connections of many tests at once.
fn settings(kind: Kind) -> Vec<String> {
    let settings: &[(&str, &str)] = match kind {
        Kind::Postgres => &[("max_connections", "300"), ("shared_buffers", "128MB")],
        Kind::Mysql => &[
            ("max-connections", "500"),
            ("innodb-buffer-pool-size", "128M"),
            ("innodb-log-file-size", "32M"),
        ],
    };
    settings.iter().flat_map(|(name, value)| crate::server::argument(kind, name, value)).collect()
}
