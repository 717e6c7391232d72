//! Connections that go on in another protocol after an answer 101.
//!
//! The bare stream is handed over, so that neither buffers nor bounds of HTTP stay with a connection that lives for days. It
//! keeps its place among those that the listener admits, and behind a trusted proxy takes one of those that its caller may have:
//! such a connection is one caller's, while those of a proxy that carry requests are anyone's.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Extensions;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::admission::{Admission, Admitted, OfPeer};
use super::pace::Paced;

/// The place of a connection among those that its listener admits; it is taken for as long as this lives.
#[derive(Debug)]
pub struct Place {
    _of_connection: Arc<Admitted>,
    _of_caller: Option<OfPeer>,
}

/// The place of the connection that a request came on, and who asks there.
#[derive(Debug, Clone)]
pub(super) struct Seat {
    pub(super) admitted: Arc<Admitted>,
    pub(super) admission: Arc<Admission>,
    /// The caller that a trusted proxy names.
    pub(super) behind_proxy: Option<IpAddr>,
}

/// The right to a connection whose request asks for another protocol.
#[derive(Debug)]
pub struct Upgrade {
    after_answer: OnUpgrade,
    place: Place,
}

/// Why a request gets no connection of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoUpgrade {
    /// It asks for no other protocol.
    NotAsked,
    /// Its caller, behind a trusted proxy, has as many as it may have.
    TooMany,
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
    /// Takes it from the extensions of a request.
    ///
    /// # Errors
    ///
    /// [`NoUpgrade`] says why there is none.
    pub fn of(request: &mut Extensions) -> Result<Self, NoUpgrade> {
        let after_answer = request.remove().ok_or(NoUpgrade::NotAsked)?;
        let seat: Seat = request.remove().ok_or(NoUpgrade::NotAsked)?;
        let of_caller = seat
            .behind_proxy
            .map(|caller| seat.admission.admit_caller(caller));
        let of_caller = of_caller.transpose().map_err(|refused| {
            refused.count();
            NoUpgrade::TooMany
        })?;
        Ok(Self {
            after_answer,
            place: Place {
                _of_connection: seat.admitted,
                _of_caller: of_caller.flatten(),
            },
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
