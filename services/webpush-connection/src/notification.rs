//! Notifications as clients get them, whether they were stored or not.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use store::webpush::Message;
use webpush::Push;

use crate::protocol::{Headers, Notification, ServerMessage};

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
