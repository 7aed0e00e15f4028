//! Where a database is: `scheme://user:password@host:port,host:port/database?name=value&…`. What
//! stands there in percent signs is unescaped. Secrets leave this file only as [`Secret`]s, also
//! where a URL is so wrong that nobody can say which part of it is the secret.

use crate::text::Naming;
use durably_store::StoreError;
use std::fmt;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// The text itself, for the driver.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Host {
    /// A name, an address, or the folder of a socket.
    pub(crate) name: String,
    pub(crate) port: Option<u16>,
}

/// The parts of a URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Parts {
    pub(crate) user: String,
    pub(crate) password: Option<Secret>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) database: String,
    pub(crate) params: Params,
}

/// What is wrong with a URL, in words that quote nothing that may be a secret.
pub(crate) type Problem = String;

/// A URL as errors show it: whatever may be a secret is left out.
pub(crate) fn redacted(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    let (rest, params) = match rest.split_once('?') {
        Some((rest, params)) if !params.contains('@') => (rest, Some(params)),
        _ => (rest, None),
    };
    let place = match (rest.find(':'), rest.rfind('@')) {
        // Beginning with the first colon: a password may contain what should have been escaped.
        (Some(colon), Some(at)) if colon < at => format!("{}:***{}", &rest[..colon], &rest[at..]),
        // Perhaps a password whose host was forgotten.
        (Some(colon), None) if !is_ports(&rest[colon..]) => format!("{}:***", &rest[..colon]),
        _ => rest.to_owned(),
    };
    let params = params.map(|params| {
        let shown = params.split('&').map(|param| match param.split_once('=') {
            Some((name, _)) if is_secret(name) => format!("{name}=***"),
            _ => param.to_owned(),
        });
        format!("?{}", shown.collect::<Vec<_>>().join("&"))
    });
    format!("{scheme}{place}{}", params.unwrap_or_default())
}

/// Parameters whose values are secret, or may contain one.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "direct" || name.contains("pass") || name.contains("secret") || name.contains("key")
}

/// Whether text after the first host can only be its port, more hosts, and a database.
fn is_ports(text: &str) -> bool {
    let hosts = text.split('/').next().unwrap_or(text);
    hosts.split(',').all(|host| {
        let port = host.rsplit_once(':').map_or("", |(_, port)| port);
        port.chars().all(|c| c.is_ascii_digit()) && port.len() <= 5
    })
}

/// Takes a URL apart. `example` is what a right one looks like.
pub(crate) fn parts_of(url: &str, schemes: &[&str], example: &str) -> Result<Parts, StoreError> {
    split(url, schemes, example).map_err(|problem| StoreError::Url { url: redacted(url), problem })
}

fn split(url: &str, schemes: &[&str], example: &str) -> Result<Parts, Problem> {
    let rest = within(url, schemes, example)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let Some((login, hosts)) = authority.rsplit_once('@') else {
        return Err(format!("it names no user; write {example}"));
    };
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    };
    let escape = "; write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23, % as %25";
    if user.contains('@') || password.is_some_and(|text| text.contains(['@', ':'])) {
        return Err(format!("user or password has characters that must be escaped{escape}"));
    }
    let user = unescaped(user).map_err(|problem| format!("the user {problem}{escape}"))?;
    let password = password.map(unescaped).transpose();
    let password = password.map_err(|problem| format!("the password {problem}{escape}"))?;
    if user.is_empty() {
        return Err(format!("it names no user; write {example}"));
    }
    let mut params = Params::of(query)?;
    let hosts = hosts_of(hosts, params.take("host"), example)?;
    let database = unescaped(path).map_err(|problem| format!("the database {problem}"))?;
    if database.is_empty() {
        return Err(format!("it names no database; write {example}"));
    }
    if database.contains('/') {
        return Err(format!("the database's name has a slash; write {example}"));
    }
    let password = password.filter(|text| !text.is_empty()).map(Secret);
    Ok(Parts { user, password, hosts, database, params })
}

/// What comes after the scheme.
fn within<'a>(url: &'a str, schemes: &[&str], example: &str) -> Result<&'a str, Problem> {
    if url.chars().any(char::is_control) {
        return Err("it has a control character; remove it".to_owned());
    }
    if url.contains(char::is_whitespace) {
        return Err("it has a space; remove it, or write it as %20".to_owned());
    }
    if url.contains('#') {
        return Err("it has a #, which is no part of such a URL; write it as %23".to_owned());
    }
    match url.split_once("://") {
        Some((scheme, rest)) if schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known)) => {
            Ok(rest)
        }
        _ => Err(format!("write {example}")),
    }
}

/// Hosts, each with its port; or the folder of a socket, as a parameter.
fn hosts_of(text: &str, folder: Option<String>, example: &str) -> Result<Vec<Host>, Problem> {
    if let Some(folder) = folder {
        return match (text.is_empty(), folder.starts_with('/')) {
            (true, true) => Ok(vec![Host { name: folder, port: None }]),
            (false, _) => Err("it names hosts twice; remove the parameter host=".to_owned()),
            (true, false) => Err("host= is for the folder of a socket, as /run/server".to_owned()),
        };
    }
    text.split(',').map(|host| host_of(host, example)).collect()
}

