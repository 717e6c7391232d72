//! What waits for a subscription that gets nothing any more ends, what has waited for too long ends, and nothing else
//! does.

use std::collections::BTreeMap;

use std::time::Duration;

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use domain::subscription::SubscriptionState;
use sqlx::PgPool;
use store::{Act, Resolved, Store};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::row as row_of;
use crate::scene::{act as by_reseller, count, open_dead_letters, until_blocked};

/// Notifications of a subscription in every state, each of the waiting ones `times` times.
async fn notify(pool: &PgPool, subscription: Uuid, times: usize) {
    use NotificationState as S;
    for state in [S::Pending, S::Scheduled, S::Retry] {
        for _ in 0..times {
            NotificationRow::in_state(state, subscription).make(pool).await;
        }
    }
    for state in [S::Queued, S::Sending, S::Sent, S::Failed, S::GivenUp] {
        NotificationRow::in_state(state, subscription).make(pool).await;
    }
}

/// How many notifications of a subscription there are, by status and reason.
async fn standing(pool: &PgPool, subscription: Uuid) -> BTreeMap<(String, Option<String>), i64> {
    let rows: Vec<(String, Option<String>, i64)> = sqlx::query_as(
        "SELECT status, reason, count(*) FROM notifications WHERE subscription_id = $1 GROUP BY 1, 2",
    )
    .bind(subscription)
    .fetch_all(pool)
    .await
    .unwrap();
    rows.into_iter()
        .map(|(status, reason, count)| ((status, reason), count))
        .collect()
}

/// How many dead letters of a kind a subscription has, by state.
async fn dead_letters_of(pool: &PgPool, subscription: Uuid, fingerprint: &str) -> Vec<(String, i64)> {
    sqlx::query_as(
        "SELECT state, count(*) FROM dead_letters
         WHERE subscription_id = $1 AND fingerprint = $2 AND reason = 'GIVEN_UP' AND lane = 'reseller'
           AND reseller_id = 'acme' AND notification_id IS NOT NULL AND target <> '' GROUP BY 1 ORDER BY 1",
    )
    .bind(subscription)
    .bind(fingerprint)
    .fetch_all(pool)
    .await
    .unwrap()
}

#[testkit::database_test]
async fn what_waits_ends_with_its_reason_and_a_dead_letter_that_is_discarded(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    let deactivated = SubscriptionRow::in_state(SubscriptionState::Deactivated)
        .make(&pool)
        .await;
    let deleted = SubscriptionRow::active().deleted().make(&pool).await;
    let mut others = Vec::new();
    for row in [
        SubscriptionRow::active(),
        SubscriptionRow::active().paused(),
        SubscriptionRow::in_state(SubscriptionState::Degraded),
        SubscriptionRow::in_state(SubscriptionState::PendingVerification),
    ] {
        others.push(row.make(&pool).await);
    }
    for id in others.iter().chain([&deactivated, &deleted]) {
        notify(&pool, *id, 2).await;
    }
    let (letters, before) = (open_dead_letters(&pool).await, standing(&pool, others[0]).await);
    let mut inactive = store.inactive_with_waiting(Uuid::nil()).await.unwrap().found;
    inactive.sort();
    let mut expected = [deactivated, deleted];
    expected.sort();
    assert_eq!(inactive, expected);
    for (id, reason) in [
        (deactivated, "SUBSCRIPTION_DEACTIVATED"),
        (deleted, "SUBSCRIPTION_DELETED"),
    ] {
        assert_eq!(store.end_inactive(id, 100, now).await.unwrap().count, 6);
        let after = standing(&pool, id).await;
        assert_eq!(
            after[&("GIVEN_UP".to_owned(), Some(reason.to_owned()))],
            6,
            "{after:?}"
        );
        assert_eq!(
            after[&("IN_MEMORY".to_owned(), None)],
            2,
            "left to the engines that have them"
        );
        assert_eq!(after.values().sum::<i64>(), 11);
        let kind = match reason {
            "SUBSCRIPTION_DEACTIVATED" => "delivery/subscription-deactivated",
            _ => "delivery/subscription-deleted",
        };
        assert_eq!(
            dead_letters_of(&pool, id, kind).await,
            [("DISCARDED".to_owned(), 6)]
        );
    }
    for id in others {
        assert_eq!(store.end_inactive(id, 100, now).await.unwrap().count, 0);
        assert_eq!(standing(&pool, id).await, before);
    }
    assert_eq!(open_dead_letters(&pool).await, letters);
    assert_eq!(count(&pool, "emails").await, 0);
    let left = store.inactive_with_waiting(Uuid::nil()).await.unwrap().found;
    assert!(left.is_empty(), "{left:?}");
}

