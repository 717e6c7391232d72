//! Rows of older schemas, taken through every migration since, one by one.

use chrono::TimeDelta;
use domain::clock::{Clock as _, SystemClock};
use domain::notification::NotificationState;
use domain::push::PushState;
use sqlx::PgPool;
use store::{Act, Resolved, Store};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

/// Where dead letters were new: the push lane alone.
const PUSHES_ALONE: i64 = 6;
/// Where the reseller lane was complete, and no operator could resolve a dead letter yet.
const BOTH_LANES: i64 = 13;

/// Longer than what an index takes.
const LONG_FINGERPRINT: usize = 5_000;

/// Makes the schema as it was when `newest` was the last migration.
pub(super) async fn migrate_to(newest: i64, pool: &PgPool) {
    let migrated = store::MIGRATOR.run_to(newest, pool).await;
    migrated.unwrap_or_else(|error| panic!("{newest:04}: {error}"));
}

#[sqlx::test(migrations = false)]
async fn rows_of_older_schemas_come_through_every_migration_since(pool: PgPool) {
    migrate_to(PUSHES_ALONE, &pool).await;
    every_push(&pool).await;
    migrate_to(BOTH_LANES, &pool).await;
    every_push(&pool).await;
    every_notification(&pool).await;
    malformed_message(&pool).await;
    let before = counts(&pool).await;
    for migration in store::MIGRATOR.iter().filter(|one| one.version > BOTH_LANES) {
        migrate_to(migration.version, &pool).await;
        assert_eq!(counts(&pool).await, before, "after {:04}", migration.version);
        let renamed =
            "SELECT count(*) FROM notifications WHERE id <> notification_id(event, subscription_id)";
        let renamed: i64 = sqlx::query_scalar(renamed).fetch_one(&pool).await.unwrap();
        assert_eq!(renamed, 0, "{:04} would make them twice", migration.version);
    }
    dead_letters_know_what_they_are_about(&pool).await;
    tallies_equal_counts(&pool).await;

    let store = Store::from_pool(pool.clone());
    assert!(store.is_migrated().await.unwrap());
    let letters: Vec<Uuid> =
        sqlx::query_scalar("SELECT id FROM dead_letters WHERE reason IN ('FAILED', 'GIVEN_UP')")
            .fetch_all(&pool)
            .await
            .unwrap();
    assert_eq!(letters.len(), 6);
    for letter in letters {
        let act = Act {
            by: "Anna (1)",
            note: None,
            at: SystemClock.now(),
        };
        assert_eq!(
            store.replay_dead_letter(letter, &act).await.unwrap(),
            Resolved::Done
        );
    }
    tallies_equal_counts(&pool).await;
}

async fn every_push(pool: &PgPool) {
    // Earlier versions had no reason for a push.
    for state in PushState::ALL
        .into_iter()
        .filter(|state| *state != PushState::Cancelled)
    {
        PushRow::in_state(state)
            .leased_for(TimeDelta::seconds(-1))
            .make(pool)
            .await;
    }
}

async fn every_notification(pool: &PgPool) {
    let subscription = SubscriptionRow::active().make(pool).await;
    SubscriptionRow::active()
        .reseller("globex")
        .paused()
        .make(pool)
        .await;
    for state in NotificationState::ALL {
        let row = NotificationRow::in_state(state, subscription);
        row.leased_for(TimeDelta::seconds(-1)).make(pool).await;
    }
}

async fn malformed_message(pool: &PgPool) {
    sqlx::query("INSERT INTO dead_letters (lane, reason, fingerprint, detail) VALUES ('push', 'MALFORMED', repeat('x', $1), '')")
        .bind(i32::try_from(LONG_FINGERPRINT).unwrap())
        .execute(pool)
        .await
        .unwrap();
}

/// How many rows there are, by kind and status.
async fn counts(pool: &PgPool) -> Vec<(String, i64)> {
    sqlx::query_as(
        "SELECT 'push ' || status, count(*) FROM push_notifications GROUP BY 1
         UNION ALL SELECT 'send attempt ' || status, count(*) FROM send_attempts GROUP BY 1
         UNION ALL SELECT 'event', count(*) FROM events
         UNION ALL SELECT 'notification ' || status, count(*) FROM notifications GROUP BY 1
         UNION ALL SELECT 'delivery attempt ' || status, count(*) FROM delivery_attempts GROUP BY 1
         UNION ALL SELECT 'subscription ' || state, count(*) FROM subscriptions GROUP BY 1
         UNION ALL SELECT 'dead letter ' || lane || ' ' || reason, count(*) FROM dead_letters GROUP BY 1
         ORDER BY 1",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

/// What later columns say of earlier rows.
async fn dead_letters_know_what_they_are_about(pool: &PgPool) {
    type DeadLetter = (String, String, String, Option<String>, Option<String>, i64);
    let letters: Vec<DeadLetter> = sqlx::query_as(
        "SELECT lane, state, target, prototype, reseller_id, count(*) FROM dead_letters GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 3",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    let text = |text: &str| Some(text.to_owned());
    let expected = [
        ("push", "", None, None, 1),
        ("push", "503", text("Hello"), None, 4),
        ("reseller", "https://acme.example", None, text("acme"), 2),
    ];
    let expected = expected.map(|(lane, target, prototype, reseller, count)| {
        (
            lane.to_owned(),
            "OPEN".to_owned(),
            target.to_owned(),
            prototype,
            reseller,
            count,
        )
    });
    assert_eq!(letters, expected);
    let suspended: Vec<(String, bool)> =
        sqlx::query_as("SELECT reseller_id, suspended FROM subscriptions ORDER BY 1")
            .fetch_all(pool)
            .await
            .unwrap();
    assert_eq!(
        suspended,
        [("acme".to_owned(), false), ("globex".to_owned(), true)]
    );
}

async fn tallies_equal_counts(pool: &PgPool) {
    let [letters, tallies, totals] = [
        "SELECT state, lane, reason, fingerprint, target, count(*) FROM dead_letters
         GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5",
        "SELECT state, lane, reason, fingerprint, target, sum(letters)::bigint FROM dead_letter_tallies
         GROUP BY 1, 2, 3, 4, 5 HAVING sum(letters) <> 0 ORDER BY 1, 2, 3, 4, 5",
        "SELECT state, lane, reason, fingerprint, target, sum(letters)::bigint FROM dead_letter_totals
         GROUP BY 1, 2, 3, 4, 5 HAVING sum(letters) <> 0 ORDER BY 1, 2, 3, 4, 5",
    ]
    .map(|query| sqlx::query_as::<_, (String, String, String, String, String, i64)>(query).fetch_all(pool));
    let (letters, tallies) = (letters.await.unwrap(), tallies.await.unwrap());
    assert!(!letters.is_empty());
    assert_eq!(letters, tallies);
    assert_eq!(letters, totals.await.unwrap());
}
