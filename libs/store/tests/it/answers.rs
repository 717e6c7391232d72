//! What endpoints answered, added up over subscriptions.

use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use domain::clock::{Clock as _, SystemClock};
use domain::notification::NotificationState;
use sqlx::PgPool;
use store::Store;
use store::webhook::{AnswerSum, AnsweredSince, AttemptEnd, NotificationsOf, StatisticsDelta};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

/// Counts so many attempts of one answer.
async fn answered(store: &Store, (of, at): (Uuid, DateTime<Utc>), answers: &[(Option<u16>, u64)]) {
    let mut hour = StatisticsDelta::new(of, at);
    for (code, count) in answers {
        for _ in 0..*count {
            hour.record(AttemptEnd::Retried, Duration::from_millis(20), *code, 100);
        }
    }
    store.add_delivery_statistics(&[hour]).await.unwrap();
}

fn told(sums: &[AnswerSum]) -> Vec<(Option<u16>, u64, u64, &str, u64)> {
    let sums = sums.iter();
    sums.map(|sum| (sum.code, sum.total, sum.subscriptions, &*sum.reseller, sum.count))
        .collect()
}

#[testkit::database_test]
async fn answers_are_added_up_over_hours_and_subscriptions(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let acme = SubscriptionRow::active().make(&pool).await;
    let other = SubscriptionRow::active().reseller("other").make(&pool).await;
    let gone = SubscriptionRow::active()
        .reseller("gone")
        .deleted()
        .make(&pool)
        .await;
    let now: DateTime<Utc> = "2026-11-21T12:30:00Z".parse().unwrap();
    let earlier = now - TimeDelta::hours(1);
    answered(&store, (acme, earlier), &[(Some(503), 2), (Some(200), 5)]).await;
    answered(&store, (acme, now), &[(Some(503), 1), (None, 4)]).await;
    answered(&store, (other, now), &[(Some(503), 7), (Some(502), 1)]).await;
    answered(&store, (gone, now), &[(Some(503), 1)]).await;
    let long_ago = now - TimeDelta::hours(3);
    answered(&store, (acme, long_ago), &[(Some(500), 9)]).await;

    let since: DateTime<Utc> = "2026-11-21T11:00:00Z".parse().unwrap();
    let all = NotificationsOf::All;
    let sums = store.answer_sums(&all, since, 2).await.unwrap();
    assert_eq!(
        told(&sums),
        [
            (Some(200), 5, 1, "acme", 5),
            (Some(502), 1, 1, "other", 1),
            // Of three subscriptions the two with most of them.
            (Some(503), 11, 3, "other", 7),
            (Some(503), 11, 3, "acme", 3),
            (None, 4, 1, "acme", 4),
        ]
    );
    assert_eq!(sums[1].subscription, other);

    let of = NotificationsOf::Reseller("gone".to_owned());
    let sums = store.answer_sums(&of, since, 2).await.unwrap();
    assert_eq!(told(&sums), [(Some(503), 1, 1, "gone", 1)]);
    let of = NotificationsOf::Subscription(other);
    let sums = store.answer_sums(&of, since, 2).await.unwrap();
    assert_eq!(
        told(&sums),
        [(Some(502), 1, 1, "other", 1), (Some(503), 7, 1, "other", 7)]
    );
    let none = store.answer_sums(&all, now, 2).await.unwrap();
    assert!(none.is_empty(), "the hour of it began before: {none:?}");
}

#[testkit::database_test]
async fn attempts_are_counted_from_the_moment_that_is_asked_for(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let [subscription, other] = [
        SubscriptionRow::active().make(&pool).await,
        SubscriptionRow::active().make(&pool).await,
    ];
    let since = SystemClock.now().trunc_subsecs(6) - TimeDelta::seconds(30);
    for (of, state, seconds) in [
        (subscription, NotificationState::Failed, -1),
        (subscription, NotificationState::Failed, 0),
        (subscription, NotificationState::Sent, 1),
        // It is under way, and not answered yet.
        (subscription, NotificationState::Sending, 2),
        (subscription, NotificationState::Pending, 3),
        (other, NotificationState::Failed, 1),
    ] {
        let row = NotificationRow::in_state(state, of).created_at(since + TimeDelta::seconds(seconds));
        row.make(&pool).await;
    }
    sqlx::query("UPDATE delivery_attempts SET response_status = 401 WHERE status = 'ERROR'")
        .execute(&pool)
        .await
        .unwrap();
    let answered = store.answered_since(subscription, since).await.unwrap();
    let expected = AnsweredSince {
        attempts: 2,
        refused: 1,
        notifications: 5,
    };
    assert_eq!(answered, expected);
    assert_eq!(answered.looked_at(), None, "there are no more");
}
