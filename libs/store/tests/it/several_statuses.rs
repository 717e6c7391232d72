//! Lists of several statuses at once, and of what was cancelled.

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::{NotificationState, NotificationStatus};
use domain::push::{PushState, PushStatus};
use domain::reason::{NotificationReason, PushReason};
use sqlx::PgPool;
use store::Store;
use store::push::PushFilter;
use store::webhook::{NotificationSearch, NotificationsOf};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::searching::{all_notifications, all_pushes, push_for, search};

#[testkit::database_test]
async fn pushes_of_several_statuses_come_the_newest_first_whether_they_wait_or_not(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut made = Vec::new();
    for (age, state) in [
        (10, PushState::GivenUp),
        (20, PushState::Retry),
        (30, PushState::Sent),
        (40, PushState::Failed),
        (50, PushState::Cancelled),
        (60, PushState::Pending),
    ] {
        made.push(push_for(&pool, "d", state, age).await);
    }
    let of = |statuses: &[PushStatus]| PushFilter {
        statuses: statuses.to_vec(),
        ..PushFilter::default()
    };
    let undelivered = of(&[PushStatus::Failed, PushStatus::GivenUp]);
    let waiting = of(&[PushStatus::Retry, PushStatus::Pending]);
    for limit in [1, 2, 50] {
        let found = all_pushes(&store, &undelivered, limit).await;
        assert_eq!(found, [made[0], made[3], made[4]], "{limit}");
        let found = all_pushes(&store, &waiting, limit).await;
        assert_eq!(found, [made[1], made[5]], "{limit}");
    }
    let of_device = PushFilter {
        device: Some("d".to_owned()),
        ..undelivered.clone()
    };
    assert_eq!(
        all_pushes(&store, &of_device, 2).await,
        [made[0], made[3], made[4]]
    );
    let cancelled = PushFilter {
        reason: Some(PushReason::Cancelled),
        ..undelivered
    };
    assert_eq!(all_pushes(&store, &cancelled, 50).await, [made[4]]);
    let found = store.pushes_to_cancel(&waiting).await.unwrap().unwrap();
    assert_eq!(found.ids.len(), 2, "each of them along its own index");
}

#[testkit::database_test]
async fn notifications_of_several_statuses_come_the_newest_first_and_those_cancelled_are_told_apart(
    pool: PgPool,
) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let mut made = Vec::new();
    for (age, state) in [
        (10, NotificationState::GivenUp),
        (20, NotificationState::Retry),
        (30, NotificationState::Sent),
        (40, NotificationState::Failed),
        (50, NotificationState::Cancelled),
        (60, NotificationState::Pending),
    ] {
        let at = SystemClock.now() - TimeDelta::seconds(age);
        let row = NotificationRow::in_state(state, subscription).created_at(at);
        made.push(row.make(&pool).await.id.uuid());
    }
    for of in [
        NotificationsOf::All,
        NotificationsOf::Reseller("acme".to_owned()),
        NotificationsOf::Subscription(subscription),
    ] {
        let undelivered = NotificationSearch {
            statuses: vec![NotificationStatus::Failed, NotificationStatus::GivenUp],
            ..search(of.clone())
        };
        let waiting = NotificationSearch {
            statuses: vec![NotificationStatus::Retry, NotificationStatus::Pending],
            ..search(of.clone())
        };
        let cancelled = NotificationSearch {
            reasons: vec![NotificationReason::Cancelled, NotificationReason::Expired],
            ..search(of.clone())
        };
        for limit in [1, 2, 50] {
            let found = all_notifications(&store, &undelivered, limit).await;
            assert_eq!(found, [made[0], made[3], made[4]], "{of:?}, {limit}");
            let found = all_notifications(&store, &waiting, limit).await;
            assert_eq!(found, [made[1], made[5]], "{of:?}, {limit}");
            let found = all_notifications(&store, &cancelled, limit).await;
            assert_eq!(found, [made[4]], "{of:?}, {limit}");
        }
        let found = store.notifications_to_cancel(&waiting).await.unwrap();
        assert_eq!(found.ids.len(), 2, "each of them along its own index");
    }
}
