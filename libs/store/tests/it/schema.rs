//! Migrations.

use sqlx::PgPool;
use store::Store;

#[sqlx::test(migrations = false)]
async fn an_empty_database_is_migrated_once(pool: PgPool) {
    let store = Store::from_pool(pool);
    let all = store::MIGRATOR.iter().count();
    assert!(!store.is_migrated().await.unwrap());
    assert_eq!(store.migrate().await.unwrap(), (0, all));
    assert!(store.is_migrated().await.unwrap());
    assert_eq!(store.migrate().await.unwrap(), (all, all));
}

#[sqlx::test(migrations = false)]
async fn two_processes_may_migrate_at_once(pool: PgPool) {
    let (one, other) = (Store::from_pool(pool.clone()), Store::from_pool(pool));
    let (first, second) = tokio::join!(one.migrate(), other.migrate());
    first.unwrap();
    second.unwrap();
    assert!(one.is_migrated().await.unwrap());
}

#[testkit::database_test]
async fn a_schema_that_lacks_a_migration_is_not_migrated(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    sqlx::query("DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)")
        .execute(&pool)
        .await
        .unwrap();
    assert!(!store.is_migrated().await.unwrap());
}

#[testkit::database_test]
async fn a_migration_that_was_changed_after_it_was_applied_is_refused(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    sqlx::query("UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 1")
        .execute(&pool)
        .await
        .unwrap();
    let error = store.migrate().await.unwrap_err();
    assert!(matches!(error, store::Error::Migrate(_)), "{error:?}");
}
