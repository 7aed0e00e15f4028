//! The users' codec, between their values and the payloads that reach the store.
//!
//! A coded payload is JSON too, `{"$coded":"<name>","data":"<base64>"}`: kernel and stores carry
//! it like any other. What does not look like that is plain and passes through, so a codec can be
//! added to a store that is in use. A codec is users' code: what it returns and that it may panic
//! is dealt with here and nowhere else.

use crate::base64;
use crate::host::panic_text;
use durably_kernel::{Action, Code, Event, Failure, FailureKind, Fault, Payload};
use durably_store::DeadLetterRow;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// A codec's code.
pub trait CodecHost: Send + Sync + 'static {
    /// From plain JSON to what is stored.
    fn encode(&self, plain: &[u8]) -> Result<Vec<u8>, Failure>;

    /// From what is stored to plain JSON.
    fn decode(&self, coded: &[u8]) -> Result<Vec<u8>, Failure>;
}

/// A payload that cannot be coded or decoded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodecError {
    /// The codec failed.
    #[error("the codec {name:?} could not {verb}: {}", .failure.message)]
    Failed {
        /// Its name.
        name: String,
        /// What it was to do.
        verb: &'static str,
        /// What it said.
        failure: Box<Failure>,
    },
    /// The payload was coded by another codec.
    #[error(
        "it was coded by the codec {wrote:?}, and this program has {}",
        .has.as_ref().map_or("none".to_owned(), |has| format!("the codec {has:?}"))
    )]
    Other {
        /// The codec that coded it.
        wrote: String,
        /// The codec that is here.
        has: Option<String>,
    },
}

impl CodecError {
    /// The stable code of the error.
    pub fn code(&self) -> Code {
        match self {
            CodecError::Failed { .. } => Code::CODEC,
            CodecError::Other { .. } => Code::CODEC_OTHER,
        }
    }

    /// What is recorded of it. It is tried again, unless the codec itself says that this makes no
    /// sense: keys come back, and so do processes that have the right codec.
    pub fn failure(&self, what: &str) -> Failure {
        let (kind, retry_after_ms) = match self {
            CodecError::Failed { failure, .. } => match failure.kind {
                kind @ (FailureKind::Permanent
                | FailureKind::InvalidInput
                | FailureKind::RateLimited) => (kind, failure.retry_after_ms),
                FailureKind::Retryable
                | FailureKind::TimedOut
                | FailureKind::Cancelled
                | FailureKind::Panicked
                | FailureKind::Contention
                | FailureKind::Lost => (FailureKind::Retryable, None),
            },
            CodecError::Other { .. } => (FailureKind::Retryable, None),
        };
        let failure = Failure::new(kind, format!("{what}: {self}")).code(self.code().as_str());
        Failure { retry_after_ms, ..failure }
    }

    fn fault(&self, what: &str) -> Fault {
        Fault::Codec { code: self.code(), message: format!("{what}: {self}") }
    }
}

/// A coded payload as it is stored. The name stands first: it is what tells it from plain JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Coded<'a> {
    #[serde(rename = "$coded", borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    data: Cow<'a, str>,
}

/// How every coded payload begins.
const BEGINNING: &str = "{\"$coded\":\"";

impl Coded<'_> {
    /// Whether it is worth a look: a comparison of a few bytes.
    fn may_be(payload: &Payload) -> bool {
        payload.text().starts_with(BEGINNING)
    }

    fn of(payload: &Payload) -> Option<Coded<'_>> {
        Coded::may_be(payload).then(|| serde_json::from_str(payload.text()).ok()).flatten()
    }
}

struct Named {
    name: String,
    codec: Box<dyn CodecHost>,
}

impl Named {
    fn failed(&self, verb: &'static str, failure: Failure) -> CodecError {
        CodecError::Failed { name: self.name.clone(), verb, failure: Box::new(failure) }
    }

    /// Calls the codec; a panic is a failure like others.
    fn call(
        &self,
        verb: &'static str,
        call: impl FnOnce(&dyn CodecHost) -> Result<Vec<u8>, Failure>,
    ) -> Result<Vec<u8>, CodecError> {
        let called = std::panic::catch_unwind(AssertUnwindSafe(|| call(self.codec.as_ref())));
        let result = called.unwrap_or_else(|panic| {
            let message = format!("it panicked: {}", panic_text(&*panic));
            Err(Failure::new(FailureKind::Retryable, message))
        });
        result.map_err(|failure| self.failed(verb, failure))
    }

    fn encode(&self, plain: &Payload) -> Result<Payload, CodecError> {
        let bytes = self.call("encode", |codec| codec.encode(plain.text().as_bytes()))?;
        let coded =
            Coded { name: Cow::Borrowed(&self.name), data: Cow::Owned(base64::encode(&bytes)) };
        Payload::of(&coded).map_err(|error| {
            self.failed("encode", Failure::new(FailureKind::Permanent, error.to_string()))
        })
    }

