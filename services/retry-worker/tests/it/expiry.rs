//! What has waited for too long ends, and does not keep its month.

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::month::Month;
use domain::notification::NotificationState;
use metrics_exporter_prometheus::PrometheusBuilder;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};
use uuid::Uuid;

use crate::rig::{shows, start};

/// How many notifications of a subscription have expired, and how many wait.
async fn standing(it: &Installation, subscription: Uuid) -> (i64, i64) {
    sqlx::query_as(
        "SELECT count(*) FILTER (WHERE status = 'GIVEN_UP' AND reason = 'EXPIRED'),
                count(*) FILTER (WHERE status IN ('PENDING', 'SCHEDULED', 'RETRY'))
         FROM notifications WHERE subscription_id = $1",
    )
    .bind(subscription)
    .fetch_one(&it.pool)
    .await
    .unwrap()
}

/// Has notifications wait, in each of the ways, that are so much younger than the greatest age. They are made old, and no clock is
/// driven ahead: that of the database bounds what expires.
async fn wait(it: &Installation, subscription: Uuid, younger: TimeDelta) {
    let age = TimeDelta::from_std(it.config.reseller.delivery.max_age).unwrap();
    let created_at = SystemClock.now() - age + younger;
    it.store
        .create_partitions(Month::containing(created_at), 1)
        .await
        .unwrap();
    for state in [
        NotificationState::Pending,
        NotificationState::Scheduled,
        NotificationState::Retry,
    ] {
        let row = NotificationRow::in_state(state, subscription).due_in(TimeDelta::days(3_650));
        row.created_at(created_at).make(&it.pool).await;
    }
}

#[testkit::test]
async fn what_has_waited_for_too_long_expires_and_is_counted(it: Installation) {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let metrics = recorder.handle();
    let paused = SubscriptionRow::active().paused().make(&it.pool).await;
    wait(&it, paused, -TimeDelta::minutes(1)).await;
    let _worker = start(&it.config);
    eventually("the notifications to expire", async || {
        (standing(&it, paused).await == (3, 0)).then_some(())
    })
    .await;
    shows(&metrics, "postrider_notifications_given_up_total 3").await;
}

#[testkit::test]
async fn what_is_younger_goes_on_waiting(it: Installation) {
    let (old, young) = (
        SubscriptionRow::active().paused().make(&it.pool).await,
        SubscriptionRow::active().paused().make(&it.pool).await,
    );
    wait(&it, young, TimeDelta::hours(1)).await;
    // The job has been through when these have ended.
    wait(&it, old, -TimeDelta::minutes(1)).await;
    let worker = start(&it.config);
    eventually("the old ones to expire", async || {
        (standing(&it, old).await == (3, 0)).then_some(())
    })
    .await;
    worker.stop().await;
    assert_eq!(standing(&it, young).await, (0, 3));
}
