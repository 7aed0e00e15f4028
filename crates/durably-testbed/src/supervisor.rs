//! The other end of `supervise.sh`, which does what a test process cannot: outlive itself. The
//! script runs in a session of its own, so that no terminal and no test runner ends it.

use crate::programs::Programs;
use crate::{Kind, TestbedError};
use rand::Rng;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) const SCRIPT: &str = include_str!("supervise.sh");
/// How long a shared server waits for its next user: longer than the pause between two test
/// binaries.
const LINGER_SECONDS: u32 = 5;
/// Below the ports that operating systems give to outgoing connections, so that a server finds its
/// port free when it is started again.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
const PORTS_TRIED_MAX: usize = 200;
const LOG_LINES_MAX: usize = 60;

/// What to watch.
pub(crate) struct Watch<'a> {
    pub(crate) kind: Kind,
    pub(crate) folder: &'a Path,
    pub(crate) address: &'a Address,
    pub(crate) settings: &'a [String],
    pub(crate) birth: &'a Birth,
}

/// What is different at the first start of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Birth {
    /// The server whose data it begins with: for PostgreSQL how to connect to it.
    pub(crate) origin: Option<String>,
    /// An argument for the first start alone.
    pub(crate) once: Option<&'static str>,
}

/// Where a server answers, and to which word.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) port: u16,
    password: String,
}

impl Address {
    /// A port that is free at the moment, and a new password.
    pub(crate) fn draw() -> Result<Address, TestbedError> {
        let port = free_port()?;
        let mut random = rand::rng();
        Ok(Address { port, password: format!("{:016x}", random.random::<u64>()) })
    }

    /// Whether somebody else took the port meanwhile.
    pub(crate) fn is_taken(&self) -> bool {
        !is_free(self.port)
    }

    /// The same word on another free port: of a server that has the users of this one.
    pub(crate) fn draw_another(&self) -> Result<Address, TestbedError> {
        Ok(Address { port: free_port()?, password: self.password.clone() })
    }

    /// How programs of PostgreSQL connect to it.
    pub(crate) fn conninfo(&self) -> String {
        let Address { port, password } = self;
        format!("host=127.0.0.1 port={port} user=durably password={password}")
    }

    pub(crate) fn url(&self, kind: Kind) -> String {
        let Address { port, password } = self;
        match kind {
            Kind::Postgres => format!("postgres://durably:{password}@127.0.0.1:{port}/postgres"),
            Kind::Mysql => format!("mysql://durably:{password}@127.0.0.1:{port}"),
        }
    }
}

/// A port that is free at the moment.
pub(crate) fn free_port() -> Result<u16, TestbedError> {
    let mut random = rand::rng();
    (0..PORTS_TRIED_MAX).map(|_| random.random_range(PORTS)).find(|port| is_free(*port)).ok_or_else(
        || TestbedError::Io {
            doing: format!("find a free port between {} and {}", PORTS.start, PORTS.end),
            source: std::io::ErrorKind::AddrInUse.into(),
        },
    )
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Starts a server that all share, whose folder is there and locked by its users. Returns when it
/// answers.
pub(crate) fn share(watch: &Watch<'_>) -> Result<(), TestbedError> {
    let mut script = command(watch, "shared")?
        .stdin(Stdio::null())
        .spawn()
        .map_err(TestbedError::io("run setsid and sh"))?;
    let mut answers = answers_of(&mut script, watch.kind)?;
    expect(watch, &mut answers, "ready")
}

/// A server of one's own, which ends with the value, or with the process.
#[derive(Debug)]
pub(crate) struct Owned {
    script: Child,
    /// `None` while it is dropped.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Owned {
    /// Starts it, in a folder that is not there yet. Returns when it answers.
    pub(crate) fn start(watch: &Watch<'_>) -> Result<Owned, TestbedError> {
        let mut script = command(watch, "owned")?
            .stdin(Stdio::piped())
            .spawn()
            .map_err(TestbedError::io("run setsid and sh"))?;
        let answers = answers_of(&mut script, watch.kind)?;
        let orders = script.stdin.take();
        let mut owned = Owned { script, orders, answers };
        expect(watch, &mut owned.answers, "ready")?;
        Ok(owned)
    }

    /// Gives an order, and waits for the answer that it is done.
    pub(crate) fn order(
        &mut self,
        watch: &Watch<'_>,
        order: &str,
        done: &str,
    ) -> Result<(), TestbedError> {
        let gone = |_| TestbedError::SupervisorGone { server: watch.kind.name() };
        if let Some(orders) = &mut self.orders {
            writeln!(orders, "{order}").map_err(gone)?;
        }
        expect(watch, &mut self.answers, done)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        drop(self.orders.take());
        // It cannot be told to anybody, and the script does not depend on us.
        let _ = self.script.wait();
    }
}

fn command(watch: &Watch<'_>, mode: &str) -> Result<Command, TestbedError> {
    let programs = Programs::find(watch.kind)?;
    let mut command = Command::new("setsid");
    command
        .args(["sh", "-c", SCRIPT, "supervise"])
        .args(watch.settings)
        .env("KIND", watch.kind.scheme())
        .env("MODE", mode)
        .env("FOLDER", watch.folder)
        .env("RUN_AS", programs.user.unwrap_or_default())
        .env("INIT", &programs.init)
        .env("SERVE", &programs.serve)
        .env("ASK", &programs.ask)
        .env("PORT", watch.address.port.to_string())
        .env("PASSWORD", &watch.address.password)
        .env("ORIGIN", watch.birth.origin.as_deref().unwrap_or_default())
        .env("ONCE", watch.birth.once.unwrap_or_default())
        .env("LINGER", LINGER_SECONDS.to_string())
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    Ok(command)
}

fn answers_of(script: &mut Child, kind: Kind) -> Result<BufReader<ChildStdout>, TestbedError> {
    let answers = script.stdout.take();
    answers.map(BufReader::new).ok_or(TestbedError::SupervisorGone { server: kind.name() })
}

fn expect(
    watch: &Watch<'_>,
    answers: &mut BufReader<ChildStdout>,
    expected: &str,
) -> Result<(), TestbedError> {
    let mut answer = String::new();
    answers.read_line(&mut answer).map_err(TestbedError::io("read from the supervisor"))?;
    let server = watch.kind.name();
    match answer.trim_end() {
        answer if answer == expected => Ok(()),
        "failed" => Err(TestbedError::NotStarted { server, log: log_of(watch.folder) }),
        _ => Err(TestbedError::SupervisorGone { server }),
    }
}

/// The end of what server and supervisor wrote.
pub(crate) fn log_of(folder: &Path) -> String {
    let mut text = String::new();
    for name in ["supervisor.log", "server.log"] {
        let path = folder.join(name);
        // A log that cannot be read must not hide what it would have explained.
        let read = File::open(&path).and_then(|mut file| file.read_to_string(&mut text));
        if let Err(error) = read {
            text.push_str(&format!("({} cannot be read: {error})\n", path.display()));
        }
    }
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES_MAX)..].join("\n")
}
