//! What a completion leaves behind: the attempt row of each outcome, and the dead letter of a push that ended badly.

use domain::push::{AttemptStatus, ErrorType, Platform, PushState, PushStatus, SendOutcome};
use sqlx::{PgPool, Row};
use store::Store;
use store::push::Completion;
use testkit::push_factory::PushRow;
use uuid::Uuid;

use crate::scene::{completion, pushes, refused};

#[testkit::database_test]
async fn each_outcome_is_recorded_with_the_attempt(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let missing = SendOutcome::PrototypeKeyMissing {
        platform: Platform::Ios,
        prototype: None,
    };
    let made = pushes(&pool, PushState::Sending, 5).await;
    let outcomes = [
        SendOutcome::Delivered,
        refused(503),
        refused(404),
        missing,
        SendOutcome::Internal {
            chain: "a: b: c".to_owned(),
        },
    ];
    let batch: Vec<Completion> = made
        .iter()
        .zip(outcomes)
        .map(|(push, outcome)| completion(*push, 1, outcome))
        .collect();
    assert_eq!(store.complete_pushes(&batch).await.unwrap().len(), 5);

    let mut recorded = Vec::new();
    for push in &made {
        let push = store.find_push(push.id).await.unwrap().unwrap();
        let attempt = push.history[0].clone();
        assert_eq!(attempt.millis, Some(250));
        assert_eq!(push.next_attempt_at.is_some(), push.status == PushStatus::Retry);
        assert_eq!(push.finished_at.is_some(), push.status.is_terminal());
        recorded.push((
            push.status,
            attempt.status,
            attempt.error_type,
            attempt.response_status,
            attempt.swrve_error_code,
        ));
        if push.status == PushStatus::Failed && attempt.error_type == Some(ErrorType::Other) {
            assert_eq!(attempt.other_error.as_deref(), Some("a: b: c"));
        }
    }
    assert_eq!(
        recorded,
        [
            (PushStatus::Sent, AttemptStatus::Ok, None, Some(200), None),
            (
                PushStatus::Retry,
                AttemptStatus::Error,
                Some(ErrorType::Swrve),
                Some(503),
                Some(503)
            ),
            (
                PushStatus::Failed,
                AttemptStatus::Error,
                Some(ErrorType::Swrve),
                Some(404),
                Some(404)
            ),
            (
                PushStatus::Failed,
                AttemptStatus::Error,
                Some(ErrorType::MessagePrototypeKey),
                None,
                None
            ),
            (
                PushStatus::Failed,
                AttemptStatus::Error,
                Some(ErrorType::Other),
                None,
                None
            ),
        ]
    );
}

#[testkit::database_test]
async fn a_terminal_failure_writes_one_dead_letter_with_a_fingerprint(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let failed = PushRow::in_state(PushState::Sending).make(&pool).await;
    let given_up = PushRow::in_state(PushState::Sending)
        .attempts(3)
        .make(&pool)
        .await;
    let retried = PushRow::in_state(PushState::Sending).make(&pool).await;
    let batch = [
        completion(failed, 1, refused(400)),
        completion(given_up, 3, refused(503)),
        completion(retried, 1, refused(503)),
    ];
    assert_eq!(store.complete_pushes(&batch).await.unwrap().len(), 3);

    let letters = sqlx::query(
        "SELECT d.push_id, d.reason, d.fingerprint, d.attempts, d.error_type, d.detail,
                d.created_at = p.finished_at AND d.xmin = p.xmin AS same_transaction
         FROM dead_letters d JOIN push_notifications p ON p.id = d.push_id ORDER BY d.push_id",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    let mut expected = [
        (failed.id.uuid(), "FAILED", "swrve/400", 1, "400 of the test"),
        (given_up.id.uuid(), "GIVEN_UP", "swrve/503", 3, "503 of the test"),
    ];
    expected.sort_by_key(|letter| letter.0);
    assert_eq!(letters.len(), 2);
    for (letter, (id, reason, fingerprint, attempts, detail)) in letters.iter().zip(expected) {
        assert_eq!(letter.get::<Uuid, _>("push_id"), id);
        assert_eq!(letter.get::<&str, _>("reason"), reason);
        assert_eq!(letter.get::<&str, _>("fingerprint"), fingerprint);
        assert_eq!(letter.get::<i32, _>("attempts"), attempts);
        assert_eq!(letter.get::<&str, _>("error_type"), "SWRVE");
        assert_eq!(letter.get::<&str, _>("detail"), detail);
        assert!(letter.get::<bool, _>("same_transaction"));
    }
}

#[testkit::database_test]
async fn text_that_postgresql_cannot_store_does_not_hold_up_its_batch(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let made = pushes(&pool, PushState::Sending, 2).await;
    let nul = SendOutcome::Refused {
        status: 400,
        code: None,
        message: "no\0thing".to_owned(),
    };
    let batch = [
        completion(made[0], 1, SendOutcome::Delivered),
        completion(made[1], 1, nul),
    ];
    assert_eq!(store.complete_pushes(&batch).await.unwrap().len(), 2);
    let push = store.find_push(made[1].id).await.unwrap().unwrap();
    assert_eq!(
        push.history[0].swrve_error_message.as_deref(),
        Some("no\u{fffd}thing")
    );
}
