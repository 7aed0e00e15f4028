//! The one validator: names, sizes, depths and times, whichever way they come in.

use crate::code::Code;
use crate::payload::Payload;
use crate::retry::RetryError;
use std::time::Duration;

/// The limits that input is held to.
pub mod limit {
    use std::time::Duration;

    /// Longest name of a type, queue, tenant, key, signal, activity or timer, in bytes.
    pub const NAME_LEN_MAX: usize = 255;
    /// Largest payload, in bytes.
    pub const PAYLOAD_LEN_MAX: usize = 2 * 1024 * 1024;
    /// Deepest nesting of a payload.
    pub const PAYLOAD_DEPTH_MAX: usize = 100;
    /// Longest delay, sleep or time-out: about a hundred years.
    pub const DELAY_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
    /// Most runs in one bulk start: it is one transaction, and others wait for it.
    pub const STARTS_MAX: usize = 10_000;
}

/// What is wrong with an input.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Invalid {
    /// An empty name.
    #[error("the {what} is empty; give it a name of 1 to {} bytes", limit::NAME_LEN_MAX)]
    EmptyName {
        /// What was named.
        what: &'static str,
    },
    /// A name that is too long.
    #[error("the {what} has {len} bytes; at most {} are allowed", limit::NAME_LEN_MAX)]
    LongName {
        /// What was named.
        what: &'static str,
        /// Its length.
        len: usize,
    },
    /// A name with control characters.
    #[error("the {what} {name:?} has a control character at byte {at}; remove it")]
    ControlCharacter {
        /// What was named.
        what: &'static str,
        /// The name.
        name: String,
        /// Where.
        at: usize,
    },
    /// A payload that is too large.
    #[error(
        "the {what} has {len} bytes; at most {} are allowed: store large data elsewhere and pass a reference",
        limit::PAYLOAD_LEN_MAX
    )]
    LargePayload {
        /// Which payload.
        what: &'static str,
        /// Its length.
        len: usize,
    },
    /// A payload that is nested too deeply.
    #[error("the {what} is nested more than {} levels deep; flatten it", limit::PAYLOAD_DEPTH_MAX)]
    DeepPayload {
        /// Which payload.
        what: &'static str,
    },
    /// A payload with a NUL character in a string.
    #[error("the {what} contains a NUL character at byte {at}; databases refuse it, remove it")]
    NulInPayload {
        /// Which payload.
        what: &'static str,
        /// Where.
        at: usize,
    },
    /// More starts in one call than one transaction should hold.
    #[error(
        "{count} starts in one call; at most {} are allowed: start them in several calls",
        limit::STARTS_MAX
    )]
    ManyStarts {
        /// How many.
        count: usize,
    },
    /// A duration beyond all measure.
    #[error("the {what} of {secs} s is longer than 100 years; use a shorter one")]
    LongDelay {
        /// Which duration.
        what: &'static str,
        /// How long.
        secs: u64,
    },
    /// A time-out that would pass at once.
    #[error("the {what} time-out is zero; it would pass before anything ran")]
    ZeroTimeout {
        /// Which time-out.
        what: &'static str,
    },
    /// A bound on deaths of zero.
    #[error("the bound on workers' deaths is 0; use 1 or more")]
    NoDeaths,
    /// A retry policy that makes no sense.
    #[error("the retry policy is not usable: {source}")]
    Retry {
        /// Why.
        source: RetryError,
    },
}

impl Invalid {
    /// The stable code of the error.
    pub fn code(&self) -> Code {
        match self {
            Invalid::EmptyName { .. }
            | Invalid::LongName { .. }
            | Invalid::ControlCharacter { .. } => Code::NAME,
            Invalid::LargePayload { .. }
            | Invalid::DeepPayload { .. }
            | Invalid::NulInPayload { .. } => Code::PAYLOAD,
            Invalid::LongDelay { .. } | Invalid::ZeroTimeout { .. } => Code::DURATION,
            Invalid::ManyStarts { .. } => Code::MANY_STARTS,
            Invalid::NoDeaths | Invalid::Retry { .. } => Code::OPTIONS,
        }
    }
}

