//! A client that moves to another month or connects elsewhere while something is stored for it.

use chrono::TimeDelta;
use sqlx::PgPool;
use store::webpush::{NewMessage, Registered, Stored};
use uuid::Uuid;

use super::{MOST, NODE, OTHER, Scene, connected, rand};
use crate::scene::until_blocked;

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
