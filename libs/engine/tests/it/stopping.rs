//! Engines that stop, and engines that are killed.

use broker::Queue;
use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationStatus;
use engine::webhook::Lane;
use simulators::receiver::Rule;
use testkit::{Installation, eventually};

use crate::rig::Rig;

#[testkit::test]
async fn a_stop_finishes_what_has_begun_and_gives_back_the_rest(mut it: Installation) {
    it.config.reseller.delivery.max_in_flight_per_subscription = 8;
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let slow = Rule {
        delay_millis: Some(3_000),
        ..Rule::default()
    };
    rig.script(vec![slow]);
    let engine = rig.start(Lane::First).await;
    rig.send(100).await;
    rig.in_flight_becomes(8).await;
    engine.stop().await;
    let sent = rig.count(NotificationStatus::Sent).await;
    assert_eq!(
        u64::try_from(sent).expect("a count"),
        rig.receiver.report().received
    );
    assert!((8..100).contains(&sent), "{sent}");
    let claimed: i64 = sqlx::query_scalar("SELECT count(*) FROM notifications WHERE lease_token IS NOT NULL")
        .fetch_one(&rig.it.pool)
        .await
        .expect("they can be counted");
    assert_eq!(claimed, 0, "nothing is left to the leases");
    eventually("the messages of the rest to be back", async || {
        let depth = rig.broker.depth(Queue::ResellerReady).await.ok()?;
        (i64::from(depth.messages) == 100 - sent).then_some(())
    })
    .await;
    rig.script(Vec::new());
    let engine = rig.start(Lane::First).await;
    rig.count_becomes(NotificationStatus::Sent, 100).await;
    engine.stop().await;
    let report = rig.receiver.report();
    assert_eq!((report.received, report.distinct_ids), (100, 100));
}

#[testkit::test]
async fn what_a_killed_engine_had_is_found_by_its_lease_and_delivered(mut it: Installation) {
    it.config.reseller.delivery.max_in_flight_per_subscription = 8;
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let hang = Rule {
        hang: true,
        ..Rule::default()
    };
    rig.script(vec![hang]);
    let engine = rig.start(Lane::First).await;
    rig.send(20).await;
    rig.in_flight_becomes(8).await;
    engine.kill();
    eventually("its requests to be gone", async || {
        (rig.receiver.report().abandoned == 8).then_some(())
    })
    .await;
    rig.script(Vec::new());
    let engines = [rig.start(Lane::First).await, rig.start(Lane::Retry).await];
    // What it had not begun comes again from the queue, since its messages were never settled.
    rig.count_becomes(NotificationStatus::Sent, 12).await;
    let ended = sqlx::query(
        "UPDATE notifications SET leased_until = now() - interval '1 s' WHERE lease_token IS NOT NULL",
    )
    .execute(&rig.it.pool)
    .await
    .expect("leases end");
    assert_eq!(ended.rows_affected(), 8);
    let rescued = rig.it.store.rescue_notifications(SystemClock.now(), 100, 3).await;
    assert_eq!(rescued.expect("they are rescued").retry, 8);
    assert_eq!(rig.promote(SystemClock.now() + TimeDelta::seconds(1)).await, 8);
    rig.count_becomes(NotificationStatus::Sent, 20).await;
    for engine in engines {
        engine.stop().await;
    }
    let report = rig.receiver.report();
    assert_eq!((report.received, report.distinct_ids), (28, 20));
}
