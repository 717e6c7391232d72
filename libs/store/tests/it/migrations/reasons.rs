//! Reasons are kept to those that the code knows, on tables that are large and at work.

use domain::notification::NotificationState;
use domain::push::PushState;
use domain::reason::NotificationReason;
use sqlx::{AssertSqlSafe, PgPool};
use store::Store;
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;

use super::older_rows::migrate_to;

/// Where a reason was any text.
const BEFORE: i64 = 29;
/// Where it is one of those that are known.
const REASONS: i64 = 35;

/// The columns, each with its constraint.
const COLUMNS: [(&str, &str, &str); 3] = [
    ("push_notifications", "reason", "reason_is_known"),
    ("notifications", "reason", "reason_is_known"),
    ("subscriptions", "state_reason", "state_reason_is_known"),
];

async fn run(pool: &PgPool, statement: String) -> Result<u64, Option<String>> {
    let done = sqlx::query(AssertSqlSafe(statement)).execute(pool).await;
    done.map(|done| done.rows_affected()).map_err(|error| {
        let error = error.into_database_error().expect("an answer of the database");
        error.constraint().map(str::to_owned)
    })
}

#[sqlx::test(migrations = false)]
async fn rows_of_before_stay_as_they_are_and_new_ones_have_a_reason_that_is_known(pool: PgPool) {
    migrate_to(BEFORE, &pool).await;
    let subscription = SubscriptionRow::active().make(&pool).await;
    for state in NotificationState::ALL {
        NotificationRow::in_state(state, subscription).make(&pool).await;
    }
    PushRow::in_state(PushState::Cancelled).make(&pool).await;
    // What no version has ever written must not stop the migration.
    let strange = "UPDATE notifications SET reason = 'WHY' WHERE status = 'SENT'".to_owned();
    assert_eq!(run(&pool, strange).await, Ok(1));

    migrate_to(REASONS, &pool).await;

    for (table, column, constraint) in COLUMNS {
        let known = format!("UPDATE {table} SET {column} = {column} WHERE {column} IS DISTINCT FROM 'WHY'");
        assert!(run(&pool, known).await.unwrap() > 0, "{table}");
        let unknown = format!("UPDATE {table} SET {column} = 'QOUTA'");
        assert_eq!(
            run(&pool, unknown).await,
            Err(Some(constraint.to_owned())),
            "{table}"
        );
    }
    let partitions: i64 = sqlx::query_scalar(
        "SELECT count(*) FILTER (WHERE NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conrelid = i.inhrelid
                                                   AND c.conname = 'reason_is_known'))
         FROM pg_inherits i WHERE i.inhparent IN ('notifications'::regclass, 'push_notifications'::regclass)",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(partitions, 0, "every month is kept to them");
}

#[testkit::database_test]
async fn every_reason_can_be_stored_and_one_that_is_unknown_can_be_read(pool: PgPool) {
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = NotificationRow::in_state(NotificationState::Pending, subscription)
        .make(&pool)
        .await;
    let store = Store::from_pool(pool.clone());
    let failure = NotificationReason::Other("delivery/lease-lost".to_owned());
    for reason in NotificationReason::all().chain([failure]) {
        let written = format!("UPDATE notifications SET reason = '{reason}'");
        assert_eq!(run(&pool, written).await, Ok(1), "{reason}");
        let read = store.find_notification("acme", made.id).await.unwrap().unwrap();
        assert_eq!(read.row.reason, Some(reason));
    }
    // As a later version might do it.
    let loosened = "ALTER TABLE notifications DROP CONSTRAINT reason_is_known".to_owned();
    run(&pool, loosened).await.unwrap();
    run(&pool, "UPDATE notifications SET reason = 'LATER'".to_owned())
        .await
        .unwrap();
    let read = store.find_notification("acme", made.id).await.unwrap().unwrap();
    assert_eq!(
        read.row.reason,
        Some(NotificationReason::Other("LATER".to_owned()))
    );
}
