//! The engine in a process that may open no more connections. A program of its own: the limit is the process's.

#![allow(dead_code, reason = "the rig has more than this test needs")]

#[path = "../it/rig.rs"]
mod rig;

use broker::Queue;
use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationStatus;
use engine::webhook::Lane;
use testkit::{Installation, NoDescriptors, eventually};

use rig::{Rig, row};

#[testkit::test]
async fn want_of_descriptors_uses_no_attempt_and_is_no_failure_of_the_endpoint(it: Installation) {
    let rig = Rig::new(it).await;
    let subscription = rig.subscription().make(&rig.it.pool).await;
    let engine = rig.start(Lane::First).await;
    eventually("the engine to read its queue", async || {
        let depth = rig.broker.depth(Queue::ResellerReady).await.ok()?;
        (depth.consumers > 0).then_some(())
    })
    .await;

    let sent = rig.accept(5).await;
    let mut none = NoDescriptors::left();
    rig.publish(Queue::ResellerReady, &sent).await;
    eventually("a notification to be put off", async || {
        none.take_what_was_closed();
        let off: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM notifications WHERE status = 'SCHEDULED' AND reason = 'POSTPONED' AND attempts = 0",
        )
        .fetch_one(&rig.it.pool)
        .await
        .ok()?;
        (off > 0).then_some(())
    })
    .await;
    drop(none);
    eventually("all of them to be delivered", async || {
        rig.promote(SystemClock.now() + TimeDelta::minutes(1)).await;
        (rig.count(NotificationStatus::Sent).await == 5).then_some(())
    })
    .await;
    engine.stop().await;
    for notification in sent {
        assert_eq!(row(&rig.it.pool, notification.id).await.attempts, 1);
    }
    let (attempts, healthy): (i64, bool) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM delivery_attempts),
                (SELECT failing_since IS NULL AND last_failure_at IS NULL FROM subscriptions WHERE id = $1)",
    )
    .bind(subscription)
    .fetch_one(&rig.it.pool)
    .await
    .expect("they are stored");
    assert_eq!((attempts, healthy), (5, true));
}
