//! The exchanges, queues and bindings of the product, as one value.
//!
//! The value is declared on every connection and written out as `rabbitmq/definitions.json`; nothing else
//! names a queue or an argument. Arguments are used instead of policies so that an AMQP URL alone is enough
//! to start. How the value is brought to a server, and what happens to a queue that differs, is the business
//! of `declare`.

use serde_json::{Value, json};

use crate::Settings;
use crate::queue::{DEAD_EXCHANGE, Queue, WORK_EXCHANGE};

/// Capacity of `push.ready` in the written definitions: the default of `push.queue.capacity`.
pub const DEFAULT_PUSH_QUEUE_CAPACITY: u32 = 10_000;

/// Capacity of `reseller.ready` and of `reseller.retry` in the written definitions: the default of
/// `reseller.queue.capacity`.
pub const DEFAULT_RESELLER_QUEUE_CAPACITY: u32 = 10_000;

/// Deliveries of one message after which the server takes it for poison and moves it to the lane's dead
/// letters.
///
/// Generous: every restart of a consumer counts one delivery of each message that it had prefetched.
const WORK_DELIVERY_LIMIT: i64 = 100;

/// Queues of dead letters dead-letter nowhere, so what exceeds their limit would be lost. RabbitMQ 4 applies
/// a limit of 20 where none is given, and 3.10 does not know how to say "none".
const DEAD_DELIVERY_LIMIT: i64 = 1_000_000;

/// Value of a queue argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Argument {
    Integer(i64),
    Text(String),
}

/// What to do with a queue that exists with other arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnMismatch {
    /// Delete it and declare it again: its messages are found again from the database.
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

/// How many messages the queues of work hold before they refuse more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capacities {
    pub(crate) push: u32,
    /// Of `reseller.ready` and of `reseller.retry`, each.
    pub(crate) reseller: u32,
}

impl Capacities {
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            push: settings.push_queue_capacity,
            reseller: settings.reseller_queue_capacity,
        }
    }
}

