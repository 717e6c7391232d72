//! Web Push: clients, the messages that wait for them, and their months.

use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::month::Month;
use sqlx::{AssertSqlSafe, PgPool};
use store::Store;
use store::webpush::{MessageBody, NewMessage, Newer, Registered, Stored};
use uuid::Uuid;

use crate::scene::until_blocked;

const NODE: &str = "http://node-1:8081";
const OTHER: &str = "http://node-2:8081";
const MOST: u32 = 100;

struct Scene {
    store: Store,
    now: DateTime<Utc>,
    month: Month,
    uaid: Uuid,
    channel: Uuid,
}

impl Scene {
    /// A client with one channel, connected to [`NODE`] since `now`.
    async fn new(pool: &PgPool) -> Self {
        let now = SystemClock.now().trunc_subsecs(6);
        let scene = Self {
            store: Store::from_pool(pool.clone()),
            now,
            month: Month::containing(now),
            uaid: Uuid::from_u128(rand()),
            channel: Uuid::from_u128(rand()),
        };
        scene.register(scene.uaid, scene.channel).await;
        scene
    }

    async fn register(&self, uaid: Uuid, channel: Uuid) -> Registered {
        self.store
            .webpush_register(uaid, Some(NODE), self.now, self.month, channel, MOST)
            .await
            .unwrap()
    }

    fn message(&self, version: &str) -> NewMessage {
        NewMessage {
            uaid: self.uaid,
            channel: self.channel,
            topic: None,
            version: version.to_owned(),
            received_at: self.now,
            expires_at: self.now + TimeDelta::seconds(60),
            body: Some(MessageBody {
                data: vec![0, 1, 254],
                encoding: "aes128gcm".to_owned(),
                encryption: None,
                crypto_key: None,
            }),
        }
    }

    fn with_topic(&self, version: &str, topic: &str) -> NewMessage {
        NewMessage {
            topic: Some(topic.to_owned()),
            ..self.message(version)
        }
    }

    async fn put(&self, message: NewMessage) -> Stored {
        self.store.webpush_store(&[message]).await.unwrap().remove(0)
    }

    async fn waiting_in(&self, month: Month) -> Vec<(i64, String)> {
        let waiting = self
            .store
            .webpush_waiting(self.uaid, month, self.now, &[], 10)
            .await;
        waiting.unwrap().into_iter().map(|m| (m.id, m.version)).collect()
    }

    async fn versions(&self) -> Vec<String> {
        self.waiting_in(self.month)
            .await
            .into_iter()
            .map(|(_, version)| version)
            .collect()
    }
}

fn rand() -> u128 {
    // Of a UUIDv7 the last 62 bits are random, and the first grow.
    Uuid::now_v7().as_u128()
}

fn connected() -> impl Fn(&Stored) -> bool {
    |stored| matches!(stored, Stored::Yes { node: Some(node), .. } if node == NODE)
}

#[testkit::database_test]
async fn the_row_of_a_client_is_made_at_its_first_channel(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let other = Uuid::from_u128(rand());
    let registered = Registered::Yes { month: scene.month };
    assert_eq!(scene.register(scene.uaid, other).await, registered);
    assert_eq!(scene.register(scene.uaid, other).await, registered, "again");
    let client = scene.store.webpush_client(scene.uaid).await.unwrap().unwrap();
    assert_eq!(client.channels, [scene.channel, other]);
    assert_eq!(client.month, scene.month);
    assert_eq!(
        (client.node.as_deref(), client.connected_at),
        (Some(NODE), scene.now)
    );
    assert_eq!(
        (client.router_type.as_str(), client.created_at),
        ("webpush", scene.now)
    );
    assert_eq!(scene.store.webpush_client(other).await.unwrap(), None);
}

#[testkit::database_test]
async fn a_client_has_no_more_channels_than_it_may(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let register = async |channel| {
        let store = &scene.store;
        store
            .webpush_register(scene.uaid, None, scene.now, scene.month, channel, 2)
            .await
            .unwrap()
    };
    let (second, registered) = (Uuid::from_u128(rand()), Registered::Yes { month: scene.month });
    assert_eq!(register(second).await, registered);
    assert_eq!(register(Uuid::from_u128(rand())).await, Registered::Full);
    assert_eq!(register(second).await, registered, "it has that one");
}

