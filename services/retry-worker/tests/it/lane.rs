//! What the tests of the reseller lane share.

use std::collections::BTreeMap;

use broker::{Broker, Consumer, Queue};
use domain::notification::{NotificationId, NotificationStatus};
use encryption::{Sealer, SealingKey};
use signing::Secret;
use simulators::receiver::{Options, Receiver, Running, SecretFor};
use sqlx::PgPool;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::rig::take;

/// Keeps the worker from delivering retries itself, so that a test can read their queue.
pub(crate) fn without_deliveries(it: &mut Installation) {
    it.config.reseller.secrets.key = None;
}

/// A receiver that checks signatures, and a subscription that it is the endpoint of.
pub(crate) async fn receiver_of_a_subscription(it: &Installation) -> (Running, Uuid) {
    let secret = Secret::generate();
    let options = Options {
        secrets: vec![SecretFor::everywhere(&secret.reveal()).unwrap()],
        ..Options::default()
    };
    let receiver = Receiver::start(TcpListener::bind("127.0.0.1:0").await.unwrap(), options).unwrap();
    let key = SealingKey::parse(it.config.reseller.secrets.key.as_ref().unwrap().expose()).unwrap();
    let subscription = SubscriptionRow::active();
    let sealed = Sealer::new(&key, &[])
        .seal(subscription.id(), secret.expose_bytes())
        .unwrap();
    let subscription = subscription.url(&receiver.url("/hook")).sealed_secret(sealed);
    let subscription = subscription.make(&it.pool).await;
    (receiver, subscription)
}

pub(crate) fn first_attempts(broker: &Broker) -> Consumer {
    broker.consume(Queue::ResellerReady, 0)
}

pub(crate) fn retries(broker: &Broker) -> Consumer {
    broker.consume(Queue::ResellerRetry, 0)
}

/// Takes and acknowledges the next `count` messages; returns which notifications of whom they are about.
pub(crate) async fn read(reader: &mut Consumer, count: usize) -> BTreeMap<NotificationId, Uuid> {
    let mut about = BTreeMap::new();
    for delivery in take(reader, count).await {
        let group = delivery
            .envelope
            .group
            .expect("a notification names its subscription");
        assert_eq!(about.insert(delivery.envelope.id.into(), group), None);
        let _ = delivery.receipt.ack().await;
    }
    about
}

/// Status, attempts and reason of a notification.
pub(crate) async fn row(pool: &PgPool, id: NotificationId) -> (String, i32, Option<String>) {
    sqlx::query_as("SELECT status, attempts, reason FROM notifications WHERE id = $1")
        .bind(id.uuid())
        .fetch_one(pool)
        .await
        .unwrap()
}

pub(crate) async fn becomes(pool: &PgPool, id: NotificationId, status: NotificationStatus) {
    eventually(&format!("notification {id} to become {status}"), async || {
        (row(pool, id).await.0 == status.as_str()).then_some(())
    })
    .await;
}

pub(crate) async fn count(pool: &PgPool, status: NotificationStatus) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM notifications WHERE status = $1")
        .bind(status.as_str())
        .fetch_one(pool)
        .await
        .unwrap()
}
