//! What the tables promise by themselves: room in their pages, indexes, and which rows they refuse.

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::month::Month;
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use super::{Scene, rand};

#[testkit::database_test]
async fn clients_have_room_in_their_pages_and_messages_fill_them(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let made = scene.store.create_webpush_partitions(scene.month, 5).await;
    assert_eq!(made.unwrap(), 2, "beside those that the migrations made");
    for (parent, fill) in [
        ("webpush_clients", "fillfactor=70"),
        ("webpush_messages", "fillfactor=100"),
    ] {
        let filled_otherwise: Vec<String> = sqlx::query_scalar(
            "SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
             WHERE i.inhparent = $1::text::regclass AND NOT $2 = ANY (coalesce(c.reloptions, '{}'))",
        )
        .bind(parent)
        .bind(fill)
        .fetch_all(&pool)
        .await
        .unwrap();
        assert_eq!(filled_otherwise, [""; 0], "{parent}");
    }
}

#[testkit::database_test]
async fn a_client_and_its_messages_are_found_by_index(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let id = scene.uaid;
    let messages = format!("SELECT FROM webpush_messages WHERE uaid = '{id}'");
    let month = scene.month.first_day();
    for query in [
        format!("SELECT FROM webpush_clients WHERE uaid = '{id}'"),
        format!("{messages} AND month = '{month}' ORDER BY id LIMIT 10"),
        format!("{messages} AND month = '{month}' AND channel = '{id}' AND topic = 'a'"),
        format!("{messages} AND version = 'a'"),
        format!("{messages} AND channel = '{id}' AND topic = 'a' AND received_at < now()"),
    ] {
        let explain = AssertSqlSafe(format!("EXPLAIN {query}"));
        let plan: Vec<String> = sqlx::query_scalar(explain).fetch_all(&pool).await.unwrap();
        let plan = plan.join("\n");
        assert!(
            plan.contains("Index") && !plan.contains("Seq Scan"),
            "{query}:\n{plan}"
        );
    }
}

#[testkit::database_test]
async fn a_row_that_makes_no_sense_is_refused(pool: PgPool) {
    let insert = async |columns: &str, values: &str| {
        let month = Month::containing(SystemClock.now()).first_day();
        let statement = format!(
            "INSERT INTO webpush_messages (uaid, month, channel, version, received_at, expires_at{columns})
             VALUES ($1, '{month}', $1, 'a', now(), now(){values})"
        );
        sqlx::query(AssertSqlSafe(statement))
            .bind(Uuid::from_u128(rand()))
            .execute(&pool)
            .await
    };
    insert("", "").await.unwrap();
    insert(", data, encoding", ", 'a', 'aes128gcm'").await.unwrap();
    for (columns, values) in [
        (", data", ", 'a'"),
        (", encoding", ", 'aesgcm'"),
        (", encryption", ", 'salt=a'"),
        (", crypto_key", ", 'dh=a'"),
    ] {
        assert!(insert(columns, values).await.is_err(), "{columns}");
    }
    let clients = "INSERT INTO webpush_clients VALUES ($1, $2, NULL, now(), 'webpush', '{}', now())";
    let second = Month::containing(SystemClock.now()).first_day() + TimeDelta::days(1);
    let refused = sqlx::query(clients)
        .bind(Uuid::from_u128(rand()))
        .bind(second)
        .execute(&pool)
        .await;
    assert!(refused.is_err(), "a month has its first day");
}
