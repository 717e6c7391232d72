//! The internal port: endpoint nodes hand messages over, and say that something was stored.
//!
//! The endpoint node that hands a message over keeps it until this node answers that the client has it: a node that is killed, frozen
//! or cut off loses nothing that a sender was told is safe.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::routing::put;
use http::StatusCode;
use store::webpush::Newer;
use telemetry::Metric;
use tokio::time::{Instant, timeout};
use uuid::Uuid;
use webpush::Push;

use crate::mailbox::{Delivery, Receipt, Refused};
use crate::node::Node;
use crate::notification;

/// Where messages are handed over.
pub(crate) const PUSH: &str = "/push/{uaid}";
/// Largest message with everything around it, in bytes. Endpoint nodes take bodies of a tenth of that.
const BODY_BYTES: usize = 128 * 1024;
/// Longest wait for a client that has let a wait run out lately. Senders that send, wait for the answer, and only then read
/// what was delivered wait for nothing but this.
const SHORT_WAIT: Duration = Duration::from_millis(5);

/// The routes.
pub(crate) fn routes(node: Arc<Node>) -> Router {
    Router::new()
        .route(PUSH, put(push))
        .route("/notif/{uaid}", put(tell))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .with_state(node)
}

/// 200: the client has it, or it has no TTL and is about to be sent. 503: store it. 404: the client is not here; store it.
async fn push(State(node): State<Arc<Node>>, Path(uaid): Path<String>, body: Bytes) -> StatusCode {
    let Ok(push) = serde_json::from_slice::<Push>(&body) else {
        return StatusCode::BAD_REQUEST;
    };
    let (status, outcome) = match deliver(&node, &uaid, push).await {
        Delivered::Acked => {
            node.metrics.acked.increment(1);
            return StatusCode::OK;
        }
        Delivered::Late => (StatusCode::SERVICE_UNAVAILABLE, "late"),
        Delivered::Full => (StatusCode::SERVICE_UNAVAILABLE, "full"),
        Delivered::Away => (StatusCode::NOT_FOUND, "away"),
    };
    Metric::WebpushDirect.increment_with(&[("outcome", outcome)], 1);
    status
}

/// What became of a message that was handed over.
enum Delivered {
    Acked,
    /// The client did not acknowledge it in time. It may have it, or get it still.
    Late,
    Full,
    /// The client is not here, or went away.
    Away,
}

async fn deliver(node: &Node, uaid: &str, push: Push) -> Delivered {
    let mailbox = Uuid::try_parse(uaid)
        .ok()
        .and_then(|uaid| node.registry.find(uaid));
    let Some(mailbox) = mailbox else {
        return Delivered::Away;
    };
    let (receipt, mut settled) = Receipt::new();
    let is_kept = push.ttl > 0;
    let text = notification::direct(&push);
    let received_at = push.received_at();
    let newer = push.topic.map(|topic| Newer {
        channel: push.channel,
        topic: topic.into(),
        received_at,
    });
    let delivery = Delivery {
        text,
        version: push.version.into(),
        is_kept,
        newer: newer.map(Box::new),
        receipt,
        span: notification::span_of_direct(),
    };
    match mailbox.deliver(delivery, node.queue_capacity) {
        Ok(()) if is_kept => {}
        Ok(()) => return Delivered::Acked,
        Err(Refused::Full) => return Delivered::Full,
        Err(Refused::Ended) => return Delivered::Away,
    }
    let is_prompt = mailbox.is_prompt(Instant::now());
    let wait = if is_prompt {
        node.ack_wait
    } else {
        node.ack_wait.min(SHORT_WAIT)
    };
    match timeout(wait, &mut settled).await {
        Ok(Ok(())) => Delivered::Acked,
        Ok(Err(_)) => Delivered::Away,
        Err(_) => {
            if is_prompt {
                mailbox.was_late(Instant::now());
            }
            // From here on the acknowledgement comes too late; one that came in this moment counts.
            settled.close();
            match settled.try_recv() {
                Ok(()) => Delivered::Acked,
                Err(_) => Delivered::Late,
            }
        }
    }
}

/// Has the connection look into storage.
async fn tell(State(node): State<Arc<Node>>, Path(uaid): Path<String>) -> StatusCode {
    let mailbox = Uuid::try_parse(&uaid)
        .ok()
        .and_then(|uaid| node.registry.find(uaid));
    match mailbox.map(|mailbox| mailbox.tell_stored()) {
        Some(Ok(())) => StatusCode::OK,
        _ => StatusCode::NOT_FOUND,
    }
}
