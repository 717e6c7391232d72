//! The queues of the reseller lane: what is in them, how much of it, and where it goes when it is given up.

use broker::envelope::TOGETHER_MAX;
use broker::{Broker, Envelope, Kind, Published, Queue, Receipt, Settings, Settlement};
use chrono::DateTime;
use uuid::Uuid;

use crate::rig::{eventually, soon, take, with_rig};

const WORK: [Queue; 2] = [Queue::ResellerReady, Queue::ResellerRetry];

fn notification() -> Envelope {
    let at = DateTime::from_timestamp(1_700_000_000, 0).expect("in range");
    Envelope::notification(Uuid::now_v7(), Uuid::now_v7(), at, None)
}

async fn publish(broker: &Broker, queue: Queue, envelope: &Envelope) {
    let publisher = broker.publisher();
    let outcomes = soon("publishing", publisher.publish(queue, vec![envelope.clone()])).await;
    assert_eq!(outcomes, [Published::Confirmed], "{queue}");
}

#[tokio::test]
async fn notifications_keep_their_subscription_and_their_queue() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let sent = WORK.map(|queue| (queue, notification()));
        for (queue, envelope) in &sent {
            publish(&broker, *queue, envelope).await;
        }
        for (queue, envelope) in sent {
            let mut consumer = broker.consume(queue, 10);
            let taken = take(&mut consumer, 1).await.remove(0);
            assert_eq!(taken.envelope, envelope, "{queue}");
            assert_eq!(taken.envelope.kind, Kind::Notification);
            assert!(taken.envelope.group.is_some());
            taken.receipt.ack().await;
            consumer.close().await;
            assert_eq!(rig.ready(queue).await, 0);
        }
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn what_either_queue_gives_up_becomes_a_dead_letter_of_the_lane() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let mut archive = broker.consume_dead(Queue::ResellerDead, 10);
        for queue in WORK {
            let envelope = notification();
            publish(&broker, queue, &envelope).await;
            let mut consumer = broker.consume(queue, 10);
            let taken = take(&mut consumer, 1).await.remove(0);
            assert_eq!(taken.receipt.reject().await, Settlement::Sent);

            let mut letters = soon("a dead letter", archive.next_batch(10))
                .await
                .expect("the consumer runs");
            let letter = letters.remove(0);
            assert!(letters.is_empty());
            assert_eq!(letter.body, envelope.encode());
            assert_eq!(letter.first_queue, Some(rig.name(queue.name())));
            letter.receipt.ack().await;
        }
        assert_eq!(rig.ready(Queue::PushDead).await, 0);
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn full_reseller_queue_leaves_room_in_the_others() {
    with_rig(async |rig| {
        let broker = rig
            .broker(Settings {
                reseller_queue_capacity: 2,
                ..rig.settings()
            })
            .await;
        let publisher = broker.publisher();
        eventually("the queue is full", async || {
            publisher
                .publish(Queue::ResellerReady, vec![notification()])
                .await
                == [Published::Rejected]
        })
        .await;
        publish(&broker, Queue::ResellerRetry, &notification()).await;
        publish(&broker, Queue::PushReady, &notification()).await;
        broker.close().await;
    })
    .await;
}

/// Publishes so many notifications that share messages as far as they may.
async fn publish_together(broker: &Broker, count: usize) -> Vec<Envelope> {
    broker.share_messages(true);
    let envelopes: Vec<_> = (0..count).map(|_| notification()).collect();
    let publisher = broker.publisher();
    let outcomes = soon(
        "publishing",
        publisher.publish(Queue::ResellerReady, envelopes.clone()),
    )
    .await;
    assert_eq!(outcomes, vec![Published::Confirmed; count]);
    envelopes
}

#[tokio::test]
async fn what_is_published_together_shares_messages_and_is_read_one_by_one() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let sent = publish_together(&broker, TOGETHER_MAX + 2).await;
        assert_eq!(rig.ready(Queue::ResellerReady).await, 2);
        let mut consumer = broker.consume(Queue::ResellerReady, 10);
        let taken = take(&mut consumer, sent.len()).await;
        assert!(taken.iter().map(|delivery| &delivery.envelope).eq(&sent));
        // The first message is acknowledged with its last row, however they are settled.
        let mut receipts = taken.into_iter().map(|delivery| delivery.receipt);
        let many = receipts.by_ref().take(TOGETHER_MAX - 1).collect();
        Receipt::ack_all(many).await;
        assert_eq!(
            receipts.next().expect("the last of it").ack().await,
            Settlement::Sent
        );
        Receipt::ack_all(receipts.collect()).await;
        soon("closing", consumer.close()).await;
        eventually("the queue is empty", async || {
            let depth = broker
                .depth(Queue::ResellerReady)
                .await
                .expect("the queue exists");
            (depth.messages, depth.consumers) == (0, 0)
        })
        .await;
        assert_eq!(rig.ready(Queue::ResellerReady).await, 0);
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn one_row_that_is_handed_back_brings_all_of_its_message_again() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let sent = publish_together(&broker, 3).await;
        let mut consumer = broker.consume(Queue::ResellerReady, 10);
        let mut taken = take(&mut consumer, 3).await;
        assert_eq!(taken.remove(1).receipt.requeue().await, Settlement::Sent);
        Receipt::ack_all(taken.into_iter().map(|delivery| delivery.receipt).collect()).await;
        let again = take(&mut consumer, 3).await;
        assert!(again.iter().map(|delivery| &delivery.envelope).eq(&sent));
        assert!(again.iter().all(|delivery| delivery.redelivered));
        // One of which nothing is said: the message comes again with the next consumer.
        let mut receipts: Vec<_> = again.into_iter().map(|delivery| delivery.receipt).collect();
        drop(receipts.pop());
        Receipt::ack_all(receipts).await;
        soon("closing", consumer.close()).await;
        let mut consumer = broker.consume(Queue::ResellerReady, 10);
        // Of what it has read and not handed out, it hands everything back when it stops.
        assert_eq!(take(&mut consumer, 1).await.len(), 1);
        soon("closing", consumer.close()).await;
        eventually("the message is back", async || {
            rig.ready(Queue::ResellerReady).await == 1
        })
        .await;
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_message_that_is_refused_is_refused_for_all_of_its_rows() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        broker.share_messages(true);
        rig.unbind(Queue::ResellerReady).await;
        let envelopes: Vec<_> = (0..TOGETHER_MAX + 1).map(|_| notification()).collect();
        let publisher = broker.publisher();
        let outcomes = soon("publishing", publisher.publish(Queue::ResellerReady, envelopes)).await;
        assert_eq!(outcomes, vec![Published::Unroutable; TOGETHER_MAX + 1]);
        broker.close().await;
    })
    .await;
}
