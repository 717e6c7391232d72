//! Verification: an answer counts for the challenge that it answers, and for nothing else.

use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::subscription::{Command, SubscriptionState};
use serde_json::Value;
use sqlx::PgPool;
use store::Store;
use store::reseller::{AfterFailure, DueVerification};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(60);
const URL: &str = "https://acme.example/hook";

async fn pending(pool: &PgPool) -> Uuid {
    let row = SubscriptionRow::in_state(SubscriptionState::PendingVerification);
    row.make(pool).await
}

/// Later than everything that the factory makes.
fn soon() -> DateTime<Utc> {
    (SystemClock.now() + TimeDelta::seconds(1)).trunc_subsecs(6)
}

async fn claim(store: &Store, at: DateTime<Utc>) -> Option<DueVerification> {
    let mut due = store.claim_verifications(at, 10, LEASE).await.unwrap();
    assert!(due.len() <= 1, "{due:?}");
    due.pop()
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    state: String,
    state_reason: String,
    verification_due_at: Option<DateTime<Utc>>,
    verification_attempts: i32,
    verification_error: Option<String>,
    verified_at: Option<DateTime<Utc>>,
}

async fn row(pool: &PgPool, id: Uuid) -> Row {
    sqlx::query_as("SELECT * FROM subscriptions WHERE id = $1")
        .bind(id)
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn mails(pool: &PgPool) -> Vec<(String, Value)> {
    sqlx::query_as("SELECT kind, data FROM emails ORDER BY created_at")
        .fetch_all(pool)
        .await
        .unwrap()
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_due_endpoint_is_challenged_by_one_until_its_lease_ends(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), soon());
    let id = pending(&pool).await;
    SubscriptionRow::active().make(&pool).await;
    SubscriptionRow::in_state(SubscriptionState::PendingVerification)
        .deleted()
        .make(&pool)
        .await;
    let due = claim(&store, now).await.unwrap();
    assert_eq!((due.subscription_id, due.attempts), (id, 0));
    assert_eq!(claim(&store, now).await, None);
    assert_eq!(claim(&store, now + TimeDelta::seconds(59)).await, None);
    let again = claim(&store, now + TimeDelta::seconds(60)).await.unwrap();
    assert_ne!(again.lease, due.lease);
    assert!(
        !store.pass_verification(&due, URL, now).await.unwrap(),
        "replaced"
    );
    assert!(store.pass_verification(&again, URL, now).await.unwrap());
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn the_right_answer_activates_and_is_told(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), soon());
    let id = pending(&pool).await;
    let due = claim(&store, now).await.unwrap();
    assert!(store.pass_verification(&due, URL, now).await.unwrap());
    assert!(!store.pass_verification(&due, URL, now).await.unwrap(), "once");
    let row = row(&pool, id).await;
    assert_eq!((&*row.state, &*row.state_reason), ("ACTIVE", "VERIFIED"));
    assert_eq!((row.verified_at, row.verification_due_at), (Some(now), None));
    assert_eq!(row.verification_attempts, 0, "none was in vain");
    let mails = mails(&pool).await;
    assert_eq!(mails.len(), 1);
    assert_eq!(
        (&*mails[0].0, &mails[0].1["reason"]),
        ("STATE_CHANGED", &"VERIFIED".into())
    );
    assert_eq!(claim(&store, now + TimeDelta::days(1)).await, None);
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_wrong_answer_leads_to_another_challenge_and_the_last_one_to_a_mail(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), soon());
    let id = pending(&pool).await;
    let due = claim(&store, now).await.unwrap();
    let next = now + TimeDelta::minutes(1);
    let after = AfterFailure::TryAgain(next);
    assert!(
        store
            .fail_verification(&due, URL, "it answered\0 404", after, now)
            .await
            .unwrap()
    );
    let waiting = row(&pool, id).await;
    assert_eq!(
        (waiting.verification_due_at, waiting.verification_attempts),
        (Some(next), 1)
    );
    assert_eq!(
        waiting.verification_error.as_deref(),
        Some("it answered\u{fffd} 404")
    );
    assert_eq!(mails(&pool).await, []);

    let due = claim(&store, next).await.unwrap();
    assert_eq!(due.attempts, 1);
    let stop = AfterFailure::Stop;
    assert!(
        store
            .fail_verification(&due, URL, "timed out", stop, next)
            .await
            .unwrap()
    );
    assert!(
        !store
            .fail_verification(&due, URL, "timed out", stop, next)
            .await
            .unwrap(),
        "once"
    );
    let stopped = row(&pool, id).await;
    assert_eq!(
        (&*stopped.state, stopped.verification_due_at),
        ("PENDING_VERIFICATION", None)
    );
    let mails = mails(&pool).await;
    assert_eq!(mails.len(), 1);
    let (kind, data) = &mails[0];
    assert_eq!(
        (&**kind, &data["error"], &data["attempts"]),
        ("VERIFICATION_FAILED", &"timed out".into(), &2.into())
    );
    assert_eq!(claim(&store, next + TimeDelta::days(9)).await, None);
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn an_answer_of_before_a_change_counts_for_nothing(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), soon());
    let change = |sql: &'static str, id: Uuid| {
        let query = sqlx::query(sql).bind(id).bind(now);
        query.execute(&pool)
    };
    for sql in [
        "UPDATE subscriptions SET url = 'https://acme.example/other' WHERE id = $1 AND $2 IS NOT NULL",
        "UPDATE subscriptions SET verification_due_at = $2 WHERE id = $1",
        "UPDATE subscriptions SET deleted_at = $2 WHERE id = $1",
        "UPDATE subscriptions SET state = 'DEACTIVATED' WHERE id = $1 AND $2 IS NOT NULL",
    ] {
        let id = pending(&pool).await;
        let due = claim(&store, now).await.unwrap();
        change(sql, id).await.unwrap();
        assert!(!store.pass_verification(&due, URL, now).await.unwrap(), "{sql}");
        let failed = store
            .fail_verification(&due, URL, "late", AfterFailure::Stop, now)
            .await;
        assert!(!failed.unwrap(), "{sql}");
        let row = row(&pool, id).await;
        assert_eq!((row.verified_at, row.verification_error), (None, None), "{sql}");
        sqlx::query("UPDATE subscriptions SET verification_due_at = NULL")
            .execute(&pool)
            .await
            .unwrap();
    }
    assert_eq!(mails(&pool).await, []);
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_reseller_that_starts_over_is_challenged_at_once_with_all_attempts(pool: PgPool) {
    let (store, now) = (Store::from_pool(pool.clone()), soon());
    let id = pending(&pool).await;
    let due = claim(&store, now).await.unwrap();
    let failed = store.fail_verification(&due, URL, "late", AfterFailure::Stop, now);
    assert!(failed.await.unwrap());
    store
        .command_subscription("acme", id, Command::Verify, now)
        .await
        .unwrap();
    let again = claim(&store, now).await.unwrap();
    assert_eq!((again.subscription_id, again.attempts), (id, 0));
}