    fn decode(&self, data: &str) -> Result<Payload, CodecError> {
        let wrong =
            |message: &str| self.failed("decode", Failure::new(FailureKind::Retryable, message));
        let bytes = base64::decode(data).ok_or_else(|| wrong("what is stored is not base64"))?;
        let plain = self.call("decode", |codec| codec.decode(&bytes))?;
        let text = String::from_utf8(plain).map_err(|_| wrong("what it gave is not UTF-8"))?;
        Payload::from_text(text).map_err(|_| wrong("what it gave is not JSON"))
    }
}

/// The codec of a process or a client, or none. Cheap to clone; without a codec nothing is copied.
#[derive(Clone, Default)]
pub struct Coder(Option<Arc<Named>>);

impl std::fmt::Debug for Coder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Coder({:?})", self.name())
    }
}

impl Coder {
    /// A coder that writes this name with every payload.
    pub fn new(name: String, codec: impl CodecHost) -> Coder {
        Coder(Some(Arc::new(Named { name, codec: Box::new(codec) })))
    }

    /// The codec's name.
    pub fn name(&self) -> Option<&str> {
        self.0.as_ref().map(|named| named.name.as_str())
    }

    /// A plain payload as it is stored.
    pub fn encode(&self, plain: Payload) -> Result<Payload, CodecError> {
        match &self.0 {
            Some(named) => named.encode(&plain),
            None => Ok(plain),
        }
    }

    /// A stored payload as it was; plain ones pass.
    pub fn decode(&self, stored: Payload) -> Result<Payload, CodecError> {
        let Some(coded) = Coded::of(&stored) else { return Ok(stored) };
        match &self.0 {
            Some(named) if named.name == coded.name => named.decode(&coded.data),
            other => Err(CodecError::Other {
                wrote: coded.name.into_owned(),
                has: other.as_ref().map(|named| named.name.clone()),
            }),
        }
    }

    /// As [`Coder::decode`], for people: who has no codec sees what is stored.
    pub fn show(&self, payload: &mut Payload) -> Result<(), CodecError> {
        if self.0.is_some() {
            *payload = self.decode(payload.clone())?;
        }
        Ok(())
    }

    /// An event for people.
    pub fn show_event(&self, event: &mut Event) -> Result<(), CodecError> {
        event.payloads_mut().try_for_each(|payload| self.show(payload))
    }

    /// A failure for people. Details that cannot be decoded stay as they are stored: the failure
    /// itself must not be hidden by them.
    pub fn show_failure(&self, failure: &mut Failure) {
        if let Some(details) = &mut failure.details {
            let _ = self.show(details);
        }
    }

    /// A dead letter for people.
    pub fn show_dead_letter(&self, letter: &mut DeadLetterRow) -> Result<(), CodecError> {
        letter.errors.iter_mut().for_each(|error| self.show_failure(error));
        self.show(&mut letter.input)
    }

    /// What an attempt gave, as it is recorded. Details of a failure that cannot be coded are left
    /// out and the message says so: the attempt has failed in any case.
    pub(crate) fn encode_outcome(
        &self,
        what: &str,
        outcome: Result<Payload, Failure>,
    ) -> Result<Payload, Failure> {
        match outcome {
            Ok(output) => self.encode(output).map_err(|error| error.failure(what)),
            Err(mut failure) => {
                if let Some(details) = failure.details.take() {
                    match self.encode(details) {
                        Ok(details) => failure.details = Some(details),
                        Err(error) => {
                            failure.message += &format!(" (its details are left out: {error})");
                        }
                    }
                }
                Err(failure)
            }
        }
    }

    /// The event as the run's code is to hear it; none if it is plain already.
    pub(crate) fn heard(&self, event: &Event) -> Result<Option<Event>, Fault> {
        let coded = event.heard_payload().filter(|stored| Coded::may_be(stored));
        let Some(stored) = coded else { return Ok(None) };
        let plain = self.decode(stored.clone()).map_err(|error| error.fault(event.name()))?;
        let mut event = event.clone();
        if let Some(payload) = event.payloads_mut().next() {
            *payload = plain;
        }
        Ok(Some(event))
    }

    /// The input as the run's code is to get it.
    pub(crate) fn input(&self, stored: &Payload) -> Result<Payload, Fault> {
        self.decode(stored.clone()).map_err(|error| error.fault("workflow input"))
    }

