//! The turn of a month, as senders meet it: what they send is in the month that the client reads.

use std::sync::Arc;

use chrono::TimeDelta;
use sqlx::PgPool;
use tokio::sync::Notify;

use crate::node::{Does, Node};
use crate::scene::{Scene, accepted};

#[testkit::database_test]
async fn what_is_sent_after_the_turn_is_stored_where_the_client_still_is(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let before = scene.month();
    scene.clock.advance(TimeDelta::days(32));
    let after = scene.month();
    assert_ne!(before, after);
    scene.send().await;
    assert_eq!(scene.waiting_in(before).await.len(), 1);
    assert_eq!(scene.waiting_in(after).await.len(), 0);
    scene.stop().await;
}

#[testkit::database_test]
async fn what_is_sent_while_a_client_moves_is_in_its_new_month(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let (from, to) = (scene.month(), scene.month().plus(1));
    let node = Node::start().await;
    scene.connect(&node.url).await;
    let let_go = Arc::new(Notify::new());
    node.does([Does::Wait(Arc::clone(&let_go)), Does::Answer(200)]);
    let sending = async {
        let path = scene.path(None);
        accepted(scene.post(&path).send().await.unwrap()).await
    };
    let moving = async {
        // The endpoint has read the client in its old month by now.
        node.was_asked(&["push"]).await;
        assert!(
            scene
                .store
                .webpush_move(scene.uaid, from, to, scene.now())
                .await
                .unwrap()
        );
    };
    let (id, ()) = tokio::join!(sending, moving);
    assert!(scene.waiting_in(from).await.is_empty());
    let waiting = scene.waiting_in(to).await;
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].version, id);
    assert!(
        !scene
            .store
            .webpush_move(scene.uaid, to, to.plus(1), scene.now())
            .await
            .unwrap()
    );
    let taken_back = scene.request("DELETE", &format!("/m/{id}")).send().await.unwrap();
    assert_eq!(taken_back.status().as_u16(), 204);
    assert!(
        scene.waiting_in(to).await.is_empty(),
        "a message is found in any month"
    );
    scene.stop().await;
}