#[testkit::database_test]
async fn a_walk_finds_every_subscription_in_bounded_stretches(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut expected = Vec::new();
    for n in 0..450 {
        let inactive = n % 3 == 0;
        let state = if inactive {
            SubscriptionState::Deactivated
        } else {
            SubscriptionState::Active
        };
        let id = SubscriptionRow::in_state(state).make(&pool).await;
        expected.extend(inactive.then_some(id));
        let waiting = if n % 2 == 0 {
            NotificationState::Pending
        } else {
            NotificationState::Retry
        };
        NotificationRow::in_state(waiting, id).make(&pool).await;
    }
    let (mut found, mut stretches, mut after) = (Vec::new(), 0, Uuid::nil());
    loop {
        let walk = store.inactive_with_waiting(after).await.unwrap();
        found.extend(walk.found);
        stretches += 1;
        match walk.next {
            Some(next) => after = next,
            None => break,
        }
    }
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(stretches, 3);
}

#[testkit::database_test]
async fn a_batch_takes_the_oldest_and_leaves_the_rest(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    let id = SubscriptionRow::in_state(SubscriptionState::Deactivated)
        .make(&pool)
        .await;
    notify(&pool, id, 5).await;
    let mut batches = Vec::new();
    while let ended @ 1.. = store.end_inactive(id, 3, now).await.unwrap().count {
        batches.push(ended);
    }
    // At most three of those that wait for room, of those that wait for a time, and of those that are tried again.
    assert_eq!(batches, [9, 6]);
}

#[testkit::database_test]
async fn what_is_activated_at_this_moment_loses_nothing(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    let id = SubscriptionRow::in_state(SubscriptionState::Deactivated)
        .make(&pool)
        .await;
    notify(&pool, id, 2).await;
    let before = standing(&pool, id).await;
    let mut activating = pool.begin().await.unwrap();
    sqlx::query("UPDATE subscriptions SET state = 'ACTIVE' WHERE id = $1")
        .bind(id)
        .execute(&mut *activating)
        .await
        .unwrap();
    let ending = tokio::spawn(async move { store.end_inactive(id, 100, now).await.unwrap().count });
    until_blocked(&pool, 1).await;
    activating.commit().await.unwrap();
    assert_eq!(ending.await.unwrap(), 0);
    assert_eq!(standing(&pool, id).await, before);
}

/// What is left to the process that has it, or has ended.
const OTHERS: [NotificationState; 5] = [
    NotificationState::Queued,
    NotificationState::Sending,
    NotificationState::Sent,
    NotificationState::Failed,
    NotificationState::GivenUp,
];
const WAITING: [NotificationState; 3] = [
    NotificationState::Pending,
    NotificationState::Scheduled,
    NotificationState::Retry,
];

