//! `ctx.signal`: a message from outside.

use super::core::Core;
use crate::names::Data;
use durably_kernel::{Code, Failure, FailureKind, Signal};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

#[derive(Debug)]
struct Waiting {
    core: Arc<Core>,
    name: &'static str,
    timeout: Option<Duration>,
    number: Option<u64>,
}

impl Waiting {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Signal>, Failure>> {
        let number =
            *self.number.get_or_insert_with(|| self.core.wait_for(self.name, self.timeout));
        match self.core.waited(number, cx.waker()) {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.core.stop_waiting(number);
        }
    }
}

fn decoded<T: Data>(signal: &Signal) -> Result<T, Failure> {
    signal.payload.decode().map_err(|error| {
        let message = format!("signal {:?}: {error}", signal.signal_type);
        Failure::new(FailureKind::InvalidInput, message).code(Code::DECODE.as_str())
    })
}

/// A wait for a signal; a future of what it says.
#[must_use = "a wait begins when it is awaited"]
#[derive(Debug)]
pub struct SignalWait<T> {
    waiting: Waiting,
    signal: PhantomData<fn() -> T>,
}

impl<T> SignalWait<T> {
    pub(super) fn new(core: Arc<Core>, name: &'static str) -> SignalWait<T> {
        let waiting = Waiting { core, name, timeout: None, number: None };
        SignalWait { waiting, signal: PhantomData }
    }

    /// Waits for so long at most; none if no signal came.
    pub fn timeout(mut self, timeout: Duration) -> SignalOrTimeout<T> {
        self.waiting.timeout = Some(timeout);
        SignalOrTimeout { waiting: self.waiting, signal: PhantomData }
    }
}

impl<T: Data> Future for SignalWait<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.waiting.poll(cx) {
            Poll::Ready(Ok(Some(signal))) => Poll::Ready(decoded(&signal)),
            Poll::Ready(Err(failure)) => Poll::Ready(Err(failure)),
            Poll::Ready(Ok(None)) | Poll::Pending => Poll::Pending,
        }
    }
}

/// A wait for a signal with a time-out.
#[must_use = "a wait begins when it is awaited"]
#[derive(Debug)]
pub struct SignalOrTimeout<T> {
    waiting: Waiting,
    signal: PhantomData<fn() -> T>,
}

impl<T: Data> Future for SignalOrTimeout<T> {
    type Output = Result<Option<T>, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.waiting
            .poll(cx)
            .map(|result| result.and_then(|signal| signal.as_ref().map(decoded).transpose()))
    }
}
