//! What a URL of PostgreSQL says.

use crate::postgres::session::{Isolation, Limits, Statements};
use crate::text::Naming;
use crate::url::{Host, Params, Parts, Problem, Secret, parts_of, redacted};
use durably_store::StoreError;
use std::path::PathBuf;
use std::time::Duration;

const SCHEMES: [&str; 2] = ["postgres", "postgresql"];
const EXAMPLE: &str = "postgres://USER:PASSWORD@HOST:PORT/DATABASE";
const KNOWN: &str = "schema, prefix, pool, mode, direct, listen, isolation, sslmode, sslrootcert, \
                     connect_timeout, answer_timeout, lock_timeout, claim_margin, target_session_attrs, \
                     application_name, unsafe";

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
    pub(crate) hosts: Vec<Host>,
    pub(crate) database: String,
    pub(crate) application: String,
    pub(crate) naming: Naming,
    /// How many connections there are for work.
    pub(crate) pool: usize,
    /// How statements reach the server; none if that is to be found out.
    pub(crate) statements: Option<Statements>,
    pub(crate) isolation: Isolation,
    /// Whether processes tell each other what has changed.
    pub(crate) listen: bool,
    /// Where to listen if the other connections go through a pooler.
    pub(crate) direct: Option<Box<Settings>>,
    pub(crate) encryption: Encryption,
    /// A file of certificates.
    pub(crate) roots: Option<PathBuf>,
    pub(crate) connect_max: Duration,
    /// How long the server may take to answer.
    pub(crate) answer_max: Duration,
    pub(crate) lock_max: Duration,
    pub(crate) claim_margin: Duration,
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
        let naming = match (&self.naming.schema, self.naming.prefix.as_str()) {
            (None, "") => String::new(),
            (None, prefix) => format!("?prefix={prefix}"),
            (Some(schema), "") => format!("?schema={schema}"),
            (Some(schema), prefix) => format!("?schema={schema}&prefix={prefix}"),
        };
        format!("postgres://{}@{}/{}{naming}", self.user, hosts.join(","), self.database)
    }

    /// What a transaction may take. The server gives up before the client does, so that the client
    /// hears why.
    pub(crate) fn limits(&self) -> Limits {
        let millis = |duration: Duration| duration.as_millis().to_string();
        Limits {
            lock: millis(self.lock_max.min(self.answer_max / 2)),
            statement: millis(self.answer_max * 4 / 5),
            idle: millis(self.answer_max),
        }
    }

    /// What the driver needs, for one of the hosts.
    pub(crate) fn driver(&self, host: &Host, statements: Statements) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config
            .user(&self.user)
            .dbname(&self.database)
            .application_name(&self.application)
            .host(&host.name)
            .port(host.port.unwrap_or(5432))
            .connect_timeout(self.connect_max)
            .tcp_user_timeout(self.answer_max)
            .keepalives_idle(self.answer_max)
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3)
            .ssl_mode(match self.encryption {
                Encryption::Never => tokio_postgres::config::SslMode::Disable,
                Encryption::IfOffered => tokio_postgres::config::SslMode::Prefer,
                Encryption::Always | Encryption::Verified => {
                    tokio_postgres::config::SslMode::Require
                }
            });
        if let Some(password) = &self.password {
            config.password(password.reveal());
        }
        if statements == Statements::Prepared {
            let Limits { lock, statement, idle } = self.limits();
            // Set once here instead of in every transaction.
            config.options(format!(
                "-c lock_timeout={lock} -c statement_timeout={statement} \
                 -c idle_in_transaction_session_timeout={idle}"
            ));
        }
        config
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
    let naming = params.naming()?;
    let pool = params.number("pool", 2..=1000)?.unwrap_or(10);
    let statements =
        params.choice("mode", &[("direct", Statements::Prepared), ("pooled", Statements::Sent)])?;
    let isolation = params
        .choice(
            "isolation",
            &[
                ("read-committed", Isolation::ReadCommitted),
                ("serializable", Isolation::Serializable),
            ],
        )?
        .unwrap_or(Isolation::ReadCommitted);
    let listen = params.choice("listen", &[("on", true), ("off", false)])?.unwrap_or(true);
    let direct = direct_of(&mut params)?;
    let (encryption, roots) = encryption_of(&mut params)?;
    let seconds =
        |number: Option<u32>, otherwise| Duration::from_secs(number.map_or(otherwise, u64::from));
    let connect_max = seconds(params.number("connect_timeout", 1..=300)?, 5);
    let answer_max = seconds(params.number("answer_timeout", 1..=3600)?, 30);
    let lock_max = seconds(params.number("lock_timeout", 1..=3600)?, 10);
    let claim_margin = params.number("claim_margin", 0..=3_600_000)?.unwrap_or(1_000);
    // The only one that makes sense; people have it in their URLs.
    params.choice("target_session_attrs", &[("read-write", ()), ("primary", ())])?;
    let lax = params.choice("unsafe", &[("allowed", true)])?.unwrap_or(false);
    let application = params.take("application_name").unwrap_or_else(|| "durably".to_owned());
    params.end(KNOWN)?;
    let pool = usize::try_from(pool).unwrap_or(usize::MAX);
    Ok(Settings {
        user,
        password,
        hosts,
        database,
        application,
        naming,
        pool,
        statements,
        isolation,
        listen,
        direct,
        encryption,
        roots,
        connect_max,
        answer_max,
        lock_max,
        claim_margin: Duration::from_millis(claim_margin.into()),
        lax,
    })
}

