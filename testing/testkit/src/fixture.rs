//! What a test is given, and what must have ended when the test has.
//!
//! Nothing can be waited for in `Drop`, so what is dropped at the end of a test leaves its end to be seen here, on the runtime of
//! the test, which must go on for it.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use lapin::Connection;
use sqlx::PgPool;
use tokio::time::Instant;
use uuid::Uuid;

use crate::PATIENCE;
use crate::queues;

/// What a test can ask for by taking it as its argument.
pub trait Fixture {
    /// Makes it, on a database of the test's own.
    fn on(pool: PgPool) -> impl Future<Output = Self>;
}

impl Fixture for PgPool {
    async fn on(pool: PgPool) -> Self {
        pool
    }
}

/// What a test may leave behind if it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    /// Pushes, notifications or mails that are claimed.
    Claims,
    /// A database that cannot be looked at.
    Database,
}

/// What the test that runs has used.
#[derive(Default)]
struct Used {
    endings: Vec<BoxFuture<'static, ()>>,
    queue_prefix: Option<String>,
    left: Vec<Leftover>,
    /// Tokens of claims that the test has put there by itself.
    own_claims: Vec<Uuid>,
}

tokio::task_local! {
    static USED: Arc<Mutex<Used>>;
}

/// Notes something about the test that runs; nothing outside of a test.
fn note(change: impl FnOnce(&mut Used)) {
    let _ = USED.try_with(|used| change(&mut used.lock().unwrap_or_else(PoisonError::into_inner)));
}

/// Has the end of something seen at the end of the test; `ended` panics when it is a bad one.
pub fn see_end(ended: BoxFuture<'static, ()>) {
    note(|used| used.endings.push(ended));
}

/// Has the queues with this prefix looked at and removed at the end of the test.
pub(crate) fn uses_queues(prefix: &str) {
    note(|used| used.queue_prefix = Some(prefix.to_owned()));
}

/// Has a claim that the test has put there by itself left alone, unless the product claims the same again.
pub(crate) fn makes_claim(token: Uuid) {
    note(|used| used.own_claims.push(token));
}

/// Names what this test leaves behind.
pub fn leaves(what: Leftover) {
    note(|used| used.left.push(what));
}

/// Runs a test. Afterwards whatever it had started must end well, and nothing that it has not named may be left: no message that
/// is not acknowledged, no transaction, no claim. Its queues are removed, whether it passed or not.
///
/// # Panics
///
/// When a server is missing, the test panics, or something is left.
pub async fn run<F: Fixture>(pool: PgPool, test: impl AsyncFnOnce(F)) {
    let used = Arc::<Mutex<Used>>::default();
    let run = async { test(F::on(pool.clone()).await).await };
    let mut outcome = AssertUnwindSafe(Box::pin(USED.scope(used.clone(), run)))
        .catch_unwind()
        .await;
    let used = std::mem::take(&mut *used.lock().unwrap_or_else(PoisonError::into_inner));
    if outcome.is_ok() {
        // At once, because the time that it takes counts.
        let ended = AssertUnwindSafe(join_all(used.endings)).catch_unwind().await;
        outcome = ended.map(drop);
    }
    let broker = match used.queue_prefix {
        Some(prefix) => Some((queues::connect().await, prefix)),
        None => None,
    };
    if outcome.is_ok() {
        let looked = nothing_is_left(&pool, broker.as_ref(), &used.left, &used.own_claims);
        outcome = AssertUnwindSafe(looked).catch_unwind().await;
    }
    if let Some((connection, prefix)) = &broker {
        queues::remove(connection, prefix).await;
        // The client may still be closing channels that were dropped, and then reports that as an error.
        let _ = connection.close(200, "done".into()).await;
    }
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

/// What is dropped is closed in the background: it is waited for.
async fn nothing_is_left(
    pool: &PgPool,
    broker: Option<&(Connection, String)>,
    named: &[Leftover],
    own_claims: &[Uuid],
) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut left = Vec::new();
        if !named.contains(&Leftover::Database) {
            let claims_may_be = named.contains(&Leftover::Claims);
            left.extend(in_the_database(pool, claims_may_be, own_claims).await);
        }
        if let Some((connection, prefix)) = broker {
            left.extend(queues::consumers(connection, prefix).await);
        }
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "the test has left {left:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// What is left in the database, by name.
async fn in_the_database(pool: &PgPool, claims_may_be: bool, own_claims: &[Uuid]) -> Vec<String> {
    let left = sqlx::query_scalar(
        "SELECT 'a transaction: ' || query FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
           AND xact_start IS NOT NULL
         UNION ALL SELECT 'a claimed ' || what
         FROM (SELECT 'push ' || id, lease_token FROM push_notifications
               UNION ALL SELECT 'notification ' || id, lease_token FROM notifications
               UNION ALL SELECT 'mail ' || id, lease_token FROM emails) AS claim (what, token)
         WHERE token IS NOT NULL AND token <> ALL($2) AND NOT $1",
    )
    .bind(claims_may_be)
    .bind(own_claims)
    .fetch_all(pool)
    .await;
    left.unwrap_or_else(|error| vec![format!("a database that cannot be looked at: {error}")])
}
