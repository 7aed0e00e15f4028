//! Codecs: users' code between their values and the store.

use crate::error::{ClientError, Result};
use durably_kernel::{Event, Failure, Payload, RunId, check_name};
use durably_runtime::{CodecError, CodecHost, Coder, RuntimeError, panic_text};
use durably_store::{DeadLetterRow, EventRow, HistoryPage};
use std::panic::AssertUnwindSafe;

/// Compresses or encrypts every value before it reaches the store: inputs, outputs, results of
/// steps, signals, heartbeat details and details of errors.
///
/// Both ends need it: the engines that execute, and the clients that start, signal and read.
/// Values that were stored without a codec stay readable. Ids, names, error messages, reasons,
/// attributes and the hash by which starts of one key are compared are stored as they are.
///
/// Its calls are made in async code, several at once, and again when a run is rebuilt from its
/// history: keep keys in memory. What it gives may differ from call to call (a nonce, say). An
/// error or a panic fails the call or the attempt, or parks the run until the codec works again;
/// [`Error::permanent`](crate::Error::permanent) says that another attempt makes no sense.
pub trait Codec: Send + Sync + 'static {
    /// Written with every value. A codec refuses what was coded under another name, so put what
    /// changes the format in here, and the id of the key into what is coded.
    fn name(&self) -> &str;

    /// From plain JSON to what is stored.
    fn encode(&self, plain: &[u8]) -> Result<Vec<u8>>;

    /// From what is stored to plain JSON.
    fn decode(&self, coded: &[u8]) -> Result<Vec<u8>>;
}

struct Hosted<C>(C);

impl<C: Codec> CodecHost for Hosted<C> {
    fn encode(&self, plain: &[u8]) -> Result<Vec<u8>, Failure> {
        self.0.encode(plain).map_err(Failure::from)
    }

    fn decode(&self, coded: &[u8]) -> Result<Vec<u8>, Failure> {
        self.0.decode(coded).map_err(Failure::from)
    }
}

/// The codec under the name that it has now, or what is wrong with it.
pub(crate) fn coder(codec: impl Codec) -> Result<Coder, String> {
    let name = std::panic::catch_unwind(AssertUnwindSafe(|| codec.name().to_owned()))
        .map_err(|panic| format!("the codec's name panicked: {}", panic_text(&*panic)))?;
    check_name("codec's name", &name).map_err(|invalid| invalid.to_string())?;
    Ok(Coder::new(name, Hosted(codec)))
}

pub(crate) fn failed(what: impl Into<String>, source: CodecError) -> ClientError {
    RuntimeError::Codec { what: what.into(), source }.into()
}

pub(crate) fn encoded(coder: &Coder, what: &str, plain: Payload) -> Result<Payload, ClientError> {
    coder.encode(plain).map_err(|error| failed(what, error))
}

/// The event of a run for people.
pub(crate) fn shown(coder: &Coder, run: RunId, row: &mut EventRow) -> Result<(), ClientError> {
    let what = |event: &Event, seq| format!("event {seq} ({}) of run {run}", event.name());
    coder.show_event(&mut row.event).map_err(|error| failed(what(&row.event, row.seq), error))
}

pub(crate) fn shown_page(
    coder: &Coder,
    run: RunId,
    mut page: HistoryPage,
) -> Result<HistoryPage, ClientError> {
    page.events.iter_mut().try_for_each(|row| shown(coder, run, row))?;
    Ok(page)
}

pub(crate) fn shown_letters(
    coder: &Coder,
    mut letters: Vec<DeadLetterRow>,
) -> Result<Vec<DeadLetterRow>, ClientError> {
    for letter in &mut letters {
        let what = format!("dead letter {} of run {}", letter.id, letter.run);
        coder.show_dead_letter(letter).map_err(|error| failed(what, error))?;
    }
    Ok(letters)
}
