//! Messages that were stored while the client was away, or while it could not take them.

use chrono::TimeDelta;
use sqlx::PgPool;
use testkit::eventually;

use crate::rig::Rig;

#[testkit::test]
async fn what_was_stored_comes_on_connecting_and_is_deleted_when_it_is_acknowledged(rig: &Rig) {
    let client = rig.node.client().await;
    rig.put(rig.message(&client, "1")).await;
    let mut client = rig.node.again(&client).await;
    assert_eq!(client.take().await, "1");
    eventually("an empty storage", async || {
        rig.waiting(&client).await.is_empty().then_some(())
    })
    .await;
}

#[testkit::test]
async fn batches_of_ten_topics_first_each_after_the_last_is_acknowledged(rig: &Rig) {
    let client = rig.node.client().await;
    for n in 0..12 {
        rig.put(rig.message(&client, &format!("{n:02}"))).await;
    }
    let mut with_topic = rig.message(&client, "topic");
    with_topic.topic = Some("t".to_owned());
    rig.put(with_topic).await;
    let mut client = rig.node.again(&client).await;
    let mut versions = Vec::new();
    for _ in 0..10 {
        versions.push(client.notified().await);
    }
    let expected: Vec<String> = ["topic".to_owned()]
        .into_iter()
        .chain((0..9).map(|n| format!("{n:02}")))
        .collect();
    assert_eq!(versions, expected);
    let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
    client.ack(&versions[..9]).await;
    client.ping().await;
    client.ack(&versions[9..]).await;
    for version in ["09", "10", "11"] {
        assert_eq!(client.notified().await, version);
    }
}

#[testkit::test]
async fn both_of_two_come_again_when_one_was_acknowledged(rig: &Rig) {
    let client = rig.node.client().await;
    for version in ["1", "2"] {
        rig.put(rig.message(&client, version)).await;
    }
    let mut client = rig.node.again(&client).await;
    client.take().await;
    client.notified().await;
    client.ping().await;
    let mut again = rig.node.again(&client).await;
    assert_eq!([again.notified().await, again.notified().await], ["1", "2"]);
}

#[testkit::test]
async fn a_topic_that_is_replaced_while_the_old_one_is_outstanding_is_not_lost(rig: &Rig) {
    let client = rig.node.client().await;
    let of_topic = |version| {
        let mut message = rig.message(&client, version);
        message.topic = Some("t".to_owned());
        message
    };
    rig.put(of_topic("1")).await;
    let mut again = rig.node.again(&client).await;
    assert_eq!(again.notified().await, "1");
    rig.put(of_topic("2")).await;
    rig.node.notify(&again).await;
    again.ack(&["1"]).await;
    assert_eq!(again.take().await, "2");
}

#[testkit::test]
async fn what_has_expired_is_not_sent(rig: &Rig) {
    let client = rig.node.client().await;
    let mut short = rig.message(&client, "short");
    short.expires_at = rig.now() + TimeDelta::seconds(1);
    rig.put(short).await;
    rig.put(rig.message(&client, "long")).await;
    rig.clock.advance(TimeDelta::seconds(2));
    let mut client = rig.node.again(&client).await;
    assert_eq!(client.take().await, "long");
    client.ping().await;
}

#[testkit::test]
async fn a_connected_client_is_told_of_what_is_stored(rig: &Rig) {
    let mut client = rig.node.client().await;
    rig.put(rig.message(&client, "1")).await;
    assert_eq!(rig.node.notify(&client).await, 200);
    assert_eq!(client.take().await, "1");
    drop(client);
}

#[testkit::test]
async fn a_node_that_does_not_have_the_client_says_so_when_it_is_told(rig: &Rig) {
    let client = rig.node.client().await;
    let other = rig.another_node().await;
    assert_eq!(other.notify(&client).await, 404);
    other.stop().await;
}

/// The reference reads on from a position in time, and loses what is committed behind it.
#[testkit::test]
async fn a_message_that_was_stored_slowly_is_not_passed_over(rig: &Rig) {
    let mut client = rig.node.client().await;
    let slow = rig.message(&client, "slow");
    rig.clock.advance(TimeDelta::seconds(10));
    rig.put(rig.message(&client, "quick")).await;
    rig.node.notify(&client).await;
    assert_eq!(client.take().await, "quick");
    eventually("an empty storage", async || {
        rig.waiting(&client).await.is_empty().then_some(())
    })
    .await;
    // Received before, committed after.
    rig.put(slow).await;
    rig.node.notify(&client).await;
    assert_eq!(client.take().await, "slow");
}

/// The reference keys messages by channel and millisecond.
#[testkit::test]
async fn messages_of_one_millisecond_all_come(rig: &Rig) {
    let mut client = rig.node.client().await;
    for version in ["1", "2", "3"] {
        rig.put(rig.message(&client, version)).await;
    }
    rig.node.notify(&client).await;
    for version in ["1", "2", "3"] {
        assert_eq!(client.notified().await, version);
    }
}

#[testkit::test]
async fn a_client_with_more_messages_than_the_limit_has_to_register_again(pool: PgPool) {
    let rig = Rig::with(pool, |config| config.webpush.connection.message_limit = 15).await;
    let client = rig.node.client().await;
    for n in 0..16 {
        rig.put(rig.message(&client, &format!("{n:02}"))).await;
    }
    let mut client = rig.node.again(&client).await;
    for _ in 0..10 {
        client.take().await;
    }
    assert_eq!(client.closed().await, 1000);
    assert_eq!(rig.store.webpush_client(client.uaid).await.unwrap(), None);
    let again = rig.node.again(&client).await;
    assert_ne!(again.uaid, client.uaid);
}
