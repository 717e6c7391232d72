//! Follows a connection while it is opened: how far an attempt had come when its deadline passed, and whether an error
//! came from the TLS handshake. The HTTP client tells neither.

use std::cell::Cell;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tower::{Layer, Service};

/// How far an attempt has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The name is looked up, or there is nothing yet that could be.
    Resolving,
    /// The connection is opened, with TLS where that is spoken.
    Connecting,
    /// The connection is there; what is missing is the answer.
    Waiting,
}

tokio::task_local! {
    static PHASE: Cell<Phase>;
}

/// Polls `attempt` with a phase of its own, beginning with [`Phase::Waiting`]: with an idle connection no other comes.
pub(super) async fn followed<T>(attempt: impl Future<Output = T>) -> T {
    PHASE.scope(Cell::new(Phase::Waiting), attempt).await
}

/// Notes that the attempt of this task has come to `phase`. Without effect for a connection that is opened for no
/// attempt in particular any more, because its attempt found an idle one meanwhile.
pub(super) fn enter(phase: Phase) {
    let _ = PHASE.try_with(|current| current.set(phase));
}

/// The phase of the attempt of this task.
pub(super) fn phase() -> Phase {
    PHASE.try_with(Cell::get).unwrap_or(Phase::Waiting)
}

/// The TCP connection was there, the TLS session did not come about.
#[derive(Debug, thiserror::Error)]
#[error("the TLS handshake failed")]
pub(super) struct Handshake(#[source] io::Error);

type BoxError = Box<dyn Error + Send + Sync>;

/// Puts [`Following`] around the client's connector.
#[derive(Clone)]
pub(super) struct Follow;

impl<S> Layer<S> for Follow {
    type Service = Following<S>;

    fn layer(&self, connector: S) -> Following<S> {
        Following(connector)
    }
}

/// Opens connections as the connector in it does.
#[derive(Clone)]
pub(super) struct Following<S>(S);

impl<S, R> Service<R> for Following<S>
where
    S: Service<R, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let opening = self.0.call(target);
        Box::pin(async move {
            enter(Phase::Connecting);
            let connection = opening.await.map_err(mark_handshake)?;
            enter(Phase::Waiting);
            Ok(connection)
        })
    }
}

/// What fails before the handshake comes in a type of the TCP connector; a bare I/O error is the handshake's.
fn mark_handshake(error: BoxError) -> BoxError {
    match error.downcast::<io::Error>() {
        Ok(error) => Box::new(Handshake(*error)),
        Err(error) => error,
    }
}
