//! Cancelling a push that has not been sent yet.

use domain::push::{PushId, PushStatus};

use crate::cancel::{self, Cancellation, Found};
use crate::{Act, Error, Store};

impl Store {
    /// Cancels a push that waits or is queued.
    pub async fn cancel_push(&self, id: PushId, act: Act<'_>) -> Result<Cancellation<PushStatus>, Error> {
        let mut transaction = self.pool.begin().await?;
        let found = sqlx::query_as!(
            Found,
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
        cancel::commit(transaction, found, "push", id, act).await
    }
}
