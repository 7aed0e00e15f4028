//! The stored formats of events and facts, byte for byte: one golden file for each variant, and
//! a second, minimal one where fields are optional.
//!
//! The files are never edited. `DURABLY_BLESS=1` writes files that are missing, never others.

/// Lists an enum's variants. A variant that is missing in the list does not compile.
macro_rules! variants {
    ($type:ident: $($name:ident),* $(,)?) => {
        /// Every variant's name.
        pub(crate) const VARIANTS: &[&str] = &[$(stringify!($name)),*];

        /// The variant of a value.
        pub(crate) fn variant(value: &$type) -> &'static str {
            match value {
                $($type::$name { .. } => stringify!($name)),*
            }
        }
    };
}

#[path = "golden/events.rs"]
mod events;
#[path = "golden/facts.rs"]
mod facts;

use durably_kernel::{
    Attempt, Event, EventFormatError, FORMAT, Fact, Failure, FailureKind, Loss, LossCause, Payload,
    RunStatus, Signal, TaskKind, TimeoutKind, Timestamp,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn json(text: &str) -> Payload {
    Payload::from_text(text.into()).unwrap()
}

/// A payload whose bytes would not survive a detour through a tree.
fn order() -> Payload {
    json(r#"{"b":1.50,"a":[1e2,"\u00e9"]}"#)
}

fn attempt() -> Attempt {
    Attempt { number: 2, worker: "host-71-c0ffee".into(), started_at: Timestamp(1_700_000_000_200) }
}

fn loss(cause: LossCause) -> Loss {
    Loss { attempt: attempt(), lost_at: Timestamp(1_700_000_060_000), cause }
}

fn failure() -> Failure {
    let mut failure = Failure::new(FailureKind::RateLimited, "card \"declined\"").code("E42");
    failure.origin = Some("charge".into());
    failure.retry_after_ms = Some(7_000);
    failure.details = Some(json(r#"{"bank":"x"}"#));
    failure
}

fn small_failure() -> Failure {
    Failure::new(FailureKind::Permanent, "no")
}

fn signal() -> Signal {
    Signal {
        id: "sig-1".into(),
        signal_type: "approval".into(),
        payload: json("true"),
        sent_at: Timestamp(1_700_000_000_050),
    }
}

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/histories").join(kind)
}

/// The content of a golden file, without the newline at its end.
fn golden(folder: &Path, name: &str, encoded: &str) -> String {
    let path = folder.join(format!("{name}.json"));
    let bless = std::env::var_os("DURABLY_BLESS").is_some_and(|value| value == "1");
    if bless && !path.exists() {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(&path, format!("{encoded}\n")).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.strip_suffix('\n').expect("a golden file ends with a newline").to_owned()
}

fn file_names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Every sample has its file, every variant has a full sample, and no file is left over.
fn check_names(folder: &Path, samples: &[(String, &'static str)], variants: &[&'static str]) {
    let expected: BTreeSet<_> = samples.iter().map(|(name, _)| format!("{name}.json")).collect();
    assert_eq!(expected.len(), samples.len(), "a name is used twice");
    assert_eq!(file_names(folder), expected, "files and samples");
    let full: BTreeSet<_> = samples
        .iter()
        .filter(|(name, _)| !name.contains('.'))
        .map(|(_, variant)| *variant)
        .collect();
    assert_eq!(full, variants.iter().copied().collect(), "samples and variants");
    for (name, variant) in samples {
        assert_eq!(name.trim_end_matches(".minimal"), *variant, "a sample under a wrong name");
    }
}

#[test]
fn every_event_is_written_and_read_as_its_golden_file() {
    let folder = folder("events");
    for (name, event) in events::samples() {
        let encoded = Event::list_to_json(std::slice::from_ref(&event));
        let encoded = encoded.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap();
        assert_eq!(event.name(), events::variant(&event));
        let golden = golden(&folder, &name, encoded);
        assert_eq!(encoded, golden, "{name}");
        assert_eq!(Event::from_json(&golden).unwrap(), event, "{name}");
    }
    let names: Vec<_> = events::samples().iter().map(|(n, e)| (n.clone(), e.name())).collect();
    check_names(&folder, &names, events::VARIANTS);
}

#[test]
fn every_fact_is_written_and_read_as_its_golden_file() {
    let folder = folder("facts");
    for (name, fact) in facts::samples() {
        assert_eq!(fact.name(), facts::variant(&fact));
        let golden = golden(&folder, &name, &fact.to_json());
        assert_eq!(fact.to_json(), golden, "{name}");
        assert_eq!(Fact::from_json(&golden).unwrap(), fact, "{name}");
    }
    let names: Vec<_> = facts::samples().iter().map(|(n, f)| (n.clone(), f.name())).collect();
    check_names(&folder, &names, facts::VARIANTS);
}

#[test]
fn a_name_is_the_type_that_is_stored() {
    for (name, event) in events::samples() {
        let text = Event::list_to_json(&[event]);
        let kind = name.trim_end_matches(".minimal");
        assert!(text.starts_with(&format!("[{{\"type\":\"{kind}\",\"data\":{{")), "{text}");
    }
}

#[test]
fn fields_that_are_not_known_are_ignored() {
    for (name, event) in events::samples() {
        let text = Event::list_to_json(std::slice::from_ref(&event));
        let text = &text[1..text.len() - 1];
        let inside = text.replacen("\"data\":{", "\"data\":{\"later\":[{}],", 1);
        let inside = inside.replace(",}", "}");
        let outside = text.replacen("\"data\"", "\"v\":1,\"later\":{\"x\":[]},\"data\"", 1);
        let after = format!("{},\"later\":null}}", &text[..text.len() - 1]);
        for changed in [inside, outside, after] {
            assert_ne!(changed, text);
            assert_eq!(Event::from_json(&changed).unwrap(), event, "{name}: {changed}");
        }
    }
    for (name, fact) in facts::samples() {
        let text = fact.to_json().replacen("\"data\":{", "\"data\":{\"later\":[{}],", 1);
        let text = text.replace(",}", "}");
        assert_eq!(Fact::from_json(&text).unwrap(), fact, "{name}: {text}");
    }
}

#[test]
fn payloads_come_back_byte_for_byte() {
    let event =
        Event::WorkflowCompleted { result: json(r#"{"b":1.0,"a":[1e2,  "\u00e9"],"b":2}"#) };
    let text = Event::list_to_json(std::slice::from_ref(&event));
    assert_eq!(Event::list_from_json(&text).unwrap(), [event]);
}

/// What the samples hold of users' values, as it is stored.
const VALUES: [&str; 4] =
    [r#"{"b":1.50,"a":[1e2,"\u00e9"]}"#, r#"{"page":3}"#, r#"{"bank":"x"}"#, "\"payload\":true"];

#[test]
fn no_value_of_a_user_is_left_out_when_payloads_are_replaced() {
    let other = json(r#""other""#);
    let mut seen = BTreeSet::new();
    let mut check = |name: &str, before: &str, after: &str| {
        seen.extend(VALUES.into_iter().filter(|value| before.contains(value)));
        let left: Vec<_> = VALUES.into_iter().filter(|value| after.contains(value)).collect();
        assert!(left.is_empty(), "{name} keeps {left:?}: {after}");
    };
    for (name, mut event) in events::samples() {
        let before = Event::list_to_json(std::slice::from_ref(&event));
        if let Some(heard) = event.heard_payload().cloned() {
            assert_eq!(event.payloads_mut().next(), Some(&mut heard.clone()), "{name}");
        }
        event.payloads_mut().for_each(|payload| *payload = other.clone());
        check(&name, &before, &Event::list_to_json(&[event]));
    }
    assert_eq!(seen.len(), VALUES.len(), "only {seen:?} occur in the samples");
}

const NEWER: &str = r#"{"type":"WorkflowDreamed","v":7,"data":{"of":"sheep"}}"#;
const KNOWN: &str = r#"{"type":"TimerCancelled","data":{"timer_id":"t"}}"#;

#[test]
fn an_event_of_a_newer_format_names_its_type_and_the_format_it_needs() {
    let list = format!("[{KNOWN},{NEWER},{KNOWN}]");
    for error in [Event::from_json(NEWER).unwrap_err(), Event::list_from_json(&list).unwrap_err()] {
        let EventFormatError::Newer { name, needed } = &error else { panic!("{error:?}") };
        assert_eq!((name.as_str(), *needed), ("WorkflowDreamed", 7));
        let text = error.to_string();
        assert!(text.contains("WorkflowDreamed") && text.contains("format 7"), "{text}");
    }
    assert_eq!(FORMAT, 1);
}

#[test]
fn text_that_is_no_event_is_unreadable() {
    let of_this_format = NEWER.replace('7', "1");
    let without_format = NEWER.replace("\"v\":7,", "");
    let table = [
        "",
        "null",
        "{}",
        "[]",
        "[1]",
        "not json",
        r#"{"type":"TimerCancelled"}"#,
        r#"{"type":"TimerCancelled","data":{}}"#,
        r#"{"type":"TimerCancelled","data":{"timer_id":7}}"#,
        r#"{"type":"TimerCancelled","data":{"timer_id":"t"}"#,
        &of_this_format,
        &without_format,
    ];
    for text in table {
        let error = Event::from_json(text).unwrap_err();
        assert!(matches!(error, EventFormatError::Unreadable { .. }), "{text}: {error}");
        let error = Event::list_from_json(&format!("[{KNOWN},{text}")).unwrap_err();
        assert!(matches!(error, EventFormatError::Unreadable { .. }), "{text}: {error}");
        assert!(Fact::from_json(text).is_err(), "{text}");
    }
    let error = Event::list_from_json(&format!("[{KNOWN},{without_format}]")).unwrap_err();
    assert!(error.to_string().contains("WorkflowDreamed"), "{error}");
    assert_eq!(Event::list_from_json("[]").unwrap(), []);
    assert_eq!(Event::list_from_json(&format!(" [ {KNOWN} ] ")).unwrap().len(), 1);
}

#[test]
fn kinds_are_stored_by_their_names() {
    let failures = [
        (FailureKind::Retryable, "retryable"),
        (FailureKind::Permanent, "permanent"),
        (FailureKind::RateLimited, "rate_limited"),
        (FailureKind::TimedOut, "timed_out"),
        (FailureKind::Cancelled, "cancelled"),
        (FailureKind::Panicked, "panicked"),
        (FailureKind::InvalidInput, "invalid_input"),
        (FailureKind::Contention, "contention"),
        (FailureKind::Lost, "lost"),
    ];
    for (kind, name) in failures {
        assert_eq!((kind.name(), Payload::of(&kind).unwrap()), (name, Payload::of(name).unwrap()));
    }
    let timeouts = [
        (TimeoutKind::ScheduleToStart, "schedule_to_start"),
        (TimeoutKind::StartToClose, "start_to_close"),
        (TimeoutKind::Heartbeat, "heartbeat"),
        (TimeoutKind::ScheduleToClose, "schedule_to_close"),
        (TimeoutKind::Run, "run"),
    ];
    for (kind, name) in timeouts {
        assert_eq!((kind.name(), Payload::of(&kind).unwrap()), (name, Payload::of(name).unwrap()));
    }
    for kind in TaskKind::ALL {
        assert_eq!(Payload::of(&kind).unwrap(), Payload::of(kind.name()).unwrap());
    }
    for status in RunStatus::ALL {
        assert_eq!(Payload::of(&status).unwrap(), Payload::of(status.name()).unwrap());
    }
}
