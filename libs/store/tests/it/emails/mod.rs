//! The outbox: every mail is sent by one, waits again when it must, and gathers what it may gather.

mod addresses;
mod gathering;
mod refusals;
mod security;
mod sending;
mod state_changes;

use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};
use domain::clock::{Clock, SystemClock};
use serde_json::Value;
use sqlx::PgPool;
use store::Store;
use store::webhook::{Addresses, ClaimedEmail, Postponement};
use uuid::Uuid;

use crate::scene::LONG;

fn now() -> DateTime<Utc> {
    SystemClock.now().trunc_subsecs(6)
}

fn postponed(at: DateTime<Utc>) -> Postponement {
    Postponement {
        at,
        delay: Duration::from_secs(60),
        max_age: Duration::from_secs(5 * 86_400),
    }
}

#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: Uuid,
    status: String,
    occurrences: i64,
    data: Value,
    attempts: i32,
    last_error: Option<String>,
    next_attempt_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
}

async fn rows(pool: &PgPool) -> Vec<Row> {
    sqlx::query_as("SELECT * FROM emails ORDER BY created_at, next_attempt_at")
        .fetch_all(pool)
        .await
        .unwrap()
}

async fn only_row(pool: &PgPool) -> Row {
    let mut rows = rows(pool).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

async fn claim_one(store: &Store, at: DateTime<Utc>) -> ClaimedEmail {
    let mut claimed = store
        .claim_emails(at, 10, LONG, Addresses::Confirmed)
        .await
        .unwrap();
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    claimed.remove(0)
}
