//! Messages that wait: in which order they come, which replace others, and which are deleted.

use chrono::TimeDelta;
use sqlx::PgPool;
use store::webpush::{MessageBody, NewMessage, Newer, Stored};
use uuid::Uuid;

use super::{Scene, connected, rand};
use crate::scene::until_blocked;

#[testkit::database_test]
async fn what_is_stored_is_read_as_it_was(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let with_keys = NewMessage {
        body: Some(MessageBody {
            data: vec![9; 4096],
            encoding: "aesgcm".to_owned(),
            encryption: Some("salt=a".to_owned()),
            crypto_key: Some("dh=b".to_owned()),
        }),
        ..scene.with_topic("1", "news")
    };
    let empty = NewMessage {
        body: None,
        ..scene.message("2")
    };
    let stored = scene
        .store
        .webpush_store(&[with_keys.clone(), empty.clone()])
        .await
        .unwrap();
    assert!(stored.iter().all(connected()), "{stored:?}");
    let waiting = scene
        .store
        .webpush_waiting(scene.uaid, scene.month, scene.now, &[], 10)
        .await
        .unwrap();
    for (read, put) in waiting.iter().zip([with_keys, empty]) {
        assert_eq!(
            (read.channel, &read.topic, &read.version),
            (put.channel, &put.topic, &put.version)
        );
        assert_eq!(
            (read.received_at, read.expires_at),
            (put.received_at, put.expires_at)
        );
        assert_eq!(read.body, put.body);
    }
    assert_eq!(waiting.len(), 2);
}

#[testkit::database_test]
async fn nothing_is_stored_for_what_is_not_registered(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let unknown = NewMessage {
        uaid: Uuid::from_u128(rand()),
        ..scene.message("1")
    };
    let elsewhere = NewMessage {
        channel: Uuid::from_u128(rand()),
        ..scene.message("2")
    };
    let stored = scene
        .store
        .webpush_store(&[unknown, elsewhere, scene.message("3")])
        .await
        .unwrap();
    assert_eq!(stored[..2], [Stored::NoClient, Stored::NoChannel]);
    assert!(connected()(&stored[2]));
    assert_eq!(scene.versions().await, ["3"], "the rest of the batch is stored");
}

#[testkit::database_test]
async fn topics_come_first_then_the_order_of_storing_and_nothing_that_expired(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let expired = NewMessage {
        expires_at: scene.now,
        ..scene.message("expired")
    };
    let batch = [
        scene.message("1"),
        expired,
        scene.message("2"),
        scene.with_topic("3", "a"),
    ];
    scene.store.webpush_store(&batch).await.unwrap();
    scene.put(scene.message("4")).await;
    scene.put(scene.with_topic("5", "b")).await;
    assert_eq!(scene.versions().await, ["3", "5", "1", "2", "4"]);
    let all = scene.waiting_in(scene.month).await;
    let outstanding = [all[0].0, all[2].0];
    let rest = scene
        .store
        .webpush_waiting(scene.uaid, scene.month, scene.now, &outstanding, 2)
        .await
        .unwrap();
    let rest: Vec<_> = rest.iter().map(|m| m.version.as_str()).collect();
    assert_eq!(
        rest,
        ["5", "2"],
        "without what is outstanding, and no more than asked for"
    );
}

#[testkit::database_test]
async fn messages_of_one_channel_and_one_instant_are_all_kept(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let batch: Vec<_> = (0..8).map(|n| scene.message(&n.to_string())).collect();
    scene.store.webpush_store(&batch).await.unwrap();
    assert_eq!(scene.versions().await.len(), 8);
}

#[testkit::database_test]
async fn a_topic_has_its_newest_message_only(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let other = Uuid::from_u128(rand());
    scene.register(scene.uaid, other).await;
    scene.put(scene.with_topic("1", "news")).await;
    let outstanding = scene.waiting_in(scene.month).await[0].0;
    let elsewhere = NewMessage {
        channel: other,
        ..scene.with_topic("elsewhere", "news")
    };
    let batch = [
        scene.with_topic("2", "news"),
        scene.with_topic("3", "news"),
        scene.with_topic("other", "weather"),
        elsewhere,
    ];
    let stored = scene.store.webpush_store(&batch).await.unwrap();
    assert!(
        stored.iter().all(connected()),
        "also what a later one of the batch replaced: {stored:?}"
    );
    let mut versions = scene.versions().await;
    versions.sort();
    assert_eq!(versions, ["3", "elsewhere", "other"]);

    let acked = scene
        .store
        .webpush_acked(scene.uaid, scene.month, &[outstanding])
        .await
        .unwrap();
    assert_eq!(acked, 0, "the one that was sent is not the one that replaced it");
    assert_eq!(scene.versions().await.len(), 3);
}

