//! Variants come into a catalogue that an operator may have changed, and that services of the version before go on writing.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool};

use super::older_rows::migrate_to;

/// Where event types had no variants.
const NO_VARIANTS: i64 = 20;
/// Where they got them.
const VARIANTS: i64 = 21;

#[derive(Debug, PartialEq, sqlx::FromRow)]
struct Row {
    name: String,
    description: String,
    attributes: Value,
    example: Value,
    schema: Option<Value>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    retired_at: Option<DateTime<Utc>>,
}

/// Everything that the version before knows of the catalogue.
async fn rows(pool: &PgPool) -> Vec<Row> {
    let rows = "SELECT name, description, attributes, example, schema, created_at, updated_at, retired_at
                FROM event_types ORDER BY name";
    sqlx::query_as(rows).fetch_all(pool).await.unwrap()
}

async fn change(statement: &str, pool: &PgPool) {
    let changed = sqlx::query(AssertSqlSafe(statement)).execute(pool).await.unwrap();
    assert_eq!(changed.rows_affected(), 1, "{statement}");
}

async fn variants(pool: &PgPool, name: &str) -> Vec<Value> {
    let variants = "SELECT variants FROM event_types WHERE name = $1";
    let variants: Value = sqlx::query_scalar(variants)
        .bind(name)
        .fetch_one(pool)
        .await
        .unwrap();
    variants.as_array().unwrap().clone()
}

#[sqlx::test(migrations = false)]
async fn variants_come_to_types_whose_payloads_are_unchanged(pool: PgPool) {
    migrate_to(NO_VARIANTS, &pool).await;
    for statement in [
        "UPDATE event_types SET description = 'Ours.' WHERE name = 'domain.created'",
        "UPDATE event_types SET retired_at = now(), updated_at = now() WHERE name = 'domain.renewed'",
        "UPDATE event_types SET schema = NULL WHERE name = 'domain.deleted'",
        "UPDATE event_types SET schema = jsonb_set(schema, '{properties,reason}', '{\"const\": \"verification\"}')
         WHERE name = 'domain.suspended'",
        "UPDATE event_types SET example = '{\"domain\": {\"name\": \"example.net\"}, \"lock\": \"update\"}'
         WHERE name = 'domain.lock.enabled'",
        "DELETE FROM event_types WHERE name = 'host.created'",
        "INSERT INTO event_types (name, description, example) VALUES ('certificate.issued', 'It was issued.', '{}')",
    ] {
        change(statement, &pool).await;
    }
    let before = rows(&pool).await;
    migrate_to(VARIANTS, &pool).await;
    assert_eq!(rows(&pool).await, before, "nothing else has changed");
    for name in [
        "domain.created",
        "domain.renewed",
        "domain.lock.disabled",
        "order.failed",
    ] {
        assert!(!variants(&pool, name).await.is_empty(), "{name}");
    }
    for name in [
        "domain.deleted",
        "domain.suspended",
        "domain.lock.enabled",
        "certificate.issued",
    ] {
        assert_eq!(variants(&pool, name).await, Vec::<Value>::new(), "{name}");
    }
}

#[testkit::database_test]
async fn what_the_version_before_writes_has_no_variants_or_keeps_them(pool: PgPool) {
    let put = |name: &str| {
        format!(
            "INSERT INTO event_types AS t (name, description, attributes, example, schema, created_at, updated_at)
             VALUES ('{name}', 'Ours.', '[]', '{{}}', NULL, now(), now())
             ON CONFLICT (name) DO UPDATE
             SET description = EXCLUDED.description, attributes = EXCLUDED.attributes, example = EXCLUDED.example,
                 schema = EXCLUDED.schema, retired_at = NULL, updated_at = EXCLUDED.updated_at"
        )
    };
    change(&put("certificate.issued"), &pool).await;
    assert_eq!(variants(&pool, "certificate.issued").await, Vec::<Value>::new());
    let before = variants(&pool, "domain.suspended").await;
    change(&put("domain.suspended"), &pool).await;
    assert_eq!(variants(&pool, "domain.suspended").await, before);
    assert!(!before.is_empty());
}

#[testkit::database_test]
async fn variants_are_a_list(pool: PgPool) {
    for wrong in [json!({}), json!(null), json!("in")] {
        let statement = "UPDATE event_types SET variants = $1 WHERE name = 'host.deleted'";
        let refused = sqlx::query(statement).bind(&wrong).execute(&pool).await;
        let error = refused.unwrap_err();
        let constraint = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::constraint);
        assert_eq!(constraint, Some("variants_are_listed"), "{wrong}");
    }
}
