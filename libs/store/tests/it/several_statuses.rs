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
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::searching::{all_notifications, all_pushes, push_for, search};

#[testkit::database_test]
async fn pushes_of_several_statuses_come_the_newest_first_unless_all_of_them_wait(pool: PgPool) {
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
    let some = of(&[PushStatus::Retry, PushStatus::Pending, PushStatus::GivenUp]);
    assert!(!waiting.is_newest_first() && some.is_newest_first());
    for limit in [1, 2, 50] {
        let found = all_pushes(&store, &undelivered, limit).await;
        assert_eq!(found, [made[0], made[3], made[4]], "{limit}");
        let found = all_pushes(&store, &waiting, limit).await;
        assert_eq!(found, [made[5], made[1]], "{limit}");
        let found = all_pushes(&store, &some, limit).await;
        assert_eq!(found, [made[0], made[1], made[4], made[5]], "{limit}");
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
async fn the_pushes_that_wait_come_the_oldest_first_whenever_they_are_due(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let now = SystemClock.now();
    let mut made = Vec::new();
    // Those that are due last are the oldest, so that no index has them in this order.
    for (age, state, due_in) in [
        (70, PushState::Retry, 40),
        (60, PushState::Scheduled, 50),
        (50, PushState::Queued, 0),
        (40, PushState::Pending, 0),
        (30, PushState::Sending, 0),
        (20, PushState::Pending, 0),
        (10, PushState::Retry, -10),
    ] {
        let row = PushRow::in_state(state)
            .created_at(now - TimeDelta::seconds(age))
            .due_in(TimeDelta::minutes(due_in));
        made.push(row.make(&pool).await.id.uuid());
    }
    PushRow::in_state(PushState::Sent)
        .created_at(now - TimeDelta::seconds(80))
        .make(&pool)
        .await;
    let waiting = PushFilter {
        statuses: PushStatus::WAITING.to_vec(),
        ..PushFilter::default()
    };
    for limit in [1, 2, 3, 50] {
        assert_eq!(all_pushes(&store, &waiting, limit).await, made, "{limit}");
    }
    let lately = PushFilter {
        since: Some(now - TimeDelta::seconds(55)),
        until: Some(now - TimeDelta::seconds(25)),
        ..waiting.clone()
    };
    assert_eq!(all_pushes(&store, &lately, 2).await, made[2..5]);
    let queued_or_tried_again = PushFilter {
        statuses: vec![PushStatus::InMemory, PushStatus::Retry],
        ..waiting.clone()
    };
    let found = all_pushes(&store, &queued_or_tried_again, 2).await;
    assert_eq!(found, [made[0], made[2], made[4], made[6]]);
    let none = PushFilter {
        prototype: Some("none".to_owned()),
        ..waiting
    };
    let part = store.list_pushes(&none, None, 50).await.unwrap().unwrap();
    assert_eq!((part.items.len(), part.examined, part.next), (0, 7, None));
}

#[testkit::database_test]
async fn the_notifications_that_wait_come_those_of_the_oldest_event_first_over_all_subscriptions(
    pool: PgPool,
) {
    let store = Store::from_pool(pool.clone());
    let now = SystemClock.now();
    let one = SubscriptionRow::active().make(&pool).await;
    let other = SubscriptionRow::active().reseller("globex").make(&pool).await;
    let mut made = Vec::new();
    for (age, state, subscription, due_in) in [
        (80, NotificationState::Retry, other, 40),
        (70, NotificationState::Pending, one, 0),
        (60, NotificationState::Scheduled, one, 50),
        (50, NotificationState::Queued, other, 0),
        (40, NotificationState::Pending, other, 0),
        (30, NotificationState::Sending, one, 0),
        (20, NotificationState::Pending, one, 0),
        (10, NotificationState::Retry, one, -10),
    ] {
        let row = NotificationRow::in_state(state, subscription)
            .created_at(now - TimeDelta::seconds(age))
            .due_in(TimeDelta::minutes(due_in));
        made.push(row.make(&pool).await.id.uuid());
    }
    let ended = NotificationRow::in_state(NotificationState::Sent, one);
    ended.created_at(now - TimeDelta::seconds(90)).make(&pool).await;
    let waiting = |of| NotificationSearch {
        statuses: NotificationStatus::WAITING.to_vec(),
        ..search(of)
    };
    let all = waiting(NotificationsOf::All);
    assert!(!all.is_newest_first());
    for limit in [1, 2, 3, 50] {
        assert_eq!(all_notifications(&store, &all, limit).await, made, "{limit}");
        let globex = waiting(NotificationsOf::Reseller("globex".to_owned()));
        let found = all_notifications(&store, &globex, limit).await;
        assert_eq!(found, [made[0], made[3], made[4]], "{limit}");
        let of_one = waiting(NotificationsOf::Subscription(one));
        let found = all_notifications(&store, &of_one, limit).await;
        assert_eq!(found, [made[1], made[2], made[5], made[6], made[7]], "{limit}");
    }
    let of_unknown = waiting(NotificationsOf::Reseller("unknown".to_owned()));
    assert!(all_notifications(&store, &of_unknown, 50).await.is_empty());
    let lately = NotificationSearch {
        since: Some(now - TimeDelta::seconds(55)),
        until: Some(now - TimeDelta::seconds(25)),
        ..all
    };
    assert_eq!(all_notifications(&store, &lately, 2).await, made[3..6]);
    let none = NotificationSearch {
        event_type: Some("none".to_owned()),
        ..lately
    };
    let part = store.search_notifications(&none, None, 50).await.unwrap();
    assert_eq!((part.items.len(), part.examined, part.next), (0, 3, None));
}

#[testkit::database_test]
async fn notifications_of_several_statuses_come_the_newest_first_unless_all_wait_and_those_cancelled_are_told_apart(
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
            assert_eq!(found, [made[5], made[1]], "{of:?}, {limit}");
            let found = all_notifications(&store, &cancelled, limit).await;
            assert_eq!(found, [made[4]], "{of:?}, {limit}");
        }
        let found = store.notifications_to_cancel(&waiting, None).await.unwrap();
        assert_eq!(found.ids.len(), 2, "each of them along its own index");
    }
}
