//! The queues of an installation, behind the back of the product.

use broker::Queue;
use lapin::options::QueueDeclareOptions;
use lapin::{Connection, ConnectionProperties};

use crate::amqp_url;

/// The exchange that feeds a queue, without its prefix.
pub(crate) fn exchange(queue: Queue) -> &'static str {
    match queue {
        Queue::PushReady | Queue::ResellerReady | Queue::ResellerRetry => "postrider",
        Queue::PushDead | Queue::ResellerDead => "postrider.dead",
    }
}

pub(crate) async fn connect() -> Connection {
    Connection::connect(&amqp_url(), ConnectionProperties::default())
        .await
        .expect("AMQP_URL must name a reachable RabbitMQ")
}

/// Queues that have consumers, and may so have messages that are not acknowledged.
pub(crate) async fn consumers(connection: &Connection, prefix: &str) -> Vec<String> {
    let mut consumed = Vec::new();
    for queue in Queue::ALL {
        let name = format!("{prefix}{}", queue.name());
        // Asking for a queue that is not there ends the channel.
        let channel = connection.create_channel().await.expect("a channel");
        let passive = QueueDeclareOptions {
            passive: true,
            ..Default::default()
        };
        let found = channel
            .queue_declare(name.clone().into(), passive, Default::default())
            .await;
        if found.is_ok_and(|queue| queue.consumer_count() > 0) {
            consumed.push(format!("a consumer of {name}"));
        }
    }
    consumed
}

/// Deletes them and their exchanges.
pub(crate) async fn remove(connection: &Connection, prefix: &str) {
    let channel = connection.create_channel().await.expect("a channel");
    for queue in Queue::ALL {
        let name = format!("{prefix}{}", queue.name());
        channel
            .queue_delete(name.into(), Default::default())
            .await
            .expect("the queue is deleted");
    }
    for exchange in [Queue::PushReady, Queue::PushDead].map(exchange) {
        let name = format!("{prefix}{exchange}");
        channel
            .exchange_delete(name.into(), Default::default())
            .await
            .expect("the exchange is deleted");
    }
}
