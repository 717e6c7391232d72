//! One endpoint answers 500 until its reseller mends it.

use domain::notification::NotificationStatus;
use simulators::receiver::Rule;
use testkit::{Installation, eventually};

use crate::rig::{Fleet, RESELLERS, Subscriber, Subscribers, events_of, notifications_with_status};
use crate::scene::{Scene, all_delivered_once};

const BEFORE: usize = 6;
const MEANWHILE: usize = 4;

#[testkit::test]
async fn one_endpoint_fails(it: Installation) {
    let acme = RESELLERS[0];
    let all = vec![
        Subscriber::new("failing", acme, &["*"]),
        Subscriber::new("working", acme, &["*"]),
    ];
    let subscribers = Subscribers::of(&it, all).await;
    subscribers.script(vec![Rule::answering(500).at("/failing")]);
    let failing = subscribers.all[0].id;
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__RESELLER__RETRY__MAX_RETRIES", 1)
        // So that it is the page's replay that sends them again.
        .with("POSTRIDER__RESELLER__REPLAY__AFTER_OUTAGE", false);
    let mut scene = Scene::with(it, fleet, "One endpoint fails").await;
    scene
        .fleet
        .hand_in(events_of(acme, "before", BEFORE))
        .finish()
        .await;
    eventually("its notifications to be given up", async || {
        let given_up = notifications_with_status(&scene.it, "before", NotificationStatus::GivenUp).await;
        (given_up == BEFORE).then_some(())
    })
    .await;
    scene.page.set("SUBSCRIPTION", failing);
    let listed = scene.page.follow_well().await;
    let letter = listed.shows(&["delivery/http/500"]).last_id();
    scene.page.set("DEAD_LETTER", letter);
    scene.page.follow_well().await.shows(&["notification"]);
    scene.page.follow_well().await;
    scene
        .fleet
        .hand_in(events_of(acme, "meanwhile", MEANWHILE))
        .finish()
        .await;
    eventually("the other endpoint to get its own", async || {
        let sent = notifications_with_status(&scene.it, "meanwhile", NotificationStatus::Sent).await;
        (sent == MEANWHILE).then_some(())
    })
    .await;
    subscribers.script(Vec::new());
    scene.page.follow_well().await;
    scene.page.follow_until_well().await;
    scene.page.end();
    all_delivered_once(&scene.it, &subscribers, 2 * (BEFORE + MEANWHILE)).await;
}
