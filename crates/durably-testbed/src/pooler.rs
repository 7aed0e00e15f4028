//! PgBouncer in front of a server, in transaction mode: each transaction gets another server
//! connection, so that what belongs to a connection (prepared statements, LISTEN, settings) is lost.

use crate::programs::{Programs, pooler};
use crate::supervisor::free_port;
use crate::{Kind, TestbedError};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use url::Url;

const START_MAX: Duration = Duration::from_secs(20);

/// A private PgBouncer. Dropping it stops it; so does the end of the process, however it comes.
#[derive(Debug)]
pub struct Pooler {
    url: Url,
    child: Child,
    configuration: PathBuf,
}

impl Pooler {
    /// Starts one in front of the server of a URL, with settings of choice (names as in its
    /// configuration), and returns when it answers.
    ///
    /// # Errors
    ///
    /// If it is not installed, does not start, or the URL has no host, port, user and password.
    pub fn before(server_url: &str, settings: &[(&str, &str)]) -> Result<Pooler, TestbedError> {
        let port = free_port()?;
        let url = Url::parse(server_url).map_err(|error| bad(server_url, &error.to_string()))?;
        let host = url.host_str().ok_or_else(|| bad(server_url, "it has no host"))?;
        let server_port = url.port().ok_or_else(|| bad(server_url, "it has no port"))?;
        let password = url.password().ok_or_else(|| bad(server_url, "it has no password"))?;
        let mut text = format!(
            "[databases]\n* = host={host} port={server_port} user={} password={password}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = transaction\nmax_client_conn = 500\n\
             default_pool_size = 20\n",
            url.username()
        );
        for (name, value) in settings {
            text.extend([*name, " = ", *value, "\n"]);
        }
        let configuration = std::env::temp_dir().join(format!("durably-pgbouncer-{port}.ini"));
        std::fs::write(&configuration, text)
            .map_err(TestbedError::io(format!("write {}", configuration.display())))?;
        let user = Programs::find(Kind::Postgres)?.user;
        let mut command = Command::new("setpriv");
        command.arg("--pdeathsig=KILL");
        if let Some(user) = user {
            command.args([format!("--reuid={user}"), format!("--regid={user}")]);
            command.arg("--init-groups");
        }
        let child = command
            .arg("--")
            .arg(pooler()?)
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(TestbedError::io("start PgBouncer"))?;
        let mut own = url;
        own.set_host(Some("127.0.0.1")).map_err(|error| bad(server_url, &error.to_string()))?;
        own.set_port(Some(port)).map_err(|()| bad(server_url, "it cannot have a port"))?;
        let mut pooler = Pooler { url: own, child, configuration };
        pooler.wait(port)?;
        Ok(pooler)
    }

    /// A URL of the server, with the pooler in its place.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Where it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.url.port().unwrap_or_default()
    }

    fn wait(&mut self, port: u16) -> Result<(), TestbedError> {
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = self.child.try_wait().map_err(TestbedError::io("wait for PgBouncer"))?;
            if ended.is_some() || began.elapsed() > START_MAX {
                let log = format!("it ended with {ended:?}; try it with this configuration");
                return Err(TestbedError::NotStarted { server: "PgBouncer", log });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.configuration);
    }
}

fn bad(url: &str, problem: &str) -> TestbedError {
    TestbedError::BadUrl {
        url: crate::database::without_password(url),
        problem: problem.to_owned(),
    }
}
