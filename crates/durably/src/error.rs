//! Two errors for workflow code, [`Error`] and `Failure`, and those of callers.

use durably_kernel::{Code, Failure, FailureKind, Payload};
use durably_runtime::RuntimeError;
use serde::Serialize;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

/// What workflows and activities return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What your code returns when it fails. Anything becomes one through `?`, as a retryable error.
pub struct Error(Box<Failure>);

impl Error {
    fn of(kind: FailureKind, message: impl fmt::Display) -> Error {
        Error(Box::new(Failure::new(kind, message.to_string())))
    }

    /// May go away by itself: tried again.
    pub fn retryable(message: impl fmt::Display) -> Error {
        Error::of(FailureKind::Retryable, message)
    }

    /// Will not go away: not tried again.
    pub fn permanent(message: impl fmt::Display) -> Error {
        Error::of(FailureKind::Permanent, message)
    }

    /// The input does not fit: not tried again.
    pub fn invalid_input(message: impl fmt::Display) -> Error {
        Error::of(FailureKind::InvalidInput, message)
    }

    /// The other side asked for a pause: tried again after it.
    pub fn rate_limited(after: Duration) -> Error {
        let mut error = Error::of(FailureKind::RateLimited, format!("try again after {after:?}"));
        error.0.retry_after_ms = Some(durably_kernel::to_millis(after));
        error
    }

    /// Somebody else was writing to the same data: tried again soon, without using an attempt.
    pub fn contention(message: impl fmt::Display) -> Error {
        Error::of(FailureKind::Contention, message)
    }

    /// The work was cancelled.
    pub fn cancelled(message: impl fmt::Display) -> Error {
        Error::of(FailureKind::Cancelled, message).code(Code::CANCELLED.as_str())
    }

    /// What an HTTP status means: 408, 425 and 5xx may go away, 429 asks for a pause, 409 and 423
    /// are contention, other 4xx do not go away.
    pub fn from_http_status(status: u16, message: impl fmt::Display) -> Error {
        let kind = match status {
            408 | 425 | 500..=599 => FailureKind::Retryable,
            409 | 423 => FailureKind::Contention,
            429 => FailureKind::RateLimited,
            400 | 422 => FailureKind::InvalidInput,
            _ => FailureKind::Permanent,
        };
        Error::of(kind, message).code(format!("HTTP-{status}"))
    }

    /// What an I/O error means: what is missing, forbidden or malformed does not go away.
    pub fn from_io(error: &std::io::Error) -> Error {
        use std::io::ErrorKind;
        let kind = match error.kind() {
            ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::AlreadyExists
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidData
            | ErrorKind::Unsupported => FailureKind::Permanent,
            ErrorKind::TimedOut => FailureKind::TimedOut,
            _ => FailureKind::Retryable,
        };
        Error::of(kind, error)
    }

