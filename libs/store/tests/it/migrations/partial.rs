//! A schema that is older or newer than what the program knows.

use sqlx::PgPool;
use store::Store;

use super::older_rows::migrate_to;

#[sqlx::test(migrations = false)]
async fn each_older_schema_is_known_to_lack_something(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let newest = newest();
    for version in 1..newest {
        migrate_to(version, &pool).await;
        assert!(!store.is_migrated().await.unwrap(), "{version:04}");
    }
    migrate_to(newest, &pool).await;
    assert!(store.is_migrated().await.unwrap());
}

#[testkit::database_test]
async fn a_schema_that_a_later_version_has_brought_further_is_left_as_it_is(pool: PgPool) {
    applied(&pool, newest() + 7).await;
    let store = Store::from_pool(pool);
    assert!(store.is_migrated().await.unwrap());
    let all = store::MIGRATOR.iter().count() + 1;
    assert_eq!(store.migrate().await.unwrap(), (all, all));
}

#[testkit::database_test]
async fn a_migration_of_another_history_is_refused(pool: PgPool) {
    applied(&pool, 0).await;
    let error = Store::from_pool(pool).migrate().await.unwrap_err();
    assert!(matches!(error, store::Error::Migrate(_)), "{error:?}");
}

#[testkit::database_test]
async fn a_later_migration_does_not_make_up_for_one_that_is_missing(pool: PgPool) {
    sqlx::query("DELETE FROM _sqlx_migrations WHERE version = $1")
        .bind(newest())
        .execute(&pool)
        .await
        .unwrap();
    applied(&pool, newest() + 7).await;
    assert!(!Store::from_pool(pool).is_migrated().await.unwrap());
}

fn newest() -> i64 {
    store::MIGRATOR
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap()
}

/// Notes a migration that this version does not know.
async fn applied(pool: &PgPool, version: i64) {
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES ($1, 'of another version', true, '\\x01', 1)",
    )
    .bind(version)
    .execute(pool)
    .await
    .unwrap();
}