fn host_of(text: &str, example: &str) -> Result<Host, Problem> {
    let (name, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, rest)) => (address, Some(rest.strip_prefix(':').unwrap_or(rest))),
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    let name = unescaped(name).map_err(|problem| format!("the host {problem}"))?;
    if name.is_empty() {
        return Err(format!("it names no host; write {example}"));
    }
    if text.starts_with('[') && name.parse::<std::net::Ipv6Addr>().is_err() {
        return Err(format!("{name:?} is no IPv6 address"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
    if !name.starts_with('/') && !name.chars().all(plain) {
        return Err("the host has a character that no host's name has".to_owned());
    }
    let port = port.map(|port| match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err("a port is a number from 1 to 65535; after the last host comes /".to_owned()),
    });
    Ok(Host { name, port: port.transpose()? })
}

/// A text without its percent signs.
fn unescaped(text: &str) -> Result<String, &'static str> {
    const WRONG: &str = "has a % that is not followed by two hexadecimal digits";
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or(WRONG)?;
        bytes.push(byte);
        rest = &rest[2..];
    }
    if bytes.contains(&0) {
        return Err("has a NUL character");
    }
    String::from_utf8(bytes).map_err(|_| "is no UTF-8 when unescaped")
}

/// What comes after the question mark. Each is taken by whoever knows it; what is left is unknown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Params(Vec<(String, Secret)>);

impl Params {
    fn of(query: &str) -> Result<Params, Problem> {
        let mut params: Vec<(String, Secret)> = Vec::new();
        for param in query.split('&').filter(|param| !param.is_empty()) {
            let (name, value) = param.split_once('=').unwrap_or((param, ""));
            let known = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if name.is_empty() || !known {
                return Err("it has a parameter without a plain name".to_owned());
            }
            let value =
                unescaped(value).map_err(|problem| format!("the parameter {name}= {problem}"))?;
            if value.is_empty() {
                return Err(format!("{name}= has no value; remove it or write one"));
            }
            if params.iter().any(|(known, _)| known == name) {
                return Err(format!("{name}= is there twice; remove one"));
            }
            params.push((name.to_owned(), Secret(value)));
        }
        Ok(Params(params))
    }

    /// The value of a parameter.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1.0)
    }

    /// One of several values.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match choices.iter().find(|(known, _)| *known == value) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
                Err(format!("{name}={value:?} is not known; write one of {}", known.join(", ")))
            }
        }
    }

    /// A number within bounds.
    pub(crate) fn number(
        &mut self,
        name: &str,
        bounds: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<u32>, Problem> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.parse() {
            Ok(number) if bounds.contains(&number) => Ok(Some(number)),
            _ => Err(format!(
                "{name}={value:?} must be a number from {} to {}",
                bounds.start(),
                bounds.end()
            )),
        }
    }

    /// The names of tables.
    pub(crate) fn naming(&mut self) -> Result<Naming, Problem> {
        let schema = self.take("schema");
        if let Some(schema) = &schema {
            check_name("schema", schema, Naming::SCHEMA_MAX)?;
        }
        let prefix = self.take("prefix").unwrap_or_default();
        if !prefix.is_empty() {
            check_name("prefix", &prefix, Naming::PREFIX_MAX)?;
        }
        Ok(Naming { schema, prefix })
    }

    /// Whether all were known.
    pub(crate) fn end(&self, known: &str) -> Result<(), Problem> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(format!("the parameter {name}= is not known; there are {known}"))
            }
        }
    }
}

