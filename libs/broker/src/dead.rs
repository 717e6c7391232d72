//! Consuming dead letters: whatever is in the message, with what the server says about why it is there.

use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable};
use serde_json::{Map, Value, json};

use crate::Receipt;
use crate::subscription::{Received, Subscription};

/// A message that the server moved to the dead letters.
#[derive(Debug)]
pub struct DeadLetter {
    /// The body as it came, of any length and content.
    pub body: Vec<u8>,
    /// The property `message_id`; the id of the row if one of ours was the sender.
    pub message_id: Option<String>,
    /// Why it was first dead-lettered: `rejected`, `delivery_limit`, `expired` or `maxlen`.
    pub reason: Option<String>,
    /// The queue in which that happened, with its prefix.
    pub first_queue: Option<String>,
    /// How often that happened in that queue; 0 if the server does not say.
    pub count: u64,
    /// All headers. Bytes that are not UTF-8 are replaced.
    pub headers: Value,
    /// The right to settle it.
    pub receipt: Receipt,
}

/// Consumes a queue of dead letters for as long as the broker lives, across reconnects.
///
/// Dropping it stops consuming in the background; [`DeadConsumer::close`] waits until that is done.
pub struct DeadConsumer {
    subscription: Subscription,
}

impl DeadConsumer {
    pub(crate) fn new(subscription: Subscription) -> Self {
        Self { subscription }
    }

    /// Waits for a dead letter, then takes what else has arrived, up to `max` (at least 1) in all.
    ///
    /// `None` when the consumer is stopped or the broker closed. Cancel-safe.
    pub async fn next_batch(&mut self, max: usize) -> Option<Vec<DeadLetter>> {
        let received = self.subscription.next(max).await?;
        Some(received.into_iter().map(read).collect())
    }

    /// Takes no more messages and hands the prefetched ones back, while those already returned can still be
    /// settled.
    pub async fn stop(&mut self) {
        self.subscription.stop().await;
    }

    /// Stops, and closes the channel: what has not been settled by now goes back to the queue.
    pub async fn close(self) {
        self.subscription.close().await;
    }
}

fn read(Received { delivery, receipt }: Received) -> DeadLetter {
    let Delivery {
        properties,
        data: body,
        ..
    } = delivery;
    let headers = properties.headers().as_ref().map_or_else(|| json!({}), table);
    let death = Death::read(&headers);
    let message_id = properties.message_id().as_ref().map(ToString::to_string);
    DeadLetter {
        body,
        message_id,
        reason: death.reason,
        first_queue: death.queue,
        count: death.count,
        headers,
        receipt,
    }
}

/// The first death of a message. The server writes a list `x-death` with an entry per queue and reason,
/// latest first, and repeats which of them came first in headers of their own.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Death {
    pub(crate) reason: Option<String>,
    pub(crate) queue: Option<String>,
    pub(crate) count: u64,
}

impl Death {
    pub(crate) fn read(headers: &Value) -> Self {
        let deaths = headers["x-death"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (first_reason, first_queue) = (&headers["x-first-death-reason"], &headers["x-first-death-queue"]);
        let is_first = |death: &&Value| death["reason"] == *first_reason && death["queue"] == *first_queue;
        let Some(first) = deaths.iter().find(is_first).or(deaths.last()) else {
            return Self {
                reason: text(first_reason),
                queue: text(first_queue),
                count: 0,
            };
        };
        Self {
            reason: text(&first["reason"]),
            queue: text(&first["queue"]),
            count: first["count"].as_u64().unwrap_or_default(),
        }
    }
}

pub(crate) fn table(table: &FieldTable) -> Value {
    let fields = table
        .inner()
        .iter()
        .map(|(name, value)| (name.to_string(), json(value)));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn json(value: &AMQPValue) -> Value {
    let text = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes).into_owned());
    match value {
        AMQPValue::Boolean(value) => json!(value),
        AMQPValue::ShortShortInt(value) => json!(value),
        AMQPValue::ShortShortUInt(value) => json!(value),
        AMQPValue::ShortInt(value) => json!(value),
        AMQPValue::ShortUInt(value) => json!(value),
        AMQPValue::LongInt(value) => json!(value),
        AMQPValue::LongUInt(value) => json!(value),
        AMQPValue::LongLongInt(value) => json!(value),
        AMQPValue::Float(value) => json!(value),
        AMQPValue::Double(value) => json!(value),
        AMQPValue::DecimalValue(value) => json!({ "value": value.value, "scale": value.scale }),
        AMQPValue::ShortString(value) => json!(value.as_str()),
        AMQPValue::LongString(value) => text(value.as_bytes()),
        AMQPValue::FieldArray(values) => values.as_slice().iter().map(json).collect(),
        AMQPValue::Timestamp(value) => json!(value),
        AMQPValue::FieldTable(value) => table(value),
        AMQPValue::ByteArray(value) => text(value.as_slice()),
        AMQPValue::Void => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_death_is_found_among_several() {
        let headers = json!({
            "x-first-death-reason": "delivery_limit",
            "x-first-death-queue": "push.ready",
            "x-death": [
                { "reason": "rejected", "queue": "push.dead", "count": 9 },
                { "reason": "delivery_limit", "queue": "push.ready", "count": 2 },
            ],
        });
        let expected = Death {
            reason: Some("delivery_limit".to_owned()),
            queue: Some("push.ready".to_owned()),
            count: 2,
        };
        assert_eq!(Death::read(&headers), expected);
    }

    #[test]
    fn message_without_deaths_has_no_reason() {
        for headers in [
            json!({}),
            json!({ "x-death": "nonsense" }),
            json!({ "x-death": [] }),
        ] {
            assert_eq!(Death::read(&headers), Death::default(), "{headers}");
        }
    }

    #[test]
    fn headers_of_every_type_become_json() {
        let mut inner = FieldTable::default();
        inner.insert("count".into(), AMQPValue::LongLongInt(-3));
        let mut headers = FieldTable::default();
        headers.insert("bytes".into(), AMQPValue::LongString(b"a\xffb".as_slice().into()));
        headers.insert(
            "list".into(),
            AMQPValue::FieldArray(vec![AMQPValue::Void, true.into()].into()),
        );
        headers.insert("table".into(), AMQPValue::FieldTable(inner));
        assert_eq!(
            table(&headers),
            json!({ "bytes": "a\u{fffd}b", "list": [null, true], "table": { "count": -3 } })
        );
    }
}
