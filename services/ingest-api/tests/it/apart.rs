//! A queue that does not confirm is its own lane's trouble.

use broker::Queue;
use sqlx::PgPool;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{eventually, with_installation};

use crate::events::event;
use crate::running::{Running, push};

/// Of each event one notification for each of so many subscriptions.
const SUBSCRIPTIONS: usize = 10;
/// Together more messages than the broker reads from a connection that one of its queues holds up.
const EVENTS: usize = 100;

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn pushes_reach_their_queue_while_that_of_the_notifications_does_not_confirm(pool: PgPool) {
    with_installation(pool, async |installation| {
        for _ in 0..SUBSCRIPTIONS {
            SubscriptionRow::active().make(&installation.pool).await;
        }
        let service = Running::ready(&installation).await;
        let broker = installation.broker();
        let Some(suspended) = installation.suspend(Queue::ResellerReady) else {
            return;
        };
        let answer = service.post_batch(&vec![event(); EVENTS]).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        for _ in 0..10 {
            let id = service.accepted(&push()).await;
            assert_eq!(service.look_up(id).await["status"], "IN_MEMORY");
        }
        eventually("ten pushes in their queue", async || {
            let depth = broker.depth(Queue::PushReady).await.ok()?;
            (depth.messages == 10).then_some(())
        })
        .await;
        drop(suspended);
        eventually("every notification in its queue", async || {
            let depth = broker.depth(Queue::ResellerReady).await.ok()?;
            (depth.messages as usize == EVENTS * SUBSCRIPTIONS).then_some(())
        })
        .await;
        broker.close().await;
        service.stop().await;
    })
    .await;
}