/// One node has had its month turn, the other has not.
#[testkit::database_test]
async fn a_client_has_one_row_though_two_nodes_make_it_in_different_months(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let uaid = Uuid::from_u128(rand());
    let months = [scene.month, scene.month.plus(1), scene.month, scene.month.plus(1)];
    let tasks: Vec<_> = months
        .into_iter()
        .map(|month| {
            let (store, now) = (scene.store.clone(), scene.now);
            tokio::spawn(async move {
                let channel = Uuid::from_u128(rand());
                store
                    .webpush_register(uaid, Some(NODE), now, month, channel, MOST)
                    .await
            })
        })
        .collect();
    let mut told = Vec::new();
    for task in tasks {
        told.push(task.await.unwrap().unwrap());
    }
    let month = scene.store.webpush_client(uaid).await.unwrap().unwrap().month;
    assert_eq!(told, [Registered::Yes { month }; 4], "the month of the row");
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM webpush_clients WHERE uaid = $1")
        .bind(uaid)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(rows, 1);
    let client = scene.store.webpush_client(uaid).await.unwrap().unwrap();
    assert_eq!(client.channels.len(), 4);
}

#[testkit::database_test]
async fn a_later_connection_is_noted_and_an_earlier_one_is_not(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let later = scene.now + TimeDelta::microseconds(1);
    let client = scene
        .store
        .webpush_connect(scene.uaid, OTHER, later)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (client.node.as_deref(), client.connected_at),
        (Some(OTHER), later)
    );
    let refused = scene
        .store
        .webpush_connect(scene.uaid, NODE, scene.now)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(refused, client, "the caller sees what is noted");
    let unknown = Uuid::from_u128(rand());
    assert_eq!(
        scene.store.webpush_connect(unknown, NODE, later).await.unwrap(),
        None
    );
}

#[testkit::database_test]
async fn a_node_is_forgotten_only_where_it_is_the_one_that_was_read(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let (store, uaid, now) = (&scene.store, scene.uaid, scene.now);
    let later = now + TimeDelta::milliseconds(5);
    assert!(!store.webpush_forget_node(uaid, OTHER, now).await.unwrap());
    store.webpush_connect(uaid, NODE, later).await.unwrap();
    assert!(
        !store.webpush_forget_node(uaid, NODE, now).await.unwrap(),
        "it has connected to the same node since"
    );
    assert!(store.webpush_forget_node(uaid, NODE, later).await.unwrap());
    assert_eq!(store.webpush_client(uaid).await.unwrap().unwrap().node, None);
    assert!(
        !store.webpush_forget_node(uaid, NODE, later).await.unwrap(),
        "twice"
    );
}

#[testkit::database_test]
async fn a_sender_is_told_the_node_and_whether_the_channel_is_there(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let (uaid, channel, other) = (scene.uaid, scene.channel, Uuid::from_u128(rand()));
    let wanted = [(uaid, other), (other, channel), (uaid, channel), (uaid, channel)];
    let routes = scene.store.webpush_routes(&wanted).await.unwrap();
    let seen: Vec<_> = routes
        .iter()
        .map(|route| route.as_ref().map(|r| (r.node.as_deref(), r.subscribed)))
        .collect();
    assert_eq!(
        seen,
        [
            Some((Some(NODE), false)),
            None,
            Some((Some(NODE), true)),
            Some((Some(NODE), true))
        ]
    );
}

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

#[testkit::database_test]
async fn what_waits_in_a_channel_goes_with_it(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let other = Uuid::from_u128(rand());
    scene.register(scene.uaid, other).await;
    scene.put(scene.message("1")).await;
    let kept = NewMessage {
        channel: other,
        ..scene.message("2")
    };
    scene.put(kept).await;
    assert!(
        scene
            .store
            .webpush_unregister(scene.uaid, scene.channel)
            .await
            .unwrap()
    );
    assert!(
        !scene
            .store
            .webpush_unregister(scene.uaid, scene.channel)
            .await
            .unwrap()
    );
    assert_eq!(scene.versions().await, ["2"]);
    assert_eq!(scene.put(scene.message("3")).await, Stored::NoChannel);
}

#[testkit::database_test]
async fn a_reset_leaves_nothing(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    scene.put(scene.message("1")).await;
    assert!(scene.store.webpush_reset(scene.uaid).await.unwrap());
    assert!(!scene.store.webpush_reset(scene.uaid).await.unwrap());
    assert_eq!(scene.store.webpush_client(scene.uaid).await.unwrap(), None);
    assert_eq!(scene.versions().await, [""; 0]);
    assert_eq!(scene.put(scene.message("2")).await, Stored::NoClient);
}

