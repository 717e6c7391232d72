//! A thousand resellers, one of which has ten subscriptions with a week of notifications, and what is kept of those.

use anyhow::{Context as _, Result};
use domain::clock::{Clock as _, SystemClock};
use sqlx::{AssertSqlSafe, Executor as _};

use super::{RESELLERS, SUBSCRIPTIONS};
use crate::rig::Rig;

/// Rows of one statement.
const BATCH: u64 = 100_000;
/// The time over which the notifications are spread, in milliseconds.
const SPAN_MILLIS: u64 = 7 * 86_400_000;

/// The first reseller has the first ten, every other one of its own.
const SUBSCRIBE: &str = "
    INSERT INTO subscriptions (id, reseller_id, url, event_types, email, state, state_reason, daily_quota, state_changed_at, verified_at,
                               created_at, updated_at)
    SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'reseller-' || greatest(0, n - $2 + 1), 'https://hooks-' || n || '.example',
           ARRAY ['*'], 'bench@localhost', 'ACTIVE', 'VERIFIED', 100000, now(), now(), now(), now()
    FROM generate_series(0, $1 + $2 - 2) AS n";

/// One event stands for all notifications of a statement. One in fifty thousand has failed, and one in a thousand waits.
const NOTIFY: &str = "
    WITH event AS (
        INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at)
        SELECT id, id::text, 'reseller-0', 'bench.happened',
               '{\"id\":\"' || id || '\",\"type\":\"bench.happened\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"data\":{}}', at, at
        FROM (SELECT overlay(replace(gen_random_uuid()::text, '-', '') PLACING lpad(to_hex({from}), 12, '0') || '7' FROM 1)::uuid AS id,
                     to_timestamp({from} / 1000.0) AS at) AS made
        RETURNING id),
    made AS (
        INSERT INTO notifications (id, event, subscription_id, reseller_id, event_type, status, reason, next_attempt_at, attempts,
                                   payload_bytes, created_at, updated_at, finished_at)
        SELECT overlay(replace(gen_random_uuid()::text, '-', '') PLACING lpad(to_hex(millis), 12, '0') || '8' FROM 1)::uuid,
               event.id, ('00000000-0000-4000-8000-' || lpad(s::text, 12, '0'))::uuid, 'reseller-0', 'bench.happened', status,
               CASE status WHEN 'SCHEDULED' THEN 'QUOTA' WHEN 'FAILED' THEN 'delivery/http/500' END,
               CASE status WHEN 'SCHEDULED' THEN now() + interval '1 day' END, CASE status WHEN 'SCHEDULED' THEN 0 ELSE 1 END, 384,
               to_timestamp(millis / 1000.0), to_timestamp(millis / 1000.0),
               CASE WHEN status <> 'SCHEDULED' THEN to_timestamp(millis / 1000.0) END
        FROM event, generate_series(0::bigint, {rows} - 1) AS n,
             LATERAL (SELECT {from} + n * {step} / 1000 AS millis, n % {subscriptions} AS s,
                             CASE WHEN n % 50000 = 7 THEN 'FAILED' WHEN n % 1000 = 1 THEN 'SCHEDULED' ELSE 'SENT' END AS status) AS one
        RETURNING id, subscription_id, status, created_at)
    INSERT INTO delivery_attempts (notification_id, number, status, started_at, millis, url, response_status, error_type, error, fingerprint)
    SELECT id, 1, CASE status WHEN 'SENT' THEN 'OK' ELSE 'ERROR' END, created_at, 42, 'https://hooks-0.example',
           CASE status WHEN 'SENT' THEN 200 ELSE 500 END, CASE status WHEN 'SENT' THEN NULL ELSE 'HTTP' END,
           CASE status WHEN 'SENT' THEN NULL ELSE 'the endpoint answered 500' END, CASE status WHEN 'SENT' THEN NULL ELSE 'delivery/http/500' END
    FROM made WHERE status <> 'SCHEDULED'";

/// Four weeks of each of the ten by the hour.
const COUNT: &str = "
    INSERT INTO delivery_statistics (subscription_id, hour, attempts, delivered, failed, retried, payload_bytes, latencies, statuses)
    SELECT ('00000000-0000-4000-8000-' || lpad(s::text, 12, '0'))::uuid, hour, 600, 590, 2, 8, 230400, array_fill(9::bigint, ARRAY [64]),
           '{\"200\": 590, \"500\": 10}'
    FROM generate_series(0, $1 - 1) AS s, generate_series(date_trunc('hour', now()) - interval '28 days', now(), interval '1 hour') AS hour";

/// Writes all of it.
pub(super) async fn fill(rig: &Rig, notifications: u64) -> Result<()> {
    // Seven days may begin in the month before.
    rig.pool
        .execute("SELECT create_month_partitions((date_trunc('month', now()) - interval '1 month')::date, 1)")
        .await
        .context("failed to make room for the month before")?;
    let (resellers, subscriptions) = (i32::try_from(RESELLERS)?, i32::try_from(SUBSCRIPTIONS)?);
    sqlx::query(SUBSCRIBE)
        .bind(resellers)
        .bind(subscriptions)
        .execute(&rig.pool)
        .await
        .context("failed to write subscriptions")?;
    sqlx::query(COUNT)
        .bind(subscriptions)
        .execute(&rig.pool)
        .await
        .context("failed to write the statistics of subscriptions")?;
    let now = u64::try_from(SystemClock.now().timestamp_millis())?;
    let step_micros = SPAN_MILLIS * 1_000 / notifications.max(1);
    for done in (0..notifications).step_by(usize::try_from(BATCH)?) {
        let statement = NOTIFY
            .replace(
                "{from}",
                &(now - SPAN_MILLIS + done * step_micros / 1_000).to_string(),
            )
            .replace("{rows}", &BATCH.min(notifications - done).to_string())
            .replace("{step}", &step_micros.to_string())
            .replace("{subscriptions}", &SUBSCRIPTIONS.to_string());
        rig.pool
            .execute(AssertSqlSafe(statement))
            .await
            .context("failed to write notifications")?;
    }
    Ok(())
}
