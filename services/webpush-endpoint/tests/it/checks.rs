//! What a message has to be to be taken, and in which order that is looked at.

use chrono::TimeDelta;
use domain::month::Month;
use sqlx::PgPool;
use uuid::Uuid;
use webpush::Subscription;

use crate::scene::{PUBLIC, Scene, accepted, refused};
use crate::sender::Sender;

#[testkit::database_test]
async fn a_path_without_an_endpoint_is_not_found(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let path = scene.path(None);
    let restricted = scene.path(Some(&Sender::new().key()));
    for path in [
        "/wpush/v1/nonsense".to_owned(),
        path.replace("/v1/", "/v2/"),
        path.replace("/v1/", "/v3/"),
        restricted.replace("/v2/", "/v1/"),
        path[..path.len() - 2].to_owned(),
        "/wpush/%ff".to_owned(),
        "/wpush/v1/%ff".to_owned(),
    ] {
        let response = scene.post(&path).send().await.unwrap();
        assert_eq!(refused(response, 404).await, Some(102), "{path}");
    }
    for path in [path.clone(), path.replace("/v1/", "/"), format!("{path}==")] {
        accepted(scene.post(&path).send().await.unwrap()).await;
    }
    scene.stop().await;
}

#[testkit::database_test]
async fn who_sends_is_checked_in_every_spelling(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let sender = Sender::new();
    let soon = scene.now() + TimeDelta::hours(12);
    let token = sender.token(PUBLIC, soon);
    let key = format!("p256ecdsa={}", sender.key_text());
    let path = scene.path(Some(&sender.key()));
    let vapid = scene
        .post(&path)
        .header("Authorization", sender.vapid(PUBLIC, soon));
    accepted(vapid.send().await.unwrap()).await;
    for scheme in ["Bearer", "WebPush"] {
        let request = scene.post(&path).header("Crypto-Key", "keyid=a");
        let request = request.header("Crypto-Key", &key);
        let request = request.header("Authorization", format!("{scheme} {token}"));
        accepted(request.send().await.unwrap()).await;
    }
    let other = Sender::new();
    for (authorization, why) in [
        (None, "an endpoint for one key"),
        (Some(other.vapid(PUBLIC, soon)), "another key"),
        (
            Some(sender.vapid("https://other.example", soon)),
            "another audience",
        ),
        (
            Some(sender.vapid(PUBLIC, scene.now() - TimeDelta::hours(1))),
            "expired",
        ),
        (
            Some(sender.vapid(PUBLIC, scene.now() + TimeDelta::hours(25))),
            "for too long",
        ),
        (Some(format!("Bearer {token}")), "without its key"),
        (Some("Basic abc".to_owned()), "another scheme"),
        (
            Some(format!("vapid t={token},k={}", other.key_text())),
            "another's signature",
        ),
    ] {
        let request = scene.post(&path);
        let request = match authorization {
            Some(authorization) => request.header("Authorization", authorization),
            None => request,
        };
        assert_eq!(
            refused(request.send().await.unwrap(), 401).await,
            Some(109),
            "{why}"
        );
    }
    // Also where any sender may send.
    let wrong = scene.post(&scene.path(None)).header("Authorization", "Basic abc");
    assert_eq!(refused(wrong.send().await.unwrap(), 401).await, Some(109));
    // What was good a moment ago is remembered, and expires all the same.
    scene.clock.advance(TimeDelta::hours(13));
    let late = scene.post(&path).header("Crypto-Key", &key);
    let late = late.header("Authorization", format!("Bearer {token}"));
    assert_eq!(refused(late.send().await.unwrap(), 401).await, Some(109));
    scene.stop().await;
}

#[testkit::database_test]
async fn an_unknown_client_or_channel_is_gone(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let unknown = scene.path_of(&Subscription::new(Uuid::new_v4(), scene.channel, None));
    assert_eq!(
        refused(scene.post(&unknown).send().await.unwrap(), 410).await,
        Some(103)
    );
    let elsewhere = scene.path_of(&Subscription::new(scene.uaid, Uuid::new_v4(), None));
    assert_eq!(
        refused(scene.post(&elsewhere).send().await.unwrap(), 410).await,
        Some(106)
    );
    sqlx::query("UPDATE webpush_clients SET router_type = 'fcm'")
        .execute(&scene.pool)
        .await
        .unwrap();
    let other = scene.post(&scene.path(None)).send().await.unwrap();
    assert_eq!(refused(other, 400).await, Some(108));
    scene.stop().await;
}

