//! The accept loop: one task per connection, HTTP/1.1 with keep-alive, bounds on what a stranger can hold, and an orderly
//! end.
//!
//! axum's own loop is not used because it bounds neither how many connections there are, nor the time in which a request's
//! head must arrive and an answer must be taken, nor the wait for callers at the end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use ipnet::IpNet;
use lifecycle::{Shutdown, TaskGroup};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

mod admission;
mod pace;
mod upgrade;

use crate::peer::{self, Peer};
use admission::{Admission, Refused};
use pace::{Paced, Talk};
use upgrade::Seat;

pub use upgrade::{NoUpgrade, Place, Upgrade, Upgraded};

/// How long a connection may stay idle after an answer: longer than proxies keep theirs, so that it is they who close.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Longest head of a request, in bytes. Keys, cursors and what proxies add take a tenth of it; as many connections as the
/// portal takes by default hold 128 MiB with heads of this length that stop just before their end.
const HEAD_BYTES: usize = 32 * 1024;
/// Most headers of a request.
const HEADERS: usize = 64;
/// Most bytes that are read ahead and written behind for one connection.
const BUFFER_BYTES: usize = 64 * 1024;
/// The pause after an accept that failed for want of resources.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// Refused connections are told of in the log no more often than this.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// How many connections a listener takes.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// From everywhere.
    pub in_all: usize,
    /// From one address, or one /64 network of IPv6; `None` where the callers are known. Loopback and trusted proxies speak
    /// for many and are not bounded by it; connections that go on in another protocol count for the caller that the proxy names.
    pub per_peer: Option<usize>,
    /// Whose `X-Forwarded-For` says who calls.
    pub trusted_proxies: Vec<IpNet>,
}

impl ConnectionLimits {
    /// Those of a service that the house alone calls: one address may open as many connections as there may be.
    pub fn of_the_house(in_all: usize) -> Self {
        Self {
            in_all,
            per_peer: None,
            trusted_proxies: Vec::new(),
        }
    }
}

/// Serves `router` until `shutdown`; then the requests that are under way get `grace` to finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    shutdown: &Shutdown,
    grace: Duration,
) {
    let connections = TaskGroup::under(shutdown);
    accept(listener, router, &connections, shutdown.token(), limits).await;
    let drained = connections.drain(grace).await;
    tracing::debug!(?drained, "no more requests");
}

/// Accepts connections until `stop`; then those that are open finish the request they are at. The tasks of the
/// connections belong to `connections`, whose drain waits for them.
///
/// A connection past one of the limits is closed at once: waiting would hold what the limit is to save.
async fn accept(
    listener: TcpListener,
    router: Router,
    connections: &TaskGroup,
    stop: CancellationToken,
    limits: ConnectionLimits,
) {
    let admission = Arc::new(Admission::new(limits.in_all, limits.per_peer));
    let trusted: Arc<[IpNet]> = limits.trusted_proxies.into();
    let mut told = None;
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                let peer = Peer::new(from.ip(), Arc::clone(&trusted));
                match admission.admit(&peer) {
                    Ok(admitted) => {
                        let seat = Seat {
                            admitted: Arc::new(admitted),
                            admission: Arc::clone(&admission),
                            behind_proxy: None,
                        };
                        let conversation = converse(stream, router.clone(), stop.clone(), peer, seat);
                        connections.spawn("connection", conversation);
                    }
                    Err(refused) => tell(refused, &mut told),
                }
            }
            Err(error) if is_callers(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn tell(refused: Refused, told: &mut Option<Instant>) {
    refused.count();
    let now = Instant::now();
    if told.is_none_or(|told| now - told >= TOLD_EVERY) {
        *told = Some(now);
        tracing::warn!(
            bound = refused.as_str(),
            "there are too many connections; further ones are closed at once"
        );
    }
}

/// A connection that was gone before it was accepted says nothing about the listener.
fn is_callers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

async fn converse(stream: TcpStream, router: Router, stop: CancellationToken, peer: Peer, seat: Seat) {
    // Answers are small and complete; waiting to fill a segment would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    let talk = Talk::default();
    let stream = Paced::new(stream, talk.clone());
    let routes = TowerToHyperService::new(router);
    let service = service_fn(|mut request: Request<Incoming>| {
        let caller = peer.caller(request.headers());
        request.extensions_mut().insert(Seat {
            behind_proxy: peer.is_proxy_of(caller).then_some(caller),
            ..seat.clone()
        });
        let question = talk.asked();
        let answering = peer::scope(caller, routes.call(request));
        async move {
            let answer = answering.await;
            question.answered();
            answer
        }
    });
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_TIMEOUT)
            .max_header_size(HEAD_BYTES)
            .max_headers(HEADERS)
            .max_buf_size(BUFFER_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades()
    );
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod tests;
