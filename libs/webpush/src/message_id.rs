//! Message ids, which clients know as versions: opaque, and enough to find the message.
//!
//! What is encrypted is the same for two messages of one channel and millisecond, or of one topic; the id is not, since what Fernet
//! encrypts twice looks different. The id as a whole names a message: nothing is stored by what is in it.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{Keys, Topic};

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
    /// The id of a message that was received at `at`.
    pub fn seal(&self, keys: &Keys, at: DateTime<Utc>) -> String {
        let (uaid, channel) = (self.uaid.simple(), self.channel.simple());
        let plain = match &self.topic {
            Some(topic) => format!("01:{uaid}:{channel}:{topic}"),
            None => format!("02:{uaid}:{channel}:{}", at.timestamp_millis()),
        };
        keys.seal(plain.as_bytes(), at)
    }

    /// Reads an id.
    pub fn open(keys: &Keys, id: &str) -> Option<Self> {
        let plain = String::from_utf8(keys.open(id)?).ok()?;
        let mut parts = plain.splitn(4, ':');
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
            let sealed = id(topic).seal(&keys(), NOW);
            assert_eq!(keys().open(&sealed).unwrap(), plain.as_bytes());
            assert_eq!(MessageId::open(&keys(), &sealed), Some(id(topic)));
        }
    }

    #[test]
    fn two_messages_of_one_instant_or_topic_have_their_own_ids() {
        for topic in [None, Some("news")] {
            assert_ne!(id(topic).seal(&keys(), NOW), id(topic).seal(&keys(), NOW));
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
