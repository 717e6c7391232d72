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

/// Of something that ended 3,000 seconds after it was accepted: when it was sent again, and whether it was late all the same.
const SENT_AGAIN: [(i32, bool); 2] = [(2_990, false), (100, true)];

#[testkit::database_test]
async fn a_notification_that_a_person_had_sent_again_is_late_from_then_on(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let accepted = SystemClock.now() - TimeDelta::hours(1);
    let by_hand = SENT_AGAIN.map(|(after, late)| (after, Some("ann"), late, late));
    // Sent again by itself after an outage; and one whose resend was cancelled, so that the end is that of before.
    let others = [
        (2_990, Some("postrider"), true, false),
        (3_010, None, true, false),
    ];
    let late = NotificationSearch {
        late_by: Some(LATE),
        ..search(NotificationsOf::Subscription(subscription))
    };
    for (after, by, is_late, says_when) in by_hand.into_iter().chain(others) {
        let row = NotificationRow::in_state(NotificationState::Sent, subscription).created_at(accepted);
        let id = row.make(&pool).await.id.uuid();
        sqlx::query(
            "UPDATE notifications SET finished_at = created_at + interval '3000 seconds',
                                      resent_at = created_at + $2 * interval '1 second' WHERE id = $1",
        )
        .bind(id)
        .bind(after)
        .execute(&pool)
        .await
        .unwrap();
        sqlx::query(
            "INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, subscription_id, reseller_id, detail, state,
                                       resolved_at, resolved_by)
             SELECT 'reseller', 'GIVEN_UP', 'delivery/timeout', id, subscription_id, reseller_id, 'no answer', 'REPLAYED', resent_at, $2
             FROM notifications WHERE id = $1 AND $2 IS NOT NULL",
        )
        .bind(id)
        .bind(by)
        .execute(&pool)
        .await
        .unwrap();
        let found = store.search_notifications(&late, None, 50).await.unwrap().items;
        let found = found.iter().find(|found| found.id.uuid() == id);
        assert_eq!(found.is_some(), is_late, "{after} {by:?}");
        let resent_at = found.and_then(|found| found.resent_at);
        assert_eq!(resent_at.is_some(), says_when, "{after} {by:?}");
    }
}

#[testkit::database_test]
async fn a_notification_that_a_replay_made_is_late_from_then_on(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let row = NotificationRow::in_state(NotificationState::Sent, subscription);
    let made = row.make(&pool).await;
    sqlx::query("UPDATE events SET created_at = created_at - interval '1 hour' WHERE id = $1")
        .bind(made.event)
        .execute(&pool)
        .await
        .unwrap();
    let all = search(NotificationsOf::Subscription(subscription));
    let found = store.search_notifications(&all, None, 50).await.unwrap().items;
    let times: Vec<_> = found
        .iter()
        .map(|found| found.resent_at.map(|at| at - found.accepted_at))
        .collect();
    assert_eq!(times, [Some(TimeDelta::hours(1))]);
    let late = NotificationSearch {
        late_by: Some(LATE),
        ..all
    };
    assert_eq!(all_notifications(&store, &late, 50).await, [] as [Uuid; 0]);
}

#[testkit::database_test]
async fn a_push_whose_dead_letter_was_replayed_is_late_from_then_on(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let accepted = SystemClock.now() - TimeDelta::hours(1);
    let replayed = SENT_AGAIN.map(|(after, late)| (after, "REPLAYED", late));
    let late = PushFilter {
        late_by: Some(LATE),
        ..PushFilter::default()
    };
    for (after, state, is_late) in replayed.into_iter().chain([(2_990, "DISCARDED", true)]) {
        let row = PushRow::in_state(PushState::Sent).created_at(accepted);
        let id = row.make(&pool).await.id.uuid();
        sqlx::query(
            "UPDATE push_notifications SET finished_at = created_at + interval '3000 seconds' WHERE id = $1",
        )
        .bind(id)
        .execute(&pool)
        .await
        .unwrap();
        sqlx::query(
            "INSERT INTO dead_letters (lane, reason, fingerprint, push_id, detail, state, resolved_at, resolved_by, note)
             SELECT 'push', 'GIVEN_UP', 'swrve/503', id, 'busy', $3, created_at + $2 * interval '1 second', 'ann', 'a test'
             FROM push_notifications WHERE id = $1",
        )
        .bind(id)
        .bind(after)
        .bind(state)
        .execute(&pool)
        .await
        .unwrap();
        let found = store.list_pushes(&late, None, 50).await.unwrap().unwrap().items;
        let found = found.iter().find(|found| found.id.uuid() == id);
        assert_eq!(found.is_some(), is_late, "{after} {state}");
        let replayed_at = found.and_then(|found| found.replayed_at);
        let says_when = is_late && state == "REPLAYED";
        assert_eq!(replayed_at.is_some(), says_when, "{after} {state}");
    }
}
