//! The rules of delivery, with nodes that do what the test says.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;
use sqlx::PgPool;
use testkit::eventually;
use tokio::sync::Notify;

use crate::node::{Does, Node};
use crate::scene::{Scene, accepted, refused};

#[testkit::database_test]
async fn a_message_for_a_connected_client_goes_to_its_node_and_nowhere_else(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let node = Node::start().await;
    scene.connect(&node.url).await;
    let path = scene.path(None);
    let id = accepted(scene.post(&path).header("Topic", "news").send().await.unwrap()).await;
    let (asked, push) = node.asked().remove(0);
    assert_eq!(asked, format!("/push/{}", scene.uaid));
    assert_eq!(
        push,
        json!({
            "channelID": scene.channel, "version": id, "ttl": 3600, "topic": "news",
            "timestamp": scene.now().timestamp(), "receivedAtMicros": scene.now().timestamp_micros(),
            "data": "ZW5jcnlwdGVk", "headers": { "encoding": "aes128gcm" },
        })
    );
    accepted(
        scene
            .request("POST", &path)
            .header("TTL", "0")
            .send()
            .await
            .unwrap(),
    )
    .await;
    let (_, empty) = node.asked().remove(1);
    assert!(
        empty.get("data").is_none() && empty.get("headers").is_none(),
        "{empty}"
    );
    assert_eq!(empty["topic"], serde_json::Value::Null);
    assert_eq!(node.kinds(), ["push", "push"]);
    assert!(scene.waiting().await.is_empty());
    scene.stop().await;
}

#[testkit::database_test]
async fn a_node_is_asked_whose_url_is_more_than_a_host_and_a_port(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let node = Node::start().await;
    scene.connect(&node.url.replace("http://", "http://user@")).await;
    scene.send().await;
    assert_eq!(node.kinds(), ["push"]);
    assert!(scene.waiting().await.is_empty());
    scene.stop().await;
}

#[testkit::database_test]
async fn a_message_for_a_client_that_is_away_waits_for_it(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let id = scene.send().await;
    let waiting = scene.waiting().await.remove(0);
    assert_eq!((waiting.version, waiting.channel), (id, scene.channel));
    assert_eq!(waiting.expires_at - waiting.received_at, TimeDelta::hours(1));
    assert_eq!(waiting.body.unwrap().data, b"encrypted");
    scene.stop().await;
}

#[testkit::database_test]
async fn a_node_without_the_client_is_forgotten_and_the_message_stored(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let node = Node::start().await;
    scene.connect(&node.url).await;
    node.answers(&[404]);
    scene.send().await;
    assert_eq!(scene.versions().await.len(), 1);
    assert_eq!(scene.node().await, None);
    assert_eq!(node.kinds(), ["push"]);
    scene.stop().await;
}

#[testkit::database_test]
async fn a_node_that_takes_no_connection_is_forgotten(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let mut node = Node::start().await;
    scene.connect(&node.url).await;
    node.end().await;
    scene.send().await;
    assert_eq!(scene.versions().await.len(), 1);
    assert_eq!(scene.node().await, None);
    scene.stop().await;
}

#[testkit::database_test]
async fn a_node_that_says_nothing_is_forgotten_but_told_that_something_waits(pool: PgPool) {
    let scene = Scene::start_with(pool, |config| {
        config.webpush.endpoint.node_timeout = Duration::from_millis(200);
    })
    .await;
    let node = Node::start().await;
    scene.connect(&node.url).await;
    node.does([Does::Wait(Arc::new(Notify::new()))]);
    scene.send().await;
    assert_eq!(scene.versions().await.len(), 1);
    assert_eq!(scene.node().await, None);
    node.was_asked(&["push", "notif"]).await;
    scene.stop().await;
}

/// However long the operator would have it waited for.
#[testkit::database_test]
async fn a_node_that_says_nothing_leaves_the_time_to_store_the_message(pool: PgPool) {
    let scene = Scene::start_with(pool, |config| {
        config.webpush.endpoint.request_timeout = Duration::from_secs(6);
        config.webpush.endpoint.node_timeout = Duration::from_secs(600);
    })
    .await;
    let node = Node::start().await;
    scene.connect(&node.url).await;
    node.does([Does::Wait(Arc::new(Notify::new()))]);
    scene.send().await;
    assert_eq!(scene.versions().await.len(), 1);
    assert_eq!(scene.node().await, None);
    scene.stop().await;
}

#[testkit::database_test]
async fn what_a_busy_node_does_not_take_is_stored_and_the_node_told(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let node = Node::start().await;
    scene.connect(&node.url).await;
    node.answers(&[503]);
    scene.send().await;
    assert_eq!(scene.versions().await.len(), 1);
    node.was_asked(&["push", "notif"]).await;
    assert_eq!(node.asked()[1].0, format!("/notif/{}", scene.uaid));
    assert_eq!(scene.node().await, Some(node.url.clone()), "the client is there");
    scene.stop().await;
}

#[testkit::database_test]
async fn a_node_that_fails_keeps_the_client_and_loses_no_message(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let node = Node::start().await;
    scene.connect(&node.url).await;
    node.answers(&[500]);
    scene.send().await;
    assert_eq!(scene.versions().await.len(), 1);
    node.was_asked(&["push", "notif"]).await;
    assert_eq!(scene.node().await, Some(node.url.clone()));
    scene.stop().await;
}

