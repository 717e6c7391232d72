//! The dispatcher in a process that may open no more connections. A program of its own: the limit is the process's.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]
#![allow(dead_code, reason = "the rig has more than this test needs")]

#[path = "../it/rig.rs"]
mod rig;

use domain::push::PushStatus;
use store::push::PromotionQueue;
use testkit::{Installation, NoDescriptors, eventually, push_request};

use rig::{promote, start, view};

#[testkit::test]
async fn want_of_descriptors_uses_no_attempt_of_a_push(it: Installation) {
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

    let mut pushes = Vec::new();
    for number in 0..5 {
        let request = push_request(&format!("device-{number}"), "Hello client!");
        pushes.push(it.accept(PushStatus::InMemory, request).await);
    }
    let mut none = NoDescriptors::left();
    it.publish(&broker, &pushes).await;
    eventually("a push to be put off", async || {
        none.take_what_was_closed();
        let off: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM push_notifications
             WHERE status = 'IN_MEMORY' AND attempts = 0 AND leased_until < now() + interval '1 minute'",
        )
        .fetch_one(&it.pool)
        .await
        .ok()?;
        (off > 0).then_some(())
    })
    .await;
    drop(none);
    eventually(
        "every push to be sent, as the retry worker has them sent",
        async || {
            it.store.rescue_pushes(100, 5).await.ok()?;
            promote(&it, &broker, PromotionQueue::Pending).await;
            let open: i64 =
                sqlx::query_scalar("SELECT count(*) FROM push_notifications WHERE status <> 'SENT'")
                    .fetch_one(&it.pool)
                    .await
                    .ok()?;
            (open == 0).then_some(())
        },
    )
    .await;
    for push in pushes {
        let view = view(&it, push).await;
        assert_eq!((view.attempts, view.history.len()), (1, 1), "{view:?}");
    }
    dispatcher.stop().await;
}
