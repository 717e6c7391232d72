//! Rescue: pushes whose lease ran out are due again. Their message was lost, or their sender died.

use crate::{Error, Store};

/// What one pass of the rescuer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rescued {
    /// Pushes that wait for the queue again.
    pub pending: u64,
    /// Pushes that had used up their attempts.
    pub given_up: u64,
}

impl Store {
    /// Rescues at most `limit` pushes whose lease ran out, by the clock of the database. The attempt of a claimed one
    /// ends as an error of unknown outcome; one that has had `max_attempts` since it was accepted
    /// or replayed last is given up.
    pub async fn rescue_pushes(&self, limit: u32, max_attempts: u32) -> Result<Rescued, Error> {
        let rescued = sqlx::query!(
            r#"
            WITH lost AS (
                SELECT id, attempts, lease_token IS NOT NULL AS claimed,
                       lease_token IS NOT NULL AND attempts - replayed_after >= $2 AS spent
                FROM push_notifications
                WHERE status = 'IN_MEMORY' AND leased_until < now()
                ORDER BY leased_until LIMIT $1 FOR UPDATE SKIP LOCKED),
            rescued AS (
                UPDATE push_notifications p
                SET status = CASE WHEN l.spent THEN 'GIVEN_UP' ELSE 'PENDING' END,
                    finished_at = CASE WHEN l.spent THEN now() END,
                    lease_token = NULL, leased_until = NULL, updated_at = now()
                FROM lost l WHERE p.id = l.id
                RETURNING p.id, p.status, p.attempts, p.message_prototype_key),
            attempt AS (
                UPDATE send_attempts a
                SET status = 'ERROR', error_type = 'OTHER',
                    other_error_stack_trace = 'the lease ran out before an outcome was recorded; '
                                              'the push may have been sent'
                FROM lost l
                WHERE l.claimed AND a.push_notification_id = l.id AND a.number = l.attempts
                  AND a.status = 'IN_PROCESS'),
            dead AS (
                INSERT INTO dead_letters (lane, reason, fingerprint, push_id, prototype, attempts, error_type, detail)
                SELECT 'push', 'GIVEN_UP', 'other/lease-lost', id, left(message_prototype_key, 200), attempts, 'OTHER',
                       'the lease of the last allowed attempt ran out before an outcome was recorded'
                FROM rescued WHERE status = 'GIVEN_UP')
            SELECT count(*) FILTER (WHERE status = 'PENDING') AS "pending!",
                   count(*) FILTER (WHERE status = 'GIVEN_UP') AS "given_up!"
            FROM rescued
            "#,
            i64::from(limit),
            i32::try_from(max_attempts).unwrap_or(i32::MAX),
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(Rescued {
            pending: rescued.pending.unsigned_abs(),
            given_up: rescued.given_up.unsigned_abs(),
        })
    }
}
