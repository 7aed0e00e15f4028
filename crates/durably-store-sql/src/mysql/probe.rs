//! What a server says about itself, and whether it will do.

use crate::error::{Kind, Trouble};
use crate::mysql::error::trouble_of_connect;
use crate::mysql::line::Line;
use crate::mysql::settings::Settings;
use durably_store::StoreError;
use mysql_async::Row;
use std::collections::BTreeMap;

const PROBE: &str = include_str!("../../sql/mysql/probe.sql");
const PROBE_READY: &str = include_str!("../../sql/mysql/probe_ready.sql");

/// The oldest servers that check constraints, skip locked rows and take JSON apart.
const MYSQL_MIN: [u32; 3] = [8, 0, 16];
const MARIADB_MIN: [u32; 3] = [10, 6, 0];
/// A payload, what surrounds it, and room for several.
const PACKET_MIN: u64 = 16 * 1024 * 1024;

/// Whose server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flavour {
    Mariadb,
    Mysql,
}

/// What a server says about itself.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) flavour: Flavour,
    values: BTreeMap<String, String>,
}

impl Facts {
    pub(super) async fn ask(line: &mut Line) -> Result<Facts, Trouble> {
        let rows = line.tell(PROBE).await.map_err(|error| trouble_of_connect(&error))?;
        let mut facts = Facts::of(rows.into_iter().filter_map(name_and_value).collect());
        if facts.is_galera() {
            let rows = line.tell(PROBE_READY).await.map_err(|error| trouble_of_connect(&error))?;
            facts.values.extend(rows.into_iter().filter_map(name_and_value));
        }
        Ok(facts)
    }

    fn of(values: BTreeMap<String, String>) -> Facts {
        let mariadb = values.get("version").is_some_and(|version| version.contains("MariaDB"));
        Facts { flavour: if mariadb { Flavour::Mariadb } else { Flavour::Mysql }, values }
    }

    fn value(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    fn is_on(&self, name: &str) -> bool {
        matches!(self.value(name), "ON" | "1")
    }

    /// Whether it is a node of a Galera cluster.
    pub(super) fn is_galera(&self) -> bool {
        self.is_on("wsrep_on")
    }

    /// Its name, if it is a node of a Galera cluster.
    pub(super) fn node(&self) -> Option<&str> {
        self.is_galera().then(|| self.value("wsrep_node_name"))
    }

    /// Whether it can be written now.
    pub(super) fn check_writable(&self) -> Result<(), Trouble> {
        let away = |problem: &str| Err(Trouble::server(Kind::Away, problem));
        for name in ["read_only", "super_read_only", "innodb_read_only"] {
            // MariaDB has more than two words for how much of it is read only.
            if !matches!(self.value(name), "" | "OFF" | "0") {
                return away(
                    "the server is only to be read: a replica, or made one; name all servers in \
                     the URL",
                );
            }
        }
        // One that has not caught up yet is ready, too, in its own eyes.
        let takes_part =
            self.is_on("wsrep_ready") && matches!(self.value("wsrep_local_state"), "2" | "4");
        if self.is_galera() && !takes_part {
            return away("the server is no working part of its Galera cluster");
        }
        Ok(())
    }

    /// Whether it can do what we need, and keeps what it acknowledges.
    pub(super) fn check(&self, settings: &Settings) -> Result<(), Trouble> {
        self.check_version()?;
        let packet: u64 = self.value("max_allowed_packet").parse().unwrap_or(0);
        if packet < PACKET_MIN {
            let problem = format!(
                "max_allowed_packet is {packet} on the server; set it to {PACKET_MIN} or more \
                 (64M is usual), since payloads may have 2 MiB"
            );
            return Err(Trouble::server(Kind::Unfit, problem));
        }
        match settings.lax {
            true => Ok(()),
            false => self.check_durable(settings),
        }
    }

    fn check_version(&self) -> Result<(), Trouble> {
        let version = self.value("version");
        let (name, min) = match self.flavour {
            Flavour::Mariadb => ("MariaDB", MARIADB_MIN),
            Flavour::Mysql => ("MySQL", MYSQL_MIN),
        };
        match numbers(version) {
            Some(found) if found >= min => Ok(()),
            _ => {
                let [major, minor, patch] = min;
                let problem = format!(
                    "{name} {version} is too old; {name} {major}.{minor}.{patch} or newer is needed"
                );
                Err(Trouble::server(Kind::Unfit, problem))
            }
        }
    }

    fn check_durable(&self, settings: &Settings) -> Result<(), Trouble> {
        let unsafe_if = |wrong: bool, setting: &'static str, wanted: &'static str| match wrong {
            false => Ok(()),
            true => Err(Trouble::Store(StoreError::Unsafe {
                store: settings.shown(),
                setting,
                wanted,
                found: self.value(setting).to_owned(),
            })),
        };
        let flush = self.value("innodb_flush_log_at_trx_commit");
        unsafe_if(!matches!(flush, "1" | "3"), "innodb_flush_log_at_trx_commit", "1")?;
        // With a binary log, what a crash finds prepared and not in that log is taken back.
        let synced = self.value("sync_binlog") == "1" || !self.is_on("log_bin");
        unsafe_if(!synced, "sync_binlog", "1, since log_bin is ON")?;
        let method = self.value("innodb_flush_method").to_ascii_lowercase();
        unsafe_if(
            matches!(method.as_str(), "nosync" | "littlesync"),
            "innodb_flush_method",
            "O_DIRECT or fsync",
        )
    }
}

/// The three numbers at the beginning of a version. Old MariaDB says 5.5.5 first.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let mut parts = version[..end].split('.').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next().flatten()?, parts.next().flatten().unwrap_or(0)])
}

