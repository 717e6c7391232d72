//! Promotion of first attempts: an equal share of each subscription.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::{NotificationId, NotificationState};
use domain::subscription::SubscriptionState;
use sqlx::PgPool;
use store::Store;
use store::webhook::{PromotedNotification, SpillReason};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{ids, many_pending, notifications, row};
use crate::scene::LONG;

async fn promote(store: &Store, share: u32, limit: u32) -> Vec<PromotedNotification> {
    store
        .promote_first_attempts(SystemClock.now(), None, &[], share, limit, LONG)
        .await
        .unwrap()
        .notifications
}

fn by_subscription(promoted: &[PromotedNotification]) -> BTreeMap<Uuid, usize> {
    let mut counts = BTreeMap::new();
    for one in promoted {
        *counts.entry(one.subscription_id).or_default() += 1;
    }
    counts
}

#[testkit::database_test]
async fn each_subscription_gets_its_share_however_much_another_has(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let flooding = SubscriptionRow::active().make(&pool).await;
    many_pending(&pool, flooding, 20_000).await;
    let mut expected = BTreeMap::from([(flooding, 8)]);
    for count in [1, 8, 20] {
        let subscription = SubscriptionRow::active().make(&pool).await;
        many_pending(&pool, subscription, count).await;
        expected.insert(subscription, usize::try_from(count.min(8)).unwrap());
    }
    let promoted = promote(&store, 8, 1_000).await;
    assert_eq!(by_subscription(&promoted), expected);
}

#[testkit::database_test]
async fn the_oldest_of_a_subscription_come_first(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = ids(&notifications(&pool, NotificationState::Pending, subscription, 10).await);
    for part in made.chunks(4) {
        let promoted: Vec<NotificationId> = promote(&store, 4, 100)
            .await
            .iter()
            .map(|one| NotificationId::from(one.id))
            .collect();
        assert_eq!(promoted, part);
    }
    let row = row(&pool, made[0]).await;
    assert_eq!(
        (row.state(), row.reason.as_deref()),
        (NotificationState::Queued, Some("BACKLOG"))
    );
    assert!(promote(&store, 4, 100).await.is_empty());
}

#[testkit::database_test]
async fn no_subscription_gets_a_second_one_before_each_has_had_a_first(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for _ in 0..50 {
        let subscription = SubscriptionRow::active().make(&pool).await;
        notifications(&pool, NotificationState::Pending, subscription, 3).await;
    }
    for room in [50, 50, 50] {
        let promoted = by_subscription(&promote(&store, 5, room).await);
        assert_eq!(promoted.len(), 50, "{promoted:?}");
    }
    assert!(promote(&store, 5, 50).await.is_empty());
}

/// The engine that gets one of these comes back for what else its subscription has waiting.
#[testkit::database_test]
async fn it_is_said_of_those_alone_whose_subscription_has_more(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut subscriptions = Vec::new();
    for _ in 0..30 {
        subscriptions.push(SubscriptionRow::active().make(&pool).await);
    }
    // (waiting of each, share, room, promoted, of which so many have more behind them)
    for (waiting, share, room, expected) in [
        (1, 32, 6, (6, 0)),
        (1, 32, 100, (30, 0)),
        (2, 32, 30, (30, 30)),
        (2, 32, 100, (60, 0)),
        (2, 2, 100, (60, 0)),
        (3, 2, 100, (60, 60)),
    ] {
        sqlx::query("DELETE FROM notifications")
            .execute(&pool)
            .await
            .unwrap();
        for subscription in &subscriptions {
            notifications(&pool, NotificationState::Pending, *subscription, waiting).await;
        }
        let promoted = promote(&store, share, room).await.len();
        let more: i64 = sqlx::query_scalar("SELECT count(*) FROM notifications WHERE reason = 'BACKLOG'")
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!((promoted, more), expected, "{waiting} of each, {share}, {room}");
    }
}

