//! Registrations over HTTP.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::scene::{PUBLIC, Scene, accepted, refused};
use crate::sender::Sender;

const BASE: &str = "/v1/webpush/app/registration";

#[testkit::database_test]
async fn a_client_registers_subscribes_and_goes(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let channel = Uuid::new_v4();
    let body = json!({ "token": "abc", "channelID": channel });
    let made = scene.request("POST", BASE).json(&body).send().await.unwrap();
    assert_eq!(made.status().as_u16(), 200);
    let made: Value = made.json().await.unwrap();
    assert_eq!(made["channelID"], json!(channel));
    let (uaid, secret) = (made["uaid"].as_str().unwrap(), made["secret"].as_str().unwrap());
    let own = format!("{BASE}/{uaid}");
    let call = |method: &str, path: &str| scene.request(method, path).bearer_auth(secret);

    let endpoint = made["endpoint"].as_str().unwrap().strip_prefix(PUBLIC).unwrap();
    accepted(scene.post(endpoint).send().await.unwrap()).await;

    let key = Sender::new().key_text();
    let path = format!("{own}/subscription");
    let second: Value = call("POST", &path)
        .json(&json!({ "key": key }))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert!(
        second["endpoint"].as_str().unwrap().contains("/wpush/v2/"),
        "{second}"
    );
    let third: Value = call("POST", &path).send().await.unwrap().json().await.unwrap();
    assert!(
        third["endpoint"].as_str().unwrap().contains("/wpush/v1/"),
        "{third}"
    );

    let shown: Value = call("GET", &own).send().await.unwrap().json().await.unwrap();
    assert_eq!(
        shown["channelIDs"],
        json!([channel, second["channelID"], third["channelID"]])
    );
    let webpush = scene
        .request("GET", &own)
        .header("Authorization", format!("webpush {secret}"));
    assert_eq!(webpush.send().await.unwrap().status().as_u16(), 200);
    let updated = call("PUT", &own)
        .json(&json!({ "token": "def" }))
        .send()
        .await
        .unwrap();
    assert_eq!(updated.status().as_u16(), 200);

    let gone = format!("{path}/{channel}");
    assert_eq!(call("DELETE", &gone).send().await.unwrap().status().as_u16(), 200);
    assert_eq!(
        refused(call("DELETE", &gone).send().await.unwrap(), 410).await,
        Some(106)
    );
    assert_eq!(
        refused(scene.post(endpoint).send().await.unwrap(), 410).await,
        Some(106)
    );
    assert_eq!(call("DELETE", &own).send().await.unwrap().status().as_u16(), 200);
    assert_eq!(
        refused(call("GET", &own).send().await.unwrap(), 410).await,
        Some(103)
    );
    assert_eq!(
        refused(scene.post(endpoint).send().await.unwrap(), 410).await,
        Some(103)
    );
    scene.stop().await;
}

#[testkit::database_test]
async fn only_who_has_the_secret_of_a_client_may_change_it(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let own = format!("{BASE}/{}", scene.uaid);
    for (method, path) in [
        ("GET", own.clone()),
        ("PUT", own.clone()),
        ("DELETE", own.clone()),
        ("POST", format!("{own}/subscription")),
        ("DELETE", format!("{own}/subscription/{}", scene.channel)),
    ] {
        let without = scene.request(method, &path).send().await.unwrap();
        assert_eq!(refused(without, 401).await, Some(109), "{method} {path}");
        let wrong = scene
            .request(method, &path)
            .bearer_auth("00".repeat(32))
            .send()
            .await
            .unwrap();
        assert_eq!(refused(wrong, 401).await, Some(109), "{method} {path}");
    }
    assert!(scene.store.webpush_client(scene.uaid).await.unwrap().is_some());
    scene.stop().await;
}

#[testkit::database_test]
async fn what_is_no_registration_is_told_why(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let other = scene
        .request("POST", "/v1/fcm/app/registration")
        .json(&json!({ "token": "a" }));
    assert_eq!(refused(other.send().await.unwrap(), 400).await, Some(108));
    for body in [
        "",
        "text",
        "{}",
        r#"{"token":"a","channelID":"x"}"#,
        r#"{"token":"a","key":"x"}"#,
    ] {
        let request = scene
            .request("POST", BASE)
            .header("Content-Type", "application/json")
            .body(body);
        assert_eq!(refused(request.send().await.unwrap(), 400).await, None, "{body}");
    }
    let long = scene.request("POST", BASE).body(" ".repeat(16 * 1024 + 1));
    assert_eq!(refused(long.send().await.unwrap(), 413).await, Some(104));
    scene.stop().await;
}

#[testkit::database_test]
async fn a_path_that_is_no_utf_8_is_an_error_of_the_same_form(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let own = format!("{BASE}/{}", scene.uaid);
    for (method, path) in [
        ("POST", "/v1/%ff/app/registration".to_owned()),
        ("POST", "/v1/webpush/%ff/registration".to_owned()),
        ("GET", format!("{BASE}/%ff")),
        ("PUT", format!("{BASE}/%ff")),
        ("DELETE", format!("{BASE}/%ff")),
        ("POST", format!("{BASE}/%ff/subscription")),
        ("DELETE", format!("{own}/subscription/%ff")),
    ] {
        let response = scene.request(method, &path).send().await.unwrap();
        assert_eq!(refused(response, 404).await, None, "{method} {path}");
    }
    scene.stop().await;
}

/// A body that does not come is late, and not too long.
#[testkit::database_test]
async fn a_registration_whose_body_does_not_come_is_to_be_tried_again(pool: PgPool) {
    let scene = Scene::start_with(pool, |config| {
        config.webpush.endpoint.request_timeout = Duration::from_millis(50);
    })
    .await;
    let mut caller = TcpStream::connect(scene.address).await.unwrap();
    let head = format!("POST {BASE} HTTP/1.1\r\nHost: push.example\r\nContent-Length: 20\r\n\r\n");
    caller.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 1024];
    let length = caller.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..length]);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\r\nretry-after: 120\r\n"), "{answer}");
    drop(caller);
    scene.stop().await;
}
