//! One or several [`Envelope`]s made ready for publishing: exchange, routing key, properties, body.

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};

use crate::{Envelope, Queue};

/// RabbitMQ keeps messages with this delivery mode on disk.
const PERSISTENT: u8 = 2;

/// A message on its way to the server.
pub(crate) struct Message {
    pub(crate) exchange: String,
    pub(crate) routing_key: &'static str,
    pub(crate) properties: BasicProperties,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// A message about a row, and about `others` that share it.
    pub(crate) fn new(queue: Queue, prefix: &str, envelope: &Envelope, others: &[Envelope]) -> Self {
        let mut properties = BasicProperties::default()
            .with_content_type("application/json".into())
            .with_delivery_mode(PERSISTENT)
            .with_message_id(envelope.id.to_string().into())
            .with_type(envelope.kind.as_str().into());
        // The property is unsigned; a time before 1970 is left out rather than turned into a distant future.
        if let Ok(seconds) = u64::try_from(envelope.enqueued_at.timestamp()) {
            properties = properties.with_timestamp(seconds);
        }
        if let Some(traceparent) = envelope.valid_traceparent() {
            let mut headers = FieldTable::default();
            headers.insert("traceparent".into(), AMQPValue::LongString(traceparent.into()));
            properties = properties.with_headers(headers);
        }
        Self {
            exchange: queue.full_exchange(prefix),
            routing_key: queue.name(),
            properties,
            body: envelope.encode_with(others),
        }
    }
}