fn name_and_value(row: Row) -> Option<(String, String)> {
    mysql_async::from_row_opt(row).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server as it should be, but for some of its settings.
    fn facts(but: &[(&str, &str)]) -> Facts {
        let usual = [
            ("version", "10.11.14-MariaDB-0+deb12u2"),
            ("read_only", "OFF"),
            ("innodb_read_only", "OFF"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_flush_method", "O_DIRECT"),
            ("log_bin", "OFF"),
            ("sync_binlog", "0"),
            ("max_allowed_packet", "16777216"),
            ("wsrep_on", "OFF"),
        ];
        let all = usual.iter().chain(but);
        Facts::of(all.map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }

    fn settings(url: &str) -> Settings {
        Settings::of(url).expect("a URL")
    }

    fn check(but: &[(&str, &str)]) -> Result<(), String> {
        let answer = facts(but).check(&settings("mysql://me@h/d"));
        answer.map_err(|trouble| match trouble {
            Trouble::Store(error) => error.to_string(),
            Trouble::Server { kind: Kind::Unfit, problem } => problem,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn old_servers_are_refused() {
        for good in ["10.6.0-MariaDB", "11.4.2-MariaDB-log", "8.0.16", "8.4.0-28", "9.1.0"] {
            assert_eq!(check(&[("version", good)]), Ok(()), "{good}");
        }
        for old in ["10.5.28-MariaDB", "5.5.5-10.3.1-MariaDB", "8.0.15", "5.7.44-log", "?", ""] {
            let problem = check(&[("version", old)]).expect_err(old);
            assert!(problem.contains("or newer is needed"), "{problem}");
        }
    }

    #[test]
    fn servers_that_lose_what_they_acknowledged_are_refused_unless_allowed() {
        for (but, setting) in [
            (&[("innodb_flush_log_at_trx_commit", "2")][..], "innodb_flush_log_at_trx_commit"),
            (&[("log_bin", "ON")], "sync_binlog"),
            (&[("innodb_flush_method", "nosync")], "innodb_flush_method"),
        ] {
            let problem = check(but).expect_err(setting);
            assert!(problem.contains(setting), "{problem}");
            let lax = settings("mysql://me@h/d?unsafe=allowed");
            assert!(facts(but).check(&lax).is_ok(), "{setting}");
        }
        assert_eq!(check(&[("log_bin", "ON"), ("sync_binlog", "1")]), Ok(()));
        let problem = check(&[("max_allowed_packet", "1048576")]).expect_err("a small packet");
        assert!(problem.contains("max_allowed_packet"), "{problem}");
    }

    #[test]
    fn servers_that_cannot_be_written_are_passed_over() {
        assert!(facts(&[]).check_writable().is_ok());
        for but in [
            &[("read_only", "ON")][..],
            &[("read_only", "NO_LOCK_NO_ADMIN")],
            &[("super_read_only", "ON")],
            &[("innodb_read_only", "ON")],
            &[("wsrep_on", "ON")],
            &[("wsrep_on", "ON"), ("wsrep_ready", "OFF"), ("wsrep_local_state", "4")],
            &[("wsrep_on", "ON"), ("wsrep_ready", "ON"), ("wsrep_local_state", "3")],
        ] {
            let trouble = facts(but).check_writable().expect_err("only to be read");
            assert!(matches!(trouble, Trouble::Server { kind: Kind::Away, .. }), "{but:?}");
        }
        let node = [("wsrep_on", "ON"), ("wsrep_ready", "ON"), ("wsrep_local_state", "4")];
        assert!(facts(&node).check_writable().is_ok());
    }
}
