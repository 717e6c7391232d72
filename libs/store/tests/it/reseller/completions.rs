//! What is recorded of an attempt that is over.

use chrono::{DateTime, Utc};
use domain::clock::{Clock, SystemClock};
use domain::notification::{DeliveryOutcome, FailureKind, NotificationState};
use serde_json::Value;
use sqlx::PgPool;
use store::Store;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{answered, completion, notifications, row, timed_out};
use crate::scene::count;

/// The microsecond, which is what the database keeps.
fn stored(at: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(at.timestamp_micros()).unwrap()
}

async fn last_attempt(pool: &PgPool) -> Value {
    sqlx::query_scalar("SELECT to_jsonb(a) FROM delivery_attempts a ORDER BY number DESC LIMIT 1")
        .fetch_one(pool)
        .await
        .unwrap()
}

#[testkit::database_test]
async fn an_answer_is_recorded_in_full(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = NotificationRow::in_state(NotificationState::Sending, subscription)
        .make(&pool)
        .await;
    let completion = completion(&made, 1, answered(201));
    let at = stored(SystemClock.now());
    assert!(
        store
            .complete_deliveries(std::slice::from_ref(&completion), at)
            .await
            .unwrap()
            .contains(&made.id)
    );
    let row = row(&pool, made.id).await;
    assert_eq!(
        (&*row.status, row.reason, row.finished_at),
        ("SENT", None, Some(at))
    );
    let attempt = last_attempt(&pool).await;
    assert_eq!(attempt["status"], "OK");
    assert_eq!(attempt["millis"], 17);
    assert_eq!(attempt["response_status"], 201);
    assert_eq!(attempt["response_body"], "answer 201");
    for nothing in ["error_type", "error", "fingerprint"] {
        assert!(attempt[nothing].is_null(), "{nothing}");
    }
    let started: DateTime<Utc> = attempt["started_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(started, stored(completion.started_at));
    assert_eq!(
        count(&pool, "dead_letters").await + count(&pool, "emails").await,
        0
    );
}

#[testkit::database_test]
async fn a_failure_is_recorded_with_its_kind_and_its_fingerprint(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    // What was lacking here is no failure of an attempt.
    for kind in FailureKind::ALL
        .into_iter()
        .filter(|kind| *kind != FailureKind::Local)
    {
        let made = NotificationRow::in_state(NotificationState::Sending, subscription)
            .make(&pool)
            .await;
        let outcome = DeliveryOutcome::Failed {
            kind,
            message: "why".to_owned(),
        };
        let completion = completion(&made, 1, outcome);
        store
            .complete_deliveries(std::slice::from_ref(&completion), SystemClock.now())
            .await
            .unwrap();
        let (error_type, error, fingerprint, status): (String, String, String, Option<i32>) = sqlx::query_as(
            "SELECT error_type, error, fingerprint, response_status FROM delivery_attempts
             WHERE notification_id = $1 AND status = 'ERROR'",
        )
        .bind(made.id.uuid())
        .fetch_one(&pool)
        .await
        .unwrap();
        assert_eq!((&*error_type, &*error, status), (kind.as_str(), "why", None));
        let row = row(&pool, made.id).await;
        assert_eq!(
            (&*row.status, row.reason.as_deref()),
            ("RETRY", Some(&*fingerprint))
        );
        assert_eq!(row.next_attempt_at, completion.next_attempt_at.map(stored));
        assert_eq!(row.finished_at, None);
    }
}

#[testkit::database_test]
async fn what_ends_badly_leaves_a_dead_letter_that_names_it(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    for (outcome, attempts, reason, fingerprint) in [
        (answered(404), 1, "FAILED", "delivery/http/404/text"),
        (timed_out(), 4, "GIVEN_UP", "delivery/timeout"),
        (answered(503), 4, "GIVEN_UP", "delivery/http/503/text"),
    ] {
        let made = NotificationRow::in_state(NotificationState::Sending, subscription).attempts(attempts);
        let made = made.make(&pool).await;
        let completion = completion(&made, attempts, outcome);
        let error = completion.classification.error.clone().unwrap();
        store
            .complete_deliveries(&[completion], SystemClock.now())
            .await
            .unwrap();
        let letter: Value =
            sqlx::query_scalar("SELECT to_jsonb(d) FROM dead_letters d WHERE notification_id = $1")
                .bind(made.id.uuid())
                .fetch_one(&pool)
                .await
                .unwrap();
        assert_eq!(letter["lane"], "reseller");
        assert_eq!(letter["reason"], reason);
        assert_eq!(letter["fingerprint"], fingerprint);
        assert_eq!(letter["attempts"], attempts);
        assert_eq!(letter["subscription_id"], subscription.to_string());
        assert_eq!(letter["event_type"], "domain.created");
        assert_eq!(letter["detail"], error);
        assert!(letter["push_id"].is_null());
        assert_eq!(row(&pool, made.id).await.status, reason);
    }
}

#[testkit::database_test]
async fn a_late_completion_beside_the_present_one_does_not_count(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    for present_first in [true, false] {
        let made = NotificationRow::in_state(NotificationState::Sending, subscription).attempts(2);
        let made = made.make(&pool).await;
        let present = completion(&made, 2, answered(200));
        let mut late = completion(&made, 1, answered(410));
        late.lease_token = Uuid::now_v7();
        let batch = if present_first {
            [present, late]
        } else {
            [late, present]
        };
        let completed = store
            .complete_deliveries(&batch, SystemClock.now())
            .await
            .unwrap();
        assert!(completed.contains(&made.id));
        assert_eq!(row(&pool, made.id).await.status, "SENT");
        assert_eq!(last_attempt(&pool).await["response_status"], 200);
    }
    assert_eq!(
        count(&pool, "emails").await + count(&pool, "dead_letters").await,
        0
    );
}

#[testkit::database_test]
async fn whatever_an_endpoint_answers_can_be_stored(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let strange = NotificationRow::in_state(NotificationState::Sending, subscription)
        .make(&pool)
        .await;
    let strange_failure = NotificationRow::in_state(NotificationState::Sending, subscription)
        .attempts(4)
        .make(&pool)
        .await;
    let good = NotificationRow::in_state(NotificationState::Sending, subscription)
        .make(&pool)
        .await;
    let body = "a\0b\u{feff}\u{10ffff}";
    let batch = [
        completion(
            &strange,
            1,
            DeliveryOutcome::Answered {
                status: 200,
                retry_after: None,
                body: body.to_owned(),
            },
        ),
        completion(
            &strange_failure,
            4,
            DeliveryOutcome::Failed {
                kind: FailureKind::Protocol,
                message: "\0\u{1}\"".to_owned(),
            },
        ),
        completion(&good, 1, answered(200)),
    ];
    assert_eq!(
        store
            .complete_deliveries(&batch, SystemClock.now())
            .await
            .unwrap()
            .len(),
        3
    );
    let stored: String =
        sqlx::query_scalar("SELECT response_body FROM delivery_attempts WHERE notification_id = $1")
            .bind(strange.id.uuid())
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(stored, body.replace('\0', "\u{fffd}"));
    let detail: String = sqlx::query_scalar("SELECT detail FROM dead_letters")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(detail, "\u{fffd}\u{1}\"");
}

#[testkit::database_test]
async fn each_of_a_batch_ends_in_its_own_way(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut batch = Vec::new();
    let mut expected = Vec::new();
    for _ in 0..20 {
        let subscription = SubscriptionRow::active().make(&pool).await;
        let made = notifications(&pool, NotificationState::Sending, subscription, 3).await;
        for (made, (outcome, status)) in made.iter().zip([
            (answered(200), "SENT"),
            (answered(500), "RETRY"),
            (answered(404), "FAILED"),
        ]) {
            batch.push(completion(made, 1, outcome));
            expected.push((made.id, status));
        }
    }
    assert_eq!(
        store
            .complete_deliveries(&batch, SystemClock.now())
            .await
            .unwrap()
            .len(),
        60
    );
    for (id, status) in expected {
        assert_eq!(row(&pool, id).await.status, status);
    }
    assert!(
        store
            .complete_deliveries(&[], SystemClock.now())
            .await
            .unwrap()
            .is_empty()
    );
}