#[testkit::database_test]
async fn a_client_moves_with_its_channels_when_nothing_waits_any_more(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let (store, uaid, from, to) = (&scene.store, scene.uaid, scene.month, scene.month.plus(1));
    let expired = NewMessage {
        expires_at: scene.now,
        ..scene.message("expired")
    };
    store.webpush_store(&[scene.message("1"), expired]).await.unwrap();
    assert!(
        !store.webpush_move(uaid, from, to, scene.now).await.unwrap(),
        "it has not drained"
    );
    let read = scene.waiting_in(from).await[0].0;
    store.webpush_acked(uaid, from, &[read]).await.unwrap();
    assert!(
        !store.webpush_move(uaid, to, from, scene.now).await.unwrap(),
        "it is not in that month"
    );
    assert!(store.webpush_move(uaid, from, to, scene.now).await.unwrap());
    assert!(
        !store.webpush_move(uaid, from, to, scene.now).await.unwrap(),
        "it has moved"
    );
    let client = store.webpush_client(uaid).await.unwrap().unwrap();
    assert_eq!((client.month, client.channels), (to, vec![scene.channel]));
    assert_eq!(
        (client.node.as_deref(), client.created_at),
        (Some(NODE), scene.now)
    );

    assert!(connected()(&scene.put(scene.message("2")).await));
    assert_eq!(scene.waiting_in(from).await, []);
    assert_eq!(
        scene.waiting_in(to).await.len(),
        1,
        "what is sent now is stored in the new month"
    );
    assert_eq!(
        store.webpush_delete(uaid, &["2"]).await.unwrap(),
        ["2"],
        "in any month"
    );
}

#[testkit::database_test]
async fn what_is_stored_while_a_client_moves_is_in_the_month_that_it_is_in_then(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let (uaid, from, to, now) = (scene.uaid, scene.month, scene.month.plus(1), scene.now);
    // A store that holds the row: the move waits, and then sees the message.
    let mut storing = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM webpush_clients WHERE uaid = $1 FOR SHARE")
        .bind(uaid)
        .execute(&mut *storing)
        .await
        .unwrap();
    let store = scene.store.clone();
    let moving = tokio::spawn(async move { store.webpush_move(uaid, from, to, now).await });
    until_blocked(&pool, 1).await;
    sqlx::query(
        "INSERT INTO webpush_messages (uaid, month, channel, version, received_at, expires_at)
         VALUES ($1, $2, $3, '1', $4, $5)",
    )
    .bind(uaid)
    .bind(from.first_day())
    .bind(scene.channel)
    .bind(now)
    .bind(now + TimeDelta::seconds(60))
    .execute(&mut *storing)
    .await
    .unwrap();
    storing.commit().await.unwrap();
    assert!(
        !moving.await.unwrap().unwrap(),
        "a message has been stored meanwhile"
    );

    // A move that holds the row: the store waits, and then stores into the new month.
    sqlx::query("DELETE FROM webpush_messages")
        .execute(&pool)
        .await
        .unwrap();
    let mut moving = pool.begin().await.unwrap();
    sqlx::query("UPDATE webpush_clients SET month = $2 WHERE uaid = $1")
        .bind(uaid)
        .bind(to.first_day())
        .execute(&mut *moving)
        .await
        .unwrap();
    let (store, message) = (scene.store.clone(), scene.message("2"));
    let storing = tokio::spawn(async move { store.webpush_store(&[message]).await });
    let (store, channel) = (scene.store.clone(), Uuid::from_u128(rand()));
    let registering = tokio::spawn(async move {
        store
            .webpush_register(uaid, Some(NODE), now, from, channel, MOST)
            .await
    });
    until_blocked(&pool, 2).await;
    moving.commit().await.unwrap();
    assert!(connected()(&storing.await.unwrap().unwrap()[0]));
    assert_eq!(registering.await.unwrap().unwrap(), Registered::Yes { month: to });
    assert_eq!(scene.waiting_in(from).await, []);
    assert_eq!(scene.waiting_in(to).await.len(), 1);
    let client = scene.store.webpush_client(uaid).await.unwrap().unwrap();
    assert_eq!((client.month, client.channels.len()), (to, 2));
}