/// A URL within the URL.
fn direct_of(params: &mut Params) -> Result<Option<Box<Settings>>, Problem> {
    let Some(url) = params.take("direct") else { return Ok(None) };
    match Settings::of(&url) {
        Ok(settings) => Ok(Some(Box::new(settings))),
        Err(StoreError::Url { problem, .. }) => Err(format!("the URL in direct=: {problem}")),
        Err(other) => Err(other.to_string()),
    }
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
        let settings = Settings::of("postgresql://me:s3cret@h/d").expect("a URL");
        assert_eq!(settings.pool, 10);
        assert_eq!(settings.statements, None);
        assert_eq!(settings.encryption, Encryption::IfOffered);
        assert_eq!(settings.connect_max, Duration::from_secs(5));
        assert_eq!(settings.shown(), "postgres://me@h/d");
        assert!(!format!("{settings:?}").contains("s3cret"));
        let driver = settings.driver(&settings.hosts[0], Statements::Prepared);
        assert!(!format!("{driver:?}").contains("s3cret"), "{driver:?}");
        let options = driver.get_options().expect("limits");
        assert!(options.contains("lock_timeout=10000"), "{options}");
        assert_eq!(settings.driver(&settings.hosts[0], Statements::Sent).get_options(), None);
    }

    #[test]
    fn everything_can_be_said() {
        let settings = Settings::of(
            "postgres://me@h1:1,h2:2/d?schema=s&prefix=p_&pool=2&mode=pooled&listen=on&\
             direct=postgres%3A%2F%2Fme%3As3cret%40h3%2Fd&isolation=serializable&\
             sslmode=verify-full&sslrootcert=/a/b.pem&connect_timeout=1&answer_timeout=2&\
             lock_timeout=3&target_session_attrs=read-write&application_name=x&unsafe=allowed",
        )
        .expect("a URL");
        assert_eq!(settings.shown(), "postgres://me@h1:1,h2:2/d?schema=s&prefix=p_");
        assert_eq!(settings.statements, Some(Statements::Sent));
        assert_eq!(
            settings.direct.as_ref().map(|direct| direct.shown()).as_deref(),
            Some("postgres://me@h3/d")
        );
        assert_eq!(settings.limits().lock, "1000", "the server gives up first");
        assert!(settings.lax);
        assert!(!format!("{settings:?}").contains("s3cret"));
    }

    #[test]
    fn wrong_parameters_say_what_is_right() {
        for (param, right) in [
            ("pool=1", "from 2 to 1000"),
            ("pool=many", "from 2 to 1000"),
            ("mode=session", "direct, pooled"),
            ("sslmode=allow", "disable, prefer, require, verify-full"),
            ("sslmode=prefer&sslrootcert=/a", "sslmode=require"),
            ("isolation=none", "read-committed, serializable"),
            ("listen=maybe", "on, off"),
            ("target_session_attrs=standby", "read-write"),
            ("connect_timeout=0", "from 1 to 300"),
            ("unsafe=yes", "allowed"),
            ("direct=x", "in direct="),
            ("direct=postgres%3A%2F%2Fme%3As3cret%40h3%2Fd%3Fnone%3D1", "in direct="),
            ("schema=Big", "plain name"),
            ("sslcert=/a", "there are schema"),
        ] {
            let found = problem(&format!("postgres://me:s3cret@h/d?{param}"));
            assert!(found.contains(right), "{param}: {found}");
        }
        assert!(problem("mysql://me:s3cret@h/d").contains("write postgres://"));
        assert!(problem("sqlite:a.db").contains("write postgres://"));
    }
}
