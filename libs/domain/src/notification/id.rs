//! The identifier of a notification, computed from what makes it unique.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

/// Identifier of a notification: the time of its event, then a hash of event and subscription.
///
/// It is computed, not drawn, so that an event that is fanned out again by any process and however often makes the same
/// rows; and it begins with the event's time, so that it lies in the partition of its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NotificationId(Uuid);

impl NotificationId {
    /// The notification of `subscription` about `event`; the database computes the same with `notification_id()`.
    pub fn of(event: Uuid, subscription: Uuid) -> Self {
        let hash = Sha256::new()
            .chain_update(event.as_bytes())
            .chain_update(subscription.as_bytes())
            .finalize();
        let mut bytes = *event.as_bytes();
        bytes[6..].copy_from_slice(&hash[..10]);
        Self(Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// The identifier as stored.
    pub fn uuid(self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for NotificationId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for NotificationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_the_database_computes_and_keeps_the_time_of_the_event() {
        let event = Uuid::from_u128(0x019a_a2f0_5b1c_7c3e_9d41_6f1f_2a3b_4c5d);
        let subscription = Uuid::from_u128(0x019a_a2f0_5b1c_7c3e_9d41_6f1f_2a3b_4c5e);
        let id = NotificationId::of(event, subscription);
        assert_eq!(id.to_string(), "019aa2f0-5b1c-8025-9519-0863916ea2df");
        assert_ne!(id, NotificationId::of(subscription, event));
    }
}
