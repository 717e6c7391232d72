//! The accept loop: one task per connection, HTTP/1.1 with keep-alive, and an orderly end.
//!
//! axum's own loop is not used because it bounds neither the time in which a request's head must arrive nor the wait
//! for callers at the end.

use std::io;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use lifecycle::TaskGroup;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// How long a connection may stay without a complete request head, idle ones included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);
/// The pause after an accept that failed for want of resources.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Accepts connections until `stop`; then those that are open finish the request they are at. The tasks of the
/// connections belong to `connections`, whose drain waits for them.
pub async fn serve(listener: TcpListener, router: Router, connections: &TaskGroup, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn("connection", converse(stream, router.clone(), stop.clone()));
            }
            Err(error) if is_callers(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// A connection that was gone before it was accepted says nothing about the listener.
fn is_callers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

async fn converse(stream: TcpStream, router: Router, stop: CancellationToken) {
    // Answers are small and complete; waiting to fill a segment would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
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
