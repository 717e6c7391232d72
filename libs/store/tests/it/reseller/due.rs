//! Promotion of what waits for its time, and what is put aside.

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::{NotificationId, NotificationState};
use domain::subscription::SubscriptionState;
use sqlx::PgPool;
use store::Store;
use store::webhook::SpillReason;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::reseller::scene::{ids, notifications, row};
use crate::scene::LONG;

#[testkit::database_test]
async fn each_subscription_gets_its_share_of_retries_longest_overdue_first(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let (much, little, paused) = (
        SubscriptionRow::active().make(&pool).await,
        SubscriptionRow::active().make(&pool).await,
        SubscriptionRow::active().paused().make(&pool).await,
    );
    let make = async |subscription, minutes| {
        let row = NotificationRow::in_state(NotificationState::Retry, subscription);
        row.due_in(TimeDelta::minutes(minutes))
            .make(&pool)
            .await
            .id
            .uuid()
    };
    let mut overdue = Vec::new();
    for minutes in [-40, -90, -70, -60, -80, 10] {
        overdue.push((minutes, make(much, minutes).await));
    }
    overdue.sort_unstable();
    let last = make(little, -1).await;
    make(little, 1).await;
    make(paused, -50).await;
    let now = SystemClock.now();
    let promoted = store
        .promote_retries(now, None, &[], 3, 4, LONG)
        .await
        .unwrap()
        .notifications;
    let promoted: Vec<_> = promoted.iter().map(|one| one.id).collect();
    assert_eq!(promoted, [overdue[0].1, overdue[1].1, overdue[2].1, last]);
    let row = row(&pool, overdue[0].1.into()).await;
    assert_eq!(
        (row.state(), row.reason.as_deref()),
        (NotificationState::Queued, Some("BACKLOG"))
    );
    let waiting = store
        .waiting_retries(&[(much, 9), (little, 9)], now)
        .await
        .unwrap();
    assert_eq!(
        waiting.iter().map(|one| one.id).collect::<Vec<_>>(),
        [overdue[3].1, overdue[4].1]
    );
    let oldest = store.waiting_retries(&[(much, 1)], now).await.unwrap();
    assert_eq!(oldest, waiting[..1]);
}

#[testkit::database_test]
async fn retries_that_are_not_due_take_no_room_from_those_that_are(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let due = SubscriptionRow::active().make(&pool).await;
    notifications(&pool, NotificationState::Retry, due, 40).await;
    for _ in 0..60 {
        let later = SubscriptionRow::active().make(&pool).await;
        let row = NotificationRow::in_state(NotificationState::Retry, later);
        row.due_in(TimeDelta::hours(1)).make(&pool).await;
    }
    let promoted = store
        .promote_retries(SystemClock.now(), None, &[], 32, 60, LONG)
        .await
        .unwrap();
    assert_eq!(promoted.notifications.len(), 32);
}

#[testkit::database_test]
async fn those_whose_retries_are_promoted_in_part_are_told_and_may_be_left_to_engines(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    notifications(&pool, NotificationState::Retry, subscription, 5).await;
    let now = SystemClock.now();
    for (left, partly, expected) in [
        (vec![], true, 3),
        (vec![subscription], false, 0),
        (vec![], false, 2),
    ] {
        let promoted = store
            .promote_retries(now, None, &left, 3, 100, LONG)
            .await
            .unwrap();
        assert_eq!(promoted.partly.contains(&subscription), partly);
        assert_eq!(promoted.notifications.len(), expected, "{left:?}");
    }
}

#[testkit::database_test]
async fn promoters_at_once_promote_what_is_due_once(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = ids(&notifications(&pool, NotificationState::Retry, subscription, 100).await);
    let now = SystemClock.now();
    let mut all = Vec::new();
    loop {
        let promote = || store.promote_retries(now, None, &[], 10, 10, LONG);
        let (a, b, c) = tokio::join!(promote(), promote(), promote());
        let promoted = [a, b, c].map(|promoted| promoted.unwrap().notifications).concat();
        if promoted.is_empty() {
            break;
        }
        all.extend(promoted.into_iter().map(|one| NotificationId::from(one.id)));
    }
    all.sort_unstable();
    assert_eq!(all, made);
}

