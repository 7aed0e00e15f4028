//! What happens to a run, as a stream.

use crate::client::Client;
use crate::codec;
use crate::error::ClientError;
use durably_kernel::{RunId, RunStatus, Seq};
use durably_store::EventRow;
use futures_util::stream::{BoxStream, Stream, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// One change of a run.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Change {
    /// The event, its number and when it was committed, as in the history.
    pub row: EventRow,
    /// Where the run stands after it.
    pub status: RunStatus,
}

/// What happens to a run: a stream of every event, once and in order, that ends after the run's
/// last one. It works for runs of other processes as well.
///
/// A store that is out of reach is waited for, for half a minute. An error is the last item; go on
/// with [`Handle::changes_after`](crate::Handle::changes_after) and the last number seen. Dropping
/// the stream ends it; whoever does not poll it holds a few events in memory and nothing else.
#[must_use = "a stream does nothing until it is polled"]
pub struct Changes {
    run: RunId,
    stream: BoxStream<'static, Result<Change, ClientError>>,
}

impl Changes {
    pub(crate) fn new(client: Client, run: RunId, after: Seq) -> Changes {
        let coder = client.coder().clone();
        let changes = client.caller().changes(run, after);
        let stream = futures_util::stream::try_unfold(changes, move |mut changes| {
            let coder = coder.clone();
            async move {
                let Some((mut row, status)) = changes.next().await? else { return Ok(None) };
                codec::shown(&coder, changes.run(), &mut row)?;
                Ok(Some((Change { row, status }, changes)))
            }
        });
        Changes { run, stream: stream.boxed() }
    }

    /// The next change; none after the last one. The same as `StreamExt::next`, for programs that
    /// do not use it.
    pub async fn next(&mut self) -> Option<Result<Change, ClientError>> {
        self.stream.next().await
    }
}

impl Stream for Changes {
    type Item = Result<Change, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stream.poll_next_unpin(cx)
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Changes({})", self.run)
    }
}
