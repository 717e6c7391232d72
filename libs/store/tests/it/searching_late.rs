//! What ended late is found: longer after it was accepted than is asked for.

use std::time::Duration;

use chrono::TimeDelta;
use domain::clock::{Clock as _, SystemClock};
use domain::notification::{NotificationState, NotificationStatus};
use domain::push::{PushState, PushStatus};
use sqlx::PgPool;
use store::Store;
use store::push::PushFilter;
use store::webhook::{NotificationSearch, NotificationsOf};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::searching::{all_notifications, all_pushes, search};

/// How many seconds after it was accepted each ended.
const TOOK: [i32; 3] = [900, 600, 1];
/// Those that took longer than this are late: one that took as long is not.
const LATE: Duration = Duration::from_secs(600);

#[testkit::database_test]
async fn notifications_that_ended_late_are_found_and_what_still_waits_is_not(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let accepted = SystemClock.now() - TimeDelta::hours(1);
    let mut made: Vec<Uuid> = Vec::new();
    for took in TOOK {
        let row = NotificationRow::in_state(NotificationState::Sent, subscription);
        let id = row.created_at(accepted).make(&pool).await.id.uuid();
        sqlx::query(
            "UPDATE notifications SET finished_at = created_at + $2 * interval '1 second' WHERE id = $1",
        )
        .bind(id)
        .bind(took)
        .execute(&pool)
        .await
        .unwrap();
        made.push(id);
    }
    let waiting = NotificationRow::in_state(NotificationState::Pending, subscription);
    waiting.created_at(accepted).make(&pool).await;
    for of in [
        NotificationsOf::Subscription(subscription),
        NotificationsOf::Reseller("acme".to_owned()),
        NotificationsOf::All,
    ] {
        let late = NotificationSearch {
            late_by: Some(LATE),
            ..search(of)
        };
        assert_eq!(all_notifications(&store, &late, 1).await, made[..1], "{late:?}");
        let failed = NotificationSearch {
            statuses: vec![NotificationStatus::Failed],
            ..late.clone()
        };
        assert_eq!(all_notifications(&store, &failed, 50).await, [] as [Uuid; 0]);
        let ended_later = NotificationSearch {
            statuses: vec![NotificationStatus::Sent],
            ended_since: Some(SystemClock.now()),
            ..late
        };
        assert_eq!(all_notifications(&store, &ended_later, 50).await, [] as [Uuid; 0]);
    }
}

#[testkit::database_test]
async fn pushes_that_ended_late_or_in_a_time_are_found_and_what_still_waits_is_not(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let accepted = SystemClock.now() - TimeDelta::hours(1);
    let mut made: Vec<Uuid> = Vec::new();
    for took in TOOK {
        let row = PushRow::in_state(PushState::Sent).created_at(accepted);
        let id = row.make(&pool).await.id.uuid();
        sqlx::query(
            "UPDATE push_notifications SET finished_at = created_at + $2 * interval '1 second' WHERE id = $1",
        )
        .bind(id)
        .bind(took)
        .execute(&pool)
        .await
        .unwrap();
        made.push(id);
    }
    let waiting = PushRow::in_state(PushState::Pending).created_at(accepted);
    waiting.make(&pool).await;
    for (statuses, found) in [
        (vec![], &made[..1]),
        (vec![PushStatus::Sent], &made[..1]),
        (vec![PushStatus::Failed], &made[..0]),
    ] {
        let late = PushFilter {
            statuses,
            late_by: Some(LATE),
            ..PushFilter::default()
        };
        assert_eq!(all_pushes(&store, &late, 1).await, found);
    }
    // Between the two that took longest.
    let cut = accepted + TimeDelta::seconds(700);
    let ended = |ended_since, ended_until| PushFilter {
        ended_since,
        ended_until,
        ..PushFilter::default()
    };
    assert_eq!(all_pushes(&store, &ended(Some(cut), None), 1).await, made[..1]);
    let mut before = all_pushes(&store, &ended(None, Some(cut)), 1).await;
    let mut others = made[1..].to_vec();
    before.sort_unstable();
    others.sort_unstable();
    assert_eq!(before, others);
}
