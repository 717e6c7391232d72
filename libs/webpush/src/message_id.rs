//! Message ids, which clients know as versions: opaque, and enough to find the message.
//!
//! What is encrypted is the same for two messages of one channel and millisecond, or of one topic; the id is not, since what Fernet
//! encrypts twice looks different. The id as a whole names a message: nothing is stored by what is in it.
//!
//! Where the request of a message is traced, its `traceparent` is in the id as well, so that the node that sends the message days later
//! goes on with the trace. No other id holds one: those are as long as without traces, and their length says so.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{Keys, Topic};

/// Longest id without a `traceparent`: that of a topic with as many characters as it may have. The shortest one with it has 247.
const LONGEST_UNTRACED: usize = 226;

/// What is in a message id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageId {
    /// The client.
    pub uaid: Uuid,
    /// Its channel.
    pub channel: Uuid,
    /// The topic of the message.
    pub topic: Option<Topic>,
}

impl MessageId {
    /// The id of a message that was received at `at`, with the `traceparent` of its request where that is recorded.
    pub fn seal(&self, keys: &Keys, at: DateTime<Utc>, traceparent: Option<&str>) -> String {
        let (uaid, channel) = (self.uaid.simple(), self.channel.simple());
        let mut plain = match &self.topic {
            Some(topic) => format!("01:{uaid}:{channel}:{topic}"),
            None => format!("02:{uaid}:{channel}:{}", at.timestamp_millis()),
        };
        if let Some(traceparent) = traceparent {
            plain.push(':');
            plain.push_str(traceparent);
        }
        keys.seal(plain.as_bytes(), at)
    }

    /// Whether an id is so long that it holds a `traceparent`.
    pub fn is_traced(id: &str) -> bool {
        id.len() > LONGEST_UNTRACED
    }

    /// The `traceparent` in an id.
    pub fn traceparent(keys: &Keys, id: &str) -> Option<String> {
        if !Self::is_traced(id) {
            return None;
        }
        let plain = String::from_utf8(keys.open(id)?).ok()?;
        plain.splitn(5, ':').nth(4).map(ToOwned::to_owned)
    }

    /// Reads an id.
    pub fn open(keys: &Keys, id: &str) -> Option<Self> {
        let plain = String::from_utf8(keys.open(id)?).ok()?;
        let mut parts = plain.splitn(5, ':');
        let (version, uaid, channel) = (parts.next()?, parts.next()?, parts.next()?);
        let last = parts.next()?;
        let topic = match version {
            "01" => Some(Topic::parse(last).ok()?),
            "02" => {
                last.parse::<u64>().ok()?;
                None
            }
            _ => return None,
        };
        Some(Self {
            uaid: uaid.parse().ok()?,
            channel: channel.parse().ok()?,
            topic,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base64url;

    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

    fn keys() -> Keys {
        Keys::parse(&base64url::encode(&[5; 32])).unwrap()
    }

    fn id(topic: Option<&str>) -> MessageId {
        MessageId {
            uaid: Uuid::from_u128(1),
            channel: Uuid::from_u128(2),
            topic: topic.map(|topic| Topic::parse(topic).unwrap()),
        }
    }

    #[test]
    fn an_id_is_read_back_and_is_the_one_that_the_contract_describes() {
        for (topic, plain) in [
            (
                None,
                "02:00000000000000000000000000000001:00000000000000000000000000000002:0",
            ),
            (
                Some("news"),
                "01:00000000000000000000000000000001:00000000000000000000000000000002:news",
            ),
        ] {
            let sealed = id(topic).seal(&keys(), NOW, None);
            assert_eq!(keys().open(&sealed).unwrap(), plain.as_bytes());
            assert_eq!(MessageId::open(&keys(), &sealed), Some(id(topic)));
        }
    }

    #[test]
    fn an_id_holds_the_trace_of_its_request_and_is_longer_than_all_without() {
        let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let longest = "x".repeat(32);
        let now = DateTime::from_timestamp(4_102_444_800, 0).unwrap();
        for topic in [None, Some("n"), Some(&*longest)] {
            let sealed = id(topic).seal(&keys(), now, Some(traceparent));
            assert_eq!(MessageId::open(&keys(), &sealed), Some(id(topic)));
            assert_eq!(
                MessageId::traceparent(&keys(), &sealed).as_deref(),
                Some(traceparent)
            );
            let untraced = id(topic).seal(&keys(), now, None);
            assert!(!MessageId::is_traced(&untraced), "{untraced}");
            assert_eq!(MessageId::traceparent(&keys(), &untraced), None);
        }
        assert_eq!(
            id(Some(&longest)).seal(&keys(), now, None).len(),
            LONGEST_UNTRACED
        );
    }

    #[test]
    fn two_messages_of_one_instant_or_topic_have_their_own_ids() {
        for topic in [None, Some("news")] {
            let sealed = || id(topic).seal(&keys(), NOW, None);
            assert_ne!(sealed(), sealed());
        }
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for plain in [
            "",
            "03:1:2:3",
            "02:1:2:3",
            "01:00000000000000000000000000000001:x:news",
            "02",
        ] {
            let sealed = keys().seal(plain.as_bytes(), NOW);
            assert_eq!(MessageId::open(&keys(), &sealed), None, "{plain}");
        }
        assert_eq!(MessageId::open(&keys(), "nonsense"), None);
    }
}