impl Topology {
    pub(crate) fn new(prefix: &str, capacities: Capacities) -> Self {
        Self {
            exchanges: vec![
                format!("{prefix}{WORK_EXCHANGE}"),
                format!("{prefix}{DEAD_EXCHANGE}"),
            ],
            // The targets of dead-lettering come first, so that they exist before anything can be
            // dead-lettered.
            queues: vec![
                dead_letters(Queue::PushDead, prefix),
                dead_letters(Queue::ResellerDead, prefix),
                work(Queue::PushReady, Queue::PushDead, capacities.push, prefix),
                work(
                    Queue::ResellerReady,
                    Queue::ResellerDead,
                    capacities.reseller,
                    prefix,
                ),
                work(
                    Queue::ResellerRetry,
                    Queue::ResellerDead,
                    capacities.reseller,
                    prefix,
                ),
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

/// A queue of work, which refuses what exceeds its capacity and gives up into `dead`.
fn work(queue: Queue, dead: Queue, capacity: u32, prefix: &str) -> QueueDefinition {
    let arguments = vec![
        ("x-queue-type", text("quorum")),
        ("x-max-length", Argument::Integer(capacity.into())),
        ("x-overflow", text("reject-publish")),
        (
            "x-dead-letter-exchange",
            Argument::Text(dead.full_exchange(prefix)),
        ),
        ("x-dead-letter-routing-key", text(dead.name())),
        ("x-dead-letter-strategy", text("at-least-once")),
        ("x-delivery-limit", Argument::Integer(WORK_DELIVERY_LIMIT)),
    ];
    definition(queue, arguments, OnMismatch::Replace, prefix)
}

/// A queue that keeps its messages until they are archived.
fn dead_letters(queue: Queue, prefix: &str) -> QueueDefinition {
    let arguments = vec![
        ("x-queue-type", text("quorum")),
        ("x-delivery-limit", Argument::Integer(DEAD_DELIVERY_LIMIT)),
    ];
    definition(queue, arguments, OnMismatch::Keep, prefix)
}

fn definition(
    queue: Queue,
    arguments: Vec<(&'static str, Argument)>,
    on_mismatch: OnMismatch,
    prefix: &str,
) -> QueueDefinition {
    QueueDefinition {
        name: queue.full_name(prefix),
        arguments,
        on_mismatch,
        exchange: queue.full_exchange(prefix),
        routing_key: queue.name(),
    }
}

fn text(value: &str) -> Argument {
    Argument::Text(value.to_owned())
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

/// The definitions file of an installation without prefix and with the default capacities, as `rabbitmqctl
/// import_definitions` of RabbitMQ 3.10 and 4 takes it.
pub fn definitions_json() -> String {
    let capacities = Capacities {
        push: DEFAULT_PUSH_QUEUE_CAPACITY,
        reseller: DEFAULT_RESELLER_QUEUE_CAPACITY,
    };
    let definitions = Topology::new("", capacities).definitions();
    format!("{definitions:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITIES: Capacities = Capacities { push: 5, reseller: 7 };

    fn definition_of(topology: &Topology, name: &str) -> QueueDefinition {
        let found = topology.queues.iter().find(|queue| queue.name == name);
        found.unwrap_or_else(|| panic!("no queue {name}")).clone()
    }

    #[test]
    fn prefix_is_put_before_every_name() {
        let topology = Topology::new("test-", CAPACITIES);
        let names = topology
            .exchanges
            .iter()
            .chain(topology.queues.iter().map(|queue| &queue.name));
        for name in names {
            assert!(name.starts_with("test-"), "{name}");
        }
        let exchange = Argument::Text("test-postrider.dead".to_owned());
        for name in ["test-push.ready", "test-reseller.ready", "test-reseller.retry"] {
            let arguments = definition_of(&topology, name).arguments;
            assert!(
                arguments.contains(&("x-dead-letter-exchange", exchange.clone())),
                "{name}"
            );
        }
    }

    #[test]
    fn each_lane_has_its_own_capacity_and_its_own_dead_letters() {
        let topology = Topology::new("", CAPACITIES);
        let expected = [
            ("push.ready", 5, "push.dead"),
            ("reseller.ready", 7, "reseller.dead"),
            ("reseller.retry", 7, "reseller.dead"),
        ];
        for (name, capacity, dead) in expected {
            let arguments = definition_of(&topology, name).arguments;
            assert!(
                arguments.contains(&("x-max-length", Argument::Integer(capacity))),
                "{name}"
            );
            assert!(
                arguments.contains(&("x-dead-letter-routing-key", text(dead))),
                "{name}"
            );
        }
    }

    #[test]
    fn only_queues_of_work_may_be_replaced() {
        for queue in Topology::new("", CAPACITIES).queues {
            let kept = queue.on_mismatch == OnMismatch::Keep;
            assert_eq!(kept, queue.name.ends_with(".dead"), "{}", queue.name);
        }
    }

    #[test]
    fn dead_letters_are_declared_before_what_gives_up_into_them() {
        let queues = Topology::new("", CAPACITIES).queues;
        let is_dead = |queue: &QueueDefinition| queue.name.ends_with(".dead");
        let last_dead = queues.iter().rposition(is_dead);
        let first_work = queues.iter().position(|queue| !is_dead(queue));
        assert!(last_dead < first_work, "{queues:?}");
    }

    #[test]
    fn every_queue_is_declared_and_bound_to_a_declared_exchange() {
        let topology = Topology::new("", CAPACITIES);
        assert_eq!(topology.queues.len(), Queue::ALL.len());
        for queue in Queue::ALL {
            let definition = definition_of(&topology, queue.name());
            assert!(topology.exchanges.contains(&definition.exchange), "{queue}");
            assert_eq!(definition.routing_key, queue.name());
        }
    }
}
