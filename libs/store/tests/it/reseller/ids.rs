//! The identifiers that the database computes and those that `domain` does.

use domain::notification::NotificationId;
use sqlx::PgPool;
use uuid::Uuid;

#[testkit::database_test]
async fn the_database_and_the_domain_compute_the_same_identifiers(pool: PgPool) {
    let computed: Vec<(Uuid, Uuid, Uuid)> = sqlx::query_as(
        "SELECT event, subscription, notification_id(event, subscription)
         FROM (SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 5000)
               UNION ALL VALUES ($1, $2), ($2, $1), ($1, $1), ($2, $2), ($3, $4), ($4, $3))
             AS i(event, subscription)",
    )
    .bind(Uuid::nil())
    .bind(Uuid::max())
    .bind(Uuid::now_v7())
    .bind(Uuid::now_v7())
    .fetch_all(&pool)
    .await
    .unwrap();
    assert_eq!(computed.len(), 5_006);
    for (event, subscription, computed) in computed {
        assert_eq!(
            NotificationId::of(event, subscription).uuid(),
            computed,
            "{event} {subscription}"
        );
    }
}