#[testkit::database_test]
async fn what_is_older_than_a_message_that_the_client_has_of_its_topic_is_deleted(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let (other, instant) = (Uuid::from_u128(rand()), TimeDelta::microseconds(1));
    scene.register(scene.uaid, other).await;
    let elsewhere = NewMessage {
        channel: other,
        ..scene.with_topic("another channel", "a")
    };
    for message in [
        scene.with_topic("a", "a"),
        scene.with_topic("b", "b"),
        scene.with_topic("c", "c"),
        scene.message("none"),
        elsewhere,
    ] {
        scene.put(message).await;
    }
    let newer = |topic: &str, received_at| Newer {
        channel: scene.channel,
        topic: topic.into(),
        received_at,
    };
    let (a, b) = (newer("a", scene.now + instant), newer("b", scene.now));
    let deleted = scene.store.webpush_delete_older(scene.uaid, &[&a, &b]).await;
    assert_eq!(deleted.unwrap(), 1);
    assert_eq!(scene.versions().await, ["b", "c", "another channel", "none"]);
    let deleted = scene.store.webpush_delete_older(other, &[&a]).await;
    assert_eq!(deleted.unwrap(), 0, "of another client");

    // A store that replaces the message has the row: the deletion waits for it, and leaves the newer message.
    let mut replacing = pool.begin().await.unwrap();
    let replace =
        "UPDATE webpush_messages SET version = 'newest', received_at = $2 WHERE uaid = $1 AND topic = 'c'";
    let (at, newest) = (scene.now + instant, scene.now + instant * 2);
    sqlx::query(replace)
        .bind(scene.uaid)
        .bind(newest)
        .execute(&mut *replacing)
        .await
        .unwrap();
    let (store, uaid, c) = (scene.store.clone(), scene.uaid, newer("c", at));
    let deleting = tokio::spawn(async move { store.webpush_delete_older(uaid, &[&c]).await });
    until_blocked(&pool, 1).await;
    replacing.commit().await.unwrap();
    assert_eq!(deleting.await.unwrap().unwrap(), 0);
    assert!(scene.versions().await.contains(&"newest".to_owned()));
}

#[testkit::database_test]
async fn what_is_acknowledged_is_deleted_by_identifier_and_nothing_else(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    scene
        .store
        .webpush_store(&[scene.message("1"), scene.message("2")])
        .await
        .unwrap();
    let read: Vec<i64> = scene
        .waiting_in(scene.month)
        .await
        .iter()
        .map(|(id, _)| *id)
        .collect();
    // Received before those that were read, stored after them.
    let slow = NewMessage {
        received_at: scene.now - TimeDelta::seconds(30),
        ..scene.message("slow")
    };
    scene.put(slow).await;
    let acked = scene
        .store
        .webpush_acked(scene.uaid, scene.month, &read)
        .await
        .unwrap();
    assert_eq!(acked, 2);
    assert_eq!(scene.versions().await, ["slow"]);
    let other = scene
        .store
        .webpush_acked(Uuid::from_u128(rand()), scene.month, &read)
        .await
        .unwrap();
    assert_eq!(other, 0);
}

#[testkit::database_test]
async fn a_message_is_deleted_by_its_sender_once(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    scene
        .store
        .webpush_store(&[scene.message("1"), scene.message("2")])
        .await
        .unwrap();
    let delete = async |versions: &[&str]| scene.store.webpush_delete(scene.uaid, versions).await.unwrap();
    assert_eq!(delete(&["1", "3"]).await, ["1"]);
    assert!(delete(&["1"]).await.is_empty());
    assert_eq!(scene.versions().await, ["2"]);
}

/// Two stores of the same topics, each in an order of its own.
#[testkit::database_test]
async fn stores_that_replace_messages_of_the_same_topics_do_not_wait_for_each_other(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let of_topics = |topics: &mut dyn Iterator<Item = u32>| -> Vec<NewMessage> {
        let of_topic = |topic: u32| NewMessage {
            topic: Some(topic.to_string()),
            ..scene.message(&format!("{topic}-{}", rand()))
        };
        topics.map(of_topic).collect()
    };
    let deadlocks = async || -> i64 {
        sqlx::query_scalar("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
            .fetch_one(&pool)
            .await
            .unwrap()
    };
    let before = deadlocks().await;
    for _ in 0..10 {
        let (up, down) = (of_topics(&mut (0..200)), of_topics(&mut (0..200).rev()));
        let (up, down) = tokio::join!(scene.store.webpush_store(&up), scene.store.webpush_store(&down));
        assert!(up.unwrap().iter().chain(&down.unwrap()).all(connected()));
    }
    assert_eq!(deadlocks().await, before);
    let waiting: i64 = sqlx::query_scalar("SELECT count(*) FROM webpush_messages WHERE uaid = $1")
        .bind(scene.uaid)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(waiting, 200);
}

#[testkit::database_test]
async fn what_has_expired_is_deleted_some_at_a_time_and_nothing_else(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let mut messages: Vec<_> = (0..3).map(|n| scene.message(&n.to_string())).collect();
    messages[2].expires_at += TimeDelta::seconds(1);
    scene.store.webpush_store(&messages).await.unwrap();
    let then = messages[0].expires_at;
    let delete = async |at, limit| {
        let (store, uaid, month) = (&scene.store, scene.uaid, scene.month);
        store
            .webpush_delete_expired(uaid, month, at, limit)
            .await
            .unwrap()
    };
    assert_eq!(delete(then - TimeDelta::microseconds(1), 9).await, 0);
    assert_eq!(delete(then, 1).await, 1);
    assert_eq!(delete(then, 9).await, 1);
    assert_eq!(scene.versions().await, ["2"]);
}
