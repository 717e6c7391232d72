//! The dispatcher in a process that may open no more connections. A program of its own: the limit is the process's.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]
#![allow(dead_code, reason = "the rig has more than this test needs")]

#[path = "../it/rig.rs"]
mod rig;

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use sqlx::PgPool;
use testkit::{NoDescriptors, eventually, with_installation};

use rig::{all_sent, enqueue, enqueue_due, start, view};

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn want_of_descriptors_uses_no_attempt_of_a_push(pool: PgPool) {
    with_installation(pool, async |it| {
        let (dispatcher, broker) = (start(&it.config), it.broker());
        eventually("the lane to be led", async || {
            let held: bool = sqlx::query_scalar(
                "SELECT EXISTS (SELECT FROM leases WHERE name = 'push' AND holder IS NOT NULL)",
            )
            .fetch_one(&it.pool)
            .await
            .ok()?;
            let consumers = broker.depth(broker::Queue::PushReady).await.ok()?.consumers;
            (held && consumers > 0).then_some(())
        })
        .await;

        let mut none = NoDescriptors::left();
        let pushes = enqueue(&it, &broker, 5).await;
        eventually("a push to be put off", async || {
            none.take_what_was_closed();
            let off: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM push_notifications WHERE status = 'SCHEDULED' AND attempts = 0",
            )
            .fetch_one(&it.pool)
            .await
            .ok()?;
            (off > 0).then_some(())
        })
        .await;
        drop(none);
        eventually("the others to be sent or put off as well", async || {
            let open: i64 =
                sqlx::query_scalar("SELECT count(*) FROM push_notifications WHERE status = 'IN_MEMORY'")
                    .fetch_one(&it.pool)
                    .await
                    .ok()?;
            (open == 0).then_some(())
        })
        .await;
        enqueue_due(&it, &broker, SystemClock.now() + TimeDelta::minutes(1)).await;
        all_sent(&it, &pushes).await;
        for push in pushes {
            let view = view(&it, push).await;
            assert_eq!((view.attempts, view.history.len()), (1, 1), "{view:?}");
        }
        dispatcher.stop().await;
    })
    .await;
}
