//! Broadcasts, from a megaphone that the test holds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Redirect;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::net::TcpListener;

use crate::client::Client;
use crate::rig::Rig;

#[testkit::test]
async fn broadcasts_are_heard_of_on_connecting_and_when_they_change(pool: PgPool) {
    let said = Arc::new(Mutex::new(json!({"broadcasts": {"a": "1"}})));
    let megaphone = {
        let said = Arc::clone(&said);
        let versions = get(move |headers: HeaderMap| async move {
            match headers.get("authorization") {
                Some(token) if token == "Bearer words" => Ok(Json::<Value>(said.lock().unwrap().clone())),
                _ => Err(StatusCode::UNAUTHORIZED),
            }
        });
        Router::new()
            .route("/v1/broadcasts", versions)
            .route("/moved", get(|| async { Redirect::temporary("/v1/broadcasts") }))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/moved", listener.local_addr().unwrap());
    let serving = tokio::spawn(axum::serve(listener, megaphone).into_future());
    let rig = Rig::with(pool, |config| {
        config.webpush.connection.megaphone_url = Some(url);
        config.webpush.connection.megaphone_token = Some(config::Secret::new("Bearer words"));
        config.webpush.connection.megaphone_interval = Duration::from_millis(20);
    })
    .await;
    let mut client = Client::connect(rig.node.address).await;
    client
        .say(json!({"messageType": "hello", "broadcasts": {"a": "0", "b": "1"}}))
        .await;
    let heard = json!({"a": "1", "errors": {"b": "Broadcast not found"}});
    assert_eq!(client.hear().await["broadcasts"], heard);
    *said.lock().unwrap() = json!({"broadcasts": {"a": "2"}});
    let change = json!({"messageType": "broadcast", "broadcasts": {"a": "2"}});
    assert_eq!(client.hear().await, change);
    serving.abort();
}
