//! One reseller has far more events than its endpoint takes.

use domain::notification::NotificationStatus;
use simulators::receiver::Rule;
use testkit::{Installation, eventually};

use crate::rig::{Fleet, RESELLERS, Subscriber, Subscribers, events_of, notifications_with_status};
use crate::scene::{Scene, all_delivered};

const FLOOD: usize = 300;
const OTHERS: usize = 20;

#[testkit::test]
async fn one_reseller_floods(it: Installation) {
    let [acme, globex] = RESELLERS;
    let all = vec![
        Subscriber::new("flooded", acme, &["*"]),
        Subscriber::new("other", globex, &["*"]),
    ];
    let subscribers = Subscribers::of(&it, all).await;
    let mut slow = Rule::answering(200).at("/flooded");
    slow.delay_millis = Some(2_000);
    subscribers.script(vec![slow]);
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__RESELLER__DELIVERY__MAX_IN_FLIGHT_PER_SUBSCRIPTION", 2);
    let mut scene = Scene::with(it, fleet, "One reseller floods").await;
    scene
        .fleet
        .hand_in(events_of(acme, "flood", FLOOD))
        .finish()
        .await;
    scene
        .page
        .set("DATABASE_URL", scene.it.config.database.url.expose());
    scene.page.set("RESELLER", acme);
    // That something waits is no fault of the system, as long as it does not wait for long.
    let status = scene.page.follow().await;
    assert!(matches!(status.code, 0 | 3), "{status:#?}");
    scene.page.follow_well().await;
    eventually("what was on its way to have arrived", async || {
        (subscribers.receiver.report().in_flight == 0).then_some(())
    })
    .await;
    let delivered = notifications_with_status(&scene.it, "flood", NotificationStatus::Sent).await;
    assert!(delivered < FLOOD, "it was no flood");
    scene
        .fleet
        .hand_in(events_of(globex, "others", OTHERS))
        .finish()
        .await;
    eventually("the others to get theirs", async || {
        let sent = notifications_with_status(&scene.it, "others", NotificationStatus::Sent).await;
        (sent == OTHERS).then_some(())
    })
    .await;
    let meanwhile = notifications_with_status(&scene.it, "flood", NotificationStatus::Sent).await;
    assert!(
        meanwhile <= delivered + 2,
        "{meanwhile} were sent, {delivered} before"
    );
    subscribers.script(Vec::new());
    scene.page.follow_well().await;
    scene.page.follow_until_well().await;
    scene.page.end();
    all_delivered(&scene.it, FLOOD + OTHERS).await;
}
