//! What becomes of published messages when the server does not answer.

use std::time::Duration;

use broker::{ConnectionState, Published, Queue, Settings};
use tokio::time::Instant;

use crate::proxy::Proxy;
use crate::rig::{PATIENCE, connected, envelopes, eventually, newer, publish, soon, state, with_rig};

/// `connection.blocked` with the reason "low", and `connection.unblocked`.
const BLOCKED: &[u8] = b"\x01\x00\x00\x00\x00\x00\x08\x00\x0a\x00\x3c\x03low\xce";
const UNBLOCKED: &[u8] = b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x3d\xce";

/// So long that what the server does confirm is confirmed within it.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(4);

#[tokio::test]
async fn missing_confirms_count_as_unconfirmed_and_late_ones_do_no_harm() {
    with_rig(async |rig| {
        let proxy = Proxy::start(&rig.url).await;
        let broker = rig
            .broker(Settings {
                url: proxy.url(),
                confirm_timeout: CONFIRM_TIMEOUT,
                ..rig.settings()
            })
            .await;
        let generation = connected(&broker).await;

        proxy.hold();
        let since = Instant::now();
        let outcomes = soon(
            "the timeout",
            broker.publisher().publish(Queue::PushReady, envelopes(50)),
        )
        .await;
        assert_eq!(outcomes, [Published::Unconfirmed; 50]);
        assert!(since.elapsed() >= CONFIRM_TIMEOUT);
        eventually("unconfirmed messages in the queue", async || {
            rig.ready(Queue::PushReady).await == 50
        })
        .await;

        proxy.release();
        rig.unbind(Queue::PushReady).await;
        let outcomes = broker.publisher().publish(Queue::PushReady, envelopes(20)).await;
        assert_eq!(outcomes, [Published::Unroutable; 20]);
        let outcomes = broker.publisher().publish(Queue::PushDead, envelopes(20)).await;
        assert_eq!(outcomes, [Published::Confirmed; 20]);
        assert_eq!(connected(&broker).await, generation, "a new channel is enough");
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn server_that_stays_silent_is_given_up_and_the_next_connection_publishes() {
    with_rig(async |rig| {
        let proxy = Proxy::start(&rig.url).await;
        let broker = rig
            .broker(Settings {
                url: proxy.url(),
                confirm_timeout: CONFIRM_TIMEOUT,
                ..rig.settings()
            })
            .await;
        let generation = connected(&broker).await;
        let publisher = broker.publisher();
        proxy.hold();
        assert_eq!(
            publisher.publish(Queue::PushReady, envelopes(1)).await,
            [Published::Unconfirmed]
        );
        // There is no channel left to publish on, and the server does not open another.
        assert_eq!(
            soon("giving up", publisher.publish(Queue::PushReady, envelopes(1))).await,
            [Published::NotSent]
        );
        proxy.cut();
        proxy.release();
        newer(&broker, generation).await;
        eventually("a confirm", async || {
            publisher.publish(Queue::PushReady, envelopes(1)).await == [Published::Confirmed]
        })
        .await;
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn no_more_messages_are_unanswered_than_allowed() {
    with_rig(async |rig| {
        let proxy = Proxy::start(&rig.url).await;
        let settings = Settings {
            url: proxy.url(),
            confirm_timeout: CONFIRM_TIMEOUT,
            max_unconfirmed: 10,
            ..rig.settings()
        };
        let broker = rig.broker(settings).await;
        proxy.hold();
        let outcomes = soon(
            "the timeout",
            broker.publisher().publish(Queue::PushReady, envelopes(30)),
        )
        .await;
        assert_eq!(outcomes[..10], [Published::Unconfirmed; 10]);
        assert_eq!(outcomes[10..], [Published::NotSent; 20]);
        eventually("ten messages in the queue", async || {
            rig.ready(Queue::PushReady).await == 10
        })
        .await;
        proxy.cut();
        broker.close().await;
        assert_eq!(rig.ready(Queue::PushReady).await, 10);
    })
    .await;
}

#[tokio::test]
async fn lost_connection_answers_its_messages_at_once() {
    with_rig(async |rig| {
        let proxy = Proxy::start(&rig.url).await;
        let settings = Settings {
            url: proxy.url(),
            confirm_timeout: 10 * PATIENCE,
            ..rig.settings()
        };
        let broker = rig.broker(settings).await;
        let generation = connected(&broker).await;
        proxy.hold();
        let publisher = broker.publisher();
        let publishing =
            tokio::spawn(async move { publisher.publish(Queue::PushReady, envelopes(50)).await });
        eventually("messages in the queue", async || {
            rig.ready(Queue::PushReady).await == 50
        })
        .await;
        proxy.cut();
        let outcomes = soon("the answers", publishing).await.expect("no panic");
        assert_eq!(outcomes, [Published::Unconfirmed; 50]);
        proxy.release();
        newer(&broker, generation).await;
        publish(&broker, 10).await;
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn blocked_server_gets_nothing_until_it_takes_messages_again() {
    with_rig(async |rig| {
        let proxy = Proxy::start(&rig.url).await;
        let broker = rig
            .broker(Settings {
                url: proxy.url(),
                ..rig.settings()
            })
            .await;
        let generation = connected(&broker).await;
        publish(&broker, 1).await;

        proxy.inject(BLOCKED);
        let blocked = ConnectionState::Blocked {
            generation,
            reason: "low".to_owned(),
        };
        state(&broker, |state| *state == blocked).await;
        assert!(!broker.publisher().takes_messages());
        let outcomes = broker.publisher().publish(Queue::PushReady, envelopes(3)).await;
        assert_eq!(outcomes, [Published::NotSent; 3]);

        proxy.inject(UNBLOCKED);
        assert_eq!(connected(&broker).await, generation);
        publish(&broker, 3).await;
        assert_eq!(rig.ready(Queue::PushReady).await, 4);
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn messages_published_before_the_close_are_still_answered() {
    with_rig(async |rig| {
        let proxy = Proxy::start(&rig.url).await;
        let broker = rig
            .broker(Settings {
                url: proxy.url(),
                ..rig.settings()
            })
            .await;
        proxy.hold();
        let publisher = broker.publisher();
        let publishing =
            tokio::spawn(async move { publisher.publish(Queue::PushReady, envelopes(20)).await });
        eventually("messages in the queue", async || {
            rig.ready(Queue::PushReady).await == 20
        })
        .await;
        let closing = tokio::spawn(async move { broker.close().await });
        proxy.release();
        let outcomes = soon("the answers", publishing).await.expect("no panic");
        assert_eq!(outcomes, [Published::Confirmed; 20]);
        soon("closing", closing).await.expect("no panic");
    })
    .await;
}
