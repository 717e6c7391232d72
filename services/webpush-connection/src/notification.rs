//! Notifications as clients get them, whether they were stored or not, and the spans of sending them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use store::webpush::Message;
use telemetry::traces::{self, Kind, Span};
use webpush::Push;

use crate::endpoints::Endpoints;
use crate::protocol::{Headers, Notification, ServerMessage};

const SEND: (&str, &str) = ("send", "notification");

/// A notification that an endpoint node hands over.
pub(crate) fn direct(push: &Push) -> String {
    let data = push.data.as_deref().filter(|data| !data.is_empty());
    let headers = push.headers.as_ref().filter(|_| data.is_some());
    let notification = Notification {
        channel: push.channel,
        version: &push.version,
        data,
        headers: headers.map(|headers| Headers {
            encoding: &headers.encoding,
            encryption: headers.encryption.as_deref(),
            crypto_key: headers.crypto_key.as_deref(),
        }),
    };
    ServerMessage::Notification(notification).text()
}

/// A message from storage.
pub(crate) fn stored(message: &Message) -> String {
    let body = message.body.as_ref().filter(|body| !body.data.is_empty());
    let data = body.map(|body| URL_SAFE_NO_PAD.encode(&body.data));
    let notification = Notification {
        channel: message.channel,
        version: &message.version,
        data: data.as_deref(),
        headers: body.map(|body| Headers {
            encoding: &body.encoding,
            encryption: body.encryption.as_deref(),
            crypto_key: body.crypto_key.as_deref(),
        }),
    };
    ServerMessage::Notification(notification).text()
}

/// The span of sending a notification that an endpoint node hands over, a part of that request. It ends when the socket has taken it.
pub(crate) fn span_of_direct() -> Span {
    with_source("direct", Span::under_current(Kind::Internal, SEND))
}

/// The span of sending a message from storage, which goes on with the trace that is in its message id.
pub(crate) fn span_of_stored(id: Option<&str>, endpoints: &Endpoints) -> Span {
    let id = id.filter(|_| traces::are_on());
    let traceparent = id.and_then(|id| endpoints.traceparent_in(id));
    with_source(
        "stored",
        Span::begin(Kind::Internal, SEND, traceparent.as_deref()),
    )
}

fn with_source(source: &'static str, mut span: Span) -> Span {
    span.set("postrider.source", source);
    span
}
