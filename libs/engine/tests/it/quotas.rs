//! A quota holds across engines.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::clock::{Clock, ManualClock, SystemClock};
use domain::notification::NotificationStatus;
use engine::webhook::Lane;
use simulators::receiver::Rule;
use testkit::{Installation, eventually};

use crate::rig::Rig;

#[testkit::test]
async fn three_engines_of_each_lane_send_exactly_the_quota(it: Installation) {
    let rig = Rig::new(it).await;
    rig.subscription().daily_quota(37).make(&rig.it.pool).await;
    // Every first attempt fails, so that both lanes are at work.
    rig.script(vec![Rule::answering(503).first(1)]);
    let noon = SystemClock
        .now()
        .date_naive()
        .and_hms_opt(12, 0, 0)
        .expect("midday")
        .and_utc();
    let clock = Arc::new(ManualClock::starting_at(noon));
    let mut engines = Vec::new();
    for _ in 0..3 {
        engines.push(rig.start_at(Lane::First, clock.clone()).await);
        engines.push(rig.start_at(Lane::Retry, clock.clone()).await);
    }
    rig.send(100).await;
    rig.count_becomes(NotificationStatus::Retry, 37).await;
    rig.count_becomes(NotificationStatus::Scheduled, 63).await;
    assert_eq!(rig.promote(noon + TimeDelta::hours(2)).await, 37);
    rig.count_becomes(NotificationStatus::Sent, 37).await;
    let report = rig.receiver.report();
    assert_eq!(
        (report.distinct_ids, report.accepted, report.received),
        (37, 37, 74)
    );
    // The next day brings as many, and not one more.
    clock.advance(TimeDelta::hours(22));
    assert_eq!(rig.promote(clock.now()).await, 37);
    rig.count_becomes(NotificationStatus::Retry, 37).await;
    eventually("the engines to be idle", async || {
        (rig.count(NotificationStatus::InMemory).await == 0).then_some(())
    })
    .await;
    assert_eq!(rig.receiver.report().distinct_ids, 74);
    assert_eq!(rig.count(NotificationStatus::Scheduled).await, 26);
    for engine in engines {
        engine.stop().await;
    }
}
