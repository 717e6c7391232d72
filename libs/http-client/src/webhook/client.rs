//! The client itself: settings in, attempts out. Every bound on an attempt is set or enforced here.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use domain::notification::DeliveryOutcome;
use hickory_resolver::net::NetError;
use http::{HeaderMap, Method};
use reqwest::{Body, Certificate, Client, ClientBuilder, Request, redirect};
use tokio::time::timeout_at;

use super::connecting::{self, Follow, Phase};
use super::endpoint::Endpoint;
use super::guard::Guard;
use super::policy::{EgressPolicy, Refusal, Transport};
use super::resolver::{NameResolver, SystemResolver};
use super::{answer, failure};

/// Idle connections are closed by us before usual receivers do, the quickest of which (Node.js, Apache) wait for five
/// seconds: a request that meets a closing connection counts as a failed attempt.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// As many connections to one receiver as its subscriptions may keep busy together.
const POOL_MAX_IDLE: usize = 256;
/// Bounds the connections that are opened for no attempt in particular, because their attempt found an idle one meanwhile;
/// an attempt has its own deadline.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// What all attempts have in common.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// What may be dialled.
    pub egress: EgressPolicy,
    /// How many bytes of an answer's body are kept.
    pub response_body_bytes: usize,
}

/// One notification, ready to be sent.
#[derive(Debug)]
pub struct WebhookRequest {
    /// Where to.
    pub endpoint: Endpoint,
    /// Everything but `host`, `content-length`, `user-agent` and `accept`.
    pub headers: HeaderMap,
    /// Sent byte for byte.
    pub body: Bytes,
    /// The one deadline over looking the name up, connecting, TLS, the headers and the body of the answer.
    pub timeout: Duration,
}

/// What came of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookReply {
    /// From the first poll of the send until its status, or its failure, was known.
    pub elapsed: Duration,
    /// The outcome.
    pub outcome: DeliveryOutcome,
    /// How far it had come by then. With an idle connection it begins at [`Phase::Waiting`].
    pub phase: Phase,
}

