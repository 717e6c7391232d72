//! `migrate`.

use sqlx::PgPool;

use crate::postrider::postrider;

#[sqlx::test(migrations = false)]
async fn migrating_twice_does_nothing_the_second_time(pool: PgPool) {
    let first = postrider("migrate").on(&pool).run();
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(
        first.stdout.starts_with("applied 0001 pushes\n"),
        "{}",
        first.stdout
    );
    let second = postrider("migrate").on(&pool).run();
    let count = store::MIGRATOR.iter().count();
    assert_eq!(
        (second.code, second.stdout),
        (Some(0), format!("the schema is up to date: {count} migrations\n"))
    );
    for parent in ["push_notifications", "webpush_clients", "webpush_messages"] {
        let partitions: i64 =
            sqlx::query_scalar("SELECT count(*) FROM pg_inherits WHERE inhparent = $1::regclass")
                .bind(parent)
                .fetch_one(&pool)
                .await
                .unwrap();
        assert!(
            partitions > 3,
            "this month and the months ahead: {partitions} of {parent}"
        );
    }
}

#[test]
fn a_database_that_is_away_is_named_without_its_password() {
    let finished = postrider("migrate")
        .env("DATABASE_URL", "postgres://me:hunter2@127.0.0.1:1/none")
        .env("POSTRIDER__DATABASE__ACQUIRE_TIMEOUT_MILLIS", "100")
        .run();
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.stderr.contains("127.0.0.1:1/none"),
        "{}",
        finished.stderr
    );
    assert!(!finished.stderr.contains("hunter2"), "{}", finished.stderr);
}
