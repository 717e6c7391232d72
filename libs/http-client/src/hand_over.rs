//! The moment when the bytes of a request are handed to its connection, which is later than its start by the time that
//! finding or opening a connection takes: it is made known, and it is the last one at which the request can be withheld.
//!
//! It relies on the HTTP client asking for the body right before it writes head and body to the socket together.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Stops a request whose body is asked for when it must not be sent any more. The client has written nothing by then,
/// and closes the connection.
#[derive(Debug, thiserror::Error)]
#[error("the send is not permitted any more")]
pub(crate) struct Withheld;

/// A body of one piece that notes when it is asked for.
pub(crate) struct WatchedBody {
    content: Option<Bytes>,
    asked: Option<oneshot::Sender<Instant>>,
    permitted: Box<dyn Fn() -> bool + Send + Sync>,
    withheld: Arc<AtomicBool>,
}

/// What comes of watching a body.
pub(crate) struct Watch {
    pub(crate) body: WatchedBody,
    pub(crate) hand_over: HandOver,
    /// Whether the body was asked for and not given.
    pub(crate) withheld: Arc<AtomicBool>,
}

/// `content` as a body that is given only if `permitted` says so at that moment.
pub(crate) fn watch(content: Bytes, permitted: impl Fn() -> bool + Send + Sync + 'static) -> Watch {
    let (asked, hand_over) = oneshot::channel();
    let withheld = Arc::new(AtomicBool::new(false));
    Watch {
        body: WatchedBody {
            content: Some(content),
            asked: Some(asked),
            permitted: Box::new(permitted),
            withheld: Arc::clone(&withheld),
        },
        hand_over: HandOver(hand_over),
        withheld,
    }
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = Withheld;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Withheld>>> {
        if self.content.is_some() && !(self.permitted)() {
            self.withheld.store(true, Ordering::SeqCst);
            return Poll::Ready(Some(Err(Withheld)));
        }
        if let Some(asked) = self.asked.take() {
            // The other end of the channel may be gone.
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
