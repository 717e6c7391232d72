//! What the reseller lane waits for in the database, the push lane does not wait for.

use std::time::Duration;

use broker::{Broker, Envelope, Queue};
use chrono::{DateTime, Utc};
use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use sqlx::PgPool;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};

use crate::rig::{all_sent, enqueue_for, start};

/// As few as the configuration allows; as many claims as an engine makes at once take all of them.
const CONNECTIONS: u32 = 2;

/// Since when each claim of the reseller lane has waited for the lock that the test holds.
async fn waiting_since(pool: &PgPool) -> Vec<DateTime<Utc>> {
    sqlx::query_scalar(
        "SELECT a.query_start FROM pg_locks l JOIN pg_stat_activity a USING (pid)
         WHERE l.locktype = 'advisory' AND NOT l.granted AND a.datname = current_database()
           AND a.application_name = 'postrider-dispatcher'",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

async fn send(it: &Installation, broker: &Broker, notification: NotificationRow) {
    let made = notification.make(&it.pool).await;
    let envelope = Envelope::notification(made.id.uuid(), made.subscription, SystemClock.now(), None);
    let answers = broker
        .publisher()
        .publish(Queue::ResellerReady, vec![envelope])
        .await;
    assert_eq!(answers, [broker::Published::Confirmed]);
}

#[testkit::test]
async fn pushes_are_sent_while_the_reseller_lane_has_all_of_its_connections_waiting(mut it: Installation) {
    it.config.database.max_connections = CONNECTIONS;
    it.config.database.acquire_timeout = Duration::from_secs(3);
    let (dispatcher, broker) = (start(&it.config), it.broker());
    eventually("a push to be sent", async || dispatcher.is_ready().then_some(())).await;
    let first = enqueue_for(&it, &broker, "device-0").await;
    all_sent(&it, &[first]).await;

    let mut closed = it.pool.begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended('postrider.lane/reseller', 0))")
        .execute(&mut *closed)
        .await
        .unwrap();
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    eventually("a push to be sent while all connections wait", async || {
        let notification = NotificationRow::in_state(NotificationState::Queued, subscription);
        send(&it, &broker, notification).await;
        let before = waiting_since(&it.pool).await;
        if before.len() < CONNECTIONS as usize {
            return None;
        }
        let push = enqueue_for(&it, &broker, "device-1").await;
        all_sent(&it, &[push]).await;
        // The same statements have waited all the time.
        (waiting_since(&it.pool).await == before).then_some(())
    })
    .await;
    closed.rollback().await.unwrap();
}