#[testkit::database_test]
async fn a_ttl_is_required_and_clamped(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let path = scene.path(None);
    for (ttl, errno) in [(None, 111), (Some("soon"), 111), (Some("-1"), 114)] {
        let request = scene.request("POST", &path);
        let request = match ttl {
            Some(ttl) => request.header("TTL", ttl),
            None => request,
        };
        assert_eq!(
            refused(request.send().await.unwrap(), 400).await,
            Some(errno),
            "{ttl:?}"
        );
    }
    for (ttl, kept) in [("60", "60"), ("2592000", "2592000"), ("9999999999", "2592000")] {
        let response = scene
            .request("POST", &path)
            .header("TTL", ttl)
            .send()
            .await
            .unwrap();
        assert_eq!(response.headers()["ttl"], kept);
        accepted(response).await;
    }
    let waiting = scene.waiting().await;
    let kept: Vec<_> = waiting
        .iter()
        .map(|m| (m.expires_at - m.received_at).num_seconds())
        .collect();
    assert_eq!(kept, [60, 2_592_000, 2_592_000]);
    scene.stop().await;
}

#[testkit::database_test]
async fn a_body_has_a_size_and_says_how_it_is_encrypted(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let path = scene.path(None);
    let with = |length: usize| scene.post(&path).body(vec![0_u8; length]);
    accepted(with(5630).send().await.unwrap()).await;
    assert_eq!(refused(with(5631).send().await.unwrap(), 413).await, Some(104));
    let plain = scene.request("POST", &path).header("TTL", "60");
    let bare = plain.try_clone().unwrap().body("text").send().await.unwrap();
    assert_eq!(refused(bare, 400).await, Some(110));
    let gzip = plain
        .try_clone()
        .unwrap()
        .header("Content-Encoding", "gzip")
        .body("text");
    assert_eq!(refused(gzip.send().await.unwrap(), 400).await, Some(110));
    let old = plain
        .try_clone()
        .unwrap()
        .header("Content-Encoding", "aesgcm")
        .body("text");
    let old = old.header("Encryption", "salt=\"abc=\"");
    let without_key = old.try_clone().unwrap().send().await.unwrap();
    assert_eq!(refused(without_key, 400).await, Some(110));
    let old = old
        .header("Crypto-Key", "p256ecdsa=ghi")
        .header("Crypto-Key", "dh=\"def==\"");
    accepted(old.send().await.unwrap()).await;
    // Without a body there is nothing to encrypt.
    accepted(plain.header("Content-Encoding", "gzip").send().await.unwrap()).await;
    let waiting = scene.waiting().await;
    let bodies: Vec<_> = waiting.into_iter().map(|message| message.body).collect();
    assert_eq!(bodies[0].as_ref().unwrap().data.len(), 5630);
    let old = bodies[1].as_ref().unwrap();
    assert_eq!(old.encryption.as_deref(), Some("salt=abc"), "as clients take it");
    assert_eq!(old.crypto_key.as_deref(), Some("p256ecdsa=ghi, dh=def"));
    assert!(bodies[2].is_none());
    scene.stop().await;
}

#[testkit::database_test]
async fn a_topic_is_short_and_of_one_alphabet(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let path = scene.path(None);
    let long = "x".repeat(33);
    for topic in ["a b", "ä", "", long.as_str()] {
        let response = scene.post(&path).header("Topic", topic).send().await.unwrap();
        assert_eq!(refused(response, 400).await, Some(113), "{topic}");
    }
    accepted(
        scene
            .post(&path)
            .header("Topic", &long[..32])
            .send()
            .await
            .unwrap(),
    )
    .await;
    scene.stop().await;
}

#[testkit::database_test]
async fn an_urgency_is_one(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let path = scene.path(None);
    let with = |urgency: &str| scene.post(&path).header("Urgency", urgency);
    for urgency in ["very-low", "high"] {
        accepted(with(urgency).send().await.unwrap()).await;
    }
    for several in [with("low, high"), with("low").header("Urgency", "high")] {
        assert_eq!(refused(several.send().await.unwrap(), 400).await, None);
    }
    scene.stop().await;
}