/// Why the client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// An extra trust root is no certificate.
    #[error("an extra trust root is not a certificate")]
    TrustRoot(#[source] reqwest::Error),
    /// The resolver could not be set up.
    #[error("the name resolver could not be set up")]
    Resolver(#[source] NetError),
    /// The HTTP client could not be set up, for example because the system's certificates are unreadable.
    #[error("the HTTP client could not be set up")]
    Client(#[source] reqwest::Error),
}

/// Sends notifications to resellers' endpoints. Cloning it is cheap; clones share the connections.
#[derive(Clone)]
pub struct WebhookClient {
    secure: Client,
    /// There only when plain http is allowed at all.
    plain: Option<Client>,
    policy: Arc<EgressPolicy>,
    response_body_bytes: usize,
}

/// Makes clients that differ from the usual in whom they ask and trust; for tests and for private installations.
pub struct WebhookClientBuilder {
    settings: WebhookSettings,
    names: Option<Arc<dyn NameResolver>>,
    trusted: Vec<Vec<u8>>,
}

impl WebhookClient {
    /// A client that asks the system's name servers and trusts the system's certificate authorities. Makes ring the
    /// process's TLS crypto provider if none is chosen yet.
    pub fn new(settings: &WebhookSettings) -> Result<Self, WebhookError> {
        Self::builder(settings).build()
    }

    /// A client that may be made differently.
    pub fn builder(settings: &WebhookSettings) -> WebhookClientBuilder {
        WebhookClientBuilder {
            settings: settings.clone(),
            names: None,
            trusted: Vec::new(),
        }
    }

    /// What it may dial.
    pub fn policy(&self) -> &EgressPolicy {
        &self.policy
    }

    /// Makes one attempt. Whatever comes of it is data.
    ///
    /// Cancel-safe in that nothing is left running; whether the receiver got the notification is then unknown.
    pub async fn send(&self, request: WebhookRequest) -> WebhookReply {
        let started = Instant::now();
        let (client, request, timeout) = match self.prepare(request) {
            Ok(prepared) => prepared,
            Err(refusal) => return reply(started, failure::refused(refusal), Phase::Resolving),
        };
        let deadline = tokio::time::Instant::from_std(started) + timeout;
        let exchange = connecting::followed(async {
            let answered = timeout_at(deadline, client.execute(request)).await;
            (answered, connecting::phase())
        });
        match exchange.await {
            (Ok(Ok(response)), phase) => {
                let elapsed = started.elapsed();
                let outcome = answer::outcome_of(response, self.response_body_bytes, deadline).await;
                WebhookReply {
                    elapsed,
                    outcome,
                    phase,
                }
            }
            (Ok(Err(error)), phase) => reply(started, failure::outcome_of(&error), phase),
            (Err(_elapsed), phase) => reply(started, failure::timed_out(timeout, phase), phase),
        }
    }

    /// The client for the request's scheme, and the request as it takes it. Refuses what can be refused without looking
    /// a name up: hosts that are addresses are dialled without asking the guard.
    fn prepare(&self, request: WebhookRequest) -> Result<(&Client, Request, Duration), Refusal> {
        let endpoint = request.endpoint;
        let client = match endpoint.transport() {
            Transport::Tls => &self.secure,
            Transport::Plain => self.plain.as_ref().ok_or(Refusal::PlainHttp)?,
        };
        self.policy.check_port(endpoint.port())?;
        if let Some(address) = endpoint.literal() {
            self.policy.check_for(endpoint.transport(), address)?;
        }
        let mut prepared = Request::new(Method::POST, endpoint.url().clone());
        *prepared.headers_mut() = request.headers;
        *prepared.body_mut() = Some(Body::from(request.body));
        Ok((client, prepared, request.timeout))
    }
}

fn reply(started: Instant, outcome: DeliveryOutcome, phase: Phase) -> WebhookReply {
    WebhookReply {
        elapsed: started.elapsed(),
        outcome,
        phase,
    }
}

impl WebhookClientBuilder {
    /// Asks `names` instead of the system's name servers. Its answers are judged like all others.
    pub fn resolver(mut self, names: Arc<dyn NameResolver>) -> Self {
        self.names = Some(names);
        self
    }

    /// Trusts the certificate authority with the certificate `der`, besides those of the system.
    pub fn trust(mut self, der: Vec<u8>) -> Self {
        self.trusted.push(der);
        self
    }

    /// Makes the client.
    pub fn build(self) -> Result<WebhookClient, WebhookError> {
        // An error means that another part of the process was first, with the workspace's only provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let policy = self.settings.egress;
        let names = match self.names {
            Some(names) => names,
            None => Arc::new(SystemResolver::new().map_err(WebhookError::Resolver)?),
        };
        let trusted = self
            .trusted
            .iter()
            .map(|der| Certificate::from_der(der).map_err(WebhookError::TrustRoot))
            .collect::<Result<Vec<_>, _>>()?;
        let guard = |transport| Guard::new(Arc::clone(&names), policy.clone(), transport);
        let secure = common(guard(Transport::Tls))
            .https_only(true)
            .tls_certs_merge(trusted)
            .build()
            .map_err(WebhookError::Client)?;
        // It has no use for the system's certificates, so it need not load them.
        let plain = || common(guard(Transport::Plain)).tls_certs_only([]).build();
        let plain = policy
            .allow_http
            .then(plain)
            .transpose()
            .map_err(WebhookError::Client)?;
        Ok(WebhookClient {
            secure,
            plain,
            policy: Arc::new(policy),
            response_body_bytes: self.settings.response_body_bytes,
        })
    }
}

fn common(guard: Guard) -> ClientBuilder {
    Client::builder()
        .dns_resolver(guard)
        .connector_layer(Follow)
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .http1_only()
        .tcp_nodelay(true)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .pool_max_idle_per_host(POOL_MAX_IDLE)
        .user_agent(concat!("postrider/", env!("CARGO_PKG_VERSION")))
}

impl fmt::Debug for WebhookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookClient")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
