//! What PostgreSQL says, and what that means. The only place that looks at its codes (SQLSTATE);
//! texts are passed on and never looked at.

use crate::error::{Kind, Trouble};
use std::error::Error as _;
use tokio_postgres::error::{DbError, Severity};

/// What a code means.
pub(crate) fn kind_of(code: &str) -> Kind {
    match code {
        // Serialization failure, deadlock, somebody else inserted the same meanwhile.
        "40001" | "40P01" | "23505" => Kind::Repeat,
        // A lock was not to be had in time, or is in use.
        "55P03" | "55006" => Kind::Busy,
        // Stopped, crashed or starting; cancelled or out of time; idle for too long.
        "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "57014" | "25P03" => Kind::Away,
        // Too many connections, of all or of the user.
        "53300" => Kind::Crowded,
        // A standby, or a primary that was made one.
        "25006" => Kind::Away,
        // The server's disk or file system has trouble that may pass.
        "58000" | "58030" => Kind::Away,
        // Disk or memory is full.
        "53000" | "53100" | "53200" => Kind::Full,
        // No such database, no such schema, no rights.
        "3D000" | "3F000" | "42501" => Kind::Unfit,
        // A prepared statement that is not there, or there already: a pooler is in between.
        "26000" | "42P05" => Kind::Unfit,
        // Data or an index is damaged.
        "XX001" | "XX002" => Kind::Unreadable,
        _ => match code.get(..2) {
            // Not understood: something in between takes no such startup parameters.
            Some("08") if code == "08P01" => Kind::Refused,
            // The connection is gone.
            Some("08") => Kind::Away,
            // Who are you?
            Some("28") => Kind::Unfit,
            _ => Kind::Refused,
        },
    }
}

/// What the user can do about a code.
fn advice(code: &str) -> &'static str {
    match code {
        "3D000" => "; create the database, or name another one in the URL",
        "3F000" => "; create the schema, or name another one in the URL (schema=)",
        "42501" => {
            "; grant the user what is missing: connect on the database, usage and create on the \
             schema, all on its tables"
        }
        "26000" | "42P05" => {
            "; the connection goes through a pooler that gives each transaction another server \
             connection: add mode=pooled to the URL"
        }
        "25006" => "; the server is a standby, or was made one: name all servers in the URL",
        "53300" => "; allow more connections on the server, or fewer here (pool=)",
        _ if code.starts_with("28") => {
            "; check user and password in the URL, and pg_hba.conf on the server"
        }
        _ => "",
    }
}

/// Whether something was to be created that is there already: two did it at the same time.
pub(crate) fn is_there_already(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        // Unique violation (of the catalogue), duplicate table, object, schema.
        matches!(code.code(), "23505" | "42P07" | "42710" | "42P06")
    })
}

/// Whether the server ended the connection with this answer.
fn is_last_word(answer: &DbError) -> bool {
    matches!(answer.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
}

/// What the driver reports, in the course of a command.
pub(crate) fn trouble(error: &tokio_postgres::Error) -> Trouble {
    match error.as_db_error() {
        Some(answer) => of_answer(answer),
        None => Trouble::server(Kind::Cut, text_of(error)),
    }
}

/// What the driver reports as the answer to COMMIT. An error is a refusal and nothing was done,
/// unless the server went away with it: that may have been after the transaction was written.
pub(crate) fn trouble_of_commit(error: &tokio_postgres::Error) -> Trouble {
    match error.as_db_error() {
        Some(answer) if is_last_word(answer) => Trouble::server(Kind::Cut, said(answer)),
        Some(_) | None => trouble(error),
    }
}

/// What the driver reports as a connection is made: nothing was asked yet. What is not the
/// network's fault will be the same the next time.
pub(crate) fn trouble_of_connect(error: &tokio_postgres::Error) -> Trouble {
    if let Some(answer) = error.as_db_error() {
        return of_answer(answer);
    }
    if error.is_closed() {
        return Trouble::server(Kind::Away, text_of(error));
    }
    let mut cause = error.source();
    while let Some(found) = cause {
        if let Some(io) = found.downcast_ref::<std::io::Error>() {
            return match io.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
                false => Trouble::server(Kind::Away, text_of(error)),
                true => Trouble::server(Kind::Unfit, format!("{}{CERTIFICATE}", text_of(error))),
            };
        }
        cause = found.source();
    }
    Trouble::server(Kind::Unfit, text_of(error))
}

const CERTIFICATE: &str =
    "; check the host's name in the URL, and sslrootcert= if the certificate is one of your own";

fn of_answer(answer: &DbError) -> Trouble {
    let code = answer.code().code();
    Trouble::server(kind_of(code), said(answer))
}

/// The message, its code, and what to do. Not the detail: it may quote rows.
fn said(answer: &DbError) -> String {
    let code = answer.code().code();
    format!("{} (SQLSTATE {code}){}", answer.message(), advice(code))
}

/// The driver's words with all their causes.
fn text_of(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_decide_what_an_error_means() {
        for (kind, codes) in [
            (Kind::Repeat, ["23505", "40001", "40P01"].as_slice()),
            (Kind::Busy, &["55P03", "55006"]),
            (Kind::Crowded, &["53300"]),
            (
                Kind::Away,
                &[
                    "08000", "08001", "08003", "08004", "08006", "08007", "25006", "25P03",
                    "57014", "57P01", "57P02", "57P03", "57P04", "57P05", "58000", "58030",
                ],
            ),
            (Kind::Full, &["53000", "53100", "53200"]),
            (Kind::Unfit, &["26000", "28000", "28P01", "3D000", "3F000", "42501", "42P05"]),
            (Kind::Unreadable, &["XX001", "XX002"]),
            (
                Kind::Refused,
                &[
                    "08P01", "0A000", "21000", "22021", "22P05", "23502", "23514", "25P02",
                    "40002", "42601", "42703", "42P01", "53400", "54000", "58P01", "XX000", "",
                    "4",
                ],
            ),
        ] {
            for code in codes {
                assert_eq!(kind_of(code), kind, "{code}");
            }
        }
    }

    #[test]
    fn what_people_can_do_something_about_says_what() {
        for code in ["28P01", "3D000", "3F000", "42501", "26000", "42P05", "25006", "53300"] {
            assert!(!advice(code).is_empty(), "{code}");
        }
    }
}