/// Of a store and a connection at the same time, either the store is told the new node, or the connection finds the message.
#[testkit::database_test]
async fn a_connection_waits_for_a_store_and_a_store_for_a_connection(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let (uaid, later) = (scene.uaid, scene.now + TimeDelta::seconds(1));
    let mut connecting = pool.begin().await.unwrap();
    sqlx::query("UPDATE webpush_clients SET node = $2, connected_at = $3 WHERE uaid = $1")
        .bind(uaid)
        .bind(OTHER)
        .bind(later)
        .execute(&mut *connecting)
        .await
        .unwrap();
    let (store, message) = (scene.store.clone(), scene.message("1"));
    let storing = tokio::spawn(async move { store.webpush_store(&[message]).await });
    until_blocked(&pool, 1).await;
    connecting.commit().await.unwrap();
    let told = Stored::Yes {
        node: Some(OTHER.to_owned()),
        connected_at: later,
    };
    assert_eq!(storing.await.unwrap().unwrap(), [told]);

    let mut storing = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM webpush_clients WHERE uaid = $1 FOR SHARE")
        .bind(uaid)
        .execute(&mut *storing)
        .await
        .unwrap();
    let store = scene.store.clone();
    let connecting = tokio::spawn(async move {
        store
            .webpush_connect(uaid, NODE, later + TimeDelta::seconds(1))
            .await
    });
    until_blocked(&pool, 1).await;
    storing.commit().await.unwrap();
    assert_eq!(
        connecting.await.unwrap().unwrap().unwrap().node.as_deref(),
        Some(NODE)
    );
}

#[testkit::database_test]
async fn months_are_made_ahead_with_the_bounds_of_the_calendar(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let (store, month) = (&scene.store, scene.month);
    assert_eq!(store.webpush_partitions_ahead(month).await.unwrap(), 3);
    assert_eq!(
        store.create_webpush_partitions(month, 4).await.unwrap(),
        0,
        "they exist"
    );
    assert_eq!(store.create_webpush_partitions(month, 5).await.unwrap(), 2);
    assert_eq!(store.webpush_partitions_ahead(month).await.unwrap(), 4);
    for parent in ["webpush_clients", "webpush_messages"] {
        let next = month.plus(1);
        let bounds: String =
            sqlx::query_scalar("SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = $1")
                .bind(format!("{parent}_{}", next.suffix()))
                .fetch_one(&pool)
                .await
                .unwrap();
        let expected = format!(
            "FOR VALUES FROM ('{}') TO ('{}')",
            next.first_day(),
            next.plus(1).first_day()
        );
        assert_eq!(bounds, expected, "{parent}");
    }
}

#[testkit::database_test]
async fn clients_have_room_in_their_pages_and_messages_fill_them(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let made = scene.store.create_webpush_partitions(scene.month, 5).await;
    assert_eq!(made.unwrap(), 2, "beside those that the migrations made");
    for (parent, fill) in [
        ("webpush_clients", "fillfactor=70"),
        ("webpush_messages", "fillfactor=100"),
    ] {
        let filled_otherwise: Vec<String> = sqlx::query_scalar(
            "SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
             WHERE i.inhparent = $1::text::regclass AND NOT $2 = ANY (coalesce(c.reloptions, '{}'))",
        )
        .bind(parent)
        .bind(fill)
        .fetch_all(&pool)
        .await
        .unwrap();
        assert_eq!(filled_otherwise, [""; 0], "{parent}");
    }
}

#[testkit::database_test]
async fn months_are_dropped_when_two_newer_ones_have_passed(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let (store, month) = (&scene.store, scene.month);
    store.create_webpush_partitions(month.minus(4), 4).await.unwrap();
    let mut clients = Vec::new();
    for age in 0..=4 {
        let (uaid, channel) = (Uuid::from_u128(rand()), Uuid::from_u128(rand()));
        store
            .webpush_register(uaid, None, scene.now, month.minus(age), channel, MOST)
            .await
            .unwrap();
        clients.push(uaid);
    }
    let present = store.cutoff(scene.now, Duration::ZERO).await.unwrap();
    let dropped = store.drop_webpush_partitions(present).await.unwrap();
    assert_eq!(dropped, [month.minus(4).suffix(), month.minus(3).suffix()]);
    assert_eq!(store.drop_webpush_partitions(present).await.unwrap(), [""; 0]);
    for (age, uaid) in clients.into_iter().enumerate() {
        assert_eq!(
            store.webpush_client(uaid).await.unwrap().is_some(),
            age <= 2,
            "{age}"
        );
    }
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM drop_webpush_partitions('2999-01-01')")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(kept, 0, "whatever the clock of the caller says");
}

