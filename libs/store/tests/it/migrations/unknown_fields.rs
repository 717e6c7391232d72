//! Types that came with the schema refuse fields that they do not list; those that were made or changed by hand go on as they
//! were.

use domain::event::UnknownFields;
use sqlx::{AssertSqlSafe, PgPool};
use store::Store;

use super::older_rows::migrate_to;

/// Where every field was passed on.
const BEFORE: i64 = 28;
/// Where a type says what becomes of those that it does not list.
const UNKNOWN_FIELDS: i64 = 29;

async fn change(statement: &str, pool: &PgPool) {
    let changed = sqlx::query(AssertSqlSafe(statement)).execute(pool).await.unwrap();
    assert_eq!(changed.rows_affected(), 1, "{statement}");
}

async fn unknown_fields(pool: &PgPool, name: &str) -> UnknownFields {
    let store = Store::from_pool(pool.clone());
    store.find_event_type(name).await.unwrap().unwrap().unknown_fields
}

#[sqlx::test(migrations = false)]
async fn types_that_have_not_been_changed_become_closed(pool: PgPool) {
    migrate_to(BEFORE, &pool).await;
    for statement in [
        "UPDATE event_types SET retired_at = now(), updated_at = now() WHERE name = 'domain.renewed'",
        "UPDATE event_types SET schema = NULL WHERE name = 'domain.deleted'",
        "UPDATE event_types SET schema = jsonb_set(schema, '{properties,reason}', '{\"const\": \"verification\"}')
         WHERE name = 'domain.suspended'",
        "INSERT INTO event_types (name, description, example, schema) VALUES ('certificate.issued', 'Ours.', '{}', '{}')",
    ] {
        change(statement, &pool).await;
    }
    migrate_to(UNKNOWN_FIELDS, &pool).await;
    for name in [
        "domain.created",
        "domain.renewed",
        "domain.dnssec.updated",
        "order.failed",
    ] {
        assert_eq!(unknown_fields(&pool, name).await, UnknownFields::Refuse, "{name}");
    }
    for name in ["domain.deleted", "domain.suspended", "certificate.issued"] {
        assert_eq!(unknown_fields(&pool, name).await, UnknownFields::Allow, "{name}");
    }
}

#[testkit::database_test]
async fn every_type_that_comes_with_the_schema_is_closed_and_other_choices_are_refused(pool: PgPool) {
    let types = Store::from_pool(pool.clone()).list_event_types().await.unwrap();
    for event_type in types {
        assert_eq!(
            event_type.unknown_fields,
            UnknownFields::Refuse,
            "{}",
            event_type.name
        );
    }
    let wrong = "UPDATE event_types SET unknown_fields = 'MAYBE' WHERE name = 'host.deleted'";
    let refused = sqlx::query(wrong).execute(&pool).await.unwrap_err();
    let constraint = refused
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::constraint);
    assert_eq!(constraint, Some("unknown_fields_is_known"));
}
