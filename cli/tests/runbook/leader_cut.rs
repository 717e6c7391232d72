//! The dispatcher that sends loses its way to the database, and a standby does not.

use testkit::{FaultProxy, Installation};

use crate::rig::{Fleet, Service, answers_after, in_mid_flight, pushes};
use crate::scene::{Scene, all_sent};

#[testkit::test]
async fn the_leader_lost_the_database(it: Installation) {
    it.sim.script(answers_after(1_000)).expect("a script");
    let (proxy, through) = FaultProxy::for_url(it.config.database.url.expose()).await;
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__SWRVE__TIMEOUT_MILLIS", 5_000);
    let leader = fleet
        .start_with(Service::Dispatcher, &[("DATABASE_URL", through)])
        .await;
    leader.leads().await;
    let mut scene = Scene::with(it, fleet, "The leader lost the database").await;
    let callers = scene.fleet.hand_in(pushes("all", 300));
    in_mid_flight(&scene.it, 5).await;
    proxy.cut();
    let answers = callers.finish().await;
    scene.dispatcher.leads().await;
    let status = scene.page.follow().await;
    assert!(matches!(status.code, 0 | 3), "{status:#?}");
    scene.page.follow_well().await;
    proxy.heal();
    scene.page.follow_until_well().await;
    scene.page.end();
    all_sent(&scene.it, &answers).await;
}