    /// The same with a code, for programs.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Error {
        self.0.code = Some(code.into());
        self
    }

    /// The same with details, for programs. Details that are no JSON are left out.
    #[must_use]
    pub fn details<T: Serialize>(mut self, details: &T) -> Error {
        self.0.details = Payload::of(details).ok();
        self
    }

    /// The same as another kind.
    #[must_use]
    pub fn kind(mut self, kind: FailureKind) -> Error {
        self.0.kind = kind;
        self
    }

    /// What is recorded of it.
    pub fn failure(&self) -> &Failure {
        &self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Anything becomes a retryable error with its causes in the message; a `Failure` stays what it
/// is, also at the bottom of a chain of contexts.
impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for Error {
    fn from(error: E) -> Error {
        let error: Box<dyn StdError + Send + Sync> = error.into();
        let mut message = error.to_string();
        let mut inner: Option<Failure> = error.downcast_ref::<Failure>().cloned();
        if inner.is_none() {
            let mut cause = error.source();
            while let Some(next) = cause {
                if let Some(failure) = next.downcast_ref::<Failure>() {
                    inner = Some(Failure {
                        message: format!("{message}: {}", failure.message),
                        ..failure.clone()
                    });
                    break;
                }
                message.push_str(&format!(": {next}"));
                cause = next.source();
            }
        }
        Error(Box::new(inner.unwrap_or_else(|| Failure::new(FailureKind::Retryable, message))))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        *error.0
    }
}

/// Says of a result's error what kind it is.
pub trait ResultExt<T> {
    /// Its error will not go away.
    fn permanent(self) -> Result<T>;
    /// Its error may go away.
    fn retryable(self) -> Result<T>;
    /// Its error is the input's fault.
    fn invalid_input(self) -> Result<T>;
}

impl<T, E: Into<Error>> ResultExt<T> for std::result::Result<T, E> {
    fn permanent(self) -> Result<T> {
        self.map_err(|error| error.into().kind(FailureKind::Permanent))
    }

    fn retryable(self) -> Result<T> {
        self.map_err(|error| error.into().kind(FailureKind::Retryable))
    }

    fn invalid_input(self) -> Result<T> {
        self.map_err(|error| error.into().kind(FailureKind::InvalidInput))
    }
}

/// A call to an engine or a store that did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("{what} [{code}]", what = .0, code = self.code())]
pub struct ClientError(RuntimeError);

impl ClientError {
    /// The stable code of the error; `docs/errors/` has a page for each.
    pub fn code(&self) -> Code {
        self.0.code()
    }

    /// What happened. It is no `source()`: what it says is in this error's text already.
    pub fn kind(&self) -> &RuntimeError {
        &self.0
    }

    /// The error of one of many starts.
    pub(crate) fn in_bulk(index: usize, error: ClientError) -> ClientError {
        let source = Box::new(error.0);
        ClientError(RuntimeError::InBulk { index, source })
    }
}

macro_rules! client_error_from {
    ($($source:ty),+) => {$(
        impl From<$source> for ClientError {
            fn from(source: $source) -> Self {
                ClientError(source.into())
            }
        }
    )+};
}
client_error_from!(
    RuntimeError,
    durably_store::StoreError,
    durably_kernel::Invalid,
    durably_kernel::PayloadError
);

/// A run that gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It failed.
    #[error("run {run} failed: {failure} [{}]", Code::RUN_NOT_COMPLETED)]
    Failed {
        /// The run.
        run: durably_kernel::RunId,
        /// Why.
        failure: Box<Failure>,
    },
    /// It ended as asked.
    #[error("run {run} was cancelled: {reason} [{}]", Code::RUN_NOT_COMPLETED)]
    Cancelled {
        /// The run.
        run: durably_kernel::RunId,
        /// Why.
        reason: String,
    },
    /// An operator ended it.
    #[error("run {run} was terminated: {reason} [{}]", Code::RUN_NOT_COMPLETED)]
    Terminated {
        /// The run.
        run: durably_kernel::RunId,
        /// Why.
        reason: String,
    },
    /// The call itself failed, or took too long; the run goes on.
    #[error(transparent)]
    Call(#[from] ClientError),
}

impl RunError {
    /// The stable code of the error.
    pub fn code(&self) -> Code {
        match self {
            RunError::Failed { .. } | RunError::Cancelled { .. } | RunError::Terminated { .. } => {
                Code::RUN_NOT_COMPLETED
            }
            RunError::Call(error) => error.code(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_becomes_a_retryable_error() {
        let error: Error = std::io::Error::other("disk on fire").into();
        assert_eq!(error.failure().kind, FailureKind::Retryable);
        let error: Error = "text".into();
        assert_eq!(error.failure().message, "text");
    }

    #[test]
    fn a_failure_keeps_its_kind_through_question_marks_and_contexts() {
        let failure = Failure::new(FailureKind::Permanent, "no such card").code("CARD");
        let error: Error = failure.clone().into();
        assert_eq!(error.failure(), &failure);
        let with_context = anyhow::Error::new(failure).context("charging");
        let error: Error = with_context.into();
        assert_eq!(error.failure().kind, FailureKind::Permanent);
        assert_eq!(error.failure().code.as_deref(), Some("CARD"));
        assert_eq!(error.failure().message, "charging: no such card");
    }

    #[test]
    fn a_chain_of_errors_says_everything_once() {
        let error = durably_store::StoreError::Refused { operation: "x", problem: "y".into() };
        let error = anyhow::Error::new(ClientError::from(error)).context("cannot");
        let text = format!("{error:#}");
        assert_eq!(text.matches('y').count(), 1, "{text}");
    }

    #[test]
    fn http_statuses_are_mapped() {
        let kind = |status| Error::from_http_status(status, "x").failure().kind;
        assert_eq!(kind(503), FailureKind::Retryable);
        assert_eq!(kind(429), FailureKind::RateLimited);
        assert_eq!(kind(404), FailureKind::Permanent);
        assert_eq!(kind(422), FailureKind::InvalidInput);
        assert_eq!(kind(409), FailureKind::Contention);
    }
}
