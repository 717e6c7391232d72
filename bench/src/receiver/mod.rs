//! The endpoint of every made-up reseller: a server in this process, on a thread of its own, that reads a delivery, notes
//! it and answers 200 or 500 at once, or never.
//!
//! It verifies no signature: that is what tests are for, and it would be CPU time of the receivers' machines.

mod arrival;

pub(crate) use arrival::Arrival;

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::epoch;
use crate::load::Gate;
use crate::rig::RECEIVER_THREAD;

/// What a path begins with whose requests stay without an answer.
const HANG: &str = "/hang/";
/// And of those that are refused at once.
const FAIL: &str = "/fail/";
const OK: &str = "/ok/";

/// The running server. It ends when this is dropped.
pub(crate) struct Receiver {
    address: SocketAddr,
    seen: Arc<Seen>,
    _stop: DropGuard,
}

#[derive(Default)]
struct Seen {
    arrivals: Mutex<Vec<Arrival>>,
    gate: Mutex<Option<Gate>>,
}

impl Receiver {
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (seen, stop) = (Arc::new(Seen::default()), CancellationToken::new());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let serving = serve(listener, Arc::clone(&seen));
        let stopped = stop.clone();
        std::thread::Builder::new()
            .name(RECEIVER_THREAD.to_owned())
            .spawn(move || runtime.block_on(stopped.run_until_cancelled(serving)))?;
        Ok(Self {
            address,
            seen,
            _stop: stop.drop_guard(),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the endpoint with this number, which answers.
    pub(crate) fn url(&self, number: usize) -> String {
        format!("http://{}{OK}{number}", self.address)
    }

    /// The URL of the endpoint with this number, which never does.
    pub(crate) fn hanging_url(&self, number: usize) -> String {
        format!("http://{}{HANG}{number}", self.address)
    }

    /// The URL of the endpoint with this number, which answers 500.
    pub(crate) fn failing_url(&self, number: usize) -> String {
        format!("http://{}{FAIL}{number}", self.address)
    }

    /// How many deliveries have arrived.
    pub(crate) fn count(&self) -> usize {
        self.seen.lock().len()
    }

    /// Forgets what has arrived, and opens `gate` by one for each delivery from now on.
    pub(crate) fn restart(&self, gate: Option<Gate>) {
        self.seen.lock().clear();
        *self.seen.gate.lock().unwrap_or_else(PoisonError::into_inner) = gate;
    }

    /// What has arrived.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.seen.lock().clone()
    }
}

impl Seen {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arrival>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, arrival: Arrival) {
        self.lock().push(arrival);
        if let Some(gate) = &*self.gate.lock().unwrap_or_else(PoisonError::into_inner) {
            gate.leave(1);
        }
    }
}

async fn serve(listener: TcpListener, seen: Arc<Seen>) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let seen = Arc::clone(&seen);
        let answer = service_fn(move |request| answer(request, Arc::clone(&seen)));
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
        tokio::spawn(async { connection.await.ok() });
    }
}

async fn answer(request: Request<Incoming>, seen: Arc<Seen>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let arrived = epoch::nanos(Instant::now());
    let path = request.uri().path();
    let (hangs, fails) = (path.starts_with(HANG), path.starts_with(FAIL));
    let to = path.rsplit('/').next().and_then(|number| number.parse().ok());
    let mut response = Response::new(Empty::new());
    match (to, request.into_body().collect().await) {
        (Some(to), Ok(body)) => {
            if let Some((number, posted)) = arrival::read(&body.to_bytes()) {
                seen.note(Arrival {
                    to,
                    number,
                    posted,
                    arrived,
                });
            }
        }
        _ => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    if fails {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
    if hangs {
        // The client gives up and closes the connection, which drops this.
        std::future::pending::<()>().await;
    }
    Ok(response)
}