/// Of several things that are wrong the first in the order of the contract is named.
#[testkit::database_test]
async fn checks_come_in_their_order(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let sender = Sender::new();
    let unknown = Subscription::new(Uuid::new_v4(), scene.channel, Some(&sender.key()));
    let no_channel = Subscription::new(scene.uaid, Uuid::new_v4(), None);
    let wrong = |path: &str| scene.request("POST", path).header("Topic", "a b");
    let soon = scene.now() + TimeDelta::hours(1);
    let mut request = wrong("/wpush/v2/nonsense")
        .header("Authorization", "Basic")
        .body(vec![0_u8; 9000]);
    assert_eq!(refused(request.send().await.unwrap(), 404).await, Some(102));
    request = wrong(&scene.path_of(&unknown)).header("Authorization", "Basic");
    assert_eq!(
        refused(request.body(vec![0_u8; 9000]).send().await.unwrap(), 401).await,
        Some(109)
    );
    request = wrong(&scene.path_of(&unknown)).header("Authorization", Sender::new().vapid(PUBLIC, soon));
    assert_eq!(refused(request.send().await.unwrap(), 401).await, Some(109));
    request = wrong(&scene.path_of(&unknown)).header("Authorization", sender.vapid(PUBLIC, soon));
    assert_eq!(
        refused(request.body(vec![0_u8; 9000]).send().await.unwrap(), 410).await,
        Some(103)
    );
    request = wrong(&scene.path_of(&no_channel)).body(vec![0_u8; 9000]);
    assert_eq!(refused(request.send().await.unwrap(), 410).await, Some(106));
    let path = scene.path(None);
    request = wrong(&path).body(vec![0_u8; 9000]);
    assert_eq!(refused(request.send().await.unwrap(), 413).await, Some(104));
    request = wrong(&path).body("text");
    assert_eq!(refused(request.send().await.unwrap(), 400).await, Some(111));
    request = wrong(&path).header("TTL", "1").body("text");
    assert_eq!(refused(request.send().await.unwrap(), 400).await, Some(110));
    request = wrong(&path)
        .header("TTL", "1")
        .header("Content-Encoding", "aes128gcm")
        .body("text");
    assert_eq!(refused(request.send().await.unwrap(), 400).await, Some(113));
    assert!(scene.waiting_in(Month::containing(scene.now())).await.is_empty());
    scene.stop().await;
}

#[testkit::database_test]
async fn too_many_messages_to_one_channel_are_refused_and_those_to_others_are_not(pool: PgPool) {
    let scene = Scene::start_with(pool, |config| {
        config.webpush.endpoint.messages_per_second = 1;
        config.webpush.endpoint.message_burst = 2;
    })
    .await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let response = scene.post(&scene.path(None)).send().await.unwrap();
        statuses.push(response.status().as_u16());
    }
    assert_eq!(statuses[..2], [201, 201]);
    assert!(statuses.contains(&429), "{statuses:?}");
    let other = Uuid::new_v4();
    scene.register(scene.uaid, other).await;
    let path = scene.path_of(&Subscription::new(scene.uaid, other, None));
    accepted(scene.post(&path).send().await.unwrap()).await;
    scene.stop().await;
}

#[testkit::database_test]
async fn an_address_has_no_more_signatures_checked_than_it_may_send_messages(pool: PgPool) {
    let scene = Scene::start_with(pool, |config| {
        config.webpush.endpoint.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        config.webpush.endpoint.messages_per_second_per_peer = 1;
    })
    .await;
    let sender = Sender::new();
    let path = scene.path(Some(&sender.key()));
    let wrong = sender.vapid("https://other.example", scene.now() + TimeDelta::hours(1));
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let request = scene.post(&path).header("Authorization", &wrong);
        let request = request.header("X-Forwarded-For", "192.0.2.1");
        statuses.push(request.send().await.unwrap().status().as_u16());
    }
    assert_eq!(statuses[0], 401);
    assert!(statuses.contains(&429), "{statuses:?}");
    scene.stop().await;
}