/// Names stand in statements as they are.
fn check_name(what: &str, name: &str, most: usize) -> Result<(), Problem> {
    let first = |c: char| c.is_ascii_lowercase() || c == '_';
    let plain = name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit());
    match plain && name.len() <= most {
        true => Ok(()),
        false => Err(format!(
            "{what}={name:?} must be a plain name: small letters, digits and _, not beginning \
             with a digit, at most {most} characters"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "db://USER:PASSWORD@HOST:PORT/DATABASE";

    fn parts(url: &str) -> Result<Parts, Problem> {
        parts_of(url, &["db", "database"], EXAMPLE).map_err(|error| match error {
            StoreError::Url { url: shown, problem } => {
                let all = format!("{shown} {problem}");
                assert!(!all.contains("s3cr"), "{url}: {all}");
                problem
            }
            other => panic!("{url} gave {other:?}"),
        })
    }

    #[test]
    fn a_url_has_its_parts() {
        let parts = parts("DB://me:s3cr%40t%3a@h1:1,[::1]:2,%2Frun%2Fx/a%20b?prefix=a_&pool=3")
            .expect("a URL");
        assert_eq!(parts.user, "me");
        assert_eq!(parts.password.as_ref().map(Secret::reveal), Some("s3cr@t:"));
        let hosts = [("h1", Some(1)), ("::1", Some(2)), ("/run/x", None)];
        let hosts = hosts.map(|(name, port)| Host { name: name.to_owned(), port });
        assert_eq!(parts.hosts, hosts);
        assert_eq!(parts.database, "a b");
        assert!(!format!("{parts:?}").contains("s3cr"));
        let mut params = parts.params;
        assert_eq!(params.number("pool", 1..=9), Ok(Some(3)));
        let naming = Naming { schema: None, prefix: "a_".to_owned() };
        assert_eq!(params.naming(), Ok(naming));
        assert_eq!(params.end("none"), Ok(()));
    }

    #[test]
    fn a_socket_may_be_a_parameter() {
        let parts = parts("db://me@/d?host=/run/x").expect("a URL");
        assert_eq!(parts.hosts, [Host { name: "/run/x".to_owned(), port: None }]);
    }

    #[test]
    fn wrong_urls_say_what_is_wrong_and_tell_no_secret() {
        for (url, problem) in [
            ("", "write db://"),
            ("db", "write db://"),
            ("other://me:s3cret@h/d", "write db://"),
            ("db:me@h/d", "write db://"),
            ("db://", "no user"),
            ("db://h/d", "no user"),
            ("db://me:s3cret", "no user"),
            ("db://me:s3cret/d", "no user"),
            ("db://:s3cret@h/d", "no user"),
            ("db://me:s3cret@/d", "no host"),
            ("db://me:s3cret@:5/d", "no host"),
            ("db://me:s3cret@h", "no database"),
            ("db://me:s3cret@h/", "no database"),
            ("db://me:s3cret@h/a/b", "slash"),
            ("db://me:s3@s3cret@h/d", "%40"),
            ("db://me:s3:s3cret@h/d", "%3A"),
            ("db://me:s3/s3cret@h/d", "no user"),
            ("db://me:s3?s3cret@h/d", "no user"),
            ("db://me:s3#s3cret@h/d", "%23"),
            ("db://me:s3 s3cret@h/d", "%20"),
            ("db://me:s3%s3cret@h/d", "hexadecimal"),
            ("db://me:s3cret%ff@h/d", "UTF-8"),
            ("db://me:s3cret%00@h/d", "NUL"),
            ("db://me:s3cret@h:/d", "65535"),
            ("db://me:s3cret@h:x/d", "65535"),
            ("db://me:s3cret@h:0/d", "65535"),
            ("db://me:s3cret@h:65536/d", "65535"),
            ("db://me:s3cret@h,/d", "no host"),
            ("db://me:s3cret@h;g/d", "character"),
            ("db://me:s3cret@[x]/d", "IPv6"),
            ("db://me:s3cret@h/d\n", "control"),
            ("db://me:s3cret@h/d?pool", "no value"),
            ("db://me:s3cret@h/d?pool=1&pool=2", "twice"),
            ("db://me:s3cret@h/d?=1", "plain name"),
            ("db://me:s3cret@h/d?pool=%", "hexadecimal"),
            ("db://me:s3cret@h/d?host=/x", "twice"),
            ("db://me:s3cret@/d?host=x", "folder"),
        ] {
            let found = parts(url).expect_err(url);
            assert!(found.contains(problem), "{url}: {found}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        for (url, shown) in [
            ("db://me:s3cret@h:1/d?pool=3", "db://me:***@h:1/d?pool=3"),
            ("db://me@h:1/d", "db://me@h:1/d"),
            ("db://me:a@b:c/d?e@h/d", "db://me:***@h/d"),
            ("db://me:s3cret", "db://me:***"),
            ("db://h:5432/d", "db://h:5432/d"),
            ("me:s3cret@h", "me:***@h"),
            (
                "db://me@h/d?password=s3cret&direct=db%3A%2F%2Fs3cret",
                "db://me@h/d?password=***&direct=***",
            ),
            ("db://me:x@h/d?direct=db://me:s3cret@h/d", "db://me:***@h/d"),
        ] {
            assert_eq!(redacted(url), shown, "{url}");
        }
    }

    #[test]
    fn parameters_are_checked() {
        let params = |query: &str| Params::of(query).expect("parameters");
        assert!(params("pool=x").number("pool", 2..=9).is_err());
        assert!(params("pool=1").number("pool", 2..=9).is_err());
        assert_eq!(params("").number("pool", 2..=9), Ok(None));
        let problem = params("mode=c").choice("mode", &[("a", 1), ("b", 2)]).expect_err("unknown");
        assert!(problem.contains("a, b"), "{problem}");
        for query in
            ["schema=A", "schema=1a", "schema=a-b", "schema=a.b", "prefix=a'", "prefix=%C3%A4"]
        {
            assert!(params(query).naming().is_err(), "{query}");
        }
        let long = format!("prefix={}", "a".repeat(Naming::PREFIX_MAX + 1));
        assert!(params(&long).naming().is_err());
        assert!(params("x=1").end("pool").expect_err("unknown").contains("there are pool"));
    }
}
