//! Serves one connection. Arrivals are stamped here, as soon as the head of a request has been parsed and before its
//! body is read; and only here can a request be left without any answer.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use hyper::Method;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::ServiceExt;

use crate::swrve::arrival::Arrival;
use crate::swrve::server::Simulator;

/// Marks a response that must not be sent: the connection is closed instead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoAnswer;

/// Makes hyper close the connection.
#[derive(Debug, thiserror::Error)]
#[error("a rule closes this connection")]
struct Closed;

/// Ends when the client closes the connection or a rule does.
pub(crate) async fn serve(stream: TcpStream, router: Router, simulator: Arc<Simulator>) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let is_push = request.method() == Method::POST && request.uri().path() == "/push";
        let arrival = is_push.then(|| Arrival::now(simulator.clone()));
        respond(router.clone(), request.map(axum::body::Body::new), arrival)
    });
    // Errors are the client's going away, or ours on purpose.
    if let Err(error) = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await
    {
        tracing::debug!(%error, "connection ended");
    }
}

async fn respond(router: Router, mut request: Request, arrival: Option<Arrival>) -> Result<Response, Closed> {
    if let Some(arrival) = &arrival {
        request.extensions_mut().insert(arrival.ticket);
    }
    let Ok(response) = router.oneshot(request).await;
    if response.extensions().get::<NoAnswer>().is_some() {
        arrival.into_iter().for_each(Arrival::dropped);
        return Err(Closed);
    }
    arrival
        .into_iter()
        .for_each(|arrival| arrival.answered(response.status().as_u16()));
    Ok(response)
}
