//! How slow the other end may be: a connection ends when a head that has begun does not end, and when nothing of an answer
//! is taken.
//!
//! hyper has one time for a head and for the idling before it, and none for writing. Here both are bounded where the bytes
//! pass; how long a body may take is bounded where it is read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long the head of a request may take: the first one from the connection on, any other from its first byte on.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the other end may take nothing of an answer that waits for it.
pub(super) const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// How far the requests of a connection have come. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Talk(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    asked: AtomicU64,
    answered: AtomicU64,
}

/// A request that has no answer yet.
pub(super) struct Question(Talk);

impl Talk {
    /// The head of a request is there.
    pub(super) fn asked(&self) -> Question {
        self.0.asked.fetch_add(1, Ordering::Relaxed);
        Question(self.clone())
    }

    fn count(&self) -> u64 {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// Whether what is read now belongs to the body of a request.
    fn is_answering(&self) -> bool {
        self.count() != self.0.answered.load(Ordering::Relaxed)
    }
}

impl Question {
    /// Its answer has begun.
    pub(super) fn answered(self) {
        self.0.0.answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// A stream whose other end has to keep pace.
pub(super) struct Paced<S> {
    stream: S,
    talk: Talk,
    /// How many heads were complete when `head_since` was last looked at.
    heads: u64,
    /// Since when a head is awaited that has to come.
    head_since: Option<Instant>,
    head_timer: Timer,
    /// Since when nothing was taken of what waits.
    stalled_since: Option<Instant>,
    stall_timer: Timer,
}

impl<S> Paced<S> {
    pub(super) fn new(stream: S, talk: Talk) -> Self {
        Self {
            stream,
            talk,
            heads: 0,
            head_since: Some(Instant::now()),
            head_timer: Timer::default(),
            stalled_since: None,
            stall_timer: Timer::default(),
        }
    }

    /// The stream without its bounds, for another protocol to go on with.
    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    /// Forgets the head that was awaited, if it has come.
    fn look_at_heads(&mut self) {
        let heads = self.talk.count();
        if heads != self.heads {
            self.heads = heads;
            self.head_since = None;
        }
    }

    fn was_read(&mut self) {
        // The first bytes after an answer are those of the next head.
        if self.head_since.is_none() && !self.talk.is_answering() {
            self.head_since = Some(Instant::now());
        }
    }

    /// What becomes of a write: only one that takes nothing for too long ends the connection.
    fn wrote(&mut self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled_since = None;
            // A head that was sent ahead is not late as long as an answer before it is being taken.
            if let Some(since) = &mut self.head_since {
                *since = Instant::now();
            }
            return written;
        }
        let since = *self.stalled_since.get_or_insert_with(Instant::now);
        if self.stall_timer.has_passed(since + STALL_TIMEOUT, cx) {
            return Poll::Ready(Err(too_late("the other end does not take the answer")));
        }
        Poll::Pending
    }
}

fn too_late(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.look_at_heads();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if read.is_ready() {
            if buffer.filled().len() > before {
                this.was_read();
            }
            return read;
        }
        match this.head_since {
            Some(since) if this.head_timer.has_passed(since + HEAD_TIMEOUT, cx) => {
                Poll::Ready(Err(too_late("the head of a request does not come")))
            }
            _ => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.wrote(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Wakes the task when a time has come; made when it is first needed, which with most connections is never.
#[derive(Default)]
struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    fn has_passed(&mut self, deadline: Instant, cx: &mut Context<'_>) -> bool {
        let sleep = self
            .0
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(cx).is_ready()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    const BUFFER: usize = 16;

    fn paced() -> (Paced<DuplexStream>, DuplexStream, Talk) {
        let (here, there) = duplex(BUFFER);
        let talk = Talk::default();
        (Paced::new(here, talk.clone()), there, talk)
    }

    async fn read_one(stream: &mut Paced<DuplexStream>) -> io::Result<u8> {
        stream.read_u8().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_head_that_does_not_come_ends_the_connection() {
        let (mut stream, mut there, _) = paced();
        let start = Instant::now();
        there.write_all(b"GE").await.unwrap();
        assert_eq!(read_one(&mut stream).await.unwrap(), b'G');
        assert_eq!(read_one(&mut stream).await.unwrap(), b'E');
        let error = read_one(&mut stream).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), HEAD_TIMEOUT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_trickling_head_gets_no_more_time_than_a_silent_one() {
        let (mut stream, mut there, _) = paced();
        let start = Instant::now();
        let trickle = async {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if there.write_u8(b'x').await.is_err() {
                    return;
                }
            }
        };
        let reading = async { while read_one(&mut stream).await.is_ok() {} };
        tokio::select! {
            () = reading => {}
            () = trickle => {}
        }
        assert_eq!(start.elapsed().as_secs(), HEAD_TIMEOUT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_and_the_idling_after_an_answer_are_not_bounded_here() {
        let (mut stream, mut there, talk) = paced();
        there.write_all(b"h").await.unwrap();
        read_one(&mut stream).await.unwrap();
        let question = talk.asked();
        let late = tokio::time::timeout(HEAD_TIMEOUT * 5, read_one(&mut stream));
        assert!(late.await.is_err(), "the body may still come");
        question.answered();
        let idle = tokio::time::timeout(HEAD_TIMEOUT * 5, read_one(&mut stream));
        assert!(idle.await.is_err(), "the next request may still come");
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_head_is_bounded_from_its_first_byte_on() {
        let (mut stream, mut there, talk) = paced();
        talk.asked().answered();
        let idle = tokio::time::timeout(HEAD_TIMEOUT * 2, read_one(&mut stream));
        assert!(idle.await.is_err());
        let start = Instant::now();
        there.write_all(b"G").await.unwrap();
        read_one(&mut stream).await.unwrap();
        assert_eq!(
            read_one(&mut stream).await.unwrap_err().kind(),
            io::ErrorKind::TimedOut
        );
        assert_eq!(start.elapsed().as_secs(), HEAD_TIMEOUT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_taken_ends_the_connection() {
        let (mut stream, _there, _) = paced();
        let start = Instant::now();
        let error = stream.write_all(&[0; BUFFER * 2]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), STALL_TIMEOUT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_taken_slowly_gets_through() {
        let (mut stream, mut there, _) = paced();
        let taking = async {
            let mut taken = 0;
            while taken < BUFFER * 8 {
                tokio::time::sleep(STALL_TIMEOUT / 2).await;
                taken += there.read(&mut [0; BUFFER]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(stream.write_all(&[0; BUFFER * 8]), taking);
        written.unwrap();
    }
}
