//! Receipts across reconnects: what belongs to an old connection is never settled.

use broker::{Queue, Receipt, Settings, Settlement};

use crate::proxy::Proxy;
use crate::rig::{connected, eventually, ids, newer, publish, soon, take, with_rig};

#[tokio::test]
async fn cut_connection_makes_receipts_stale_and_messages_come_again() {
    with_rig(async |rig| {
        let proxy = Proxy::start(&rig.url).await;
        let broker = rig
            .broker(Settings {
                url: proxy.url(),
                ..rig.settings()
            })
            .await;
        let generation = connected(&broker).await;
        let sent = publish(&broker, 5).await;
        let mut consumer = broker.consume(Queue::PushReady, 100);
        let mut old = take(&mut consumer, 5).await;
        assert!(
            old.iter()
                .all(|delivery| delivery.receipt.generation() == generation)
        );
        assert_eq!(old.remove(0).receipt.ack().await, Settlement::Sent);
        // The server acts on what it gets in order, so a later request tells that it has the acknowledgement.
        broker.depth(Queue::PushReady).await.expect("the queue exists");

        proxy.cut();
        let consuming = tokio::spawn(async move {
            let again = take(&mut consumer, 4).await;
            (again, consumer)
        });
        let later = newer(&broker, generation).await;
        let (again, consumer) = soon("the redelivery", consuming).await.expect("no panic");
        assert!(again.iter().all(|delivery| delivery.redelivered));
        assert!(
            again
                .iter()
                .all(|delivery| delivery.receipt.generation() >= later)
        );
        let mut seen: Vec<_> = again.iter().map(|delivery| delivery.envelope.id).collect();
        seen.sort();
        assert_eq!(seen, ids(&sent[1..]));

        for delivery in old {
            assert_eq!(delivery.receipt.ack().await, Settlement::Stale);
        }
        for delivery in again {
            assert_eq!(delivery.receipt.ack().await, Settlement::Sent);
        }
        soon("closing", consumer.close()).await;
        assert_eq!(rig.ready(Queue::PushReady).await, 0);
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn receipt_is_stale_once_its_consumer_is_closed() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        publish(&broker, 1).await;
        let mut consumer = broker.consume(Queue::PushReady, 1);
        let delivery = take(&mut consumer, 1).await.remove(0);
        soon("closing", consumer.close()).await;
        assert_eq!(delivery.receipt.ack().await, Settlement::Stale);
        eventually("the message is back", async || {
            rig.ready(Queue::PushReady).await == 1
        })
        .await;
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn dropped_consumer_leaves_the_connection_to_the_others() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let generation = connected(&broker).await;
        publish(&broker, 10).await;
        for _ in 0..10 {
            let mut consumer = broker.consume(Queue::PushReady, 3);
            take(&mut consumer, 1).await;
            drop(consumer);
        }
        eventually("all messages are back", async || {
            let depth = broker.depth(Queue::PushReady).await.expect("the queue exists");
            (depth.messages, depth.consumers) == (10, 0)
        })
        .await;
        assert_eq!(connected(&broker).await, generation);
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn acknowledging_many_leaves_those_that_are_not_done() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let generation = connected(&broker).await;
        let sent = publish(&broker, 20).await;
        let mut consumer = broker.consume(Queue::PushReady, 100);
        let mut taken = take(&mut consumer, 20).await;
        // Not in the order in which they came, and with one of each other kind in between.
        let (kept, back) = (taken.remove(12), taken.remove(4));
        let single = taken.remove(8);
        let first_half: Vec<Receipt> = taken.drain(..9).map(|delivery| delivery.receipt).rev().collect();
        let second_half = taken.into_iter().map(|delivery| delivery.receipt).collect();
        Receipt::ack_all(second_half).await;
        assert_eq!(single.receipt.ack().await, Settlement::Sent);
        Receipt::ack_all(first_half).await;
        assert_eq!(back.receipt.requeue().await, Settlement::Sent);
        let again = take(&mut consumer, 1).await.remove(0);
        assert_eq!(again.envelope.id, sent[4].id);
        Receipt::ack_all(vec![again.receipt]).await;
        // Closing writes what is still held back, and gives up only what was never settled.
        soon("closing", consumer.close()).await;
        let mut consumer = broker.consume(Queue::PushReady, 100);
        let left = take(&mut consumer, 1).await.remove(0);
        assert_eq!(left.envelope.id, sent[12].id);
        drop(kept);
        assert_eq!(left.receipt.ack().await, Settlement::Sent);
        soon("closing", consumer.close()).await;
        eventually("the queue is empty", async || {
            let depth = broker.depth(Queue::PushReady).await.expect("the queue exists");
            (depth.messages, depth.consumers) == (0, 0)
        })
        .await;
        assert_eq!(rig.ready(Queue::PushReady).await, 0);
        assert_eq!(
            connected(&broker).await,
            generation,
            "the server never closed anything"
        );
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn what_waits_behind_an_open_message_is_acknowledged_before_long() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        publish(&broker, 10).await;
        let mut consumer = broker.consume(Queue::PushReady, 3);
        let mut taken = take(&mut consumer, 3).await;
        let open = taken.remove(0);
        // The prefetch is used up: seven more only come when the server has the acknowledgements of the two behind the open
        // one, again and again.
        let mut seen = 3;
        while seen < 10 {
            Receipt::ack_all(taken.drain(..).map(|delivery| delivery.receipt).collect()).await;
            taken.extend(
                soon("the next", consumer.next_batch(2))
                    .await
                    .expect("the consumer runs"),
            );
            seen += taken.len();
        }
        Receipt::ack_all(taken.into_iter().map(|delivery| delivery.receipt).collect()).await;
        assert_eq!(open.receipt.ack().await, Settlement::Sent);
        soon("closing", consumer.close()).await;
        assert_eq!(rig.ready(Queue::PushReady).await, 0);
        broker.close().await;
    })
    .await;
}
