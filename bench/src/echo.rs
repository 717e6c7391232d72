//! The floor of HTTP: a server that reads each request and answers 202 at once, in a process of its own like the
//! services.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Serves until the process is ended.
pub(crate) async fn serve(address: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service_fn(answer));
        // A caller that goes away is the end of a measurement.
        tokio::spawn(async { connection.await.ok() });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let read = request.into_body().collect().await;
    let mut response = Response::new(Empty::new());
    *response.status_mut() = if read.is_ok() {
        StatusCode::ACCEPTED
    } else {
        StatusCode::BAD_REQUEST
    };
    Ok(response)
}
