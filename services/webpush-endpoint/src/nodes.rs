//! The connection nodes, over connections that are kept alive.

use std::time::Duration;

use config::WebpushEndpoint;
use http::StatusCode;
use metrics::Counter;
use reqwest::{Client, RequestBuilder, redirect};
use telemetry::Metric;
use uuid::Uuid;

use crate::Error;

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
            client: client.map_err(Error::Client)?,
            taken: answers("push", NodeAnswer::Taken),
        })
    }

    /// Hands a message over.
    pub(crate) async fn push(&self, node: &str, uaid: Uuid, body: Vec<u8>) -> NodeAnswer {
        let request = self
            .client
            .put(format!("{node}/push/{uaid}"))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body);
        let answer = ask(request).await;
        if answer == NodeAnswer::Taken {
            self.taken.increment(1);
        } else {
            answers("push", answer).increment(1);
        }
        answer
    }

    /// Has the node look into the storage.
    pub(crate) async fn check_storage(&self, node: &str, uaid: Uuid) -> NodeAnswer {
        let answer = ask(self.client.put(format!("{node}/notif/{uaid}"))).await;
        answers("notif", answer).increment(1);
        answer
    }
}

fn answers(request: &str, answer: NodeAnswer) -> Counter {
    Metric::WebpushNodeAnswers.counter(&[("request", request), ("answer", answer.name())])
}

async fn ask(request: RequestBuilder) -> NodeAnswer {
    let request = match telemetry::traceparent::current() {
        Some(traceparent) => request.header("traceparent", traceparent),
        None => request,
    };
    match request.send().await {
        Ok(response) => match response.status() {
            StatusCode::OK => NodeAnswer::Taken,
            StatusCode::NOT_FOUND => NodeAnswer::Absent,
            StatusCode::SERVICE_UNAVAILABLE => NodeAnswer::Busy,
            _ => NodeAnswer::Failed,
        },
        Err(error) if error.is_connect() => NodeAnswer::Refused,
        Err(error) => {
            tracing::debug!(%error, "a connection node does not answer");
            NodeAnswer::Silent
        }
    }
}
