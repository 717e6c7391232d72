//! What a step of a recovery looks at besides dead letters: its subscription, and how often something was sent again already.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use domain::subscription::{
    Probe, RECOVERIES_MAX, RECOVERY_PARTS, RateBudget, RecoveryEnd, RecoveryGround, RecoveryStep,
};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::BY;
use crate::{Act, Error};

/// A recovery that its step has to itself.
#[derive(Debug, Clone, Copy)]
pub(in crate::resolution) struct Recovery {
    pub(in crate::resolution) subscription: Uuid,
    pub(in crate::resolution) probe: Option<Uuid>,
}

/// How a recovery may go on now.
pub(in crate::resolution) enum Bearing {
    /// With so many at most, at this rate.
    On(usize, RateBudget),
    /// Not yet.
    Waits,
    /// Not any more.
    Ends(RecoveryEnd),
}

/// Asks for the state of its subscription. Without a lock: what completes attempts must not wait for a step.
pub(in crate::resolution) async fn bearing(
    connection: &mut PgConnection,
    recovery: Recovery,
    (per_second, default_rate): (u32, Option<u32>),
    paced_to: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Bearing, Error> {
    let row = sqlx::query!(
        r#"
        SELECT s.failing_since IS NOT NULL AS "failing!", s.suspended AS "suspended!", s.requests_per_second,
               s.deleted_at IS NULL AND s.state IN ('ACTIVE', 'DEGRADED') AS "active!",
               s.resend_after_outage IS NOT DISTINCT FROM false AS "switched_off!",
               (SELECT n.status FROM notifications n WHERE n.id = $2) AS probe,
               (SELECT count(*) FROM (
                    SELECT FROM notifications n
                    WHERE n.subscription_id = s.id AND n.status = 'RETRY'
                      AND n.next_attempt_at <= $3::timestamptz + interval '5 seconds'
                    LIMIT $4) AS due) AS "waiting!"
        FROM subscriptions s WHERE s.id = $1
        "#,
        recovery.subscription,
        recovery.probe,
        now,
        i64::from(per_second),
    )
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else {
        return Ok(Bearing::Ends(RecoveryEnd::Inactive));
    };
    let ground = RecoveryGround {
        failing: row.failing,
        active: row.active,
        paused: row.suspended,
        switched_off: row.switched_off,
        probe: match (recovery.probe, row.probe.as_deref()) {
            (None, _) => Probe::Missing,
            (Some(_), None | Some("SENT" | "FAILED" | "GIVEN_UP")) => Probe::Ended,
            (Some(_), Some(_)) => Probe::UnderWay,
        },
        waiting: u32::try_from(row.waiting).unwrap_or(u32::MAX),
    };
    // A limit that was lowered since the job was made holds for it too.
    let limit = row.requests_per_second.map(i32::unsigned_abs).or(default_rate);
    let rate_budget = match limit.filter(|limit| limit.div_ceil(RECOVERY_PARTS) <= per_second) {
        Some(limit) => RateBudget::part(now, paced_to, limit, RECOVERY_PARTS),
        None => RateBudget::at(now, paced_to, per_second),
    };
    Ok(match ground.next(per_second) {
        RecoveryStep::Take(room) => {
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            Bearing::On(rate_budget.count.min(room), rate_budget)
        }
        RecoveryStep::Wait => Bearing::Waits,
        RecoveryStep::End(why) => Bearing::Ends(why),
    })
}

/// Ends a recovery that is not through: what is left stays open for the next one.
pub(in crate::resolution) async fn end(
    connection: &mut PgConnection,
    job: Uuid,
    why: RecoveryEnd,
    act: &Act<'_>,
) -> Result<(), Error> {
    sqlx::query!(
        r#"
        UPDATE dead_letter_jobs SET status = 'CANCELLED', ended_because = $2, updated_at = $3, finished_at = $3
        WHERE id = $1
        "#,
        job,
        why.as_str(),
        act.at,
    )
    .execute(&mut *connection)
    .await?;
    let details = json!({ "because": why.as_str() });
    let entry = act.entry("dead-letter-job.cancel", super::super::job(job), details);
    entry.record(connection).await
}

/// Those of some notifications that were sent again by themselves as often as that may be.
pub(in crate::resolution) async fn often_recovered(
    connection: &mut PgConnection,
    notifications: &[Uuid],
) -> Result<HashSet<Uuid>, Error> {
    let often = sqlx::query_scalar!(
        r#"
        SELECT notification_id AS "id!" FROM dead_letters
        WHERE notification_id = ANY ($1) AND state = 'REPLAYED' AND resolved_by = $2
        GROUP BY notification_id HAVING count(DISTINCT job_id) >= $3
        "#,
        notifications,
        BY,
        i64::from(RECOVERIES_MAX),
    )
    .fetch_all(connection)
    .await?;
    Ok(often.into_iter().collect())
}

/// Notes which notification goes first.
pub(in crate::resolution) async fn note_probe(
    connection: &mut PgConnection,
    job: Uuid,
    probe: Uuid,
) -> Result<(), Error> {
    sqlx::query!("UPDATE dead_letter_jobs SET probe = $2 WHERE id = $1", job, probe)
        .execute(connection)
        .await?;
    Ok(())
}
