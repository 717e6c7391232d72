//! What clients may not do.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::json;
use sqlx::PgPool;
use testkit::eventually;
use tokio_tungstenite::tungstenite::Message;

use crate::client::Client;
use crate::rig::Rig;

#[testkit::test]
async fn a_client_that_says_nothing_is_closed(pool: PgPool) {
    let rig = Rig::with(pool, |config| {
        config.webpush.connection.hello_timeout = Duration::from_millis(50);
    })
    .await;
    assert_eq!(Client::connect(rig.node.address).await.closed().await, 1011);
}

#[testkit::test]
async fn what_is_not_of_the_protocol_closes_with_its_code(rig: &Rig) {
    let too_long = "x".repeat(200_000);
    for (message, code) in [
        (Message::Text("{".into()), 1011),
        (Message::Text(r#"{"messageType":"greet"}"#.into()), 1011),
        (Message::Text(r#"{"messageType":"hello"}"#.into()), 1011),
        (Message::Binary(vec![1].into()), 1003),
        (Message::Text(too_long.into()), 1009),
    ] {
        let mut client = rig.node.client().await;
        client.send(message).await;
        assert_eq!(client.closed().await, code);
    }
}

#[testkit::test]
async fn a_second_ping_within_45_seconds_closes(rig: &Rig) {
    let mut client = rig.node.client().await;
    client.ping().await;
    client.say(json!({"messageType": "ping"})).await;
    assert_eq!(client.closed().await, 1011);
}

#[testkit::test]
async fn a_client_that_does_not_answer_pings_is_closed(pool: PgPool) {
    let rig = Rig::with(pool, |config| {
        config.webpush.connection.ping_interval = Duration::from_millis(50);
        config.webpush.connection.pong_timeout = Duration::from_millis(50);
    })
    .await;
    let mut client = rig.node.client().await;
    // The library answers a ping when it is asked for the next frame: not to ask is not to answer.
    assert!(matches!(client.frame().await, Some(Message::Ping(_))));
    tokio::time::sleep(Duration::from_millis(200)).await;
    loop {
        match client.frame().await {
            Some(Message::Close(Some(frame))) => return assert_eq!(u16::from(frame.code), 1011),
            Some(Message::Ping(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[testkit::test]
async fn a_client_registers_as_many_channels_as_it_may(pool: PgPool) {
    let rig = Rig::with(pool, |config| config.webpush.connection.max_channels = 2).await;
    let mut client = Client::connect(rig.node.address).await;
    client.hello().await;
    client.register().await;
    client.channel = uuid::Uuid::new_v4();
    client.register().await;
    client
        .say(json!({"messageType": "register", "channelID": uuid::Uuid::new_v4()}))
        .await;
    assert_eq!(client.closed().await, 1008);
    let mut again = rig.node.again(&client).await;
    again
        .say(json!({"messageType": "register", "channelID": uuid::Uuid::new_v4()}))
        .await;
    assert_eq!(again.hear().await["status"], 500);
}

/// The proxy of these tests is on this machine.
fn behind_a_proxy(config: &mut config::Config) {
    config.webpush.connection.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
}

#[testkit::test]
async fn an_address_behind_a_trusted_proxy_has_so_many_connections(pool: PgPool) {
    let rig = Rig::with(pool, |config| {
        behind_a_proxy(config);
        config.webpush.connection.max_connections_per_peer = 1;
    })
    .await;
    let from = |address| Client::connect_through(rig.node.address, Some(address));
    let mut first = from("203.0.113.1").await.unwrap();
    first.hello().await;
    // What the caller says of itself, before what the proxy adds, counts for nothing.
    assert_eq!(
        from("192.0.2.9, 203.0.113.1").await.err(),
        Some(StatusCode::TOO_MANY_REQUESTS)
    );
    from("203.0.113.2").await.unwrap().hello().await;
    drop(first);
    // The node learns in its own time that the first one has gone.
    eventually("the place to be free", async || from("203.0.113.1").await.ok()).await;
}

#[testkit::test]
async fn an_address_registers_so_many_channels_in_a_minute(pool: PgPool) {
    let rig = Rig::with(pool, |config| {
        behind_a_proxy(config);
        config.webpush.connection.registrations_per_minute = 1;
    })
    .await;
    let from = |address| Client::connect_through(rig.node.address, Some(address));
    for address in ["203.0.113.1", "203.0.113.2"] {
        let mut client = from(address).await.unwrap();
        client.hello().await;
        client.register().await;
    }
    let mut more = from("203.0.113.1").await.unwrap();
    more.hello().await;
    let channel = uuid::Uuid::new_v4();
    more.say(json!({"messageType": "register", "channelID": channel}))
        .await;
    let refused = more.hear().await;
    assert_eq!(
        (&refused["status"], &refused["channelID"]),
        (&json!(500), &json!(channel))
    );
    more.ping().await;
}
