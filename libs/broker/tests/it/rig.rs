//! What a test stands on: settings with a prefix of its own, a second connection to look at and change the
//! server behind the crate's back, and cleaning up.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use broker::{Broker, ConnectionState, Consumer, Delivery, Envelope, Published, Queue, Settings};
use chrono::DateTime;
use futures::FutureExt;
use lapin::options::{BasicPublishOptions, QueueDeclareOptions};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use uuid::Uuid;

/// Longest wait for anything in a test. Only a failing test ever waits this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);

pub(crate) struct Rig {
    pub(crate) url: String,
    pub(crate) prefix: String,
    connection: Connection,
}

/// Runs a test and removes what it left on the server, whether it passed or not.
pub(crate) async fn with_rig(test: impl AsyncFnOnce(&Rig)) {
    let url = std::env::var("AMQP_URL").expect("AMQP_URL must name a RabbitMQ server for these tests");
    let properties = ConnectionProperties::default();
    let connection = Connection::connect(&url, properties)
        .await
        .expect("AMQP_URL must name a reachable RabbitMQ");
    let rig = Rig {
        url,
        prefix: format!("test-{}-", Uuid::now_v7().simple()),
        connection,
    };
    let outcome = AssertUnwindSafe(test(&rig)).catch_unwind().await;
    rig.clean().await;
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

impl Rig {
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            url: self.url.clone(),
            queue_prefix: self.prefix.clone(),
            connection_name: self.prefix.clone(),
            push_queue_capacity: 10_000,
            reseller_queue_capacity: 10_000,
            confirm_timeout: Duration::from_secs(60),
            max_unconfirmed: 1_000,
        }
    }

    /// A connected broker with `settings`.
    pub(crate) async fn broker(&self, settings: Settings) -> Broker {
        let broker = Broker::start(settings);
        connected(&broker).await;
        broker
    }

    pub(crate) fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub(crate) async fn channel(&self) -> Channel {
        self.connection.create_channel().await.expect("a channel")
    }

    /// Messages ready in a queue, asked on a connection of the rig's own.
    pub(crate) async fn ready(&self, queue: Queue) -> u32 {
        let passive = QueueDeclareOptions::default().passive();
        let name = self.name(queue.name());
        let channel = self.channel().await;
        let found = channel
            .queue_declare(name.into(), passive, Default::default())
            .await
            .expect("the queue exists");
        found.message_count()
    }

    pub(crate) async fn delete(&self, queue: Queue) {
        let name = self.name(queue.name());
        self.channel()
            .await
            .queue_delete(name.into(), Default::default())
            .await
            .expect("deleted");
    }

    pub(crate) async fn unbind(&self, queue: Queue) {
        let exchange = self.name("postrider");
        let channel = self.channel().await;
        let unbound = channel.queue_unbind(
            self.name(queue.name()).into(),
            exchange.into(),
            queue.name().into(),
            Default::default(),
        );
        unbound.await.expect("unbound");
    }

    /// Puts any body into `push.ready`.
    pub(crate) async fn publish_raw(&self, body: &[u8]) {
        let channel = self.channel().await;
        channel
            .confirm_select(Default::default())
            .await
            .expect("confirms");
        let properties = BasicProperties::default().with_message_id("raw".into());
        let published = channel.basic_publish(
            self.name("postrider").into(),
            "push.ready".into(),
            BasicPublishOptions::default(),
            body,
            properties,
        );
        assert!(
            published
                .await
                .expect("published")
                .await
                .expect("confirmed")
                .is_ack()
        );
    }

    async fn clean(&self) {
        for queue in Queue::ALL {
            let name = self.name(queue.name());
            self.channel()
                .await
                .queue_delete(name.into(), Default::default())
                .await
                .expect("queue deleted");
        }
        for exchange in ["postrider", "postrider.dead"] {
            let name = self.name(exchange);
            self.channel()
                .await
                .exchange_delete(name.into(), Default::default())
                .await
                .expect("exchange deleted");
        }
        // The client may still be closing channels that were dropped, and then reports that as an error.
        let _ = self.connection.close(200, "done".into()).await;
    }
}

/// Waits for a state, and fails with the last one seen.
pub(crate) async fn state(broker: &Broker, wanted: impl FnMut(&ConnectionState) -> bool) -> ConnectionState {
    let mut states = broker.state();
    match tokio::time::timeout(PATIENCE, states.wait_for(wanted)).await {
        Ok(state) => state.expect("the supervisor runs").clone(),
        Err(_) => panic!("still {:?}", *broker.state().borrow()),
    }
}

/// Waits for a connection and returns its generation.
pub(crate) async fn connected(broker: &Broker) -> u64 {
    newer(broker, 0).await
}

/// Waits for a connection newer than `last` and returns its generation.
pub(crate) async fn newer(broker: &Broker, last: u64) -> u64 {
    let wanted = |state: &ConnectionState| matches!(state, ConnectionState::Connected { generation } if *generation > last);
    match state(broker, wanted).await {
        ConnectionState::Connected { generation } => generation,
        other => unreachable!("{other:?}"),
    }
}

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(
        tokio::time::timeout(PATIENCE, waiting).await.is_ok(),
        "never happened: {what}"
    );
}

/// A future that has to end in time.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("took too long: {what}"),
    }
}

pub(crate) fn envelopes(count: usize) -> Vec<Envelope> {
    let at = DateTime::from_timestamp(1_700_000_000, 0).expect("in range");
    (0..count)
        .map(|_| Envelope::push(Uuid::now_v7(), at, None))
        .collect()
}

pub(crate) fn ids(envelopes: &[Envelope]) -> Vec<Uuid> {
    envelopes.iter().map(|envelope| envelope.id).collect()
}

/// Publishes `count` messages that must all be confirmed.
pub(crate) async fn publish(broker: &Broker, count: usize) -> Vec<Envelope> {
    let envelopes = envelopes(count);
    let outcomes = soon(
        "publishing",
        broker.publisher().publish(Queue::PushReady, envelopes.clone()),
    )
    .await;
    assert_eq!(outcomes, vec![Published::Confirmed; count]);
    envelopes
}

/// Takes exactly `count` deliveries.
pub(crate) async fn take(consumer: &mut Consumer, count: usize) -> Vec<Delivery> {
    let mut taken = Vec::new();
    while taken.len() < count {
        let batch = soon("a delivery", consumer.next_batch(count - taken.len()))
            .await
            .expect("the consumer runs");
        assert!(
            !batch.is_empty() && batch.len() <= count - taken.len(),
            "batch of {}",
            batch.len()
        );
        taken.extend(batch);
    }
    taken
}
