//! Cancelling a push that has not been sent yet.

use domain::push::{PushId, PushStatus};
use serde_json::json;

use crate::audit::{self, Act};
use crate::cancel::{Cancellation, refused};
use crate::{Error, Store, stored};

impl Store {
    /// Cancels a push that waits or is queued.
    pub async fn cancel_push(&self, id: PushId, act: Act<'_>) -> Result<Cancellation<PushStatus>, Error> {
        let mut transaction = self.pool.begin().await?;
        let row = sqlx::query!(
            r#"
            WITH found AS (
                SELECT id, status, lease_token IS NOT NULL AS claimed FROM push_notifications WHERE id = $1 FOR UPDATE),
            cancelled AS (
                UPDATE push_notifications p
                SET status = 'GIVEN_UP', reason = 'CANCELLED', next_attempt_at = NULL, leased_until = NULL,
                    finished_at = $2, updated_at = $2
                FROM found f
                WHERE p.id = f.id AND NOT f.claimed AND f.status IN ('SCHEDULED', 'PENDING', 'IN_MEMORY', 'RETRY')
                RETURNING p.id, p.attempts, p.message_prototype_key),
            letter AS (
                INSERT INTO dead_letters (lane, reason, fingerprint, push_id, prototype, attempts, detail, state,
                                          resolved_at, resolved_by, note)
                SELECT 'push', 'GIVEN_UP', 'other/cancelled', c.id, left(c.message_prototype_key, 200), c.attempts,
                       'cancelled by ' || $3, 'DISCARDED', $2, $3, coalesce(nullif(btrim($4), ''), 'cancelled')
                FROM cancelled c)
            SELECT status AS "status!", claimed AS "claimed!", EXISTS (SELECT FROM cancelled) AS "cancelled!" FROM found
            "#,
            id.uuid(),
            act.at,
            act.by,
            act.note,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else {
            return Ok(Cancellation::Unknown);
        };
        let status: PushStatus = stored("push status", &row.status)?;
        if !row.cancelled {
            return Ok(refused(row.claimed, status));
        }
        let details = json!({"status": status.as_str()});
        let entry = act.entry("push.cancel", format!("push/{id}"), details);
        audit::record(&mut transaction, &entry).await?;
        transaction.commit().await?;
        Ok(Cancellation::Done(status))
    }
}
