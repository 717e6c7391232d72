//! Consuming: unreadable messages, dead letters, stopping, and queues that vanish.

use std::collections::HashSet;
use std::time::Duration;

use broker::envelope::VERSION;
use broker::{DeadLetter, Queue, Settlement};

use crate::rig::{Rig, connected, eventually, ids, newer, publish, soon, take, with_rig};

async fn dead_letters(broker: &broker::Broker, count: usize) -> Vec<DeadLetter> {
    let mut consumer = broker.consume_dead(Queue::PushDead, 100);
    let mut letters = Vec::new();
    while letters.len() < count {
        letters.extend(
            soon("a dead letter", consumer.next_batch(100))
                .await
                .expect("the consumer runs"),
        );
    }
    consumer.stop().await;
    letters
}

async fn settled(rig: &Rig, queue: Queue, messages: u32) {
    eventually("the queue has the expected length", async || {
        rig.ready(queue).await == messages
    })
    .await;
}

#[tokio::test]
async fn unreadable_messages_become_dead_letters_and_the_others_are_delivered() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let other_version = format!(r#"{{"version":{}}}"#, VERSION + 1);
        let bad: [&[u8]; 4] = [
            b"\xff\xfe not json",
            b"{}",
            other_version.as_bytes(),
            &[b'x'; 100_000],
        ];
        for body in bad {
            rig.publish_raw(body).await;
        }
        let good = publish(&broker, 2).await;

        let mut consumer = broker.consume(Queue::PushReady, 100);
        let taken = take(&mut consumer, 2).await;
        assert_eq!(
            taken
                .iter()
                .map(|delivery| delivery.envelope.id)
                .collect::<Vec<_>>(),
            ids(&good)
        );
        assert_eq!(consumer.malformed(), 4);

        let letters = dead_letters(&broker, 4).await;
        for (letter, body) in letters.into_iter().zip(bad) {
            assert_eq!(letter.body, body);
            assert_eq!(letter.reason.as_deref(), Some("rejected"));
            assert_eq!(letter.first_queue, Some(rig.name("push.ready")));
            assert_eq!(letter.message_id.as_deref(), Some("raw"));
            assert_eq!(letter.count, 1);
            assert_eq!(letter.headers["x-first-death-reason"], "rejected");
            assert_eq!(letter.receipt.ack().await, Settlement::Sent);
        }
        broker.close().await;
        settled(rig, Queue::PushDead, 0).await;
        settled(rig, Queue::PushReady, 2).await;
    })
    .await;
}

#[tokio::test]
async fn message_that_is_never_acknowledged_becomes_a_dead_letter() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let sent = publish(&broker, 1).await;
        let mut consumer = broker.consume(Queue::PushReady, 1);
        let mut deliveries = 0;
        let mut archive = broker.consume_dead(Queue::PushDead, 1);
        let letter = loop {
            tokio::select! {
                batch = consumer.next_batch(1) => {
                    let delivery = batch.expect("the consumer runs").pop().expect("not empty");
                    assert_eq!(delivery.redelivered, deliveries > 0);
                    deliveries += 1;
                    assert!(deliveries < 1_000, "the server has no delivery limit");
                    delivery.receipt.requeue().await;
                }
                letters = archive.next_batch(1) => break letters.expect("the consumer runs").pop().expect("not empty"),
            }
        };
        assert!(deliveries > 50, "only {deliveries} deliveries");
        assert_eq!(letter.reason.as_deref(), Some("delivery_limit"));
        assert_eq!(letter.message_id, Some(sent[0].id.to_string()));
        assert_eq!(letter.body, sent[0].encode());
        letter.receipt.ack().await;
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn rejected_delivery_becomes_a_dead_letter() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let sent = publish(&broker, 1).await;
        let mut consumer = broker.consume(Queue::PushReady, 1);
        for delivery in take(&mut consumer, 1).await {
            assert_eq!(delivery.receipt.reject().await, Settlement::Sent);
        }
        let letter = dead_letters(&broker, 1).await.remove(0);
        assert_eq!(letter.reason.as_deref(), Some("rejected"));
        assert_eq!(letter.message_id, Some(sent[0].id.to_string()));
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn stopped_consumer_hands_back_what_it_prefetched_and_can_still_acknowledge() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let sent = publish(&broker, 10).await;
        let mut stopping = broker.consume(Queue::PushReady, 10);
        let first = take(&mut stopping, 1).await.remove(0);
        settled(rig, Queue::PushReady, 0).await;
        soon("stopping", stopping.stop()).await;
        assert!(stopping.next_batch(10).await.is_none());

        let mut other = broker.consume(Queue::PushReady, 10);
        let rest: HashSet<_> = take(&mut other, 9)
            .await
            .iter()
            .map(|delivery| delivery.envelope.id)
            .collect();
        assert_eq!(rest, ids(&sent[1..]).into_iter().collect());
        assert_eq!(first.envelope.id, sent[0].id);
        assert_eq!(first.receipt.ack().await, Settlement::Sent);
        soon("closing", stopping.close()).await;
        soon("closing", other.close()).await;
        settled(rig, Queue::PushReady, 9).await;
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn impatient_caller_loses_no_messages() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let mut consumer = broker.consume(Queue::PushReady, 1_000);
        let publishing = tokio::spawn({
            let broker = broker.clone();
            async move { publish(&broker, 500).await }
        });
        let mut taken = Vec::new();
        soon("all messages", async {
            while taken.len() < 500 {
                let waiting = consumer.next_batch(7);
                if let Ok(batch) = tokio::time::timeout(Duration::from_micros(50), waiting).await {
                    taken.extend(batch.expect("the consumer runs"));
                }
            }
        })
        .await;
        let sent = publishing.await.expect("no panic");
        assert_eq!(
            taken
                .iter()
                .map(|delivery| delivery.envelope.id)
                .collect::<Vec<_>>(),
            ids(&sent)
        );
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_deleted_queue_is_declared_and_consumed_again() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let generation = connected(&broker).await;
        publish(&broker, 1).await;
        let mut consumer = broker.consume(Queue::PushReady, 10);
        take(&mut consumer, 1).await;
        rig.delete(Queue::PushReady).await;
        let consuming = tokio::spawn(async move { take(&mut consumer, 3).await });
        newer(&broker, generation).await;
        let sent = publish(&broker, 3).await;
        let taken = soon("the new queue's messages", consuming)
            .await
            .expect("no panic");
        assert_eq!(
            taken
                .iter()
                .map(|delivery| delivery.envelope.id)
                .collect::<Vec<_>>(),
            ids(&sent)
        );
        broker.close().await;
    })
    .await;
}
