//! The queues of the reseller lane: what is in them, how much of it, and where it goes when it is given up.

use broker::{Broker, Envelope, Kind, Published, Queue, Settings, Settlement};
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