#[testkit::database_test]
async fn dropping_gives_way_to_a_reader(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    scene
        .store
        .create_webpush_partitions(scene.month.minus(4), 1)
        .await
        .unwrap();
    let present = scene.store.cutoff(scene.now, Duration::ZERO).await.unwrap();
    let mut backup = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE webpush_messages IN ACCESS SHARE MODE")
        .execute(&mut *backup)
        .await
        .unwrap();
    let refused = scene.store.drop_webpush_partitions(present).await.unwrap_err();
    assert!(refused.is_transient(), "{refused:?}");
    backup.commit().await.unwrap();
    assert_eq!(
        scene.store.drop_webpush_partitions(present).await.unwrap().len(),
        1
    );
}

#[testkit::database_test]
async fn a_client_and_its_messages_are_found_by_index(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let id = scene.uaid;
    let messages = format!("SELECT FROM webpush_messages WHERE uaid = '{id}'");
    let month = scene.month.first_day();
    for query in [
        format!("SELECT FROM webpush_clients WHERE uaid = '{id}'"),
        format!("{messages} AND month = '{month}' ORDER BY id LIMIT 10"),
        format!("{messages} AND month = '{month}' AND channel = '{id}' AND topic = 'a'"),
        format!("{messages} AND version = 'a'"),
        format!("{messages} AND channel = '{id}' AND topic = 'a' AND received_at < now()"),
    ] {
        let explain = AssertSqlSafe(format!("EXPLAIN {query}"));
        let plan: Vec<String> = sqlx::query_scalar(explain).fetch_all(&pool).await.unwrap();
        let plan = plan.join("\n");
        assert!(
            plan.contains("Index") && !plan.contains("Seq Scan"),
            "{query}:\n{plan}"
        );
    }
}

#[testkit::database_test]
async fn a_row_that_makes_no_sense_is_refused(pool: PgPool) {
    let insert = async |columns: &str, values: &str| {
        let month = Month::containing(SystemClock.now()).first_day();
        let statement = format!(
            "INSERT INTO webpush_messages (uaid, month, channel, version, received_at, expires_at{columns})
             VALUES ($1, '{month}', $1, 'a', now(), now(){values})"
        );
        sqlx::query(AssertSqlSafe(statement))
            .bind(Uuid::from_u128(rand()))
            .execute(&pool)
            .await
    };
    insert("", "").await.unwrap();
    insert(", data, encoding", ", 'a', 'aes128gcm'").await.unwrap();
    for (columns, values) in [
        (", data", ", 'a'"),
        (", encoding", ", 'aesgcm'"),
        (", encryption", ", 'salt=a'"),
        (", crypto_key", ", 'dh=a'"),
    ] {
        assert!(insert(columns, values).await.is_err(), "{columns}");
    }
    let clients = "INSERT INTO webpush_clients VALUES ($1, $2, NULL, now(), 'webpush', '{}', now())";
    let second = Month::containing(SystemClock.now()).first_day() + TimeDelta::days(1);
    let refused = sqlx::query(clients)
        .bind(Uuid::from_u128(rand()))
        .bind(second)
        .execute(&pool)
        .await;
    assert!(refused.is_err(), "a month has its first day");
}

#[testkit::test]
async fn operators_see_what_each_month_holds_and_what_is_stored_of_a_client(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    scene.put(scene.message("1")).await;
    scene.put(scene.with_topic("2", "news")).await;
    let months = scene.store.webpush_months().await.unwrap();
    assert!(months.is_sorted_by_key(|it| it.month), "{months:?}");
    let of = |month: Month| {
        let month = months.iter().find(|it| it.month == month).unwrap();
        (month.clients, month.with_node, month.messages)
    };
    assert_eq!(of(scene.month), (1, 1, 2));
    assert_eq!(of(scene.month.plus(1)), (0, 0, 0));
    for (month, there) in [(scene.month, true), (scene.month.plus(200), false)] {
        assert_eq!(scene.store.webpush_has_month(month).await.unwrap(), there);
    }
    let stored = scene
        .store
        .webpush_stored_client(scene.uaid)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.client.channels, [scene.channel]);
    let told: Vec<_> = stored
        .messages
        .iter()
        .map(|it| (it.version.as_str(), it.bytes))
        .collect();
    assert_eq!(told, [("2", Some(3)), ("1", Some(3))], "topics first");
    assert_eq!(stored.messages[0].topic.as_deref(), Some("news"));
    let unknown = scene.store.webpush_stored_client(Uuid::from_u128(rand())).await;
    assert_eq!(unknown.unwrap(), None);
}
