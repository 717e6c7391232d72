//! What is declared on the server, and the file that says the same.

use std::path::Path;

use broker::{Broker, ConnectionState, Error, Queue, Settings, topology};

use crate::rig::{connected, envelopes, eventually, publish, soon, state, take, with_rig};

/// Regenerate with `UPDATE_DEFINITIONS=1 cargo test -p broker definitions_file`.
#[test]
fn definitions_file_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rabbitmq/definitions.json");
    let expected = topology::definitions_json();
    if std::env::var_os("UPDATE_DEFINITIONS").is_some() {
        std::fs::write(&path, &expected).expect("the folder can be written to");
    }
    let found = std::fs::read_to_string(&path).expect("rabbitmq/definitions.json exists");
    assert_eq!(found, expected, "regenerate it with UPDATE_DEFINITIONS=1");
}

#[tokio::test]
async fn declaring_again_changes_nothing() {
    with_rig(async |rig| {
        let first = rig.broker(rig.settings()).await;
        publish(&first, 3).await;
        let second = rig.broker(rig.settings()).await;
        assert_eq!(
            second
                .depth(Queue::PushReady)
                .await
                .expect("the queue exists")
                .messages,
            3
        );
        first.close().await;
        second.close().await;
    })
    .await;
}

#[tokio::test]
async fn changed_capacity_replaces_an_unused_queue() {
    with_rig(async |rig| {
        let before = rig.broker(rig.settings()).await;
        publish(&before, 3).await;
        before.close().await;
        let after = rig
            .broker(Settings {
                push_queue_capacity: 2,
                ..rig.settings()
            })
            .await;
        assert_eq!(
            after
                .depth(Queue::PushReady)
                .await
                .expect("the queue exists")
                .messages,
            0
        );
        let publisher = after.publisher();
        eventually("the new capacity rejects", async || {
            publisher.publish(Queue::PushReady, envelopes(1)).await == [broker::Published::Rejected]
        })
        .await;
        after.close().await;
    })
    .await;
}

#[tokio::test]
async fn changed_capacity_waits_while_the_queue_is_in_use() {
    with_rig(async |rig| {
        let old = rig.broker(rig.settings()).await;
        publish(&old, 1).await;
        let mut consumer = old.consume(Queue::PushReady, 1);
        take(&mut consumer, 1).await;

        let new = Broker::start(Settings {
            push_queue_capacity: 2,
            ..rig.settings()
        });
        let name = rig.name("push.ready");
        let in_use = |state: &ConnectionState| match state {
            ConnectionState::Connecting {
                last_error: Some(error),
            } => error.contains(&name) && error.contains("in use"),
            _ => false,
        };
        state(&new, in_use).await;
        assert_eq!(old.depth(Queue::PushReady).await.expect("untouched").consumers, 1);

        soon("closing", consumer.close()).await;
        old.close().await;
        connected(&new).await;
        new.close().await;
    })
    .await;
}

#[tokio::test]
async fn depth_counts_messages_and_consumers() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        publish(&broker, 7).await;
        let depth = broker.depth(Queue::PushReady).await.expect("the queue exists");
        assert_eq!((depth.messages, depth.consumers), (7, 0));
        let mut consumer = broker.consume(Queue::PushReady, 2);
        take(&mut consumer, 2).await;
        let depth = broker.depth(Queue::PushReady).await.expect("the queue exists");
        assert_eq!((depth.messages, depth.consumers), (5, 1));
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn depth_of_a_missing_queue_is_an_error_that_harms_nothing_else() {
    with_rig(async |rig| {
        let broker = rig.broker(rig.settings()).await;
        let generation = connected(&broker).await;
        rig.delete(Queue::PushReady).await;
        let error = broker
            .depth(Queue::PushReady)
            .await
            .expect_err("the queue is gone");
        assert!(matches!(error, Error::QueueMissing { .. }), "{error}");
        assert_eq!(
            broker.depth(Queue::PushDead).await.expect("still there").messages,
            0
        );
        let outcomes = broker.publisher().publish(Queue::PushDead, envelopes(1)).await;
        assert_eq!(outcomes, [broker::Published::Confirmed]);
        assert_eq!(connected(&broker).await, generation);
        broker.close().await;
    })
    .await;
}
