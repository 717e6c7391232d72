//! Pushes of a campaign for which the configuration has no push key.

use domain::push::PushStatus;
use serde_json::json;
use testkit::{Installation, eventually};

use crate::rig::{Push, Service, count_with_status, pushes};
use crate::scene::{Scene, all_sent_once};

const PUSHES: usize = 20;

#[testkit::test]
async fn a_prototype_without_a_push_key(it: Installation) {
    let mut scene = Scene::of(it, "A prototype has no push key").await;
    let spring = |push| Push {
        prototype: Some("Spring"),
        ..push
    };
    let all = pushes("spring", PUSHES).into_iter().map(spring).collect();
    let answers = scene.fleet.hand_in(all).finish().await;
    failed(&scene.it).await;
    let groups = scene.page.follow_well().await;
    groups.shows(&["prototype-key", &PUSHES.to_string()]);
    let keys = json!({"Spring": {"IOS": "spring-ios", "ANDROID": "spring-android"}});
    let settings = [("POSTRIDER__SWRVE__MESSAGE_PROTOTYPE_PUSH_KEYS", keys.to_string())];
    let restarted = scene.fleet.start_with(Service::Dispatcher, &settings).await;
    let old = std::mem::replace(&mut scene.dispatcher, restarted);
    old.ask_to_stop();
    assert!(old.ended().await.success());
    scene.page.set("PROTOTYPE", "Spring");
    scene.page.follow_well().await;
    scene.page.follow_until_well().await;
    scene.page.end();
    all_sent_once(&scene.it, &answers).await;
}

async fn failed(it: &Installation) {
    eventually("the pushes to fail", async || {
        let failed = count_with_status(it, "spring", PushStatus::Failed).await;
        (failed == PUSHES as i64).then_some(())
    })
    .await;
}
