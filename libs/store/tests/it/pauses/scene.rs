//! Who pauses what, and what is seen of it in rows.

use chrono::{DateTime, SubsecRound, Utc};
use domain::clock::{Clock, SystemClock};
use sqlx::PgPool;
use store::{Act, Pausable, PauseChange, Store};
use uuid::Uuid;

pub(crate) fn now() -> DateTime<Utc> {
    SystemClock.now().trunc_subsecs(6)
}

pub(crate) fn act(note: &'static str, at: DateTime<Utc>) -> Act<'static> {
    Act {
        by: "Anna (1)",
        note: Some(note),
        at,
    }
}

pub(crate) fn by_reseller() -> Act<'static> {
    crate::scene::act(now())
}

pub(crate) async fn pause(store: &Store, what: &Pausable) -> PauseChange {
    store.pause(what, act("because", now())).await.unwrap()
}

pub(crate) async fn resume(store: &Store, what: &Pausable) -> PauseChange {
    store.resume(what, act("well again", now())).await.unwrap()
}

pub(crate) async fn suspended(pool: &PgPool, id: Uuid) -> bool {
    sqlx::query_scalar("SELECT suspended FROM subscriptions WHERE id = $1")
        .bind(id)
        .fetch_one(pool)
        .await
        .unwrap()
}

pub(crate) async fn audited(pool: &PgPool) -> Vec<(String, String)> {
    sqlx::query_as("SELECT action, subject FROM audit_log ORDER BY id")
        .fetch_all(pool)
        .await
        .unwrap()
}
