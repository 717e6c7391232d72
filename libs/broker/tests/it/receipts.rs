//! Receipts across reconnects: what belongs to an old connection is never settled.

use broker::{Queue, Settings, Settlement};

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
