//! What the tests of the reseller lane share.

use std::collections::BTreeMap;

use broker::{Broker, Consumer, Queue};
use domain::notification::{NotificationId, NotificationStatus};
use sqlx::PgPool;
use testkit::{Installation, eventually};
use uuid::Uuid;

use crate::rig::take;

/// Keeps the worker from delivering retries itself, so that a test can read their queue.
pub(crate) fn without_deliveries(it: &mut Installation) {
    it.config.reseller.secrets.key = None;
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
