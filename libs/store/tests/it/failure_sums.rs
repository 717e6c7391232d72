//! How many notifications failed, added up by how.

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use store::Store;
use uuid::Uuid;

use crate::dead_letter_scene::make_dead_letters;

type Sum = (Option<String>, String, i64, DateTime<Utc>, DateTime<Utc>);

#[testkit::database_test]
async fn failures_are_added_up_whatever_became_of_their_dead_letters(pool: PgPool) {
    make_dead_letters(&pool, 900).await;
    let change = "UPDATE dead_letters SET error_type = NULL WHERE fingerprint = 'delivery/dns' AND state = 'DISCARDED'";
    sqlx::query(change).execute(&pool).await.unwrap();
    let subscriptions: Vec<Uuid> = sqlx::query_scalar(
        "SELECT DISTINCT subscription_id FROM dead_letters WHERE subscription_id IS NOT NULL ORDER BY 1",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    let span: (DateTime<Utc>, DateTime<Utc>) =
        sqlx::query_as("SELECT now() - interval '4 hours', now() - interval '1 hour'")
            .fetch_one(&pool)
            .await
            .unwrap();
    let store = Store::from_pool(pool.clone());
    for asked in [&subscriptions[..2], &subscriptions[2..], &[]] {
        let expected: Vec<Sum> = sqlx::query_as(
            "SELECT error_type, fingerprint, count(*), min(created_at), max(created_at) FROM dead_letters
             WHERE subscription_id = ANY ($1) AND created_at >= $2 AND created_at < $3
             GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2",
        )
        .bind(asked)
        .bind(span.0)
        .bind(span.1)
        .fetch_all(&pool)
        .await
        .unwrap();
        assert_eq!(expected.is_empty(), asked.is_empty());
        let sums = store.failure_sums(asked, span, 1_000).await.unwrap();
        let sums = sums.into_iter();
        let found: Vec<Sum> = sums
            .map(|sum| {
                let count = sum.count.cast_signed();
                (sum.error_type, sum.fingerprint, count, sum.first_at, sum.last_at)
            })
            .collect();
        assert_eq!(found, expected);
    }
}

#[testkit::database_test]
async fn no_more_are_counted_than_are_asked_for(pool: PgPool) {
    make_dead_letters(&pool, 900).await;
    let subscriptions: Vec<Uuid> = sqlx::query_scalar(
        "SELECT DISTINCT subscription_id FROM dead_letters WHERE subscription_id IS NOT NULL",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    let all: (DateTime<Utc>, DateTime<Utc>) =
        sqlx::query_as("SELECT now() - interval '1 day', now() + interval '1 day'")
            .fetch_one(&pool)
            .await
            .unwrap();
    let store = Store::from_pool(pool);
    for most in [1, 7, 300] {
        let sums = store.failure_sums(&subscriptions, all, most).await.unwrap();
        let counted: u64 = sums.iter().map(|sum| sum.count).sum();
        assert_eq!(counted, u64::from(most), "{sums:?}");
    }
}