#[testkit::database_test]
async fn without_a_ttl_a_message_is_for_who_is_connected_alone(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let send = async || {
        let request = scene.request("POST", &scene.path(None)).header("TTL", "0");
        accepted(request.send().await.unwrap()).await
    };
    send().await;
    let node = Node::start().await;
    scene.connect(&node.url).await;
    node.answers(&[404]);
    send().await;
    assert!(scene.waiting().await.is_empty());
    assert_eq!(
        scene.node().await,
        None,
        "what was found out is noted all the same"
    );
    scene.stop().await;
}

/// Between the attempt at the old node and the store, the client connects to another one.
#[testkit::database_test]
async fn a_client_that_connects_elsewhere_meanwhile_is_not_forgotten_and_told(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let (old, new) = (Node::start().await, Node::start().await);
    scene.connect(&old.url).await;
    let let_go = Arc::new(Notify::new());
    old.does([Does::Wait(Arc::clone(&let_go)), Does::Answer(404)]);
    let sending = async {
        let path = scene.path(None);
        accepted(scene.post(&path).send().await.unwrap()).await
    };
    let moving = async {
        old.was_asked(&["push"]).await;
        scene.connect(&new.url).await;
        // The old node has the client no more: its 200 would be a lie, so it is not let go but ended.
        drop(let_go);
    };
    let mut config = scene.config.webpush.endpoint.node_timeout;
    config = config.max(Duration::from_secs(1));
    let (_, ()) = tokio::time::timeout(config * 10, async { tokio::join!(sending, moving) })
        .await
        .unwrap();
    assert_eq!(scene.node().await, Some(new.url.clone()));
    new.was_asked(&["notif"]).await;
    assert_eq!(scene.versions().await.len(), 1);
    scene.stop().await;
}

#[testkit::database_test]
async fn a_node_that_has_lost_the_client_when_it_is_told_is_forgotten(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let node = Node::start().await;
    scene.connect(&node.url).await;
    node.answers(&[503, 404]);
    scene.send().await;
    node.was_asked(&["push", "notif"]).await;
    eventually("the node is forgotten", async || {
        scene.node().await.is_none().then_some(())
    })
    .await;
    scene.stop().await;
}

#[testkit::database_test]
async fn a_client_that_goes_while_its_message_is_on_its_way_is_gone(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let node = Node::start().await;
    for (end, errno) in [("channel", 106), ("client", 105)] {
        scene.connect(&node.url).await;
        let let_go = Arc::new(Notify::new());
        node.does([Does::Wait(let_go)]);
        let before = node.kinds().len();
        let sending = async {
            let path = scene.path(None);
            let response = scene.post(&path).send().await.unwrap();
            assert_eq!(refused(response, 410).await, Some(errno), "{end}");
        };
        let going = async {
            eventually("the node is asked", async || {
                (node.kinds().len() > before).then_some(())
            })
            .await;
            if end == "channel" {
                scene
                    .store
                    .webpush_unregister(scene.uaid, scene.channel)
                    .await
                    .unwrap();
            } else {
                scene.store.webpush_reset(scene.uaid).await.unwrap();
            }
        };
        tokio::join!(sending, going);
        if end == "channel" {
            scene.register(scene.uaid, scene.channel).await;
        }
    }
    scene.stop().await;
}

#[testkit::database_test]
async fn messages_of_one_channel_and_one_millisecond_are_all_kept_and_told_apart(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let path = scene.path(None);
    let sending: Vec<_> = (0..20).map(|_| tokio::spawn(scene.post(&path).send())).collect();
    let mut ids = Vec::new();
    for sent in sending {
        ids.push(accepted(sent.await.unwrap().unwrap()).await);
    }
    let mut stored = scene.versions().await;
    stored.sort();
    ids.sort();
    ids.dedup();
    assert_eq!(stored, ids);
    assert_eq!(ids.len(), 20, "the clock of the test stands still");
    scene.stop().await;
}

#[testkit::database_test]
async fn a_topic_shows_its_newest_message(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let path = scene.path(None);
    let mut last = String::new();
    for _ in 0..3 {
        let response = scene.post(&path).header("Topic", "news").send().await.unwrap();
        last = accepted(response).await;
    }
    scene.send().await;
    let waiting = scene.waiting().await;
    assert_eq!(waiting.len(), 2);
    assert_eq!(
        (&waiting[0].version, waiting[0].topic.as_deref()),
        (&last, Some("news"))
    );
    scene.stop().await;
}

#[testkit::database_test]
async fn a_message_that_waits_is_taken_back_by_its_sender(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let (first, second, padded) = (scene.send().await, scene.send().await, scene.send().await);
    let delete = async |id: &str| scene.request("DELETE", &format!("/m/{id}")).send().await.unwrap();
    for _ in 0..2 {
        assert_eq!(
            delete(&first).await.status().as_u16(),
            204,
            "also when it is gone"
        );
    }
    assert_eq!(delete(&format!("{padded}==")).await.status().as_u16(), 204);
    assert_eq!(scene.versions().await, [second], "with padding or without");
    for id in ["nonsense", "%ff"] {
        assert_eq!(refused(delete(id).await, 400).await, None, "{id}");
    }
    scene.stop().await;
}

#[testkit::database_test]
async fn what_cannot_be_stored_is_to_be_tried_again(pool: PgPool) {
    let scene = Scene::start(pool).await;
    sqlx::query("ALTER TABLE webpush_messages RENAME TO messages_away")
        .execute(&scene.pool)
        .await
        .unwrap();
    let response = scene.post(&scene.path(None)).send().await.unwrap();
    assert_eq!(refused(response, 503).await, Some(201));
    sqlx::query("ALTER TABLE messages_away RENAME TO webpush_messages")
        .execute(&scene.pool)
        .await
        .unwrap();
    scene.send().await;
    scene.stop().await;
}
