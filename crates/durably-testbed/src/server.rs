//! A server of one's own, for tests that stop it and for benchmarks.

use crate::supervisor::{Address, Birth, Owned, Watch};
use crate::{Kind, TestbedError};
use parking_lot::Mutex;
use rand::Rng;
use std::path::{Path, PathBuf};

const STARTS_MAX: usize = 5;

/// How a server of one's own is set up. Durability is on, and everything else as the server has it
/// by itself, unless said otherwise.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    settings: Vec<(String, String)>,
    without_fsync: bool,
    parent: Option<PathBuf>,
}

impl ServerOptions {
    /// Sets something of the server by the name that it has in its configuration, such as
    /// `max_connections`.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> ServerOptions {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes need not reach the disk: quicker, and what a crash of the machine would lose. A crash
    /// of the server alone loses nothing that PostgreSQL committed, and up to a second of what
    /// MariaDB did.
    #[must_use]
    pub fn without_fsync(mut self) -> ServerOptions {
        self.without_fsync = true;
        self
    }

    /// Puts the server's folder below this one, instead of the one for temporary files, which may
    /// be in memory. The user that the server runs as must be able to get there.
    #[must_use]
    pub fn below(mut self, parent: impl Into<PathBuf>) -> ServerOptions {
        self.parent = Some(parent.into());
        self
    }

    fn arguments(&self, kind: Kind) -> Vec<String> {
        let unsafe_setting = match kind {
            Kind::Postgres => ("fsync", "off"),
            Kind::Mysql => ("innodb_flush_log_at_trx_commit", "0"),
        };
        let without_fsync = self.without_fsync.then_some(unsafe_setting);
        let settings = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        without_fsync
            .into_iter()
            .chain(settings)
            .flat_map(|(name, value)| argument(kind, name, value))
            .collect()
    }
}

/// How a server takes a setting on its command line.
pub(crate) fn argument(kind: Kind, name: &str, value: &str) -> Vec<String> {
    match kind {
        Kind::Postgres => vec!["-c".to_owned(), format!("{name}={value}")],
        Kind::Mysql => vec![format!("--{name}={value}")],
    }
}

/// A private server that nobody else uses. Dropping it stops the server and removes its data; so
/// does the end of the process, however it comes.
///
/// Calls block until they are done. Where others must go on meanwhile on the same thread, make them
/// within `spawn_blocking`.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    folder: PathBuf,
    address: Address,
    settings: Vec<String>,
    birth: Birth,
    owned: Mutex<Owned>,
}

impl Server {
    /// Starts PostgreSQL, and returns when it answers.
    ///
    /// # Errors
    ///
    /// If it is not installed or does not start.
    pub fn postgres(options: &ServerOptions) -> Result<Server, TestbedError> {
        Server::start(Kind::Postgres, options)
    }

    /// Starts MariaDB, and returns when it answers.
    ///
    /// # Errors
    ///
    /// If it is not installed or does not start.
    pub fn mariadb(options: &ServerOptions) -> Result<Server, TestbedError> {
        Server::start(Kind::Mysql, options)
    }

    fn start(kind: Kind, options: &ServerOptions) -> Result<Server, TestbedError> {
        Server::born(kind, options, Birth::default(), Address::draw)
    }

    /// Starts PostgreSQL as a standby that follows another server, whose users it has, and returns
    /// when it can be read.
    ///
    /// # Errors
    ///
    /// If it does not start, or the other server is not to be reached.
    pub fn standby_of(primary: &Server, options: &ServerOptions) -> Result<Server, TestbedError> {
        let birth = Birth { origin: Some(primary.address.conninfo()), once: None };
        Server::born(Kind::Postgres, options, birth, || primary.address.draw_another())
    }

    /// Starts a server, with another address as long as somebody else takes the port meanwhile.
    pub(crate) fn born(
        kind: Kind,
        options: &ServerOptions,
        birth: Birth,
        draw: impl Fn() -> Result<Address, TestbedError>,
    ) -> Result<Server, TestbedError> {
        let parent = options.parent.clone().unwrap_or_else(std::env::temp_dir);
        let parent = std::path::absolute(&parent)
            .map_err(TestbedError::io(format!("find {}", parent.display())))?;
        let settings = options.arguments(kind);
        let mut last = None;
        for _ in 0..STARTS_MAX {
            let folder = unique(&parent, kind);
            let address = draw()?;
            let watch = Watch {
                kind,
                folder: &folder,
                address: &address,
                settings: &settings,
                birth: &birth,
            };
            match Owned::start(&watch) {
                Ok(owned) => {
                    let owned = Mutex::new(owned);
                    return Ok(Server { kind, folder, address, settings, birth, owned });
                }
                Err(error @ TestbedError::NotStarted { .. }) if address.is_taken() => {
                    last = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or(TestbedError::SupervisorGone { server: kind.name() }))
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Where it answers, with a user that may do everything; for MariaDB without a database.
    pub fn url(&self) -> String {
        self.address.url(self.kind)
    }

    /// The port on 127.0.0.1, the same after each start.
    pub fn port(&self) -> u16 {
        self.address.port
    }

    /// The folder of the server, with its data in `data` and what it says in `server.log`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stops it as a crash would: PostgreSQL with `-m immediate`, MariaDB with SIGKILL. Nothing that
    /// was committed may be lost by it.
    ///
    /// # Errors
    ///
    /// If its supervisor was killed.
    pub fn stop_immediate(&self) -> Result<(), TestbedError> {
        self.order("stop-immediate", "stopped")
    }

    /// Stops it as an administrator would, without waiting for its clients.
    ///
    /// # Errors
    ///
    /// If its supervisor was killed.
    pub fn stop(&self) -> Result<(), TestbedError> {
        self.order("stop", "stopped")
    }

    /// Starts it again after a stop, on the same port and data, and returns when it answers.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn start_again(&self) -> Result<(), TestbedError> {
        self.order("start", "ready")
    }

    /// Kills it with SIGKILL.
    ///
    /// # Errors
    ///
    /// If its supervisor was killed.
    pub fn kill(&self) -> Result<(), TestbedError> {
        self.order("kill", "stopped")
    }

    /// Makes PostgreSQL, which is stopped or was killed, a standby of the server that took its
    /// place, and returns when it can be read. It begins with a new copy of the data.
    ///
    /// # Errors
    ///
    /// If that server is not to be reached.
    pub fn follow(&self, primary: &Server) -> Result<(), TestbedError> {
        self.order(&format!("follow {}", primary.port()), "ready")
    }

    fn order(&self, order: &str, done: &str) -> Result<(), TestbedError> {
        let Server { kind, folder, address, settings, birth, owned } = self;
        let watch = Watch { kind: *kind, folder, address, settings, birth };
        owned.lock().order(&watch, order, done)
    }
}

fn unique(parent: &Path, kind: Kind) -> PathBuf {
    let random: u64 = rand::rng().random();
    parent.join(format!("durably-{}-{}-{random:016x}", kind.scheme(), std::process::id()))
}
