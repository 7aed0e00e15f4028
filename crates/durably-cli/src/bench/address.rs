//! A store's URL, taken apart as far as the parameters behind its question mark.

use std::fmt;

/// A URL with its parameters as they are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Address {
    base: String,
    params: Vec<(String, String)>,
}

impl Address {
    pub(super) fn of(url: &str) -> Address {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let param = |text: &str| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            (name.to_owned(), value.to_owned())
        };
        let params = query.split('&').filter(|text| !text.is_empty()).map(param).collect();
        Address { base: base.to_owned(), params }
    }

    /// What comes before the first colon, in small letters.
    pub(super) fn scheme(&self) -> String {
        self.base.split(':').next().unwrap_or_default().to_ascii_lowercase()
    }

    pub(super) fn param(&self, name: &str) -> Option<&str> {
        let mut values = self.params.iter().filter(|(known, _)| known == name);
        values.next().map(|(_, value)| value.as_str())
    }

    /// With this parameter, once.
    pub(super) fn with(&self, name: &str, value: &str) -> Address {
        let mut address = self.without(&[name]);
        address.params.push((name.to_owned(), value.to_owned()));
        address
    }

    pub(super) fn without(&self, names: &[&str]) -> Address {
        let mut address = self.clone();
        address.params.retain(|(name, _)| !names.contains(&name.as_str()));
        address
    }

    /// Without any but these parameters.
    pub(super) fn only(&self, names: &[&str]) -> Address {
        let mut address = self.clone();
        address.params.retain(|(name, _)| names.contains(&name.as_str()));
        address
    }

    /// What stands after the last host.
    pub(super) fn database(&self) -> Option<&str> {
        let (_, path) = self.base.split_once("://")?.1.split_once('/')?;
        (!path.is_empty()).then_some(path)
    }

    /// With another database.
    pub(super) fn in_database(&self, name: &str) -> Address {
        let (scheme, rest) = self.base.split_once("://").unwrap_or((&self.base, ""));
        let hosts = rest.split('/').next().unwrap_or_default();
        Address { base: format!("{scheme}://{hosts}/{name}"), params: self.params.clone() }
    }

    /// With only the first of several hosts, for drivers that know no more.
    pub(super) fn first_host(&self) -> Address {
        let (hosts, rest) = self.base.split_once(',').unwrap_or((&self.base, ""));
        let path = rest.split_once('/').map(|(_, path)| format!("/{path}")).unwrap_or_default();
        Address { base: format!("{hosts}{path}"), params: self.params.clone() }
    }

    /// For people: without parameters, and without what stands between `//` and `@`.
    pub(super) fn shown(&self) -> String {
        let parts = self.base.split_once("://");
        let hosts = parts.and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1)));
        match hosts {
            Some((scheme, hosts)) => format!("{scheme}://…@{hosts}"),
            None => self.base.clone(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)?;
        for (at, (name, value)) in self.params.iter().enumerate() {
            write!(f, "{}{name}={value}", if at == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_come_and_go_and_secrets_are_not_shown() {
        let address = Address::of("Postgres://me:s3cret@h:1,i:2/d?schema=a&pool=3");
        assert_eq!(address.scheme(), "postgres");
        assert_eq!(address.param("schema"), Some("a"));
        assert_eq!(
            address.with("schema", "b").to_string(),
            "Postgres://me:s3cret@h:1,i:2/d?pool=3&schema=b"
        );
        assert_eq!(address.only(&["none"]).to_string(), "Postgres://me:s3cret@h:1,i:2/d");
        assert_eq!(address.shown(), "Postgres://…@h:1,i:2/d");
        assert_eq!(Address::of("memory:").shown(), "memory:");
    }

    #[test]
    fn databases_and_hosts_are_found() {
        let address = Address::of("mysql://me@h:1,i:2/d?pool=3");
        assert_eq!(address.database(), Some("d"));
        assert_eq!(address.in_database("e").to_string(), "mysql://me@h:1,i:2/e?pool=3");
        assert_eq!(address.first_host().to_string(), "mysql://me@h:1/d?pool=3");
        let without = Address::of("mysql://me@h:1");
        assert_eq!((without.database(), without.first_host()), (None, without.clone()));
        assert_eq!(without.in_database("e").to_string(), "mysql://me@h:1/e");
    }
}
