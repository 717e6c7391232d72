//! Deliveries in numbers, of several subscriptions at once.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::latency::{BUCKETS, Latencies};
use sqlx::PgPool;
use store::Store;
use store::webhook::{AttemptEnd, StatisticsDelta};
use testkit::subscription_factory::SubscriptionRow;

/// So long that it is counted in the last bucket.
const LONGEST: Duration = Duration::from_hours(1);

#[testkit::database_test]
async fn latencies_of_several_subscriptions_are_those_of_their_hours_added_up(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let (first, second) = (
        SubscriptionRow::active().make(&pool).await,
        SubscriptionRow::active().make(&pool).await,
    );
    let unasked = SubscriptionRow::active().make(&pool).await;
    let now: DateTime<Utc> = "2026-11-21T12:30:00Z".parse().unwrap();
    let mut deltas = Vec::new();
    for (of, hours_ago, took) in [
        (first, 0, Duration::from_millis(1)),
        (first, 1, Duration::from_millis(40)),
        (first, 1, LONGEST),
        (first, 9, Duration::from_millis(7)),
        (second, 2, LONGEST),
        (unasked, 0, Duration::from_millis(3)),
    ] {
        let mut delta = StatisticsDelta::new(of, now - TimeDelta::hours(hours_ago));
        delta.record(AttemptEnd::Delivered, took, Some(200), 10);
        deltas.push(delta);
    }
    store.add_delivery_statistics(&deltas).await.unwrap();
    let since = now - TimeDelta::hours(8);
    let sums = store.latency_sums_of(&[first, second], since).await.unwrap();
    for of in [first, second] {
        let mut expected = Latencies::default();
        for hour in store.delivery_statistics(of, since).await.unwrap() {
            expected.add(&hour.latencies);
        }
        assert_eq!(sums[&of], expected);
        assert_eq!(expected.counts()[BUCKETS - 1], 1);
    }
    assert_eq!(sums.len(), 2);
    let counts = store.hour_counts_of(&[first, second], since).await.unwrap();
    let told: Vec<_> = counts
        .iter()
        .map(|hour| (hour.subscription, hour.delivered, hour.statuses[&200]))
        .collect();
    assert_eq!(told, [(second, 1, 1), (first, 2, 2), (first, 1, 1)]);
    let mut failed = StatisticsDelta::new(second, now - TimeDelta::hours(1));
    failed.record(AttemptEnd::Failed, LONGEST, Some(500), 10);
    store.add_delivery_statistics(&[failed]).await.unwrap();
    let ended = store.ended_by_hour(&[first, second], since).await.unwrap();
    let told: Vec<_> = ended.iter().map(|it| (it.delivered, it.failed)).collect();
    assert_eq!(told, [(1, 0), (2, 1), (1, 0)], "of both, hour by hour");
    assert!(ended.is_sorted_by_key(|it| it.hour));
}
