//! The queue is full, and is drained again.

use std::time::Duration;

use broker::{Broker, Queue};
use domain::clock::{Clock as _, SystemClock};
use domain::push::PushId;
use store::Store;
use store::push::PromotionQueue;
use testkit::{Installation, eventually};

use crate::running::{Running, push};

/// Waits until every push is in the queue or pending; returns how many are in the queue and how many pending.
async fn settle(it: &Installation, broker: &Broker) -> (i64, i64) {
    eventually("every push to be in the queue or pending", async || {
        let queued = i64::from(broker.depth(Queue::PushReady).await.ok()?.messages);
        let (in_memory, pending): (i64, i64) = sqlx::query_as(
            "SELECT count(*) FILTER (WHERE status = 'IN_MEMORY'), count(*) FILTER (WHERE status = 'PENDING')
             FROM push_notifications",
        )
        .fetch_one(&it.pool)
        .await
        .ok()?;
        (in_memory == queued).then_some((queued, pending))
    })
    .await
}

/// Waits until the oldest pending push has waited for longer than `patience`, and so keeps the gate closed.
async fn until_one_has_waited(store: &Store, patience: Duration) {
    eventually("a push to have waited", async || {
        let since = store.backlog().await.unwrap().oldest_pending?;
        (SystemClock.now() - patience > since).then_some(())
    })
    .await;
}

/// Takes `messages` messages out of the queue.
async fn take(broker: &Broker, mut messages: i64) {
    let mut consumer = broker.consume(Queue::PushReady, 100);
    while messages > 0 {
        for delivery in consumer.next_batch(100).await.unwrap() {
            messages -= 1;
            delivery.receipt.ack().await;
        }
    }
    consumer.close().await;
}

async fn has_status(service: &Running, id: PushId, status: &str) -> bool {
    service.look_up(id).await["status"] == status
}

/// Hands pushes in until one finds the queue full.
async fn fill(service: &Running) {
    eventually("a push to find the queue full", async || {
        let id = service.accepted(&push()).await;
        has_status(service, id, "PENDING").await.then_some(())
    })
    .await;
}

/// Hands pushes in until one goes to the queue, moving what waits out of the way each time.
async fn reopen(it: &Installation, service: &Running) -> PushId {
    eventually("a push to go straight to the queue", async || {
        let (store, lease) = (&it.store, Duration::from_secs(600));
        store
            .promote_pushes(PromotionQueue::Pending, 100_000, lease)
            .await
            .unwrap();
        let id = service.accepted(&push()).await;
        has_status(service, id, "IN_MEMORY").await.then_some(id)
    })
    .await
}

#[testkit::test]
async fn a_full_queue_makes_pushes_pending_until_nothing_waits_and_there_is_room(mut it: Installation) {
    it.config.push.queue.capacity = 10;
    it.config.push.job.send_pending.repeat_interval = Duration::from_millis(100);
    let service = Running::ready(&it).await;
    let broker = it.broker();
    eventually("a connection", async || broker.depth(Queue::PushReady).await.ok()).await;
    fill(&service).await;
    // An empty queue alone does not open the gate: what waits would be overtaken.
    let (queued, _) = settle(&it, &broker).await;
    until_one_has_waited(&it.store, Duration::from_millis(200)).await;
    take(&broker, queued).await;
    for _ in 0..5 {
        let id = service.accepted(&push()).await;
        assert!(has_status(&service, id, "PENDING").await);
    }
    assert_eq!(broker.depth(Queue::PushReady).await.unwrap().messages, 0);
    let id = reopen(&it, &service).await;
    let mut consumer = broker.consume(Queue::PushReady, 1);
    let delivery = consumer.next_batch(1).await.unwrap().remove(0);
    assert_eq!(delivery.envelope.id, id.uuid());
    consumer.close().await;
    broker.close().await;
}

#[testkit::test]
async fn a_burst_larger_than_the_queue_leaves_nothing_in_between(mut it: Installation) {
    it.config.push.queue.capacity = 20;
    let service = Running::ready(&it).await;
    let requests = (0..300).map(|_| service.post(&push()).send());
    for answer in futures::future::join_all(requests).await {
        assert_eq!(answer.unwrap().status().as_u16(), 202);
    }
    let broker = it.broker();
    let (queued, pending) = settle(&it, &broker).await;
    assert_eq!(queued + pending, 300);
    assert!(pending > 0, "{queued} of 300 pushes fit into a queue for 20");
    broker.close().await;
}
