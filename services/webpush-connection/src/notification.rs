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

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::{Value, json};
    use store::webpush::MessageBody;
    use uuid::Uuid;
    use webpush::PushHeaders;

    use super::*;

    /// The same message, handed over and stored.
    fn told(data: Option<&[u8]>) -> [Value; 2] {
        let keys = (Some("salt=a".to_owned()), Some("dh=b".to_owned()));
        let push = Push {
            channel: Uuid::nil(),
            version: "v".to_owned(),
            ttl: 60,
            topic: Some("t".to_owned()),
            timestamp: 7,
            received_at_micros: Some(7_000_000),
            data: data.map(Push::encode_data),
            headers: data.map(|_| PushHeaders {
                encoding: "aesgcm".to_owned(),
                encryption: keys.0.clone(),
                crypto_key: keys.1.clone(),
            }),
        };
        let message = Message {
            id: 1,
            channel: Uuid::nil(),
            topic: Some("t".to_owned()),
            version: "v".to_owned(),
            received_at: DateTime::UNIX_EPOCH,
            expires_at: DateTime::UNIX_EPOCH,
            body: data.map(|data| MessageBody {
                data: data.to_vec(),
                encoding: "aesgcm".to_owned(),
                encryption: keys.0,
                crypto_key: keys.1,
            }),
        };
        [direct(&push), stored(&message)].map(|text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn a_notification_is_the_same_handed_over_and_stored_and_tells_no_ttl_topic_or_time() {
        let without = json!({
            "messageType": "notification", "channelID": "00000000-0000-0000-0000-000000000000", "version": "v",
        });
        for nothing in [None, Some(b"".as_slice())] {
            assert_eq!(told(nothing), [without.clone(), without.clone()]);
        }
        let mut with = without;
        with["data"] = json!("__4");
        with["headers"] = json!({"encoding": "aesgcm", "encryption": "salt=a", "crypto_key": "dh=b"});
        assert_eq!(told(Some(&[0xff, 0xfe])), [with.clone(), with]);
    }
}
