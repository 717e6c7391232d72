//! Messages of the reseller lane that the broker gave up.

use chrono::TimeDelta;
use domain::notification::NotificationState;
use serde_json::{Value, json};
use sqlx::PgPool;
use store::{BrokerDeadLetter, DeadLetterLane, Store};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::row;
use crate::scene::state_of;

fn dead_letter(id: Option<Uuid>) -> BrokerDeadLetter {
    BrokerDeadLetter {
        lane: DeadLetterLane::Reseller,
        id,
        detail: "delivery limit of reseller.ready".to_owned(),
        fingerprint: "broker/delivery_limit".to_owned(),
        message: json!({ "body": "e30=" }),
    }
}

#[testkit::database_test]
async fn a_notification_whose_message_was_given_up_waits_in_its_lane_again(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    for (attempts, expected) in [(0, NotificationState::Pending), (2, NotificationState::Retry)] {
        let made = NotificationRow::in_state(NotificationState::Queued, subscription).attempts(attempts);
        let made = made.leased_for(TimeDelta::hours(1)).make(&pool).await;
        assert!(
            store
                .archive_dead_letter(&dead_letter(Some(made.id.uuid())))
                .await
                .unwrap()
        );
        let row = row(&pool, made.id).await;
        assert_eq!((row.state(), row.attempts.unsigned_abs()), (expected, attempts));
        let letter: Value =
            sqlx::query_scalar("SELECT to_jsonb(d) FROM dead_letters d WHERE notification_id = $1")
                .bind(made.id.uuid())
                .fetch_one(&pool)
                .await
                .unwrap();
        assert_eq!(
            (&letter["lane"], &letter["reason"]),
            (&"reseller".into(), &"REJECTED".into())
        );
        assert!(letter["push_id"].is_null());
    }
}

#[testkit::database_test]
async fn a_notification_that_is_elsewhere_stays_there(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    for state in NotificationState::ALL {
        if state != NotificationState::Queued {
            let made = NotificationRow::in_state(state, subscription).make(&pool).await;
            let before = row(&pool, made.id).await;
            assert!(
                !store
                    .archive_dead_letter(&dead_letter(Some(made.id.uuid())))
                    .await
                    .unwrap()
            );
            assert_eq!(row(&pool, made.id).await, before);
        }
    }
}

#[testkit::database_test]
async fn the_lanes_leave_each_others_rows_alone(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let push = PushRow::in_state(domain::push::PushState::Queued)
        .make(&pool)
        .await;
    let made = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    assert!(
        !store
            .archive_dead_letter(&dead_letter(Some(push.id.uuid())))
            .await
            .unwrap()
    );
    let other_lane = BrokerDeadLetter {
        lane: DeadLetterLane::Push,
        ..dead_letter(Some(made.id.uuid()))
    };
    assert!(!store.archive_dead_letter(&other_lane).await.unwrap());
    assert_eq!(row(&pool, made.id).await.state(), NotificationState::Queued);
    assert_eq!(state_of(&store, push.id).await, domain::push::PushState::Queued);
    assert!(!store.archive_dead_letter(&dead_letter(None)).await.unwrap());
    let malformed: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM dead_letters WHERE reason = 'MALFORMED' AND lane = 'reseller'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(malformed, 1);
}
