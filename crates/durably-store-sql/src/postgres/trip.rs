//! Several requests in one trip to the server.

use futures_util::future::{MaybeDone, maybe_done};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Sends all requests, in order, and then takes their answers, in order. All answers are taken,
/// also those after a failure: afterwards the connection is where it was before.
///
/// The driver sends a request when its future is first polled. That is done here, one after the
/// other, and not by a general join, since the order in which those poll is nowhere promised.
pub(crate) async fn in_one_trip<F: Future>(requests: Vec<F>) -> Vec<F::Output> {
    let mut requests: Vec<Pin<Box<MaybeDone<F>>>> =
        requests.into_iter().map(|request| Box::pin(maybe_done(request))).collect();
    let mut sent = false;
    let mut answered = 0;
    poll_fn(|context| {
        if !sent {
            sent = true;
            for request in &mut requests {
                let _ = request.as_mut().poll(context);
            }
        }
        // Answers come in the order of the questions: nobody but the next one has any.
        while let Some(request) = requests.get_mut(answered) {
            if request.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            answered += 1;
        }
        Poll::Ready(())
    })
    .await;
    requests.iter_mut().filter_map(|request| request.as_mut().take_output()).collect()
}
