//! The tallies of dead letters: whatever is done to them, by however many at once, the counts are those of the rows.

use sqlx::PgPool;

use crate::dead_letter_scene::make_dead_letters;

type Count = (String, String, String, String, String, i64);

async fn by_tally(pool: &PgPool) -> Vec<Count> {
    sqlx::query_as(
        "SELECT state, lane, reason, fingerprint, target || ' ' || hour, sum(letters)::bigint FROM dead_letter_tallies
         GROUP BY 1, 2, 3, 4, 5 HAVING sum(letters) <> 0 ORDER BY 1, 2, 3, 4, 5",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

/// By kind, whatever the hour.
async fn by_total(pool: &PgPool) -> Vec<Count> {
    sqlx::query_as(
        "SELECT state, lane, reason, fingerprint, target, sum(letters)::bigint FROM dead_letter_totals
         GROUP BY 1, 2, 3, 4, 5 HAVING sum(letters) <> 0 ORDER BY 1, 2, 3, 4, 5",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

async fn by_kind(pool: &PgPool) -> Vec<Count> {
    sqlx::query_as(
        "SELECT state, lane, reason, fingerprint, target, count(*) FROM dead_letters
         GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

async fn assert_counted(pool: &PgPool) {
    assert_eq!(by_tally(pool).await, by_row(pool).await);
    assert_eq!(by_total(pool).await, by_kind(pool).await);
}

async fn by_row(pool: &PgPool) -> Vec<Count> {
    sqlx::query_as(
        "SELECT state, lane, reason, fingerprint, target || ' ' || hour_of(created_at), count(*) FROM dead_letters
         GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

/// What one of several does at once: transactions of two statements that touch the same kinds as everybody's, in both
/// orders, every fifth of them rolled back.
async fn meddle(pool: PgPool, seed: i32) {
    let statements = [
        "INSERT INTO dead_letters (lane, reason, fingerprint, push_id, detail, target)
         SELECT 'push', 'FAILED', 'swrve/400/' || i % 3, gen_random_uuid(), 'x', '400' FROM generate_series(1, 1 + $1 % 5) i",
        "UPDATE dead_letters SET state = 'REPLAYED', resolved_at = now(), resolved_by = 'a test'
         WHERE id IN (SELECT id FROM dead_letters WHERE state = 'OPEN' AND $1 >= 0
                      ORDER BY random() LIMIT 7 FOR UPDATE SKIP LOCKED)",
        "DELETE FROM dead_letters
         WHERE id IN (SELECT id FROM dead_letters WHERE $1 >= 0 ORDER BY random() LIMIT 5 FOR UPDATE SKIP LOCKED)",
        "UPDATE dead_letters SET detail = 'y', target = CASE WHEN target = '1' THEN '2' ELSE '1' END
         WHERE id IN (SELECT id FROM dead_letters WHERE lane = 'push' AND $1 >= 0
                      ORDER BY random() LIMIT 5 FOR UPDATE SKIP LOCKED)",
    ];
    for round in 0..40_i32 {
        let mut transaction = pool.begin().await.unwrap();
        for step in 0..2 {
            let which = (seed + round * (step + 1)).unsigned_abs() as usize % statements.len();
            sqlx::query(statements[which])
                .bind(round)
                .execute(&mut *transaction)
                .await
                .unwrap();
        }
        if round % 5 == 4 {
            transaction.rollback().await.unwrap();
        } else {
            transaction.commit().await.unwrap();
        }
    }
}

#[testkit::database_test]
async fn the_counts_are_those_of_the_rows_whatever_is_done_at_once(pool: PgPool) {
    make_dead_letters(&pool, 600).await;
    assert_counted(&pool).await;
    let several: Vec<_> = (0..6)
        .map(|seed| tokio::spawn(meddle(pool.clone(), seed)))
        .collect();
    for one in several {
        one.await.unwrap();
    }
    assert_counted(&pool).await;
    sqlx::query("DELETE FROM dead_letters")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!((by_tally(&pool).await, by_total(&pool).await), (vec![], vec![]));
    make_dead_letters(&pool, 10).await;
    sqlx::query("TRUNCATE dead_letters").execute(&pool).await.unwrap();
    assert_eq!((by_tally(&pool).await, by_total(&pool).await), (vec![], vec![]));
}

/// A transaction that is slow to commit holds up no other that counts dead letters of the same kind.
#[testkit::database_test]
async fn a_transaction_that_holds_a_tally_keeps_no_other_waiting(pool: PgPool) {
    let insert = "INSERT INTO dead_letters (lane, reason, fingerprint, push_id, detail)
                  VALUES ('push', 'FAILED', 'swrve/400', gen_random_uuid(), 'x')";
    sqlx::query(insert).execute(&pool).await.unwrap();
    let mut slow = pool.begin().await.unwrap();
    sqlx::query(insert).execute(&mut *slow).await.unwrap();
    for _ in 0..3 {
        let mut quick = pool.begin().await.unwrap();
        sqlx::query("SET LOCAL lock_timeout = '5s'")
            .execute(&mut *quick)
            .await
            .unwrap();
        sqlx::query(insert).execute(&mut *quick).await.unwrap();
        quick.commit().await.unwrap();
    }
    slow.commit().await.unwrap();
    assert_counted(&pool).await;
    let rows: i64 = sqlx::query_scalar(
        "SELECT greatest((SELECT count(*) FROM dead_letter_tallies), (SELECT count(*) FROM dead_letter_totals))",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert!(
        rows <= 2,
        "{rows} rows, although never more than two transactions were under way"
    );
}
