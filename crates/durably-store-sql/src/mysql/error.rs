//! What MySQL and MariaDB say, and what that means. The only place that looks at their codes; texts
//! are passed on and never looked at.

use crate::error::{Kind, Trouble};
use mysql_async::{DriverError, Error, IoError, ServerError};
use std::error::Error as _;
use std::io::ErrorKind;

/// What a code means.
pub(super) fn kind_of(code: u16) -> Kind {
    match code {
        // Deadlock, also as Galera calls a conflict with another node; somebody else inserted the
        // same meanwhile; a row that changed since it was read; group replication took the
        // transaction back.
        1213 | 1062 | 1586 | 1020 | 3101 => Kind::Repeat,
        // A lock was not to be had in time; a statement took too long (MariaDB, MySQL).
        1205 | 3572 | 1969 | 3024 => Kind::Busy,
        // Too many connections, of all or of the user.
        1040 | 1203 | 1226 => Kind::Crowded,
        // Too many from this host in vain.
        1129 => Kind::Away,
        // Stopping, stopped, interrupted; idle for too long.
        1053 | 1077 | 1079 | 1080 | 1317 | 4031 => Kind::Away,
        // Only to be read: by an option, in this mode, InnoDB, its recovery, a table, a transaction;
        // not part of its cluster (Galera, group replication).
        1290 | 1836 | 1874 | 1881 | 1036 | 1792 | 1047 | 3100 => Kind::Away,
        // No memory, no thread, no room for locks or prepared statements; the storage engine failed.
        1037 | 1038 | 1041 | 1135 | 1206 | 1461 | 1030 => Kind::Away,
        // The connection is gone.
        1152 | 1158..=1161 | 1184 | 1927 | 2006 | 2013 | 3169 => Kind::Cut,
        // Disk or table space is full.
        1021 | 1026 | 1114 => Kind::Full,
        // No such database, no rights, no such user, wrong or expired password, locked account,
        // TLS wanted, or a way to log in that the server or we do not have.
        1044 | 1045 | 1049 | 1130 | 1142 | 1143 | 1227 | 1251 | 1370 | 1524 | 1698 | 1820
        | 1862 | 3118 | 3159 | 4151 => Kind::Unfit,
        // A setting, character set or storage engine that is not there: too old, or built without.
        1115 | 1193 | 1286 => Kind::Unfit,
        // A table or an index is damaged.
        1034 | 1194 | 1195 | 1712 => Kind::Unreadable,
        _ => Kind::Refused,
    }
}

/// What the user can do about a code.
fn advice(code: u16) -> &'static str {
    match code {
        1049 => "; create the database, or name another one in the URL",
        1044 | 1142 | 1143 | 1227 | 1370 => {
            "; grant the user what is missing: all on the database (its tables are created and \
             changed there)"
        }
        1045 | 1698 | 1130 | 1820 | 1862 | 3118 | 4151 => {
            "; check user and password in the URL, and that the server lets this user in from \
             this host"
        }
        1251 | 1524 => "; let the user log in with mysql_native_password, caching_sha2_password",
        3159 => "; the server wants TLS: say so in the URL",
        1040 | 1203 | 1226 => "; allow more connections on the server, or fewer here (pool=)",
        1129 => "; after too many failed connections the server needs FLUSH HOSTS",
        1290 | 1836 | 1874 | 1881 | 1036 | 1792 => {
            "; the server is a replica, or was made one: name all servers in the URL"
        }
        1047 => "; the server is no working part of its cluster: name all servers in the URL",
        1030 => "; the server's error log says more (28: no room left on its disk)",
        1153 => "; set max_allowed_packet on the server to 64M or more",
        1206 => "; give the server a larger innodb_buffer_pool_size",
        1461 => "; set max_prepared_stmt_count on the server to a larger number",
        1115 | 1193 | 1286 => "; MySQL 8.0.16 or MariaDB 10.6 with InnoDB is needed",
        _ => "",
    }
}

/// Whether COMMIT may have been done although this was the answer.
fn is_open_in_commit(code: u16) -> bool {
    // Interrupted or stopped in the middle; an error during COMMIT; out of its cluster by then.
    matches!(code, 1180 | 1317 | 1053 | 1077 | 1079 | 1080 | 1047 | 1969 | 3024 | 1030)
}

/// What the driver reports, in the course of a command.
pub(super) fn trouble(error: &Error) -> Trouble {
    match error {
        Error::Server(answer) => of_answer(answer),
        Error::Driver(DriverError::PacketTooLarge) => {
            Trouble::server(Kind::Refused, format!("{}{}", text_of(error), advice(1153)))
        }
        Error::Driver(
            DriverError::StmtParamsMismatch { .. }
            | DriverError::StmtParamsNumberExceedsLimit { .. },
        ) => Trouble::server(Kind::Refused, text_of(error)),
        Error::Driver(_) | Error::Io(_) | Error::Other(_) | Error::Url(_) => {
            Trouble::server(Kind::Cut, text_of(error))
        }
    }
}

