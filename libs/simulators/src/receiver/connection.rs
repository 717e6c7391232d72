//! Serves one connection. Arrivals are stamped here, as soon as the head of a request has been parsed and before its body is
//! read; and only here can a request be left without any answer.

use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::receiver::answer::Answer;
use crate::receiver::endpoint::Closed;
use crate::receiver::server::Shared;
use crate::receiver::{control, endpoint};

/// A client that opens a connection and says nothing does not keep it.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Ends when the client closes the connection or a rule does.
pub(crate) async fn serve(stream: TcpStream, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let Some(tls) = tls else {
        return speak(stream, shared).await;
    };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => speak(stream, shared).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake took too long"),
    }
}

async fn speak(stream: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Shared>) {
    let service = service_fn(move |request| respond(shared.clone(), request));
    // Errors are the client's going away, or ours on purpose.
    if let Err(error) = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await
    {
        tracing::debug!(%error, "connection ended");
    }
}

async fn respond(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Closed> {
    if request.uri().path().starts_with(control::PREFIX) {
        return Ok(control::respond(&shared, request).await);
    }
    endpoint::receive(shared, request).await
}
