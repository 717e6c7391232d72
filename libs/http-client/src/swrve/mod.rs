//! The client of the Swrve push API: one call is one attempt.
//!
//! It never follows a redirect, never uses a proxy from the environment and never sends twice. It does not pace (see
//! [`Pacer`](crate::Pacer)), and it does not judge what an answer means for a push (see `domain::push::SendOutcome`).

pub(crate) mod answer;
mod chain;
pub(crate) mod endpoint;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use domain::push::SendOutcome;
use http::{HeaderName, HeaderValue};
use hyper::body::Bytes;
use reqwest::{Body, Client, Request, Url, redirect};

use crate::hand_over::{self, HandOver};
use crate::own_fault;
pub use endpoint::SwrveError;

/// Idle connections are closed by us before usual receivers and balancers do (60 s and more): a request that meets a
/// closing connection counts as unreachable.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// As many connections are worth keeping as there may be sends in flight.
const POOL_MAX_IDLE: usize = 1_024;

/// How to reach the push API. Has no `Debug`: the URL may hold credentials.
#[derive(Clone)]
pub struct SwrveSettings {
    /// The base URL, http or https; `/push` is appended to its path.
    pub url: String,
    /// The one deadline over connecting, the headers and the body of an answer.
    pub timeout: Duration,
    /// Whether pushes are marked as tests (`test=1`).
    pub test: bool,
}

/// Sends pushes to Swrve. Cloning it is cheap; clones share the connections.
#[derive(Clone)]
pub struct SwrveClient {
    http: Client,
    endpoint: Url,
    timeout: Duration,
    test: bool,
}

/// What came of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// From the first poll of the send until its outcome was known.
    pub elapsed: Duration,
    /// The HTTP status code of the answer, if there was one.
    pub status: Option<u16>,
    /// The outcome: delivered, refused, unreachable, or our own failure.
    pub outcome: SendOutcome,
}

/// A request that only needs to be sent, so that nothing is left to do between its turn and its bytes.
#[must_use = "a prepared push is sent by `send`"]
pub struct PreparedPush {
    http: Client,
    request: Result<Request, reqwest::Error>,
    timeout: Duration,
    withheld: Option<Arc<AtomicBool>>,
}

impl SwrveClient {
    /// A client for `settings`. Makes ring the process's TLS crypto provider if none is chosen yet.
    pub fn new(settings: &SwrveSettings) -> Result<Self, SwrveError> {
        let endpoint = endpoint::push_endpoint(&settings.url)?;
        if settings.timeout.is_zero() {
            return Err(SwrveError::ZeroTimeout);
        }
        // An error means that another part of the process was first, with the workspace's only provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .http1_only()
            .tcp_nodelay(true)
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_max_idle_per_host(POOL_MAX_IDLE)
            .user_agent(concat!("postrider/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(SwrveError::Client)?;
        Ok(Self {
            http,
            endpoint,
            timeout: settings.timeout,
            test: settings.test,
        })
    }

    /// Sends one push: to the device `user`, through the campaign of `push_key`.
    ///
    /// Cancel-safe in that nothing is left running; whether Swrve got the push is then unknown.
    pub async fn send(&self, push_key: &str, user: &str, message: &str, traceparent: Option<&str>) -> Reply {
        let prepared = self.prepare(push_key, user, message, traceparent);
        let reply = prepared.send().await;
        reply.expect("invariant: only `PreparedPush::hand_over` can have a push withheld")
    }

    /// Builds the request of one push, to be sent when its turn comes. A `traceparent` that cannot be a header is left
    /// out: a trace is not worth a push.
    pub fn prepare(
        &self,
        push_key: &str,
        user: &str,
        message: &str,
        traceparent: Option<&str>,
    ) -> PreparedPush {
        let mut form = vec![("push_key", push_key), ("user", user), ("message", message)];
        if self.test {
            form.push(("test", "1"));
        }
        let mut prepared = PreparedPush {
            http: self.http.clone(),
            request: self.http.post(self.endpoint.clone()).form(&form).build(),
            timeout: self.timeout,
            withheld: None,
        };
        if let Some(traceparent) = traceparent {
            prepared.set_traceparent(traceparent);
        }
        prepared
    }
}

impl PreparedPush {
    /// Sends this `traceparent`, whatever was to be sent before; one that cannot be a header changes nothing.
    pub fn set_traceparent(&mut self, traceparent: &str) {
        if let (Ok(request), Ok(value)) = (&mut self.request, HeaderValue::from_str(traceparent)) {
            request.headers_mut().insert(TRACEPARENT, value);
        }
    }

    /// The host and port that it goes to; `None` when it cannot be sent.
    pub fn server(&self) -> Option<(&str, u16)> {
        let url = self.request.as_ref().ok()?.url();
        Some((url.host_str()?, url.port_or_known_default()?))
    }

    /// Makes known when the request is handed to its connection, for [`Pacer::watch`](crate::Pacer::watch), and lets
    /// that happen only if `permitted` still says so at that moment. Between the start of a send and its first byte a
    /// connection may have to be opened, and the whole process may have been suspended.
    pub fn hand_over(&mut self, permitted: impl Fn() -> bool + Send + Sync + 'static) -> HandOver {
        let slot = self
            .request
            .as_mut()
            .ok()
            .and_then(|request| request.body_mut().as_mut());
        let content = slot
            .as_ref()
            .and_then(|body| body.as_bytes())
            .map(Bytes::copy_from_slice);
        let watch = hand_over::watch(content.unwrap_or_default(), permitted);
        if let Some(slot) = slot {
            *slot = Body::wrap(watch.body);
        }
        self.withheld = Some(watch.withheld);
        watch.hand_over
    }

    /// Sends the request; the deadline runs from the first poll. `None` when it was withheld, see
    /// [`Self::hand_over`]: then Swrve has got nothing of it.
    ///
    /// Cancel-safe in that nothing is left running; whether Swrve got the push is then unknown.
    pub async fn send(self) -> Option<Reply> {
        let started = Instant::now();
        let (status, outcome) = match self.request {
            Ok(request) => exchange(&self.http, request, self.timeout).await,
            Err(error) => internal(error),
        };
        let withheld = self
            .withheld
            .is_some_and(|withheld| withheld.load(Ordering::SeqCst));
        (!withheld).then(|| Reply {
            elapsed: started.elapsed(),
            status,
            outcome,
        })
    }
}

async fn exchange(http: &Client, request: Request, timeout: Duration) -> (Option<u16>, SendOutcome) {
    let deadline = tokio::time::Instant::now() + timeout;
    match tokio::time::timeout_at(deadline, http.execute(request)).await {
        Ok(Ok(response)) => {
            let status = response.status().as_u16();
            (Some(status), answer::outcome_of(response, deadline).await)
        }
        Ok(Err(error)) if error.is_builder() => internal(error),
        Ok(Err(error)) if own_fault::is_own(&error) => {
            let chain = chain::of(error);
            (None, SendOutcome::NotTried { chain })
        }
        Ok(Err(error)) => unreachable(chain::unanswered(error)),
        Err(_elapsed) => unreachable(format!("no answer within {} ms", timeout.as_millis())),
    }
}

fn internal(error: reqwest::Error) -> (Option<u16>, SendOutcome) {
    let chain = chain::of(error);
    (None, SendOutcome::Internal { chain })
}

fn unreachable(message: String) -> (Option<u16>, SendOutcome) {
    (None, SendOutcome::Unreachable { message })
}

impl fmt::Debug for SwrveClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SwrveClient")
            .field("host", &self.endpoint.host_str())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PreparedPush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedPush").finish_non_exhaustive()
    }
}
