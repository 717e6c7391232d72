//! Notifications that wait, inserted by the server itself: as many for every subscription there is, as if their events had
//! just come.

use anyhow::{Context as _, Result};
use futures::{TryStreamExt as _, stream};
use sqlx::{Executor as _, PgPool};

use super::stored;

/// Notifications of one statement, or one for each subscription where there are more of those.
const TOGETHER: u64 = 50_000;
/// As many statements at once.
const WRITERS: usize = 2;
/// Notifications with their events that are inserted a second, about.
pub(super) const PER_SECOND: u64 = 20_000;

/// Each event is one of all resellers, so that there are no more of them than a subscription has notifications.
const STATEMENT: &str = r#"
    WITH made AS (
        SELECT $1 + n AS number,
               overlay(replace(gen_random_uuid()::text, '-', '')
                       PLACING lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '7' FROM 1)::uuid AS id
        FROM generate_series(0::bigint, $2 - 1) AS n),
    event AS (
        INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at)
        SELECT id, id::text, 'bench-waits', 'bench.happened',
               '{"id":"' || id || '","type":"bench.happened","timestamp":"2026-01-01T00:00:00Z","data":{"number":"'
               || lpad(to_hex(number), 16, '0') || '","posted":"0000000000000000"}}', now(), now()
        FROM made)
    INSERT INTO notifications (id, event, subscription_id, reseller_id, event_type, status, reason, attempts,
                               next_attempt_at, payload_bytes, created_at, updated_at)
    SELECT notification_id(made.id, s.id), made.id, s.id, s.reseller_id, 'bench.happened', $3::text,
           CASE WHEN $3 = 'SCHEDULED' THEN 'QUOTA' END, CASE WHEN $3 = 'RETRY' THEN 1 ELSE 0 END,
           CASE WHEN $3 <> 'PENDING' THEN now() END, 180, now(), now()
    FROM made CROSS JOIN subscriptions s"#;

/// How a notification waits.
#[derive(Debug, Clone, Copy)]
pub(super) enum Waits {
    /// For its first attempt.
    First,
    /// For another one, which is due.
    Again,
    /// For the quota of its subscription.
    InLine,
}

impl Waits {
    fn status(self) -> &'static str {
        match self {
            Self::First => "PENDING",
            Self::Again => "RETRY",
            Self::InLine => "SCHEDULED",
        }
    }
}

/// Inserts `each` of them for every subscription, and does what autovacuum would have done by itself, had they come at a
/// natural pace.
pub(super) async fn insert(pool: &PgPool, waits: Waits, each: u64) -> Result<()> {
    let subscriptions = stored::count(pool, "subscriptions").await?.max(1);
    let events = (TOGETHER / subscriptions).max(1);
    let firsts = (0..each).step_by(usize::try_from(events)?);
    stream::iter(firsts.map(anyhow::Ok))
        .try_for_each_concurrent(WRITERS, |first| async move {
            sqlx::query(STATEMENT)
                .bind(i64::try_from(first)?)
                .bind(i64::try_from(events.min(each - first))?)
                .bind(waits.status())
                .execute(pool)
                .await
                .context("failed to insert waiting notifications")?;
            Ok(())
        })
        .await?;
    pool.execute("VACUUM ANALYZE notifications, events").await?;
    Ok(())
}
