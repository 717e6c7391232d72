//! Connections that go on in another protocol after an answer 101.
//!
//! The bare stream is handed over, so that neither buffers nor bounds of HTTP stay with a connection that lives for days. It
//! keeps its place among those that the listener admits.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::Extensions;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::admission::Admitted;
use super::pace::Paced;

/// The place of a connection among those that its listener admits; it is taken for as long as a clone lives.
#[derive(Debug, Clone)]
pub struct Place(#[expect(dead_code, reason = "held for its end alone")] Arc<Admitted>);

impl Place {
    pub(super) fn of(admitted: Admitted) -> Self {
        Self(Arc::new(admitted))
    }
}

/// The right to a connection whose request asks for another protocol.
#[derive(Debug)]
pub struct Upgrade {
    after_answer: OnUpgrade,
    place: Place,
}

/// A connection after its answer 101.
#[derive(Debug)]
pub struct Upgraded {
    /// The connection.
    pub stream: TcpStream,
    /// What the other end has sent of the new protocol already.
    pub ahead: Bytes,
    /// Its place, to be kept as long as the connection is.
    pub place: Place,
}

impl Upgrade {
    /// Takes it from the extensions of a request; `None` when the request asks for no other protocol.
    pub fn of(request: &mut Extensions) -> Option<Self> {
        Some(Self {
            after_answer: request.remove()?,
            place: request.remove()?,
        })
    }

    /// Waits until the answer 101 is sent.
    ///
    /// # Errors
    ///
    /// When the connection ends before.
    pub async fn stream(self) -> io::Result<Upgraded> {
        let upgraded = self.after_answer.await.map_err(io::Error::other)?;
        let parts = upgraded
            .downcast::<TokioIo<Paced<TcpStream>>>()
            .map_err(|_| io::Error::other("the connection is not one of this server"))?;
        Ok(Upgraded {
            stream: parts.io.into_inner().into_inner(),
            // A copy, which is usually empty: what is here keeps all of the 8 KiB that HTTP was read into, and who reads on
            // may go on with it for as long as the connection lives.
            ahead: Bytes::copy_from_slice(&parts.read_buf),
            place: self.place,
        })
    }
}
