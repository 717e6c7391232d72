//! What clients and the node say to each other, as JSON in text frames.
//!
//! It deliberately decides nothing: what follows from a message is in `connection`.

use std::collections::{BTreeMap, HashMap};

use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

/// A message of a client. Fields that are not named here mean nothing: clients of ten years send them.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "messageType", rename_all = "snake_case")]
pub(crate) enum ClientMessage {
    Hello {
        uaid: Option<String>,
        broadcasts: Option<HashMap<String, String>>,
    },
    Register {
        #[serde(rename = "channelID", deserialize_with = "channel")]
        channel: Uuid,
        key: Option<String>,
    },
    Unregister {
        #[serde(rename = "channelID", deserialize_with = "channel")]
        channel: Uuid,
    },
    BroadcastSubscribe {
        broadcasts: HashMap<String, String>,
    },
    Ack {
        updates: Vec<Update>,
    },
    Nack {
        code: Option<i64>,
    },
    Ping,
}

/// That a client has a notification.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Update {
    pub(crate) version: String,
    pub(crate) code: Option<i64>,
}

impl ClientMessage {
    /// Reads a text frame.
    pub(crate) fn read(text: &str) -> Result<Self, serde_json::Error> {
        // An array of the type and the members in their order would be read as well.
        if !text.trim_ascii_start().starts_with('{') {
            return Err(serde_json::Error::custom("the message is no object"));
        }
        serde_json::from_str(text).or_else(|error| {
            let members: BTreeMap<&str, IgnoredAny> = serde_json::from_str(text).map_err(|_| error)?;
            if members.is_empty() {
                Ok(Self::Ping)
            } else {
                Err(serde_json::Error::custom("the message is none of the protocol"))
            }
        })
    }
}

/// A channel has one spelling, lower-case with dashes, so that a client that compares texts finds it again.
fn channel<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
    let text = String::deserialize(deserializer)?;
    let channel = Uuid::try_parse(&text).map_err(D::Error::custom)?;
    if *channel.as_hyphenated().encode_lower(&mut Uuid::encode_buffer()) == *text {
        Ok(channel)
    } else {
        Err(D::Error::custom("a channelID is lower-case and has dashes"))
    }
}

/// A message to a client.
#[derive(Debug, Serialize)]
#[serde(tag = "messageType", rename_all = "snake_case")]
pub(crate) enum ServerMessage<'a> {
    Hello {
        uaid: uuid::fmt::Simple,
        status: u16,
        use_webpush: bool,
        broadcasts: BroadcastsSaid,
    },
    Register {
        #[serde(rename = "channelID")]
        channel: Uuid,
        status: u16,
        #[serde(rename = "pushEndpoint")]
        endpoint: &'a str,
    },
    Unregister {
        #[serde(rename = "channelID")]
        channel: Uuid,
        status: u16,
    },
    Broadcast {
        broadcasts: BroadcastsSaid,
    },
    Notification(Notification<'a>),
}

/// A notification as a client gets it: never with its TTL, its topic or its time.
#[derive(Debug, Serialize)]
pub(crate) struct Notification<'a> {
    #[serde(rename = "channelID")]
    pub(crate) channel: Uuid,
    pub(crate) version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) headers: Option<Headers<'a>>,
}

/// What a client needs to decrypt the data.
#[derive(Debug, Serialize)]
pub(crate) struct Headers<'a> {
    pub(crate) encoding: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) encryption: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) crypto_key: Option<&'a str>,
}

/// Versions of broadcasts; what is not known stands under `errors`.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct BroadcastsSaid {
    #[serde(flatten)]
    pub(crate) versions: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) errors: BTreeMap<String, &'static str>,
}

impl BroadcastsSaid {
    pub(crate) fn is_empty(&self) -> bool {
        self.versions.is_empty() && self.errors.is_empty()
    }
}

/// The answer to a ping of the protocol.
pub(crate) const PONG: &str = "{}";

impl ServerMessage<'_> {
    /// As it is sent.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("invariant: texts, numbers and maps by text are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_members_is_a_ping() {
        for text in ["{}", " { } ", r#"{"messageType":"ping"}"#] {
            assert_eq!(ClientMessage::read(text).unwrap(), ClientMessage::Ping, "{text}");
        }
    }

    #[test]
    fn what_is_none_of_the_protocol_is_refused() {
        for text in [
            "",
            "{",
            "[]",
            r#"["ping"]"#,
            r#" ["hello",null,null]"#,
            "null",
            r#""hello""#,
            r#"{"messageType":"greet"}"#,
            r#"{"a":1}"#,
            r#"{"messageType":"ack"}"#,
            r#"{"messageType":"register","channelID":"0A000000-0000-4000-8000-000000000000"}"#,
            r#"{"messageType":"register","channelID":"0a000000000040008000000000000000"}"#,
            r#"{"messageType":"unregister","channelID":"nope"}"#,
            r#"{"messageType":"unregister"}"#,
            r#"{"messageType":"unregister","channelID":"0A000000-0000-4000-8000-000000000000"}"#,
            r#"{"messageType":"register","channelID":"urn:uuid:0a000000-0000-4000-8000-000000000000"}"#,
            r#"{"messageType":"Hello"}"#,
            r#"{"messageType":"hello","uaid":1}"#,
            r#"{"messageType":"broadcast_subscribe"}"#,
            r#"{"messageType":"ack","updates":[{"channelID":"0a000000-0000-4000-8000-000000000000"}]}"#,
        ] {
            assert!(ClientMessage::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fields_that_mean_nothing_are_left_out() {
        let text = r#"{"messageType":"hello","uaid":"x","channelIDs":["y"],"use_webpush":true,"wakeup_host":{},"_x":1}"#;
        let hello = ClientMessage::Hello {
            uaid: Some("x".to_owned()),
            broadcasts: None,
        };
        assert_eq!(ClientMessage::read(text).unwrap(), hello);
    }

    #[test]
    fn a_notification_without_data_has_neither_data_nor_headers() {
        let notification = ServerMessage::Notification(Notification {
            channel: Uuid::nil(),
            version: "v",
            data: None,
            headers: None,
        });
        assert_eq!(
            notification.text(),
            r#"{"messageType":"notification","channelID":"00000000-0000-0000-0000-000000000000","version":"v"}"#
        );
    }
}