/// A name: 1 to 255 bytes, no control characters.
pub fn check_name(what: &'static str, name: &str) -> Result<(), Invalid> {
    if name.is_empty() {
        return Err(Invalid::EmptyName { what });
    }
    if name.len() > limit::NAME_LEN_MAX {
        return Err(Invalid::LongName { what, len: name.len() });
    }
    let printable = |byte: u8| byte.is_ascii() && !byte.is_ascii_control();
    if name.bytes().all(printable) {
        return Ok(());
    }
    match name.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, _)) => Err(Invalid::ControlCharacter { what, name: name.to_owned(), at }),
        None => Ok(()),
    }
}

/// A duration that fits into the store's time.
pub fn check_delay(what: &'static str, delay: Duration) -> Result<(), Invalid> {
    match delay > limit::DELAY_MAX {
        true => Err(Invalid::LongDelay { what, secs: delay.as_secs() }),
        false => Ok(()),
    }
}

/// A payload: not too large, not too deep, no NUL.
pub fn check_payload(what: &'static str, payload: &Payload) -> Result<(), Invalid> {
    let text = payload.text();
    if text.len() > limit::PAYLOAD_LEN_MAX {
        return Err(Invalid::LargePayload { what, len: text.len() });
    }
    if is_plain(text) {
        return Ok(());
    }
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match (in_string, byte) {
            (true, b'u') if escaped && text[at..].starts_with("u0000") => {
                return Err(Invalid::NulInPayload { what, at });
            }
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (true, b'"') => in_string = false,
            (false, b'"') => in_string = true,
            (false, b'[' | b'{') => {
                depth += 1;
                if depth > limit::PAYLOAD_DEPTH_MAX {
                    return Err(Invalid::DeepPayload { what });
                }
            }
            (false, b']' | b'}') => depth -= 1,
            _ => {}
        }
    }
    Ok(())
}

/// Whether it can be nothing but valid: no escapes, and no more brackets than levels are allowed.
/// Most payloads are so, and counting without a branch is much faster than following the text.
fn is_plain(text: &str) -> bool {
    // So short that a byte can count the brackets in it.
    const PIECE: usize = 128;
    const CASE_BIT: u8 = b'[' ^ b'{';
    let (mut brackets, mut escapes) = (0usize, 0u8);
    for piece in text.as_bytes().chunks(PIECE) {
        let mut in_piece = 0u8;
        for byte in piece {
            in_piece += u8::from(byte | CASE_BIT == b'{');
            escapes |= u8::from(*byte == b'\\');
        }
        brackets += usize::from(in_piece);
    }
    escapes == 0 && brackets <= limit::PAYLOAD_DEPTH_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Payload {
        Payload::from_text(text.into()).unwrap()
    }

    #[test]
    fn names_are_checked() {
        assert_eq!(check_name("tenant", "acme é 日本"), Ok(()));
        assert_eq!(check_name("tenant", ""), Err(Invalid::EmptyName { what: "tenant" }));
        assert!(matches!(
            check_name("tenant", "a\0"),
            Err(Invalid::ControlCharacter { at: 1, .. })
        ));
        assert!(matches!(check_name("tenant", &"x".repeat(256)), Err(Invalid::LongName { .. })));
    }

    #[test]
    fn payloads_are_checked() {
        assert_eq!(check_payload("input", &json(r#"{"a":"\\u0000 [[["}"#)), Ok(()));
        assert!(matches!(
            check_payload("input", &json(r#""a\u0000b""#)),
            Err(Invalid::NulInPayload { .. })
        ));
        let deep = format!("{}1{}", "[".repeat(101), "]".repeat(101));
        assert!(matches!(check_payload("input", &json(&deep)), Err(Invalid::DeepPayload { .. })));
        let escaped = format!("{}\"\\n\"{}", "[".repeat(101), "]".repeat(101));
        assert!(check_payload("input", &json(&escaped)).is_err());
        let wide = format!("[{}]", ["{\"a\":[]}"; 99].join(","));
        assert_eq!(check_payload("input", &json(&wide)), Ok(()));
        let fits = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(check_payload("input", &json(&fits)), Ok(()));
        let large = format!("\"{}\"", "x".repeat(limit::PAYLOAD_LEN_MAX));
        assert!(matches!(check_payload("input", &json(&large)), Err(Invalid::LargePayload { .. })));
    }

    #[test]
    fn durations_are_checked() {
        assert_eq!(check_delay("delay", Duration::from_secs(1)), Ok(()));
        assert!(check_delay("delay", Duration::MAX).is_err());
    }
}