/// An engine does not come back for one whose requests per second are used up.
#[testkit::database_test]
async fn those_promoted_in_part_are_told_and_those_left_to_engines_are_passed_over(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let much = SubscriptionRow::active().make(&pool).await;
    let little = SubscriptionRow::active().make(&pool).await;
    let paced = SubscriptionRow::active().requests_per_second(5).make(&pool).await;
    for (subscription, count) in [(much, 4), (little, 2), (paced, 4)] {
        notifications(&pool, NotificationState::Pending, subscription, count).await;
    }
    for (left, partly, expected) in [
        (vec![], vec![much], vec![(much, 2), (little, 2), (paced, 2)]),
        (vec![little, much], vec![], vec![(paced, 2)]),
        (vec![little, paced], vec![], vec![(much, 2)]),
    ] {
        let promoted = store
            .promote_first_attempts(SystemClock.now(), None, &left, 2, 100, LONG)
            .await
            .unwrap();
        assert_eq!(promoted.partly, HashSet::from_iter(partly));
        let expected: BTreeMap<Uuid, usize> = expected.into_iter().collect();
        assert_eq!(by_subscription(&promoted.notifications), expected);
    }
}

#[testkit::database_test]
async fn when_there_is_room_for_few_who_has_waited_longest_comes_first(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut subscriptions = Vec::new();
    for _ in 0..30 {
        subscriptions.push(SubscriptionRow::active().make(&pool).await);
    }
    subscriptions.reverse();
    let now = SystemClock.now();
    for (place, subscription) in (0..).zip(&subscriptions) {
        // Identifiers of one millisecond have no order.
        NotificationRow::in_state(NotificationState::Pending, *subscription)
            .created_at(now + TimeDelta::milliseconds(place))
            .make(&pool)
            .await;
    }
    for part in subscriptions.chunks(10) {
        let promoted = by_subscription(&promote(&store, 5, 10).await);
        assert_eq!(promoted, part.iter().map(|id| (*id, 1)).collect());
    }
}

