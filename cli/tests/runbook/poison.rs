//! Something in the queue that is no message of ours.

use broker::Queue;
use testkit::{Installation, eventually};
use uuid::Uuid;

use crate::rig::{Ended, pushes};
use crate::scene::Scene;
use domain::push::PushStatus;

#[testkit::test]
async fn a_poison_message(it: Installation) {
    let mut scene = Scene::of(it, "A poison message").await;
    let it = &scene.it;
    it.publish_raw(Queue::PushReady, b"{\"not\": \"ours\"").await;
    let answers = scene.fleet.hand_in(pushes("all", 20)).finish().await;
    let letter: Uuid = eventually("the message to be archived", async || {
        sqlx::query_scalar("SELECT id FROM dead_letters")
            .fetch_optional(&it.pool)
            .await
            .expect("the dead letters can be read")
    })
    .await;
    let page = &mut scene.page;
    let listed = page.follow_well().await;
    listed.shows(&["MALFORMED"]).shows(&[&letter.to_string()]);
    page.set("DEAD_LETTER", letter);
    page.follow_well().await.shows(&["not"]);
    page.follow_well().await;
    page.follow_until_well().await;
    scene.page.end();
    let discarded: (String, String) = sqlx::query_as("SELECT state, note FROM dead_letters")
        .fetch_one(&scene.it.pool)
        .await
        .expect("the dead letter is there");
    assert_eq!(
        discarded,
        ("DISCARDED".to_owned(), "not a message of ours".to_owned())
    );
    Ended::of(&scene.it, &answers, |_| PushStatus::Sent).await;
}
