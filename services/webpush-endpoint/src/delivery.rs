//! The five rules of delivery: hand over, note who is not there, drop what has no time, store, and tell the node that something is stored.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use store::webpush::{MessageBody, NewMessage, Route, Stored};
use uuid::Uuid;
use webpush::{Push, PushHeaders, Refusal, Topic};

use crate::app::App;
use crate::nodes::NodeAnswer;

/// A message that passed all checks.
pub(crate) struct Accepted {
    pub(crate) uaid: Uuid,
    pub(crate) channel: Uuid,
    pub(crate) version: String,
    pub(crate) topic: Option<Topic>,
    pub(crate) ttl: TimeDelta,
    pub(crate) received_at: DateTime<Utc>,
    pub(crate) body: Option<(bytes::Bytes, PushHeaders)>,
}

/// What became of it.
#[derive(Debug)]
enum Outcome {
    Direct,
    Stored,
    Dropped,
}

/// Brings a message on its way. When this returns well it is with the client's node or in the database, or had no time to be kept.
pub(crate) async fn deliver(app: &Arc<App>, message: Accepted, route: Route) -> Result<(), Refusal> {
    let outcome = route_message(app, message, route).await?;
    let counter = match outcome {
        Outcome::Direct => &app.metrics.direct,
        Outcome::Stored => &app.metrics.stored,
        Outcome::Dropped => &app.metrics.dropped,
    };
    counter.increment(1);
    Ok(())
}

async fn route_message(app: &Arc<App>, message: Accepted, route: Route) -> Result<Outcome, Refusal> {
    let uaid = message.uaid;
    let mut silent = None;
    if let Some(node) = &route.node {
        let answer = app.nodes.push(node, uaid, message.on_the_wire()).await;
        if answer == NodeAnswer::Taken {
            return Ok(Outcome::Direct);
        }
        if answer.is_away() {
            forget(app, uaid, node, route.connected_at).await;
        }
        silent = (answer == NodeAnswer::Silent).then(|| node.clone());
    }
    if message.ttl.is_zero() {
        return Ok(Outcome::Dropped);
    }
    match app.keep(message.into_row()).await? {
        Stored::Yes { node, connected_at } => {
            // It is safe: the sender need not wait for what only makes it quicker.
            if let Some(node) = node {
                tell(app, uaid, node, Some(connected_at));
            } else if let Some(node) = silent {
                // It was forgotten because it was slow. It may have the client all the same.
                tell(app, uaid, node, None);
            }
            Ok(Outcome::Stored)
        }
        Stored::NoClient => Err(Refusal::UserGone),
        Stored::NoChannel => Err(Refusal::NoSubscription),
    }
}

/// Has a node look into the storage, in the background; forgets it when the client that connected to it then is not there.
fn tell(app: &Arc<App>, uaid: Uuid, node: String, connected_at: Option<DateTime<Utc>>) {
    let (context, traceparent) = (Arc::clone(app), telemetry::traceparent::current());
    app.tasks.spawn("notif", async move {
        let answer = context.nodes.check_storage(&node, uaid, traceparent).await;
        if let Some(connected_at) = connected_at.filter(|_| answer.is_away()) {
            forget(&context, uaid, &node, connected_at).await;
        }
    });
}

/// Notes that the client is not at this node, if it has not connected again since. That it could not be noted delays later messages only.
async fn forget(app: &App, uaid: Uuid, node: &str, connected_at: DateTime<Utc>) {
    let forgetting = app.store.webpush_forget_node(uaid, node, connected_at);
    if let Err(error) = store::within(app.config.node_timeout, forgetting).await {
        tracing::debug!(%error, "failed to forget a connection node");
    }
}

impl Accepted {
    fn on_the_wire(&self) -> Vec<u8> {
        let push = Push {
            channel: self.channel,
            version: self.version.clone(),
            ttl: u32::try_from(self.ttl.num_seconds()).unwrap_or(u32::MAX),
            topic: self.topic.as_ref().map(|topic| topic.as_str().to_owned()),
            timestamp: self.received_at.timestamp(),
            received_at_micros: Some(self.received_at.timestamp_micros()),
            data: self.body.as_ref().map(|(data, _)| Push::encode_data(data)),
            headers: self.body.as_ref().map(|(_, headers)| headers.clone()),
        };
        serde_json::to_vec(&push).expect("invariant: texts and numbers can be written as JSON")
    }

    fn into_row(self) -> NewMessage {
        NewMessage {
            uaid: self.uaid,
            channel: self.channel,
            topic: self.topic.map(|topic| topic.as_str().to_owned()),
            version: self.version,
            received_at: self.received_at,
            expires_at: self.received_at + self.ttl,
            body: self.body.map(|(data, headers)| MessageBody {
                data: data.into(),
                encoding: headers.encoding,
                encryption: headers.encryption,
                crypto_key: headers.crypto_key,
            }),
        }
    }
}
