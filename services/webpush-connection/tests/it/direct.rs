//! Messages that are handed over while the client is here.

use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;
use sqlx::PgPool;
use testkit::{PATIENCE, eventually};

use crate::rig::Rig;

#[testkit::test]
async fn a_message_is_safe_when_the_client_has_acknowledged_it(rig: &Rig) {
    let mut client = rig.node.client().await;
    let push = tokio::spawn(
        rig.node
            .push_to(&client.uaid.to_string(), client.channel, "1", 60),
    );
    let notification = json!({
        "messageType": "notification", "channelID": client.channel, "version": "1", "data": "__4",
        "headers": {"encoding": "aes128gcm"},
    });
    assert_eq!(client.hear().await, notification);
    assert!(
        !push.is_finished(),
        "the sender's node keeps it until it is acknowledged"
    );
    client.ack(&["1"]).await;
    assert_eq!(push.await.unwrap(), 200);
}

#[testkit::test]
async fn a_message_without_ttl_is_sent_and_forgotten(rig: &Rig) {
    let mut client = rig.node.client().await;
    assert_eq!(rig.node.push(&client, "1", 0).await, 200);
    assert_eq!(client.notified().await, "1");
}

#[testkit::test]
async fn a_message_for_a_client_that_is_not_here_is_refused(rig: &Rig) {
    let client = rig.node.client().await;
    assert_eq!(rig.node.push_to("nonsense", client.channel, "1", 60).await, 404);
    drop(client);
}

#[testkit::test]
async fn a_sender_learns_that_the_client_has_left_without_an_acknowledgement(rig: &Rig) {
    let mut client = rig.node.client().await;
    let push = tokio::spawn(
        rig.node
            .push_to(&client.uaid.to_string(), client.channel, "1", 60),
    );
    client.notified().await;
    drop(client);
    assert_eq!(push.await.unwrap(), 404);
}

async fn impatient(pool: PgPool) -> Rig {
    waiting_for(pool, Duration::from_millis(200)).await
}

async fn waiting_for(pool: PgPool, ack_wait: Duration) -> Rig {
    Rig::with(pool, |config| config.webpush.connection.ack_wait = ack_wait).await
}

/// The sender's node stores what was not acknowledged in time; a late acknowledgement takes it out again.
#[testkit::test]
async fn a_late_acknowledgement_takes_the_message_out_of_storage(pool: PgPool) {
    let rig = impatient(pool).await;
    let mut client = rig.node.client().await;
    assert_eq!(rig.node.push(&client, "1", 60).await, 503);
    rig.put(rig.message(&client, "1")).await;
    assert_eq!(rig.node.notify(&client).await, 200);
    assert_eq!(client.notified().await, "1");
    client.ping().await;
    assert_eq!(rig.waiting(&client).await, ["1"]);
    client.ack(&["1"]).await;
    eventually("an empty storage", async || {
        rig.waiting(&client).await.is_empty().then_some(())
    })
    .await;
    client.silent().await;
}

/// The acknowledgement may come between the answer to the sender's node and its commit.
#[testkit::test]
async fn an_acknowledgement_before_the_commit_counts_as_well(pool: PgPool) {
    let rig = impatient(pool).await;
    let mut client = rig.node.client().await;
    assert_eq!(rig.node.push(&client, "1", 60).await, 503);
    client.take().await;
    client.ping().await;
    rig.put(rig.message(&client, "1")).await;
    assert_eq!(rig.node.notify(&client).await, 200);
    eventually("an empty storage", async || {
        rig.waiting(&client).await.is_empty().then_some(())
    })
    .await;
    client.silent().await;
}

/// What was stored of a topic would be shown after the newer message, and stay.
#[testkit::test]
async fn what_is_stored_of_a_topic_goes_when_a_newer_message_of_it_is_acknowledged(pool: PgPool) {
    let rig = waiting_for(pool, PATIENCE).await;
    let mut client = rig.node.client().await;
    let (older, newest) = (
        rig.now() - TimeDelta::microseconds(1),
        rig.now() + TimeDelta::microseconds(1),
    );
    rig.put(rig.of_topic(&client, "older", older)).await;
    let push = tokio::spawn(rig.node.push_of_topic(&client, "newer", rig.now()));
    assert_eq!(client.notified().await, "newer");
    client.ping().await;
    assert_eq!(rig.waiting(&client).await, ["older"], "the newer one may be lost");
    client.ack(&["newer"]).await;
    assert_eq!(push.await.unwrap(), 200);
    assert!(
        rig.waiting(&client).await.is_empty(),
        "before its sender is answered"
    );

    rig.put(rig.of_topic(&client, "newest", newest)).await;
    let (status, version) = tokio::join!(rig.node.push_of_topic(&client, "late", rig.now()), client.take());
    assert_eq!((status.as_u16(), version.as_str()), (200, "late"));
    assert_eq!(rig.waiting(&client).await, ["newest"]);
}

