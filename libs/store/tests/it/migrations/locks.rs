//! A migration that cannot have a lock gives up instead of keeping everybody out, and can be repeated.

use sqlx::PgPool;
use store::Store;

use super::older_rows::migrate_to;

#[sqlx::test(migrations = false)]
async fn a_lock_that_cannot_be_had_is_given_up_and_taken_another_time(pool: PgPool) {
    migrate_to(13, &pool).await;
    let mut reader = pool.begin().await.unwrap();
    sqlx::query("SELECT count(*) FROM dead_letters")
        .execute(&mut *reader)
        .await
        .unwrap();

    let store = Store::from_pool(pool.clone());
    let error = store.migrate().await.unwrap_err();
    assert!(matches!(error, store::Error::Migrate(_)), "{error:?}");
    let applied = "SELECT max(version) FROM _sqlx_migrations WHERE success";
    let newest: i64 = sqlx::query_scalar(applied).fetch_one(&pool).await.unwrap();
    assert_eq!(newest, 13, "nothing of the migration that failed is there");
    assert!(!store.is_migrated().await.unwrap());

    reader.commit().await.unwrap();
    store.migrate().await.unwrap();
    assert!(store.is_migrated().await.unwrap());
}