#[testkit::database_test]
async fn what_is_put_aside_waits_in_its_own_lane(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    for (why, reason) in [
        (SpillReason::Busy, Some("BUSY")),
        (SpillReason::NotEnqueued, None),
    ] {
        let untried = NotificationRow::in_state(NotificationState::Queued, subscription)
            .make(&pool)
            .await;
        let tried = NotificationRow::in_state(NotificationState::Queued, subscription).attempts(2);
        let tried = tried.make(&pool).await;
        let now = SystemClock.now();
        let unknown = NotificationId::from(uuid::Uuid::now_v7());
        let named = [tried.id, unknown, untried.id];
        assert_eq!(store.spill_notifications(&named, why, now).await.unwrap(), 2);
        assert_eq!(store.spill_notifications(&named, why, now).await.unwrap(), 0);
        let (untried, tried) = (row(&pool, untried.id).await, row(&pool, tried.id).await);
        assert_eq!((&*untried.status, untried.next_attempt_at), ("PENDING", None));
        assert_eq!((&*tried.status, tried.attempts), ("RETRY", 2));
        let later = tried.next_attempt_at.unwrap() - now;
        if why == SpillReason::Busy {
            // The engine that did it comes back for it as soon as there is room.
            assert!(later.abs() < TimeDelta::milliseconds(1), "{later}");
        } else {
            assert!(
                later >= TimeDelta::seconds(5) && later <= TimeDelta::seconds(10),
                "{later}"
            );
        }
        assert_eq!([untried.reason.as_deref(), tried.reason.as_deref()], [reason; 2]);
    }
    assert_eq!(
        store
            .spill_notifications(&[], SpillReason::Busy, SystemClock.now())
            .await
            .unwrap(),
        0
    );
}

#[testkit::database_test]
async fn the_backlog_shows_what_has_waited_longest(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let empty = store.notification_backlog().await.unwrap();
    assert_eq!(
        (empty.oldest_pending, empty.oldest_due, empty.first_lease_end),
        (None, None, None)
    );
    let subscription = SubscriptionRow::active().make(&pool).await;
    notifications(&pool, NotificationState::Pending, subscription, 2).await;
    for minutes in [-3, -9, 5] {
        let retry = NotificationRow::in_state(NotificationState::Retry, subscription);
        retry.due_in(TimeDelta::minutes(minutes)).make(&pool).await;
    }
    let queued = NotificationRow::in_state(NotificationState::Queued, subscription);
    let first = queued.clone().leased_for(TimeDelta::minutes(1)).make(&pool).await;
    queued.make(&pool).await;
    // What is paused waits because its reseller or an operator wants that, for however long, and what is not verified for its challenge.
    let paused = SubscriptionRow::active().paused().make(&pool).await;
    let moving = SubscriptionRow::in_state(SubscriptionState::PendingVerification)
        .make(&pool)
        .await;
    for subscription in [paused, moving] {
        NotificationRow::in_state(NotificationState::Pending, subscription)
            .created_at(SystemClock.now() - TimeDelta::days(1))
            .make(&pool)
            .await;
    }
    let retry = NotificationRow::in_state(NotificationState::Retry, paused);
    let held_back = retry.due_in(TimeDelta::hours(-8)).make(&pool).await;
    // Of two subscriptions whose backlog counts, the one that comes later may have waited longer.
    let later = SubscriptionRow::active().make(&pool).await;
    let longest = notifications(&pool, NotificationState::Pending, later, 1).await;
    sqlx::query("UPDATE notifications SET created_at = created_at - interval '1 hour' WHERE id = $1")
        .bind(longest[0].id.uuid())
        .execute(&pool)
        .await
        .unwrap();
    let backlog = store.notification_backlog().await.unwrap();
    let expected: (Option<_>, Option<_>, Option<_>) = sqlx::query_as(
        "SELECT (SELECT created_at FROM notifications WHERE id = $1),
                (SELECT min(next_attempt_at) FROM notifications WHERE id <> $3),
                (SELECT leased_until FROM notifications WHERE id = $2)",
    )
    .bind(longest[0].id.uuid())
    .bind(first.id.uuid())
    .bind(held_back.id.uuid())
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(
        (
            backlog.oldest_pending,
            backlog.oldest_due,
            backlog.first_lease_end
        ),
        expected
    );
}
