//! A queue without room: pushes stay PENDING, or become it again, and go out as soon as there is room.

use std::time::Duration;

use broker::Queue;
use domain::push::{PushState, PushStatus};
use sqlx::PgPool;
use testkit::push_factory::PushRow;
use testkit::{Installation, eventually};

use crate::rig::{hurry, put_off, queue_holds, read, reader, start};

async fn count(pool: &PgPool, status: PushStatus) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM push_notifications WHERE status = $1")
        .bind(status.as_str())
        .fetch_one(pool)
        .await
        .unwrap()
}

#[testkit::test]
async fn what_does_not_fit_waits_until_there_is_room(mut it: Installation) {
    hurry(&mut it.config);
    it.config.push.queue.capacity = 2;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(PushRow::in_state(PushState::Pending).make(&it.pool).await.id);
    }
    // Of the same millisecond, so that only their identifiers give them an order.
    ids.sort();
    let broker = it.broker();
    let _worker = start(&it.config);
    queue_holds(&broker, Queue::PushReady, 2).await;
    // One for which there was no room after all waits again.
    eventually("the others to wait", async || {
        let queued = count(&it.pool, PushStatus::InMemory).await;
        let waiting = count(&it.pool, PushStatus::Pending).await;
        ((queued, waiting) == (2, 4)).then_some(())
    })
    .await;
    let mut reader = broker.consume(Queue::PushReady, 1);
    for id in ids {
        assert_eq!(read(&mut reader, 1).await, [id]);
        assert!(broker.depth(Queue::PushReady).await.unwrap().messages <= 2);
    }
    assert_eq!(count(&it.pool, PushStatus::InMemory).await, 6);
}

#[testkit::test]
async fn what_the_broker_does_not_confirm_becomes_pending_again(mut it: Installation) {
    hurry(&mut it.config);
    // Only the other job may promote, or what it marks PENDING would be promoted again at once.
    put_off(&mut it.config.push.job.send_pending);
    let broker = it.broker();
    let mut reader = reader(&broker);
    let worker = start(&it.config);
    eventually("the worker to be ready", async || worker.is_ready().then_some(())).await;
    it.unbind(Queue::PushReady).await;
    let id = PushRow::in_state(PushState::Retry).make(&it.pool).await.id;
    let push = it.settled(id, PushStatus::Pending).await;
    assert_eq!((push.leased_until, push.next_attempt_at), (None, None));
    assert_eq!((push.attempts, push.claimed), (1, false));
    worker.stop().await;
    // A worker that connects again makes the topology whole again.
    it.config.push.job.send_pending.start_delay = Duration::ZERO;
    let _worker = start(&it.config);
    assert_eq!(read(&mut reader, 1).await, [id]);
}
