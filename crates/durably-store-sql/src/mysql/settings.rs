//! What a URL of MySQL or MariaDB says.

use crate::text::Naming;
use crate::url::{Host, Params, Parts, Problem, Secret, parts_of, redacted};
use durably_store::StoreError;
use mysql_async::{Opts, OptsBuilder, SslOpts};
use std::path::PathBuf;
use std::time::Duration;

const SCHEMES: [&str; 2] = ["mysql", "mariadb"];
const EXAMPLE: &str = "mysql://USER:PASSWORD@HOST:PORT/DATABASE";
const KNOWN: &str = "prefix, pool, sslmode, sslrootcert, connect_timeout, answer_timeout, claim_margin, \
                     lock_timeout, unsafe";

/// Whether and how a connection is encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Encryption {
    Never,
    /// If the server can; who the server is stays unproven.
    IfOffered,
    /// Who the server is stays unproven, unless a root certificate is given.
    Always,
    /// And the server's certificate is one for its name.
    Verified,
}

/// What a URL says.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) user: String,
    pub(crate) password: Option<Secret>,
    /// In the order in which they are tried.
    pub(crate) hosts: Vec<Host>,
    pub(crate) database: String,
    pub(crate) naming: Naming,
    /// How many connections there are for work.
    pub(crate) pool: usize,
    pub(crate) encryption: Encryption,
    /// A file of certificates.
    pub(crate) roots: Option<PathBuf>,
    pub(crate) connect_max: Duration,
    /// How long the server may take to answer.
    pub(crate) answer_max: Duration,
    pub(crate) lock_max: Duration,
    pub(crate) claim_margin: Duration,
    /// How long a connection is kept that nobody uses.
    pub(crate) idle_max: Duration,
    /// Whether a server that may lose what it acknowledged is taken all the same.
    pub(crate) lax: bool,
}

impl Settings {
    pub(crate) fn of(url: &str) -> Result<Settings, StoreError> {
        let parts = parts_of(url, &SCHEMES, EXAMPLE)?;
        settings_of(parts).map_err(|problem| StoreError::Url { url: redacted(url), problem })
    }

    /// The store, as errors name it.
    pub(crate) fn shown(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(host_shown).collect();
        let naming = match self.naming.prefix.as_str() {
            "" => String::new(),
            prefix => format!("?prefix={prefix}"),
        };
        format!("mysql://{}@{}/{}{naming}", self.user, hosts.join(","), self.database)
    }

    /// How long the server waits for a lock, works on a statement, and waits for us in a
    /// transaction. It gives up before we do, so that we hear why.
    pub(crate) fn limits(&self) -> [Duration; 3] {
        let whole = |limit: Duration| Duration::from_secs(limit.as_secs().max(1));
        [
            whole(self.lock_max.min(self.answer_max / 2)),
            whole(self.answer_max * 4 / 5),
            whole(self.answer_max),
        ]
    }

    /// What the driver needs, for one of the hosts.
    pub(crate) fn driver(&self, host: &Host, encrypted: bool) -> Opts {
        let opts = OptsBuilder::default()
            .user(Some(&self.user))
            .pass(self.password.as_ref().map(Secret::reveal))
            .db_name(Some(&self.database))
            .tcp_nodelay(true)
            .tcp_keepalive(Some(self.answer_max))
            // A server on this host is reached as it was named; statements are kept by ourselves.
            .prefer_socket(false)
            .stmt_cache_size(0)
            .ssl_opts(encrypted.then(|| self.tls()));
        match host.name.starts_with('/') {
            true => opts.socket(Some(&host.name)).into(),
            false => opts.ip_or_hostname(&host.name).tcp_port(host.port.unwrap_or(3306)).into(),
        }
    }

    fn tls(&self) -> SslOpts {
        let unproven = self.encryption != Encryption::Verified;
        let tls = SslOpts::default().with_danger_skip_domain_validation(unproven);
        match &self.roots {
            Some(file) => {
                tls.with_root_certs(vec![file.clone().into()]).with_disable_built_in_roots(true)
            }
            None => tls.with_danger_accept_invalid_certs(unproven),
        }
    }
}

/// A host, as errors name it.
pub(crate) fn host_shown(host: &Host) -> String {
    let name = match host.name.contains(':') {
        true => format!("[{}]", host.name),
        false => host.name.clone(),
    };
    match host.port {
        Some(port) => format!("{name}:{port}"),
        None => name,
    }
}