    /// What the run's code asks for, as it is recorded.
    pub(crate) fn encode_actions(&self, actions: &mut [Action]) -> Result<(), Fault> {
        if self.0.is_none() {
            return Ok(());
        }
        for action in actions {
            let (what, payload) = match action {
                Action::ScheduleActivity { id, input, inline: false, .. } => {
                    (format!("input of activity {id}"), Some(input))
                }
                Action::Complete { output } => ("workflow output".to_owned(), Some(output)),
                Action::Fail { error } => ("workflow error".to_owned(), error.details.as_mut()),
                // A step is written in place and has no input.
                Action::ScheduleActivity { inline: true, .. }
                | Action::CancelActivity { .. }
                | Action::StartTimer { .. }
                | Action::CancelTimer { .. }
                | Action::Cancelled { .. } => continue,
            };
            if let Some(payload) = payload {
                let coded = self.encode(payload.clone());
                *payload = coded.map_err(|error| error.fault(&what))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns bytes around; what it decodes is what the test wants.
    struct Around(Option<&'static [u8]>);

    impl CodecHost for Around {
        fn encode(&self, plain: &[u8]) -> Result<Vec<u8>, Failure> {
            match self.0 {
                Some(_) => Err(Failure::new(FailureKind::Permanent, "no")),
                None => Ok(plain.iter().rev().copied().collect()),
            }
        }

        fn decode(&self, coded: &[u8]) -> Result<Vec<u8>, Failure> {
            Ok(self.0.map_or_else(|| coded.iter().rev().copied().collect(), <[u8]>::to_vec))
        }
    }

    fn json(text: &str) -> Payload {
        Payload::from_text(text.into()).unwrap()
    }

    fn around() -> Coder {
        Coder::new("a \"b\"".into(), Around(None))
    }

    #[test]
    fn a_coded_payload_is_json_with_its_codecs_name_first() {
        let coded = around().encode(json("[12]")).unwrap();
        assert_eq!(coded.text(), r#"{"$coded":"a \"b\"","data":"XTIxWw=="}"#);
        assert_eq!(around().decode(coded).unwrap(), json("[12]"));
    }

    #[test]
    fn what_only_looks_coded_is_plain() {
        for text in [
            r#"{"$coded":"a","data":1}"#,
            r#"{"$coded":"a"}"#,
            r#"{"$coded":"a","data":"","more":1}"#,
            r#"{"data":"","$coded":"a"}"#,
            r#"{"$coded":null}"#,
        ] {
            assert_eq!(around().decode(json(text)).unwrap(), json(text));
            assert_eq!(Coder::default().decode(json(text)).unwrap(), json(text));
        }
        // A value that looks coded is coded like any other.
        let value = json(r#"{"$coded":"x","data":"AAAA"}"#);
        let coded = around().encode(value.clone()).unwrap();
        assert_eq!(around().decode(coded).unwrap(), value);
    }

    #[test]
    fn what_is_damaged_is_named() {
        let stored = json(r#"{"$coded":"n","data":"AAAA"}"#);
        for (given, said) in [(&b"\xff"[..], "not UTF-8"), (b"{", "not JSON"), (b"", "not JSON")] {
            let coder = Coder::new("n".into(), Around(Some(given)));
            let error = coder.decode(stored.clone()).unwrap_err();
            assert_eq!(error.code(), Code::CODEC);
            assert!(error.to_string().contains(said), "{error}");
        }
        let error = around().decode(json(r#"{"$coded":"a \"b\"","data":"AA"}"#)).unwrap_err();
        assert!(error.to_string().contains("not base64"), "{error}");
    }

    #[test]
    fn no_action_leaves_plain_values_behind() {
        let input = json("\"plain\"");
        let mut error = Failure::new(FailureKind::Permanent, "no");
        error.details = Some(input.clone());
        let schedule = |inline| Action::ScheduleActivity {
            id: "id".into(),
            activity_type: "type".into(),
            input: if inline { Payload::null() } else { input.clone() },
            options: Arc::default(),
            inline,
        };
        let plain =
            [schedule(false), Action::Complete { output: input.clone() }, Action::Fail { error }];
        for action in plain.clone() {
            let mut coded = [action];
            around().encode_actions(&mut coded).unwrap();
            let payload = match &coded[0] {
                Action::ScheduleActivity { input, .. } => input.clone(),
                Action::Complete { output } => output.clone(),
                Action::Fail { error } => error.details.clone().unwrap(),
                other => panic!("{other:?}"),
            };
            assert_eq!(around().decode(payload.clone()).unwrap(), input);
            assert_ne!(payload, input);
        }
        for action in plain {
            let broken = Coder::new("n".into(), Around(Some(b"")));
            let fault = broken.encode_actions(&mut [action.clone()]).unwrap_err();
            assert_eq!(fault.code(), Code::CODEC);
            let mut same = [action.clone()];
            Coder::default().encode_actions(&mut same).unwrap();
            assert_eq!(same, [action], "without a codec nothing changes");
        }
        let mut step = [schedule(true)];
        around().encode_actions(&mut step).unwrap();
        assert_eq!(step, [schedule(true)], "a step has no input");
    }
}