#[testkit::database_test]
async fn a_statement_looks_at_some_hundred_subscriptions_and_the_next_ones_at_the_others(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut waiting = BTreeMap::new();
    for number in 1..=1_203 {
        // Those that get nothing must not keep their turn from those behind them.
        let is_paused = number % 401 != 0;
        let row = SubscriptionRow::active();
        let row = if is_paused { row.paused() } else { row };
        let subscription = row.make(&pool).await;
        notifications(&pool, NotificationState::Pending, subscription, 2).await;
        if !is_paused {
            waiting.insert(subscription, 2);
        }
    }
    let (mut promoted, mut after, mut statements) = (Vec::new(), None, 0);
    loop {
        let part = store
            .promote_first_attempts(SystemClock.now(), after, &[], 8, 100, LONG)
            .await
            .unwrap();
        promoted.extend(part.notifications);
        statements += 1;
        after = part.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((by_subscription(&promoted), statements), (waiting, 3));
}

#[testkit::database_test]
async fn what_its_subscription_does_not_get_now_stays(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for subscription in [
        SubscriptionRow::active().paused(),
        SubscriptionRow::active().deleted(),
        SubscriptionRow::in_state(SubscriptionState::PendingVerification),
        SubscriptionRow::in_state(SubscriptionState::Deactivated),
    ] {
        let subscription = subscription.make(&pool).await;
        notifications(&pool, NotificationState::Pending, subscription, 2).await;
    }
    let degraded = SubscriptionRow::in_state(SubscriptionState::Degraded)
        .make(&pool)
        .await;
    notifications(&pool, NotificationState::Pending, degraded, 2).await;
    assert_eq!(
        by_subscription(&promote(&store, 8, 100).await),
        BTreeMap::from([(degraded, 2)])
    );
}

#[testkit::database_test]
async fn what_was_put_aside_is_left_for_a_moment_to_the_process_that_did_it(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let (busy, refused) = (
        SubscriptionRow::active().make(&pool).await,
        SubscriptionRow::active().make(&pool).await,
    );
    // The clock of a process that sidelines may be wrong by days: for how long is told by the clock of the database.
    let ahead = SystemClock.now() + TimeDelta::days(31);
    let started = Instant::now();
    for (subscription, why) in [(busy, SpillReason::Busy), (refused, SpillReason::NotEnqueued)] {
        let made = notifications(&pool, NotificationState::Queued, subscription, 3).await;
        assert_eq!(
            store.spill_notifications(&ids(&made), why, ahead).await.unwrap(),
            3
        );
    }
    let mut promoted = by_subscription(&promote(&store, 8, 100).await);
    if started.elapsed() < Duration::from_secs(5) {
        assert_eq!(promoted, BTreeMap::from([(refused, 3)]));
    }
    sqlx::query("UPDATE subscription_sidelines SET until = until - interval '5 seconds'")
        .execute(&pool)
        .await
        .unwrap();
    promoted.extend(by_subscription(&promote(&store, 8, 100).await));
    assert_eq!(promoted, BTreeMap::from([(refused, 3), (busy, 3)]));
}

/// As a service of before wrote it, by a clock that was ahead.
#[testkit::database_test]
async fn a_sideline_that_lasts_for_hours_holds_nothing_up(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    notifications(&pool, NotificationState::Pending, subscription, 2).await;
    sqlx::query(
        "INSERT INTO subscription_sidelines (subscription_id, lane, until) VALUES ($1, 'first', now() + interval '1 hour')",
    )
    .bind(subscription)
    .execute(&pool)
    .await
    .unwrap();
    let promoted = by_subscription(&promote(&store, 8, 100).await);
    assert_eq!(promoted, BTreeMap::from([(subscription, 2)]));
}

#[testkit::database_test]
async fn what_another_transaction_has_just_locked_is_passed_over(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = ids(&notifications(&pool, NotificationState::Pending, subscription, 3).await);
    let mut other = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM notifications WHERE id = $1 FOR UPDATE")
        .bind(made[0].uuid())
        .execute(&mut *other)
        .await
        .unwrap();
    let promoted: Vec<_> = promote(&store, 8, 100)
        .await
        .iter()
        .map(|one| NotificationId::from(one.id))
        .collect();
    assert_eq!(promoted, made[1..]);
    other.rollback().await.unwrap();
}

#[testkit::database_test]
async fn promoters_at_once_promote_each_notification_once(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for _ in 0..5 {
        let subscription = SubscriptionRow::active().make(&pool).await;
        many_pending(&pool, subscription, 100).await;
    }
    let mut all = Vec::new();
    loop {
        let (a, b, c) = tokio::join!(
            promote(&store, 16, 60),
            promote(&store, 16, 60),
            promote(&store, 16, 60)
        );
        let promoted = [a, b, c].concat();
        if promoted.is_empty() {
            break;
        }
        all.extend(promoted.into_iter().map(|one| NotificationId::from(one.id)));
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 500);
}

#[testkit::database_test]
async fn the_first_attempts_that_wait_for_several_are_found_oldest_first(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = ids(&notifications(&pool, NotificationState::Pending, subscription, 5).await);
    let other = SubscriptionRow::active().make(&pool).await;
    let others = ids(&notifications(&pool, NotificationState::Pending, other, 5).await);
    for state in [
        NotificationState::Queued,
        NotificationState::Scheduled,
        NotificationState::Retry,
    ] {
        NotificationRow::in_state(state, subscription).make(&pool).await;
    }
    let none = SubscriptionRow::active().make(&pool).await;
    let asked = [(subscription, 3), (none, 3), (other, 1)];
    let found = store.waiting_first_attempts(&asked).await.unwrap();
    assert_eq!(found.len(), 4);
    assert_eq!(of(&found, subscription), made[..3]);
    assert_eq!(of(&found, other), others[..1]);
    let found = store.waiting_first_attempts(&[(subscription, 9)]).await.unwrap();
    assert_eq!(of(&found, subscription), made);
}

/// Those of one subscription, in their order.
fn of(found: &[PromotedNotification], subscription: Uuid) -> Vec<NotificationId> {
    let its = found.iter().filter(|one| one.subscription_id == subscription);
    its.map(|one| one.id.into()).collect()
}