#[testkit::database_test]
async fn what_has_waited_for_too_long_expires_whatever_its_subscription_is(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    let cutoff = store.cutoff(now, Duration::from_secs(3_600)).await.unwrap();
    let young = SubscriptionRow::active().make(&pool).await;
    notify(&pool, young, 2).await;
    let mut expected = Vec::new();
    for row in [
        SubscriptionRow::active(),
        SubscriptionRow::active().paused(),
        SubscriptionRow::in_state(SubscriptionState::PendingVerification),
    ] {
        let id = row.make(&pool).await;
        notify(&pool, id, 1).await;
        for state in WAITING.into_iter().chain(OTHERS) {
            let row =
                NotificationRow::in_state(state, id).created_at(cutoff.before() - TimeDelta::seconds(1));
            row.make(&pool).await;
        }
        expected.push(id);
    }
    expected.sort();
    let letters = open_dead_letters(&pool).await;
    let walk = store.expired_with_waiting(Uuid::nil(), cutoff).await.unwrap();
    assert_eq!((walk.found, walk.next), (expected.clone(), None));
    for id in expected {
        let earlier = standing(&pool, id).await;
        assert_eq!(store.end_expired(id, cutoff, 100, now).await.unwrap().count, 3);
        let expected = [("OPEN".to_owned(), 3)];
        assert_eq!(dead_letters_of(&pool, id, "delivery/expired").await, expected);
        let mut after = standing(&pool, id).await;
        let expired = after.remove(&("GIVEN_UP".to_owned(), Some("EXPIRED".to_owned())));
        assert_eq!(expired, Some(3), "{after:?}");
        let fewer = |(status, reason): &(String, Option<String>), count: i64| {
            let waiting = matches!(status.as_str(), "PENDING" | "SCHEDULED" | "RETRY");
            ((status.clone(), reason.clone()), count - i64::from(waiting))
        };
        let left: BTreeMap<_, _> = earlier.iter().map(|(key, count)| fewer(key, *count)).collect();
        assert_eq!(after, left, "nothing but what waited");
    }
    assert_eq!(store.end_expired(young, cutoff, 100, now).await.unwrap().count, 0);
    assert_eq!(open_dead_letters(&pool).await, letters + 9);
    assert_eq!(count(&pool, "emails").await, 0);
    let walk = store.expired_with_waiting(Uuid::nil(), cutoff).await.unwrap();
    assert!(walk.found.is_empty(), "{walk:?}");
}

#[testkit::database_test]
async fn an_old_event_that_was_asked_for_again_has_its_time(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    let cutoff = store.cutoff(now, Duration::from_secs(3_600)).await.unwrap();
    let before = cutoff.before();
    let id = SubscriptionRow::active().make(&pool).await;
    let old =
        NotificationRow::in_state(NotificationState::GivenUp, id).created_at(before - TimeDelta::hours(1));
    let (resent, made_late) = (old.make(&pool).await, old.make(&pool).await);
    store
        .resend_notification("acme", resent.id, by_reseller(now))
        .await
        .unwrap();
    // As a replay makes one of an event that the subscription had no notification of.
    sqlx::query(
        "UPDATE notifications SET status = 'PENDING', attempts = 0, finished_at = NULL, created_at = $2 WHERE id = $1",
    )
    .bind(made_late.id.uuid())
    .bind(now)
    .execute(&pool)
    .await
    .unwrap();
    assert_eq!(store.end_expired(id, cutoff, 100, now).await.unwrap().count, 0);
    let present = store.cutoff(SystemClock.now(), Duration::ZERO).await.unwrap();
    assert_eq!(store.end_expired(id, present, 100, now).await.unwrap().count, 2);
}

#[testkit::database_test]
async fn what_has_expired_says_what_it_waited_for_and_is_replayed_by_its_dead_letter(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), SystemClock.now());
    let id = SubscriptionRow::active().make(&pool).await;
    let row = NotificationRow::in_state(NotificationState::Scheduled, id);
    let made = row.created_at(now - TimeDelta::hours(1)).make(&pool).await;
    let present = store.cutoff(now, Duration::ZERO).await.unwrap();
    assert_eq!(store.end_expired(id, present, 9, now).await.unwrap().count, 1);
    let (letter, detail): (Uuid, String) = sqlx::query_as("SELECT id, detail FROM dead_letters")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(detail, "waited for too long, as SCHEDULED (QUOTA)");
    let act = Act {
        by: "Anna (1)",
        note: None,
        at: now,
    };
    assert_eq!(
        store.replay_dead_letter(letter, &act).await.unwrap(),
        Resolved::Done
    );
    assert_eq!(row_of(&pool, made.id).await.state(), NotificationState::Retry);
}
