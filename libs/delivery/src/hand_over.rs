//! Tells when the bytes of a request are handed to its connection, which is later than its start by the time that
//! finding or opening a connection takes.
//!
//! It relies on the HTTP client asking for the body right before it writes head and body to the socket together.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::oneshot;

/// When a request is handed to its connection: known at some time after the send was first polled, or never.
#[derive(Debug)]
pub struct HandOver(oneshot::Receiver<Instant>);

impl HandOver {
    /// The moment, once it has come.
    pub(crate) fn instant(&mut self) -> Option<Instant> {
        self.0.try_recv().ok()
    }
}

/// A body of one piece that notes when it is asked for.
#[derive(Debug)]
pub(crate) struct WatchedBody {
    content: Option<Bytes>,
    asked: Option<oneshot::Sender<Instant>>,
}

/// `content` as a body, and when it is handed over.
pub(crate) fn watch(content: Bytes) -> (WatchedBody, HandOver) {
    let (asked, hand_over) = oneshot::channel();
    (
        WatchedBody {
            content: Some(content),
            asked: Some(asked),
        },
        HandOver(hand_over),
    )
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(asked) = self.asked.take() {
            // Nobody may be interested any more.
            let _ = asked.send(Instant::now());
        }
        Poll::Ready(self.content.take().map(|content| Ok(Frame::data(content))))
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.content.as_ref().map_or(0, |content| content.len() as u64))
    }
}
