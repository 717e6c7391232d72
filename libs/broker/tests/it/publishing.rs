//! What becomes of published messages when the connection is well.

use broker::{Broker, ConnectionState, Published, Queue, Settings};
use futures::future::join_all;

use crate::proxy::Proxy;
use crate::rig::{Rig, connected, envelopes, eventually, publish, soon, state, take, with_rig};

#[tokio::test]
async fn published_messages_are_consumed_in_order_and_gone_once_acknowledged() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let mut sent = envelopes(500);
        sent[7].traceparent = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned());
        let outcomes = broker.publisher().publish(Queue::PushReady, sent.clone()).await;
        assert_eq!(outcomes, vec![Published::Confirmed; 500]);

        let mut consumer = broker.consume(Queue::PushReady, 1_000);
        let taken = take(&mut consumer, 500).await;
        assert_eq!(
            taken
                .iter()
                .map(|delivery| delivery.envelope.clone())
                .collect::<Vec<_>>(),
            sent
        );
        assert!(taken.iter().all(|delivery| !delivery.redelivered));
        for delivery in taken {
            assert_eq!(delivery.receipt.ack().await, broker::Settlement::Sent);
        }
        // Only what was not acknowledged comes back.
        consumer.close().await;
        assert_eq!(rig.ready(Queue::PushReady).await, 0);
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn messages_carry_their_facts_as_properties() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let mut sent = envelopes(1);
        sent[0].traceparent = Some(trace.to_owned());
        broker.publisher().publish(Queue::PushReady, sent.clone()).await;

        let name = rig.name("push.ready");
        let channel = rig.channel().await;
        let message = channel
            .basic_get(name.into(), Default::default())
            .await
            .expect("answer")
            .expect("a message");
        let properties = &message.delivery.properties;
        let text = |value: &Option<lapin::types::ShortString>| value.as_ref().expect("set").to_string();
        assert_eq!(text(properties.message_id()), sent[0].id.to_string());
        assert_eq!(text(properties.kind()), "push");
        assert_eq!(text(properties.content_type()), "application/json");
        assert_eq!(properties.delivery_mode(), &Some(2));
        assert_eq!(properties.timestamp(), &Some(1_700_000_000));
        let headers = properties.headers().as_ref().expect("headers").inner();
        assert_eq!(
            headers["traceparent"].as_long_string().expect("text").as_bytes(),
            trace.as_bytes()
        );
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn full_queue_rejects_until_there_is_room_again() {
    with_rig(async |rig| {
        let broker = rig
            .broker(Settings {
                push_queue_capacity: 5,
                ..rig.settings()
            })
            .await;
        let publisher = broker.publisher();
        let (mut confirmed, mut rejected) = (0, 0);
        // The limit takes effect with a delay, so a few more than five may be taken.
        while rejected == 0 {
            for outcome in soon("publishing", publisher.publish(Queue::PushReady, envelopes(5))).await {
                match outcome {
                    Published::Confirmed => confirmed += 1,
                    Published::Rejected => rejected += 1,
                    other => panic!("{other:?}"),
                }
            }
            assert!(confirmed < 1_000, "never rejected");
        }
        assert!(confirmed >= 5, "only {confirmed} confirmed");

        let mut consumer = broker.consume(Queue::PushReady, 100);
        for delivery in take(&mut consumer, confirmed).await {
            delivery.receipt.ack().await;
        }
        eventually("room in the queue", async || {
            publisher.publish(Queue::PushReady, envelopes(1)).await == [Published::Confirmed]
        })
        .await;
        broker.close().await;
    })
    .await;
}

/// Many small publishes from many tasks share the channel, so that returns and confirms interleave. Every
/// third finds no queue.
async fn publish_routable_and_unroutable(rig: &Rig, broker: &Broker) {
    rig.unbind(Queue::PushReady).await;
    let mut routed = 0;
    for _ in 0..5 {
        let publishing = (0..400).map(|number| {
            let publisher = broker.publisher();
            let queue = if number % 3 == 0 {
                Queue::PushReady
            } else {
                Queue::PushDead
            };
            tokio::spawn(async move { (queue, publisher.publish(queue, envelopes(1 + number % 4)).await) })
        });
        for done in soon("publishing", join_all(publishing)).await {
            let (queue, outcomes) = done.expect("no panic");
            let expected = if queue == Queue::PushReady {
                Published::Unroutable
            } else {
                Published::Confirmed
            };
            assert_eq!(outcomes, vec![expected; outcomes.len()]);
            routed += outcomes
                .iter()
                .filter(|outcome| **outcome == Published::Confirmed)
                .count();
        }
    }
    assert_eq!(rig.ready(Queue::PushReady).await, 0);
    assert_eq!(rig.ready(Queue::PushDead).await as usize, routed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unroutable_is_reported_for_exactly_the_messages_that_were_returned() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        publish_routable_and_unroutable(rig, &broker).await;
        broker.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unroutable_is_told_apart_when_one_confirm_answers_many_messages() {
    with_rig(async |rig| {
        let proxy = Proxy::coalescing(&rig.url).await;
        let broker = rig
            .broker(Settings {
                url: proxy.url(),
                ..rig.settings()
            })
            .await;
        publish_routable_and_unroutable(rig, &broker).await;
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn more_messages_than_may_be_unanswered_are_published_all_the_same() {
    with_rig(async |rig| {
        let broker = rig
            .broker(Settings {
                max_unconfirmed: 3,
                ..rig.settings()
            })
            .await;
        publish(&broker, 100).await;
        assert_eq!(rig.ready(Queue::PushReady).await, 100);
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn closed_broker_sends_nothing_and_ends_its_consumers() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        connected(&broker).await;
        let publisher = broker.publisher();
        let mut consumer = broker.consume(Queue::PushReady, 10);
        let waiting = tokio::spawn(async move { consumer.next_batch(10).await.is_none() });
        soon("closing", broker.close()).await;
        assert!(soon("the consumer", waiting).await.expect("no panic"));
        assert_eq!(
            state(&broker, |state| *state == ConnectionState::Closed).await,
            ConnectionState::Closed
        );
        assert_eq!(
            publisher.publish(Queue::PushReady, envelopes(2)).await,
            [Published::NotSent; 2]
        );
    })
    .await;
}