fn settings_of(parts: Parts) -> Result<Settings, Problem> {
    let Parts { user, password, hosts, database, mut params } = parts;
    if params.take("schema").is_some() {
        return Err("a schema is a database here: name it after the last slash".to_owned());
    }
    let naming = params.naming()?;
    let pool = params.number("pool", 2..=1000)?.unwrap_or(10);
    let (encryption, roots) = encryption_of(&mut params)?;
    let seconds =
        |number: Option<u32>, otherwise| Duration::from_secs(number.map_or(otherwise, u64::from));
    let connect_max = seconds(params.number("connect_timeout", 1..=300)?, 5);
    let answer_max = seconds(params.number("answer_timeout", 1..=3600)?, 30);
    let lock_max = seconds(params.number("lock_timeout", 1..=3600)?, 10);
    let claim_margin = params.number("claim_margin", 0..=3_600_000)?.unwrap_or(1_000);
    let lax = params.choice("unsafe", &[("allowed", true)])?.unwrap_or(false);
    params.end(KNOWN)?;
    Ok(Settings {
        user,
        password,
        hosts,
        database,
        naming,
        pool: usize::try_from(pool).unwrap_or(usize::MAX),
        encryption,
        roots,
        connect_max,
        answer_max,
        lock_max,
        claim_margin: Duration::from_millis(claim_margin.into()),
        idle_max: Duration::from_secs(300),
        lax,
    })
}

fn encryption_of(params: &mut Params) -> Result<(Encryption, Option<PathBuf>), Problem> {
    let roots = params.take("sslrootcert").map(PathBuf::from);
    let encryption = params.choice(
        "sslmode",
        &[
            ("disable", Encryption::Never),
            ("prefer", Encryption::IfOffered),
            ("require", Encryption::Always),
            ("verify-full", Encryption::Verified),
        ],
    )?;
    match (encryption, &roots) {
        (None, Some(_)) => Ok((Encryption::Verified, roots)),
        (Some(Encryption::Never | Encryption::IfOffered), Some(_)) => {
            Err("sslrootcert= needs sslmode=require or sslmode=verify-full".to_owned())
        }
        (Some(encryption), _) => Ok((encryption, roots)),
        (None, None) => Ok((Encryption::IfOffered, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(url: &str) -> String {
        match Settings::of(url) {
            Err(StoreError::Url { url: shown, problem }) => {
                let all = format!("{shown} {problem}");
                assert!(!all.contains("s3cret"), "{url}: {all}");
                problem
            }
            other => panic!("{url} gave {other:?}"),
        }
    }

    #[test]
    fn what_is_not_said_has_a_sensible_value() {
        for scheme in SCHEMES {
            let settings = Settings::of(&format!("{scheme}://me:s3cret@h/d")).expect("a URL");
            assert_eq!(settings.pool, 10);
            assert_eq!(settings.encryption, Encryption::IfOffered);
            assert_eq!(settings.connect_max, Duration::from_secs(5));
            assert_eq!(settings.limits().map(|limit| limit.as_secs()), [10, 24, 30]);
            assert_eq!(settings.shown(), "mysql://me@h/d");
            assert!(!format!("{settings:?}").contains("s3cret"));
            let driver = settings.driver(&settings.hosts[0], false);
            assert_eq!((driver.ip_or_hostname(), driver.tcp_port()), ("h", 3306));
            assert_eq!((driver.user(), driver.pass()), (Some("me"), Some("s3cret")));
        }
    }

    #[test]
    fn everything_can_be_said() {
        let settings = Settings::of(
            "mariadb://me@h1:1,h2:2/d?prefix=p_&pool=2&sslmode=verify-full&sslrootcert=/a/b.pem&\
             connect_timeout=1&answer_timeout=2&lock_timeout=3&unsafe=allowed",
        )
        .expect("a URL");
        assert_eq!(settings.shown(), "mysql://me@h1:1,h2:2/d?prefix=p_");
        let limits = settings.limits().map(|limit| limit.as_secs());
        assert_eq!(limits, [1, 1, 2], "the server gives up first");
        assert!(settings.lax);
        let driver = settings.driver(&settings.hosts[1], true);
        assert_eq!((driver.ip_or_hostname(), driver.tcp_port()), ("h2", 2));
        let tls = driver.ssl_opts().expect("encryption");
        assert!(!tls.skip_domain_validation() && !tls.accept_invalid_certs());
        let settings = Settings::of("mysql://me@/d?host=/run/server.sock").expect("a URL");
        let driver = settings.driver(&settings.hosts[0], false);
        assert_eq!(driver.socket(), Some("/run/server.sock"));
    }

    #[test]
    fn wrong_parameters_say_what_is_right() {
        for (param, right) in [
            ("pool=1", "from 2 to 1000"),
            ("schema=a", "after the last slash"),
            ("sslmode=allow", "disable, prefer, require, verify-full"),
            ("sslmode=prefer&sslrootcert=/a", "sslmode=require"),
            ("connect_timeout=0", "from 1 to 300"),
            ("unsafe=yes", "allowed"),
            ("prefix=Big", "plain name"),
            ("charset=utf8", "there are prefix"),
        ] {
            let found = problem(&format!("mysql://me:s3cret@h/d?{param}"));
            assert!(found.contains(right), "{param}: {found}");
        }
        assert!(problem("postgres://me:s3cret@h/d").contains("write mysql://"));
        assert!(problem("sqlite:a.db").contains("write mysql://"));
    }
}
