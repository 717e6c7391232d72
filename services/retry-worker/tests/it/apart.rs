//! A queue that does not confirm is the trouble of those alone who promote into it.

use broker::Queue;
use domain::notification::NotificationState;
use domain::push::PushState;
use sqlx::PgPool;
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{eventually, with_installation};

use crate::lane::without_deliveries;
use crate::rig::{hurry, queue_holds, start};

/// More messages than the broker reads from a connection that one of its queues holds up.
const WAITING: u32 = 600;

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn pushes_and_retries_are_promoted_while_the_queue_of_first_attempts_does_not_confirm(pool: PgPool) {
    with_installation(pool, async |mut it| {
        hurry(&mut it.config);
        without_deliveries(&mut it);
        for _ in 0..20 {
            let subscription = SubscriptionRow::active().make(&it.pool).await;
            for _ in 0..WAITING / 20 {
                NotificationRow::in_state(NotificationState::Pending, subscription)
                    .make(&it.pool)
                    .await;
            }
        }
        let broker = it.broker();
        // It makes the queue that is to be suspended.
        eventually("a connection", async || broker.depth(Queue::PushReady).await.ok()).await;
        let Some(suspended) = it.suspend(Queue::ResellerReady) else {
            return;
        };
        let worker = start(&it.config);
        eventually("the first attempts to be on their way", async || {
            let waiting: i64 =
                sqlx::query_scalar("SELECT count(*) FROM notifications WHERE status = 'PENDING'")
                    .fetch_one(&it.pool)
                    .await
                    .ok()?;
            (waiting < i64::from(WAITING)).then_some(())
        })
        .await;
        let subscription = SubscriptionRow::active().make(&it.pool).await;
        for _ in 0..10 {
            PushRow::in_state(PushState::Pending).make(&it.pool).await;
            NotificationRow::in_state(NotificationState::Retry, subscription)
                .make(&it.pool)
                .await;
        }
        queue_holds(&broker, Queue::PushReady, 10).await;
        queue_holds(&broker, Queue::ResellerRetry, 10).await;
        drop(suspended);
        queue_holds(&broker, Queue::ResellerReady, WAITING).await;
        worker.stop().await;
    })
    .await;
}
