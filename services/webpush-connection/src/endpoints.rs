//! The URLs that senders send to: opaque, and the only thing that a client and a sender have in common. And what the same keys have
//! encrypted besides: the traces in message ids.

use std::sync::Arc;

use domain::clock::Clock;
use uuid::Uuid;
use webpush::{Keys, MessageId, Subscription, VapidKey, endpoint_url};

/// Makes endpoints.
pub(crate) struct Endpoints {
    base: String,
    keys: Keys,
    clock: Arc<dyn Clock>,
}

impl Endpoints {
    /// `base` is where the endpoint nodes are.
    pub(crate) fn new(base: String, keys: Keys, clock: Arc<dyn Clock>) -> Self {
        Self { base, keys, clock }
    }

    /// The endpoint of a channel, for the sender with this key alone if there is one; `None` when the key is none.
    pub(crate) fn make(&self, uaid: Uuid, channel: Uuid, key: Option<&str>) -> Option<String> {
        let key = key.map(VapidKey::parse).transpose().ok()?;
        let subscription = Subscription::new(uaid, channel, key.as_ref());
        Some(endpoint_url(
            &self.base,
            &subscription,
            &self.keys,
            self.clock.now(),
        ))
    }

    /// The `traceparent` in a message id.
    pub(crate) fn traceparent_in(&self, id: &str) -> Option<String> {
        MessageId::traceparent(&self.keys, id)
    }
}
