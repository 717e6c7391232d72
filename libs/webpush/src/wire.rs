//! What an endpoint node and a connection node say to each other: `PUT /push/{uaid}`.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::base64url;

/// A message on its way to a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    /// The channel.
    #[serde(rename = "channelID")]
    pub channel: Uuid,
    /// The message id.
    pub version: String,
    /// For how long it is worth something, in seconds from `timestamp` on.
    pub ttl: u32,
    /// Replaces the message of the same topic.
    pub topic: Option<String>,
    /// When it was received, in seconds of Unix time.
    pub timestamp: i64,
    /// The same in microseconds, as precise as it is stored; endpoint nodes that are older do not say it.
    #[serde(rename = "receivedAtMicros", default, skip_serializing_if = "Option::is_none")]
    pub received_at_micros: Option<i64>,
    /// The body, in base64 for URLs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// How the body is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<PushHeaders>,
}

/// How the body of a message is encrypted, as clients are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushHeaders {
    /// The content coding.
    pub encoding: String,
    /// The header `Encryption`, without quotes and padding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
    /// The header `Crypto-Key`, without quotes and padding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crypto_key: Option<String>,
}

impl Push {
    /// The bytes of a body, as `data` has them.
    pub fn encode_data(bytes: &[u8]) -> String {
        base64url::encode(bytes)
    }

    /// The body; `None` when there is none or when it is not base64.
    pub fn decode_data(&self) -> Option<Vec<u8>> {
        base64url::decode(self.data.as_deref()?)
    }

    /// When it was received: what was stored for its topic with an earlier time is older. Of an endpoint node that says seconds alone,
    /// the beginning of the second, so that nothing newer is taken for older.
    pub fn received_at(&self) -> DateTime<Utc> {
        self.received_at_micros
            .and_then(DateTime::from_timestamp_micros)
            .unwrap_or_else(|| self.times().0)
    }

    /// When it was received, and when its TTL is over.
    pub fn times(&self) -> (DateTime<Utc>, DateTime<Utc>) {
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap_or_default();
        (
            at(self.timestamp),
            at(self.timestamp.saturating_add(self.ttl.into())),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_looks_as_the_contract_says() {
        let mut push = Push {
            channel: Uuid::from_u128(0xabc),
            version: "gAAA".to_owned(),
            ttl: 60,
            topic: None,
            timestamp: 1_000_000_000,
            received_at_micros: None,
            data: Some(Push::encode_data(&[0xff, 0xfe])),
            headers: Some(PushHeaders {
                encoding: "aes128gcm".to_owned(),
                encryption: None,
                crypto_key: None,
            }),
        };
        assert_eq!(
            serde_json::to_string(&push).unwrap(),
            r#"{"channelID":"00000000-0000-0000-0000-000000000abc","version":"gAAA","ttl":60,"topic":null,"timestamp":1000000000,"data":"__4","headers":{"encoding":"aes128gcm"}}"#
        );
        assert_eq!(push.decode_data(), Some(vec![0xff, 0xfe]));
        let (received, expires) = push.times();
        assert_eq!((expires - received).num_seconds(), 60);
        push.data = None;
        push.headers = None;
        let text = serde_json::to_string(&push).unwrap();
        assert!(!text.contains("data") && !text.contains("headers"), "{text}");
        assert_eq!(serde_json::from_str::<Push>(&text).unwrap(), push);
        assert_eq!(push.received_at(), received, "of an older node");
        push.received_at_micros = Some(1_000_000_000_000_007);
        let text = serde_json::to_string(&push).unwrap();
        assert!(text.contains(r#""receivedAtMicros":1000000000000007"#), "{text}");
        let read = serde_json::from_str::<Push>(&text).unwrap();
        assert_eq!((read.received_at() - received).num_microseconds(), Some(7));
    }
}
