//! The body of an answer: what a rule says, which may be large, slow or without an end. None of it takes memory of its size.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// Sent again and again where only the number of bytes counts.
static FILLER: [u8; 64 * 1024] = [b'.'; 64 * 1024];

#[derive(Debug)]
pub(crate) enum AnswerBody {
    /// All of it at once; `None` when it has been taken.
    Whole(Option<Bytes>),
    /// So many bytes, or without an end.
    Filler(Option<u64>),
    /// The same, one byte after each pause.
    Trickle {
        left: Option<u64>,
        pause: Duration,
        next: Pin<Box<Sleep>>,
    },
}

impl AnswerBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }

    pub(crate) fn trickle(left: Option<u64>, pause: Duration) -> Self {
        Self::Trickle {
            left,
            pause,
            next: Box::pin(sleep(pause)),
        }
    }
}

/// Takes at most `most` of what is left.
fn take(left: &mut Option<u64>, most: usize) -> usize {
    match left {
        None => most,
        Some(left) => {
            let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(most);
            *left -= taken as u64;
            taken
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let bytes = match self.get_mut() {
            Self::Whole(bytes) => bytes.take().filter(|bytes| !bytes.is_empty()),
            Self::Filler(left) => filler(take(left, FILLER.len())),
            Self::Trickle { left: Some(0), .. } => None,
            Self::Trickle { left, pause, next } => {
                ready!(next.as_mut().poll(cx));
                next.set(sleep(*pause));
                filler(take(left, 1))
            }
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Filler(Some(left)) | Self::Trickle { left: Some(left), .. } => SizeHint::with_exact(*left),
            Self::Filler(None) | Self::Trickle { left: None, .. } => SizeHint::default(),
        }
    }
}

fn filler(length: usize) -> Option<Bytes> {
    (length > 0).then(|| Bytes::from_static(&FILLER[..length]))
}