/// What the driver reports as the answer to COMMIT.
pub(super) fn trouble_of_commit(error: &Error) -> Trouble {
    match error {
        Error::Server(answer) if is_open_in_commit(answer.code) => {
            Trouble::server(Kind::Cut, said(answer))
        }
        _ => trouble(error),
    }
}

/// What the driver reports before COMMIT was sent: that the connection ended leaves nothing open.
pub(super) fn trouble_before_commit(error: &Error) -> Trouble {
    match trouble(error) {
        Trouble::Server { kind: Kind::Cut, problem } => Trouble::server(Kind::Away, problem),
        trouble => trouble,
    }
}

/// What the driver reports as a connection is made.
pub(super) fn trouble_of_connect(error: &Error) -> Trouble {
    let unfit = |advice: &str| Trouble::server(Kind::Unfit, format!("{}{advice}", text_of(error)));
    match error {
        Error::Driver(DriverError::NoClientSslFlagFromServer) => {
            unfit("; set up TLS on the server, or do not ask for it in the URL")
        }
        Error::Driver(
            DriverError::UnknownAuthPlugin { .. }
            | DriverError::CleartextPluginDisabled
            | DriverError::MysqlOldPasswordDisabled,
        ) => unfit(advice(1251)),
        Error::Io(IoError::Tls(_)) => {
            unfit("; check the server's certificate and what the URL says about TLS")
        }
        // Of the driver, that is: the system has a kind of its own for each of its errors.
        Error::Io(IoError::Io(io))
            if matches!(io.kind(), ErrorKind::InvalidData | ErrorKind::Other) =>
        {
            unfit(NO_MYSQL)
        }
        Error::Driver(
            DriverError::PacketOutOfOrder
            | DriverError::UnexpectedPacket { .. }
            | DriverError::CantParseServerVersion { .. }
            | DriverError::PacketTooLarge,
        ) => unfit(NO_MYSQL),
        Error::Server(_) | Error::Driver(_) | Error::Io(_) | Error::Other(_) | Error::Url(_) => {
            trouble_before_commit(error)
        }
    }
}

const NO_MYSQL: &str =
    "; what answers there does not speak as MySQL and MariaDB do: check host and port in the URL";

fn of_answer(answer: &ServerError) -> Trouble {
    Trouble::server(kind_of(answer.code), said(answer))
}

/// The message, its code, and what to do.
fn said(answer: &ServerError) -> String {
    let ServerError { code, message, .. } = answer;
    format!("{message} (error {code}){}", advice(*code))
}

/// The driver's words with all their causes.
fn text_of(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16) -> Error {
        Error::Server(ServerError { code, message: "no".into(), state: "HY000".into() })
    }

    fn kind(trouble: Trouble) -> Kind {
        match trouble {
            Trouble::Server { kind, .. } => kind,
            other => panic!("{other:?} is not of the server"),
        }
    }

    #[test]
    fn codes_decide_what_an_error_means() {
        for (kind_wanted, codes) in [
            (Kind::Repeat, &[1213, 1062, 1020, 3101][..]),
            (Kind::Busy, &[1205, 3572, 1969, 3024]),
            (Kind::Crowded, &[1040, 1203, 1226]),
            (Kind::Away, &[1129, 1053, 1290, 1836, 1792, 1047, 3100, 1461, 1030]),
            (Kind::Cut, &[1158, 1161, 1927, 2006, 2013, 3169]),
            (Kind::Full, &[1021, 1114]),
            (Kind::Unfit, &[1044, 1045, 1049, 1142, 1227, 1698, 3159, 1193]),
            (Kind::Unreadable, &[1034, 1712]),
            (Kind::Refused, &[1064, 1153, 1146, 1406, 3819, 4025]),
        ] {
            for code in codes {
                assert_eq!(kind(trouble(&answer(*code))), kind_wanted, "{code}");
            }
        }
    }

    #[test]
    fn only_what_was_asked_to_commit_may_be_ambiguous() {
        let cut = || Error::from(std::io::Error::from(ErrorKind::ConnectionReset));
        assert_eq!(kind(trouble_of_commit(&cut())), Kind::Cut);
        assert_eq!(kind(trouble_before_commit(&cut())), Kind::Away);
        assert_eq!(kind(trouble_of_connect(&cut())), Kind::Away);
        // An interrupted or failed COMMIT may have been done, a conflict found by it was not.
        for code in [1180, 1317, 1053, 1047] {
            assert_eq!(kind(trouble_of_commit(&answer(code))), Kind::Cut, "{code}");
        }
        assert_eq!(kind(trouble_of_commit(&answer(1213))), Kind::Repeat);
        assert_eq!(kind(trouble_of_commit(&answer(1290))), Kind::Away);
    }

    #[test]
    fn errors_that_somebody_can_mend_say_how() {
        for (code, hint) in [
            (1049, "create the database"),
            (1045, "password"),
            (1142, "grant"),
            (1153, "max_allowed_packet"),
            (1040, "pool="),
            (1290, "replica"),
        ] {
            match trouble(&answer(code)) {
                Trouble::Server { problem, .. } => {
                    assert!(problem.contains(hint) && problem.contains(&code.to_string()))
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
