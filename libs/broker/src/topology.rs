//! The exchanges, queues and bindings of the product, as one value.
//!
//! The value is declared on every connection and written out as `rabbitmq/definitions.json`; nothing else
//! names a queue or an argument. Arguments are used instead of policies so that an AMQP URL alone is enough
//! to start. How the value is brought to a server, and what happens to a queue that differs, is the business
//! of `declare`.

use std::fmt;

use serde_json::{Value, json};

/// Capacity of `push.ready` in the written definitions: the default of `push.queue.capacity`.
pub const DEFAULT_PUSH_QUEUE_CAPACITY: u32 = 10_000;

/// Deliveries of one message after which the server takes it for poison and moves it to `push.dead`.
///
/// Generous: every restart of a dispatcher counts one delivery of each message that it had prefetched.
const PUSH_DELIVERY_LIMIT: i64 = 100;

/// `push.dead` dead-letters nowhere, so what exceeds its limit would be lost. RabbitMQ 4 applies a limit of
/// 20 where none is given, and 3.10 does not know how to say "none".
const DEAD_DELIVERY_LIMIT: i64 = 1_000_000;

const READY_EXCHANGE: &str = "postrider";
const DEAD_EXCHANGE: &str = "postrider.dead";

/// A queue of the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// `push.ready`: pushes to be sent now.
    PushReady,
    /// `push.dead`: what the server refused to deliver any more, and what consumers could not read.
    PushDead,
}

impl Queue {
    /// Name without the prefix of an installation; also the routing key.
    pub fn name(self) -> &'static str {
        match self {
            Self::PushReady => "push.ready",
            Self::PushDead => "push.dead",
        }
    }

    fn exchange(self) -> &'static str {
        match self {
            Self::PushReady => READY_EXCHANGE,
            Self::PushDead => DEAD_EXCHANGE,
        }
    }

    /// Name in an installation with `prefix`.
    pub(crate) fn full_name(self, prefix: &str) -> String {
        format!("{prefix}{}", self.name())
    }

    /// Name of the exchange that feeds it, in an installation with `prefix`.
    pub(crate) fn full_exchange(self, prefix: &str) -> String {
        format!("{prefix}{}", self.exchange())
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Value of a queue argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Argument {
    Integer(i64),
    Text(String),
}

/// What to do with a queue that exists with other arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnMismatch {
    /// Delete it and declare it anew: its messages are found again from the database.
    Replace,
    /// Use it as it is: its messages exist nowhere else.
    Keep,
}

/// A queue with its arguments, and its binding to the exchange that feeds it.
#[derive(Debug, Clone)]
pub(crate) struct QueueDefinition {
    pub(crate) name: String,
    pub(crate) arguments: Vec<(&'static str, Argument)>,
    pub(crate) on_mismatch: OnMismatch,
    pub(crate) exchange: String,
    pub(crate) routing_key: &'static str,
}

/// Everything that has to exist on the server. All exchanges are direct, all queues durable.
#[derive(Debug, Clone)]
pub(crate) struct Topology {
    pub(crate) exchanges: Vec<String>,
    pub(crate) queues: Vec<QueueDefinition>,
}

impl Topology {
    pub(crate) fn new(prefix: &str, push_queue_capacity: u32) -> Self {
        let text = |value: &str| Argument::Text(value.to_owned());
        let ready = vec![
            ("x-queue-type", text("quorum")),
            ("x-max-length", Argument::Integer(push_queue_capacity.into())),
            ("x-overflow", text("reject-publish")),
            (
                "x-dead-letter-exchange",
                Argument::Text(Queue::PushDead.full_exchange(prefix)),
            ),
            ("x-dead-letter-routing-key", text(Queue::PushDead.name())),
            ("x-dead-letter-strategy", text("at-least-once")),
            ("x-delivery-limit", Argument::Integer(PUSH_DELIVERY_LIMIT)),
        ];
        let dead = vec![
            ("x-queue-type", text("quorum")),
            ("x-delivery-limit", Argument::Integer(DEAD_DELIVERY_LIMIT)),
        ];
        let queue = |queue: Queue, arguments, on_mismatch| QueueDefinition {
            name: queue.full_name(prefix),
            arguments,
            on_mismatch,
            exchange: queue.full_exchange(prefix),
            routing_key: queue.name(),
        };
        Self {
            exchanges: vec![
                Queue::PushReady.full_exchange(prefix),
                Queue::PushDead.full_exchange(prefix),
            ],
            // The target of dead-lettering comes first, so that it exists before anything can be
            // dead-lettered.
            queues: vec![
                queue(Queue::PushDead, dead, OnMismatch::Keep),
                queue(Queue::PushReady, ready, OnMismatch::Replace),
            ],
        }
    }

    fn definitions(&self) -> Value {
        let exchanges: Vec<_> = self.exchanges.iter().map(|name| exchange_json(name)).collect();
        let queues: Vec<_> = self.queues.iter().map(queue_json).collect();
        let bindings: Vec<_> = self.queues.iter().map(binding_json).collect();
        json!({
            "vhosts": [{ "name": "/" }],
            "exchanges": exchanges,
            "queues": queues,
            "bindings": bindings,
        })
    }
}

fn exchange_json(name: &str) -> Value {
    json!({
        "name": name, "vhost": "/", "type": "direct", "durable": true, "auto_delete": false, "internal": false,
        "arguments": {},
    })
}

fn queue_json(queue: &QueueDefinition) -> Value {
    let arguments: serde_json::Map<String, Value> = queue
        .arguments
        .iter()
        .map(|(name, value)| {
            let value = match value {
                Argument::Integer(number) => json!(number),
                Argument::Text(text) => json!(text),
            };
            ((*name).to_owned(), value)
        })
        .collect();
    json!({
        "name": queue.name, "vhost": "/", "durable": true, "auto_delete": false, "arguments": arguments,
    })
}

fn binding_json(queue: &QueueDefinition) -> Value {
    json!({
        "source": queue.exchange, "vhost": "/", "destination": queue.name, "destination_type": "queue",
        "routing_key": queue.routing_key, "arguments": {},
    })
}

/// The definitions file of an installation without prefix and with [`DEFAULT_PUSH_QUEUE_CAPACITY`], as
/// `rabbitmqctl import_definitions` of RabbitMQ 3.10 and 4 takes it.
pub fn definitions_json() -> String {
    let definitions = Topology::new("", DEFAULT_PUSH_QUEUE_CAPACITY).definitions();
    format!("{definitions:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_is_put_before_every_name() {
        let topology = Topology::new("test-", 5);
        let names = topology
            .exchanges
            .iter()
            .chain(topology.queues.iter().map(|queue| &queue.name));
        for name in names {
            assert!(name.starts_with("test-"), "{name}");
        }
        let ready = topology
            .queues
            .iter()
            .find(|queue| queue.name == "test-push.ready")
            .expect("push.ready");
        let dead_exchange = (
            "x-dead-letter-exchange",
            Argument::Text("test-postrider.dead".to_owned()),
        );
        assert!(ready.arguments.contains(&dead_exchange));
        assert!(ready.arguments.contains(&("x-max-length", Argument::Integer(5))));
    }

    #[test]
    fn every_queue_is_bound_to_a_declared_exchange() {
        let topology = Topology::new("", 1);
        for queue in &topology.queues {
            assert!(topology.exchanges.contains(&queue.exchange), "{}", queue.name);
        }
    }
}