/// A message that counts as late would have all those after it stored.
#[testkit::test]
async fn a_sender_does_not_wait_for_what_is_stored_of_a_topic_to_go(pool: PgPool) {
    let rig = waiting_for(pool, Duration::from_secs(8)).await;
    let mut client = rig.node.client().await;
    let older = rig.now() - TimeDelta::seconds(60);
    rig.put(rig.of_topic(&client, "older", older)).await;
    let mut holder = rig.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM webpush_messages WHERE uaid = $1 FOR UPDATE")
        .bind(client.uaid)
        .execute(&mut *holder)
        .await
        .unwrap();
    let push = rig.node.push_of_topic(&client, "newer", rig.now());
    let (status, version) = tokio::join!(push, client.take());
    assert_eq!((status.as_u16(), version.as_str()), (200, "newer"));
    holder.rollback().await.unwrap();
    eventually("an empty storage", async || {
        rig.waiting(&client).await.is_empty().then_some(())
    })
    .await;
    client.ping().await;
}

/// The acknowledgement comes too late for the sender, and too early to find the message in storage.
#[testkit::test]
async fn what_is_stored_of_a_topic_is_not_shown_before_a_newer_message_is_stored(pool: PgPool) {
    // What waits in the mailbox for longer is not sent.
    let rig = waiting_for(pool, Duration::from_secs(5)).await;
    let mut client = rig.node.client().await;
    let (older, newer) = (rig.now() - TimeDelta::seconds(60), rig.now());
    rig.put(rig.of_topic(&client, "older", older)).await;
    let push = tokio::spawn(rig.node.push_of_topic(&client, "newer", newer));
    assert_eq!(client.notified().await, "newer");
    assert_eq!(push.await.unwrap(), 503);
    client.ack(&["newer"]).await;
    eventually("an empty storage", async || {
        rig.waiting(&client).await.is_empty().then_some(())
    })
    .await;
    rig.put(rig.of_topic(&client, "newer", newer)).await;
    assert_eq!(rig.node.notify(&client).await, 200);
    eventually("an empty storage", async || {
        rig.waiting(&client).await.is_empty().then_some(())
    })
    .await;
    client.ping().await;
}

/// Some senders read what was delivered only after they have their answer: they pay for one long wait and not for each.
#[testkit::test]
async fn a_client_that_was_late_is_not_waited_for_as_long_again(pool: PgPool) {
    let rig = waiting_for(pool, Duration::from_secs(5)).await;
    let mut client = rig.node.client().await;
    assert_eq!(rig.node.push(&client, "1", 60).await, 503);
    let since = std::time::Instant::now();
    for version in ["2", "3"] {
        assert_eq!(rig.node.push(&client, version, 60).await, 503);
    }
    let elapsed = since.elapsed();
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
    for _ in 0..3 {
        client.take().await;
    }
}

#[testkit::test]
async fn a_message_that_finds_no_place_is_stored_and_comes_afterwards(pool: PgPool) {
    let rig = Rig::with(pool, |config| {
        config.webpush.connection.queue_capacity = 1;
        config.webpush.connection.ack_wait = Duration::from_millis(50);
    })
    .await;
    let mut client = rig.node.client().await;
    // One is outstanding, and one waits; the third finds no place.
    for version in ["1", "2", "3"] {
        assert_eq!(rig.node.push(&client, version, 60).await, 503);
        rig.put(rig.message(&client, version)).await;
        rig.node.notify(&client).await;
    }
    assert_eq!(client.take().await, "1");
    let mut rest = [client.take().await, client.take().await];
    rest.sort();
    assert_eq!(rest, ["2", "3"]);
    client.silent().await;
    eventually("an empty storage", async || {
        rig.waiting(&client).await.is_empty().then_some(())
    })
    .await;
}
