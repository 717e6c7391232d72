//! The broker loses everything while it is in use.

use domain::push::PushStatus;
use sqlx::PgPool;
use testkit::{Installation, run};

use crate::rig::{Subscribers, answers_after, events, in_mid_flight, pushes};
use crate::scene::{Scene, all_delivered, all_sent};

const PUSHES: usize = 300;
const EVENTS: usize = 60;

#[testkit::database_test]
async fn the_broker_was_wiped(pool: PgPool) {
    Box::pin(run(pool, async |it: Installation| {
        it.sim.script(answers_after(1_000)).expect("a script");
        let subscribers = Subscribers::usual(&it).await;
        subscribers.answer_after(1_000);
        let mut scene = Scene::of(it, "The broker was wiped").await;
        let pushes = scene.fleet.hand_in(pushes("all", PUSHES));
        let events = events("all", EVENTS);
        let notifications = subscribers.notifications_of(&events);
        let events = scene.fleet.hand_in(events);
        in_mid_flight(&scene.it, 5).await;
        scene.it.wipe_queues().await;
        let answers = pushes.finish().await;
        events.finish().await;
        scene.page.follow_well().await;
        scene.page.follow_until_well().await;
        scene.page.end();
        all_sent(&scene.it, &answers).await;
        all_delivered(&scene.it, notifications).await;
        let lost: i64 = sqlx::query_scalar("SELECT count(*) FROM push_notifications WHERE status <> $1")
            .bind(PushStatus::Sent.as_str())
            .fetch_one(&scene.it.pool)
            .await
            .expect("the rows can be counted");
        assert_eq!(lost, 0);
    }))
    .await;
}
