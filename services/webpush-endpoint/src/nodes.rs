//! The connection nodes, over connections that are kept alive.

use std::time::Duration;

use config::WebpushEndpoint;
use http::{StatusCode, header};
use lifecycle::error_chain;
use metrics::Counter;
use reqwest::{Client, redirect};
use telemetry::Metric;
use telemetry::traces::{Kind, Span};
use tokio::time::timeout;
use uuid::Uuid;

mod plain;

use crate::Error;
use plain::{Failed, Plain, Request};

/// How long a connection to a node is kept without use: less than nodes keep theirs, so that no request meets one that closes.
const IDLE: Duration = Duration::from_secs(30);

/// What a node says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeAnswer {
    /// The client has the message, or the node looks into the storage.
    Taken,
    /// The client is there, but takes nothing now: the message is to be stored.
    Busy,
    /// The client is not connected there.
    Absent,
    /// The node does not take connections.
    Refused,
    /// The node does not answer in time, so that what it did is not known.
    Silent,
    /// The node answered with something else.
    Failed,
}

impl NodeAnswer {
    fn name(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Busy => "busy",
            Self::Absent => "absent",
            Self::Refused => "refused",
            Self::Silent => "silent",
            Self::Failed => "failed",
        }
    }

    /// Whether the client is to be thought of as not connected there.
    pub(crate) fn is_away(self) -> bool {
        matches!(self, Self::Absent | Self::Refused | Self::Silent)
    }
}

/// The client of all nodes.
pub(crate) struct Nodes {
    plain: Plain,
    /// Longest time until a node answers.
    timeout: Duration,
    /// For nodes that are not at a plain URL, above all behind TLS.
    client: Client,
    /// Messages that were taken, which nearly all are.
    taken: Counter,
}

impl Nodes {
    pub(crate) fn new(config: &WebpushEndpoint) -> Result<Self, Error> {
        let client = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(config.node_connect_timeout)
            .timeout(config.node_timeout)
            .pool_idle_timeout(IDLE)
            .tcp_nodelay(true)
            .build();
        Ok(Self {
            plain: Plain::new(config.node_connect_timeout),
            timeout: config.node_timeout,
            client: client.map_err(Error::Client)?,
            taken: answers("push", NodeAnswer::Taken),
        })
    }

    /// Hands a message over.
    pub(crate) async fn push(&self, node: &str, uaid: Uuid, body: Vec<u8>) -> NodeAnswer {
        let traceparent = telemetry::traceparent::current();
        let span = Span::begin(Kind::Client, ("PUT", "/push/{uaid}"), traceparent.as_deref());
        let url = format!("{node}/push/{uaid}");
        let answer = self.ask(&url, body, traceparent, span).await;
        if answer == NodeAnswer::Taken {
            self.taken.increment(1);
        } else {
            answers("push", answer).increment(1);
        }
        answer
    }

    /// Has the node look into the storage, for the request of this `traceparent`.
    pub(crate) async fn check_storage(
        &self,
        node: &str,
        uaid: Uuid,
        traceparent: Option<String>,
    ) -> NodeAnswer {
        let span = Span::begin(Kind::Client, ("PUT", "/notif/{uaid}"), traceparent.as_deref());
        let url = format!("{node}/notif/{uaid}");
        let answer = self.ask(&url, Vec::new(), traceparent, span).await;
        answers("notif", answer).increment(1);
        answer
    }

    async fn ask(&self, url: &str, body: Vec<u8>, traceparent: Option<String>, mut span: Span) -> NodeAnswer {
        // Of a trace that is not recorded as well: a node that is told nothing decides by itself.
        let traceparent = span.traceparent().or(traceparent);
        let answer = match plain::parts(url) {
            Some((authority, path)) => {
                let request = Request {
                    authority,
                    path,
                    traceparent: traceparent.as_deref(),
                    body: &body,
                };
                self.ask_plainly(&request).await
            }
            None => self.ask_otherwise(url, body, traceparent).await,
        };
        if span.is_recorded() {
            note(&mut span, url, answer);
        }
        answer
    }

    async fn ask_plainly(&self, request: &Request<'_>) -> NodeAnswer {
        match timeout(self.timeout, self.plain.put(request)).await {
            Ok(Ok(status)) => answer_of(status),
            Ok(Err(Failed::Connecting(_))) => NodeAnswer::Refused,
            Ok(Err(failed @ Failed::Answering(_))) => {
                tracing::debug!(error = error_chain(&failed), "a connection node does not answer");
                NodeAnswer::Silent
            }
            Err(_) => {
                tracing::debug!("a connection node does not answer in time");
                NodeAnswer::Silent
            }
        }
    }

    async fn ask_otherwise(&self, url: &str, body: Vec<u8>, traceparent: Option<String>) -> NodeAnswer {
        let mut request = self.client.put(url);
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(traceparent) = traceparent {
            request = request.header("traceparent", traceparent);
        }
        match request.body(body).send().await {
            Ok(response) => answer_of(response.status()),
            Err(error) if error.is_connect() => NodeAnswer::Refused,
            Err(error) => {
                tracing::debug!(%error, "a connection node does not answer");
                NodeAnswer::Silent
            }
        }
    }
}

/// Notes in the span of a request which node was asked and what came of it.
fn note(span: &mut Span, url: &str, answer: NodeAnswer) {
    span.set("http.request.method", "PUT");
    if let Some((host, port)) = plain::parts(url).and_then(|(authority, _)| authority.rsplit_once(':')) {
        span.set("server.address", host.to_owned());
        span.set("server.port", port.parse::<i64>().unwrap_or_default());
    }
    span.set("postrider.outcome", answer.name());
    // That a client is away or busy is no failure.
    if matches!(
        answer,
        NodeAnswer::Refused | NodeAnswer::Silent | NodeAnswer::Failed
    ) {
        span.fail(answer.name());
    }
}

fn answers(request: &str, answer: NodeAnswer) -> Counter {
    Metric::WebpushNodeAnswers.counter(&[("request", request), ("answer", answer.name())])
}

fn answer_of(status: StatusCode) -> NodeAnswer {
    match status {
        StatusCode::OK => NodeAnswer::Taken,
        StatusCode::NOT_FOUND => NodeAnswer::Absent,
        StatusCode::SERVICE_UNAVAILABLE => NodeAnswer::Busy,
        _ => NodeAnswer::Failed,
    }
}
